#include "belfry/app/model.h"

#include <cstdlib>

#include <fmt/format.h>

namespace belfry::app {
namespace {

constexpr const char* kUsualVariable = "OPENAI_API_KEY";
constexpr std::size_t kKeyBytesMax = 4'096;

std::string variable_of(const ModelConfig& config) {
  return config.api_key_env.empty() ? kUsualVariable : config.api_key_env;
}

}  // namespace

Result<Secret> read_model_key(const ModelConfig& config, const Lookup& lookup) {
  const std::string name = variable_of(config);
  const char* const value = lookup(name.c_str());
  std::string key = value ? value : "";
  if (key.empty() && !config.api_key_env.empty())
    return fail(Errc::invalid_argument, fmt::format("[llm] api_key_env names {}, which is not set", name));
  if (key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("the key in {} is longer than {} bytes", name, kKeyBytesMax));
  for (const char c : key)
    if (c <= ' ' || c > '~')
      return fail(Errc::invalid_argument,
                  fmt::format("the key in {} has a character that a header cannot carry", name));
  return Secret(std::move(key));
}

Result<Secret> take_model_key(const ModelConfig& config) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet
  auto key = read_model_key(config, [](const char* name) { return std::getenv(name); });
  ::unsetenv(variable_of(config).c_str());  // NOLINT(concurrency-mt-unsafe)
  return key;
}

Result<std::optional<llm::ClientOptions>> model_options(const ModelConfig& config, Secret key) {
  if (config.base_url.empty()) return std::nullopt;
  if (config.model.empty()) return fail(Errc::invalid_argument, "[llm] base_url is set, but model is not");
  BELFRY_TRY(net::WebUrl base, net::parse_web_url(config.base_url));
  return llm::ClientOptions{.base = std::move(base),
                            .model = config.model,
                            .key = std::move(key),
                            .ca_file = config.ca_file,
                            .connect = config.connect_timeout,
                            .first_byte = config.first_byte_timeout,
                            .silence = config.silence_timeout,
                            .whole = config.timeout,
                            .attempts = config.attempts};
}

}  // namespace belfry::app
