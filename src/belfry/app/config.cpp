#include "belfry/app/config.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "belfry/agent/concierge/concierge.h"
#include "belfry/base/json.h"
#include "belfry/bus/recipients.h"
#include "belfry/chat/conversation.h"
#include "belfry/net/url.h"
#include "belfry/plugin/manifest.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it out of the headers

namespace belfry::app {
namespace {

constexpr const char* kConfigFile = "belfry.toml";

std::unexpected<Error> wrong(std::string_view value, std::string_view wanted) {
  return fail(Errc::invalid_argument, fmt::format("\"{}\" is not {}", value, wanted));
}

Result<std::int64_t> whole(const std::string& value, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < least || number > most)
    return wrong(value, fmt::format("a number from {} to {}", least, most));
  return number;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');)
    if (!one.empty()) out.push_back(one);
  return out;
}

Result<> not_empty(std::string& into, const std::string& value, std::string_view wanted) {
  if (value.empty()) return wrong(value, wanted);
  into = value;
  return {};
}

// A name as a Host header has it: with or without a port, never with a scheme or a path.
Result<> check_host(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  };
  const bool bracketed = name.starts_with('[');
  const std::size_t end = bracketed ? name.find(']') : name.find(':');
  const std::string host = name.substr(0, bracketed && end != std::string::npos ? end + 1 : end);
  const bool has_port = host.size() < name.size();
  const bool good = bracketed ? end != std::string::npos && end > 1 : std::all_of(host.begin(), host.end(), fits);
  if (host.empty() || !good || (has_port && !net::parse_host_port(name)))
    return wrong(name, "a host name like bells.example or bells.example:8443, without a scheme or a path");
  return {};
}

// A time of the model's client.
template <Millis ModelConfig::* kTime>
Result<> set_model_time(Config& config, const std::string& value) {
  BELFRY_TRY(const auto ms, whole(value, 1, 3'600'000));
  config.llm.*kTime = Millis{ms};
  return {};
}

// What one task may cost.
template <std::int64_t agent::Spend::* kCost>
Result<> set_task_cost(Config& config, const std::string& value) {
  BELFRY_TRY(const auto number, whole(value, 1, 1'000'000'000'000));
  config.task_max.*kCost = number;
  return {};
}

