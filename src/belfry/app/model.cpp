#include "belfry/app/model.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace belfry::app {
namespace {

constexpr const char* kUsualVariable = "OPENAI_API_KEY";
constexpr std::size_t kKeyBytesMax = 4'096;

std::string variable_of(const ModelConfig& config) {
  return config.api_key_env.empty() ? kUsualVariable : config.api_key_env;
}

Result<Secret> checked(std::string key, const std::string& where) {
  if (key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("the key in {} is longer than {} bytes", where, kKeyBytesMax));
  for (const char c : key)
    if (c <= ' ' || c > '~')
      return fail(Errc::invalid_argument,
                  fmt::format("the key in {} has a character that a header cannot carry", where));
  return Secret(std::move(key));
}

Result<Secret> key_in_file(const ModelConfig& config) {
  const std::string& path = config.api_key_file;
  if (!config.api_key_env.empty())
    return fail(Errc::invalid_argument, "[llm] api_key_file stands beside api_key_env; one of them is enough");
  if (exposure_of(path) == Exposure::anybody_writes)
    return fail(Errc::invalid_argument, fmt::format("anybody can write to the key file {}; chmod 600 it first", path));
  std::ifstream file(path);
  std::string key(kKeyBytesMax + 2, '\0');
  file.read(key.data(), static_cast<std::streamsize>(key.size()));
  key.resize(static_cast<std::size_t>(file.gcount()));
  key.erase(std::min(key.find('\n'), key.size()));
  if (key.ends_with('\r')) key.pop_back();
  if (key.empty()) return fail(Errc::invalid_argument, fmt::format("[llm] api_key_file: there is no key in {}", path));
  return checked(std::move(key), path);
}

}  // namespace

Result<Secret> read_model_key(const ModelConfig& config, const Lookup& lookup) {
  if (!config.api_key_file.empty()) return key_in_file(config);
  const std::string name = variable_of(config);
  const char* const value = lookup(name.c_str());
  std::string key = value ? value : "";
  if (key.empty() && !config.api_key_env.empty())
    return fail(Errc::invalid_argument, fmt::format("[llm] api_key_env names {}, which is not set", name));
  return checked(std::move(key), name);
}

Result<Secret> take_model_key(const ModelConfig& config) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet
  auto key = read_model_key(config, [](const char* name) { return std::getenv(name); });
  const std::string name = variable_of(config);
  // The kernel goes on showing the block with which the process was started (/proc/PID/environ), so it is overwritten.
  if (char* const value = std::getenv(name.c_str()))
    ::explicit_bzero(value, std::strlen(value));  // NOLINT(concurrency-mt-unsafe)
  ::unsetenv(name.c_str());                       // NOLINT(concurrency-mt-unsafe)
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
