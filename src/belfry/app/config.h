// What the server is told: belfry.toml, then the environment, then flags; the later one counts.
//
// Every setting has one name: `listen` in the section [server] of the file, BELFRY_SERVER_LISTEN in the environment. A name
// that nobody knows refuses to start: a typing mistake in a limit must not go unnoticed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/agent/planner/planner.h"
#include "belfry/agent/profile.h"
#include "belfry/base/limits.h"
#include "belfry/base/log.h"
#include "belfry/base/result.h"
#include "belfry/plugin/sandbox.h"
#include "belfry/run/progress_text.h"
#include "belfry/run/slots.h"
#include "belfry/when/when.h"

namespace belfry::app {

enum class OnStop { deliver, keep };
enum class LogForm { automatic, json, terminal };

// The language model, as its section [llm] says it.
struct ModelConfig {
  std::string base_url;      // https://api.openai.com/v1; empty: there is no model
  std::string model;         // its name at that server
  std::string api_key_env;   // the variable that holds the key; empty: OPENAI_API_KEY, if that is set
  std::string api_key_file;  // the file that holds it instead
  std::string ca_file;       // certificates that are trusted instead of the system's
  Millis connect_timeout{10'000};
  Millis first_byte_timeout{60'000};
  Millis silence_timeout{60'000};
  Millis timeout{300'000};
  int attempts = 4;
  Millis give_up_after = agent::PlannerOptions{}.give_up_after;  // how long a turn waits for a model that is away
};

// An agent that stands in the settings: [[agents]].
struct AgentConfig {
  std::string id;
  agent::Profile profile;
};

struct Config {
  std::string listen = "127.0.0.1:7171";
  std::string data;        // empty: default_data_directory()
  std::string token_file;  // empty: no token
  std::string panel;       // a folder with the panel's files, for those who work on it; empty: those in the program
  std::vector<std::string> allow_hosts;
  OnStop on_stop = OnStop::deliver;
  Millis stop_deadline = kStopDeadlineDefault;
  int connections_max = 10'000;
  int attempts_max = kAttemptsMax;
  int agents_at_once = 3;
  run::SlotLimits tools_at_once;
  std::vector<std::string> plugins;  // folders with plugins, beside those that Belfry brings along
  plugin::Sandbox sandbox = plugin::Sandbox::usual;
  std::map<std::string, plugin::Sandbox> sandboxes;  // of plugins that are named: [plugins.NAME]
  plugin::Amounts plugin_amounts;
  int landlock_abi_max = plugin::kLandlockNewest;
  run::Overlays overlays;
  Millis retention = kRetentionDefault;
  Millis runs_retention{0};  // of runs and records of tool calls; 0: until somebody deletes them
  std::string timezone;      // the user's; empty: that of the machine
  when::Language language = when::Language::automatic;
  ModelConfig llm;
  std::vector<AgentConfig> agents;
  agent::Spend task_max = agent::PlannerOptions{}.task_max;
  log::Level log_level = log::Level::info;
  LogForm log_form = LogForm::automatic;
};

// Sets `section.key` from text, however it came. An empty text is refused: it is a variable that nobody filled, and
// taking it for "not given" would, for one, start a server without its token.
Result<> set(Config& config, std::string_view section, std::string_view key, const std::string& value);

// Reads a file's text; `path` is for messages.
Result<> read_toml(Config& config, std::string_view text, const std::string& path);
Result<> read_config_file(Config& config, const std::string& path);
// `environment` as the C library has it: NAME=value, ended by a null pointer.
Result<> read_environment(Config& config, const char* const* environment);

// The file (belfry.toml here if none is named and there is one), then the environment of this process.
Result<Config> read_settings(const std::string& config_file);

using Lookup = std::function<const char*(const char* name)>;
// ${XDG_DATA_HOME:-~/.local/share}/belfry
Result<std::string> default_data_directory(const Lookup& lookup);
// What the settings say, or else the default of this process.
Result<std::string> data_directory(const Config& config);

// The token in a file: its first line, without blanks around it.
Result<std::string> read_token_file(const std::string& path);

// Who besides its owner can get at a file: a token that others can read is no secret, one that anybody can write is none at
// all.
enum class Exposure { none, others_read, anybody_writes };
Exposure exposure_of(const std::string& path);

}  // namespace belfry::app