bool is_variable_name(const std::string& name) {
  return !name.empty() && !(name.front() >= '0' && name.front() <= '9') &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

struct Setting {
  std::string_view section;
  std::string_view key;
  Result<> (*set)(Config&, const std::string&);
};

constexpr std::int64_t kDayMs = 86'400'000;

template <int run::SlotLimits::* limit>
Result<> set_slots(Config& config, const std::string& value) {
  BELFRY_TRY(const auto number, whole(value, 1, 1'000));
  config.tools_at_once.*limit = static_cast<int>(number);
  return {};
}

Result<plugin::Sandbox> read_sandbox(const std::string& value) {
  const auto sandbox = plugin::sandbox_of(value);
  if (!sandbox) return wrong(value, "strict, usual or off");
  return *sandbox;
}

// How much a plugin may take.
template <int plugin::Amounts::* kAmount>
Result<> set_amount(Config& config, const std::string& value) {
  BELFRY_TRY(const auto number, whole(value, 1, 1'000'000));
  config.plugin_amounts.*kAmount = static_cast<int>(number);
  return {};
}

const Setting kSettings[] = {
    {"server", "listen",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const net::HostPort ignored, net::parse_host_port(value));
       config.listen = value;
       return {};
     }},
    {"server", "data",
     [](Config& config, const std::string& value) -> Result<> { return not_empty(config.data, value, "a directory"); }},
    {"server", "token_file",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.token_file, value, "a file with a token");
     }},
    {"server", "panel",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.panel, value, "a folder with the panel's files");
     }},
    {"server", "allow_hosts",
     [](Config& config, const std::string& value) -> Result<> {
       std::vector<std::string> names = split(value);
       if (names.empty()) return wrong(value, "a list of host names");
       for (const std::string& name : names) BELFRY_CHECK(check_host(name));
       config.allow_hosts = std::move(names);
       return {};
     }},
    {"server", "on_stop",
     [](Config& config, const std::string& value) -> Result<> {
       if (value != "deliver" && value != "keep") return wrong(value, "deliver or keep");
       config.on_stop = value == "keep" ? OnStop::keep : OnStop::deliver;
       return {};
     }},
    {"server", "stop_deadline_ms",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto ms, whole(value, 0, 3'600'000));
       config.stop_deadline = Millis{ms};
       return {};
     }},
    {"limits", "connections",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto number, whole(value, 1, 100'000));
       config.connections_max = static_cast<int>(number);
       return {};
     }},
    {"limits", "attempts",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto number, whole(value, 1, 1'000));
       config.attempts_max = static_cast<int>(number);
       return {};
     }},
    {"limits", "agents_at_once",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto number, whole(value, 1, 1'000));
       config.agents_at_once = static_cast<int>(number);
       return {};
     }},
    {"limits", "tools_at_once", set_slots<&run::SlotLimits::total>},
    {"limits", "tools_per_tool", set_slots<&run::SlotLimits::per_tool>},
    {"limits", "tools_per_provider", set_slots<&run::SlotLimits::per_provider>},
    {"plugins", "dirs",
     [](Config& config, const std::string& value) -> Result<> {
       config.plugins = split(value);
       if (config.plugins.empty()) return wrong(value, "a list of folders");
       return {};
     }},
    {"plugins", "sandbox",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(config.sandbox, read_sandbox(value));
       return {};
     }},
    {"plugins", "processes", set_amount<&plugin::Amounts::processes>},
    {"plugins", "memory_mib", set_amount<&plugin::Amounts::memory_mib>},
    {"plugins", "output_entries", set_amount<&plugin::Amounts::entries>},
    {"plugins", "output_levels", set_amount<&plugin::Amounts::levels>},
    {"plugins", "output_mib", set_amount<&plugin::Amounts::output_mib>},
    {"plugins", "landlock_abi_max",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto number, whole(value, 0, plugin::kLandlockNewest));
       config.landlock_abi_max = static_cast<int>(number);
       return {};
     }},
    {"overlays", "global",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.overlays.global, value, "a text");
     }},
    {"overlays", "schedule_progress",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.overlays.schedule_progress, value, "a text");
     }},
    {"limits", "task_turns", set_task_cost<&agent::Spend::turns>},
    {"limits", "task_model_calls", set_task_cost<&agent::Spend::calls>},
    {"limits", "task_tokens", set_task_cost<&agent::Spend::tokens>},
    {"retention", "days",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto days, whole(value, 1, 3'650));
       config.retention = Millis{days * kDayMs};
       return {};
     }},
    {"retention", "runs_days",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto days, whole(value, 0, 3'650));
       config.runs_retention = Millis{days * kDayMs};
       return {};
     }},
    {"user", "timezone",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const when::Zone zone, when::Zone::named(value));
       config.timezone = zone.name();
       return {};
     }},
    {"user", "language",
     [](Config& config, const std::string& value) -> Result<> {
       if (value.empty()) return wrong(value, "auto, en or zh");
       BELFRY_TRY(config.language, when::parse_language(value));
       return {};
     }},
    {"llm", "base_url",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const net::WebUrl ignored, net::parse_web_url(value));
       config.llm.base_url = value;
       return {};
     }},
    {"llm", "model",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.llm.model, value, "the name of a model");
     }},
    {"llm", "api_key_env",
     [](Config& config, const std::string& value) -> Result<> {
       // Whoever writes the key itself here is not shown it again.
       if (!is_variable_name(value))
         return fail(Errc::invalid_argument,
                     "it is the name of an environment variable that holds the key, not the key");
       config.llm.api_key_env = value;
       return {};
     }},
    {"llm", "api_key_file",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.llm.api_key_file, value, "a file that holds the key");
     }},
    {"llm", "ca_file",
     [](Config& config, const std::string& value) -> Result<> {
       return not_empty(config.llm.ca_file, value, "a file with certificates");
     }},
    {"llm", "connect_timeout_ms", set_model_time<&ModelConfig::connect_timeout>},
    {"llm", "first_byte_timeout_ms", set_model_time<&ModelConfig::first_byte_timeout>},
    {"llm", "silence_timeout_ms", set_model_time<&ModelConfig::silence_timeout>},
    {"llm", "timeout_ms", set_model_time<&ModelConfig::timeout>},
    {"llm", "attempts",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto number, whole(value, 1, 20));
       config.llm.attempts = static_cast<int>(number);
       return {};
     }},
    {"llm", "give_up_after_ms",
     [](Config& config, const std::string& value) -> Result<> {
       BELFRY_TRY(const auto ms, whole(value, 0, 365 * kDayMs));
       config.llm.give_up_after = Millis{ms};
       return {};
     }},
    {"log", "level",
     [](Config& config, const std::string& value) -> Result<> {
       for (const auto& [name, level] : {std::pair("debug", log::Level::debug), std::pair("info", log::Level::info),
                                         std::pair("warn", log::Level::warn), std::pair("error", log::Level::error)}) {
         if (value != name) continue;
         config.log_level = level;
         return {};
       }
       return wrong(value, "debug, info, warn or error");
     }},
    {"log", "format",
     [](Config& config, const std::string& value) -> Result<> {
       for (const auto& [name, form] : {std::pair("auto", LogForm::automatic), std::pair("json", LogForm::json),
                                        std::pair("terminal", LogForm::terminal)}) {
         if (value != name) continue;
         config.log_form = form;
         return {};
       }
       return wrong(value, "auto, json or terminal");
     }},
};

