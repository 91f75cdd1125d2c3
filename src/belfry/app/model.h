// The settings of the language model, made ready for its client.
#pragma once

#include "belfry/app/config.h"
#include "belfry/base/secret.h"
#include "belfry/llm/client.h"

namespace belfry::app {

// The key, from the variable that the settings name. None if nothing is named and OPENAI_API_KEY is not set: servers on the
// same machine often want none. No refusal contains the key.
Result<Secret> read_model_key(const ModelConfig& config, const Lookup& lookup);
// The same from the environment of this process, which has it no more afterwards, and so no child of ours has it. To be
// called before there are threads.
Result<Secret> take_model_key(const ModelConfig& config);

// Nothing if no model is configured.
Result<std::optional<llm::ClientOptions>> model_options(const ModelConfig& config, Secret key);

}  // namespace belfry::app
