// A reading as JSON: the same for the command, the route and the answer to a send.
#pragma once

#include <string_view>

#include "belfry/base/json.h"
#include "belfry/when/when.h"

namespace belfry::when {

// Adds its fields to an object that is open: at, kind, end, timezone, …, sentence.
void write_reading(json::Writer& writer, const Reading& reading, std::string_view text);

}  // namespace belfry::when