std::string known_keys(std::string_view section) {
  std::string out;
  for (const Setting& setting : kSettings)
    if (setting.section == section) out += fmt::format("{}{}", out.empty() ? "" : ", ", setting.key);
  return out;
}

std::string known_sections() {
  std::string out;
  for (const Setting& setting : kSettings) {
    const std::string name = fmt::format("[{}]", setting.section);
    if (out.find(name) == std::string::npos) out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

// A value of the file as text; nothing if it is of a kind that no setting has.
std::optional<std::string> text_of(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return text;
  if (const auto number = node.value_exact<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* list = node.as_array()) {
    std::string out;
    for (const toml::node& element : *list) {
      const auto text = element.value_exact<std::string>();
      if (!text) return std::nullopt;
      out += fmt::format("{}{}", out.empty() ? "" : ",", *text);
    }
    return out;
  }
  return std::nullopt;
}

std::string environment_name(std::string_view section, std::string_view key) {
  std::string name = fmt::format("BELFRY_{}_{}", section, key);
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

// Named like a setting of some section. Others begin with BELFRY_, too: those of the commands.
bool is_ours(std::string_view name) {
  return std::any_of(std::begin(kSettings), std::end(kSettings), [name](const Setting& setting) {
    return name.starts_with(environment_name(setting.section, ""));
  });
}

// [plugins.NAME]: what holds for one plugin.
Result<> read_plugin_settings(Config& config, const std::string& name, const toml::table& table,
                              const std::string& path) {
  const auto in_file = [&](const toml::source_region& source, const Error& error) {
    return fail(error.code, fmt::format("{}:{}: [plugins.{}]: {}", path, source.begin.line, name, error.detail));
  };
  if (const auto fits = plugin::check_plugin_name(name); !fits) return in_file(table.source(), fits.error());
  for (const auto& [key, node] : table) {
    if (key.str() != "sandbox")
      return in_file(node.source(), {Errc::unknown_field, fmt::format("unknown key {}; there is: sandbox", key.str())});
    const auto sandbox = read_sandbox(text_of(node).value_or(""));
    if (!sandbox) return in_file(node.source(), sandbox.error());
    config.sandboxes[name] = *sandbox;
  }
  return {};
}

Result<> read_section(Config& config, std::string_view section, const toml::table& table, const std::string& path) {
  for (const auto& [key, node] : table) {
    if (section == "plugins" && node.as_table()) {
      BELFRY_CHECK(read_plugin_settings(config, std::string(key.str()), *node.as_table(), path));
      continue;
    }
    const std::string where = fmt::format("{}:{}: [{}] {}", path, node.source().begin.line, section, key.str());
    const auto value = text_of(node);
    if (!value) return fail(Errc::invalid_argument, fmt::format("{} is neither a text nor a whole number", where));
    const auto done = set(config, section, key.str(), *value);
    if (!done) return fail(done.error().code, fmt::format("{}: {}", where, done.error().detail));
  }
  return {};
}

// --- [[agents]] ---

// A file that stands beside the configuration, unless it says where it is.
Result<std::string> read_prompt(const std::string& name, const std::string& config_path) {
  const std::filesystem::path path = std::filesystem::path(config_path).parent_path() / name;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return fail(Errc::invalid_argument, fmt::format("cannot read the prompt {}", path.string()));
  return text.str();
}

// The settings of one agent in the form that HTTP has: the names there are the same words, joined in another way.
Result<std::string> profile_of(const toml::table& table, const std::string& path) {
  json::Writer writer;
  writer.object();
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (name == "id" || name == "kind") continue;
    if (name == "prompt") {
      BELFRY_TRY(const std::string text, read_prompt(node.value_or(std::string{}), path));
      writer.field("prompt", text);
      continue;
    }
    const std::string_view json_name = name == "settle_ms"        ? "settleMs"
                                       : name == "steps_max"      ? "stepsMax"
                                       : name == "context_tokens" ? "contextTokens"
                                       : name == "prompt_text"    ? "prompt"
                                                                  : name;
    writer.key(json_name);
    if (const auto text = node.value_exact<std::string>()) {
      writer.value(*text);
    } else if (const auto number = node.value_exact<std::int64_t>()) {
      writer.value(*number);
    } else if (const auto flag = node.value_exact<bool>()) {
      writer.value(*flag);
    } else if (const toml::array* const list = node.as_array()) {
      writer.array();
      for (const toml::node& one : *list) writer.value(one.value_or(std::string{}));
      writer.end();
    } else {
      return fail(Errc::invalid_argument, fmt::format("{} is of a kind that no setting has", name));
    }
  }
  return writer.end().take();
}

Result<AgentConfig> read_agent(const toml::table& table, const std::string& path) {
  const std::string kind = table["kind"].value_or(std::string(agent::kModelKind));
  if (kind != agent::kModelKind)
    return fail(Errc::invalid_argument,
                fmt::format("kind is \"{}\"; agents of the settings are of the kind {}", kind, agent::kModelKind));
  AgentConfig read{.id = table["id"].value_or(std::string{})};
  BELFRY_CHECK(bus::check_id("id", read.id));
  if (read.id == chat::kDefaultPerson || read.id == chat::kBelfry || read.id == agent::kConcierge)
    return fail(Errc::invalid_id, fmt::format("\"{}\" is somebody else's name; an agent needs another id", read.id));
  BELFRY_TRY(const std::string body, profile_of(table, path));
  BELFRY_TRY(read.profile, agent::read_profile(body));
  return read;
}

Result<> read_agents(Config& config, const toml::array& list, const std::string& path) {
  for (const toml::node& node : list) {
    const std::string where = fmt::format("{}:{}: [[agents]]", path, node.source().begin.line);
    const toml::table* const table = node.as_table();
    if (!table) return fail(Errc::invalid_argument, fmt::format("{} is not a table", where));
    auto read = read_agent(*table, path);
    if (!read) return fail(read.error().code, fmt::format("{}: {}", where, read.error().detail));
    for (const AgentConfig& other : config.agents)
      if (other.id == read->id)
        return fail(Errc::invalid_argument, fmt::format("{}: \"{}\" stands there twice", where, read->id));
    config.agents.push_back(std::move(*read));
  }
  return {};
}

}  // namespace

Result<> set(Config& config, std::string_view section, std::string_view key, const std::string& value) {
  for (const Setting& setting : kSettings)
    if (setting.section == section && setting.key == key) return setting.set(config, value);
  return fail(Errc::unknown_field, fmt::format("unknown key; [{}] has: {}", section, known_keys(section)));
}

Result<> read_toml(Config& config, std::string_view text, const std::string& path) {
  toml::table file;
  try {
    file = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    return fail(Errc::invalid_argument,
                fmt::format("{}:{}: {}", path, e.source().begin.line, std::string(e.description())));
  }
  for (const auto& [section, node] : file) {
    if (section.str() == "agents" && node.as_array()) {
      BELFRY_CHECK(read_agents(config, *node.as_array(), path));
      continue;
    }
    const toml::table* const table = node.as_table();
    if (!table || known_keys(section.str()).empty())
      return fail(Errc::unknown_field,
                  fmt::format("{}:{}: unknown {} {}; there are the sections {}", path, node.source().begin.line,
                              table ? "section" : "key", section.str(), known_sections() + ", [[agents]]"));
    BELFRY_CHECK(read_section(config, section.str(), *table, path));
  }
  return {};
}

Result<> read_config_file(Config& config, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return fail(Errc::invalid_argument, fmt::format("cannot read the configuration file {}", path));
  return read_toml(config, text.str(), path);
}

Result<> read_environment(Config& config, const char* const* environment) {
  for (; *environment; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!is_ours(name) || name.size() == entry.size()) continue;
    bool known = false;
    for (const Setting& setting : kSettings) {
      if (environment_name(setting.section, setting.key) != name) continue;
      known = true;
      const std::string value(entry.substr(name.size() + 1));
      if (value.empty())
        return fail(Errc::invalid_argument, fmt::format("{} is set and empty; give it a value or unset it", name));
      const auto done = setting.set(config, value);
      if (!done) return fail(done.error().code, fmt::format("{}: {}", name, done.error().detail));
    }
    if (!known)
      return fail(Errc::unknown_field, fmt::format("{} is set in the environment, but there is no such setting", name));
  }
  return {};
}

Result<Config> read_settings(const std::string& config_file) {
  Config config;
  if (!config_file.empty()) {
    BELFRY_CHECK(read_config_file(config, config_file));
  } else if (std::filesystem::exists(kConfigFile)) {
    BELFRY_CHECK(read_config_file(config, kConfigFile));
  }
  BELFRY_CHECK(read_environment(config, environ));
  return config;
}

Result<std::string> default_data_directory(const Lookup& lookup) {
  const char* const base = lookup("XDG_DATA_HOME");
  if (base && base[0] == '/') return fmt::format("{}/belfry", base);
  const char* const home = lookup("HOME");
  if (home && home[0] == '/') return fmt::format("{}/.local/share/belfry", home);
  return fail(Errc::invalid_argument, "neither HOME nor XDG_DATA_HOME is set; --data names the directory for the data");
}

Result<std::string> data_directory(const Config& config) {
  if (!config.data.empty()) return config.data;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  return default_data_directory([](const char* name) { return std::getenv(name); });
}

Exposure exposure_of(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return Exposure::none;
  if (about.st_mode & S_IWOTH) return Exposure::anybody_writes;
  return about.st_mode & (S_IRWXG | S_IRWXO) ? Exposure::others_read : Exposure::none;
}

Result<std::string> read_token_file(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!file || !std::getline(file, token))
    return fail(Errc::invalid_argument, fmt::format("cannot read a token from {}", path));
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ' || token.back() == '\t')) token.pop_back();
  token.erase(0, token.find_first_not_of(" \t"));
  static constexpr std::size_t kTokenBytesMin = 8;
  static constexpr std::size_t kTokenBytesMax = 4'096;
  if (token.size() < kTokenBytesMin || token.size() > kTokenBytesMax)
    return fail(Errc::invalid_argument, fmt::format("the token in {} has {} characters; {} to {} are possible", path,
                                                    token.size(), kTokenBytesMin, kTokenBytesMax));
  for (const char c : token)
    if (c <= ' ' || c > '~')
      return fail(Errc::invalid_argument,
                  fmt::format("the token in {} has a character that a header cannot carry", path));
  return token;
}

}  // namespace belfry::app
