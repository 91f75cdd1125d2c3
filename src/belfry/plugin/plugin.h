// A plugin: a folder with a config.json and a program in any language. This is what its config.json says.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "belfry/base/time.h"

namespace belfry::plugin {

inline constexpr Millis kTimeoutDefault{60'000};

struct Plugin {
  std::string name;         // image_draw; as a tool it is called local__image_draw
  std::string description;  // for models and people
  std::string parameters;   // a JSON Schema of an object; has `schedule` if that is taken
  // `schedule` is Belfry's: it says when to report, and never reaches the plugin (F1, F6). Otherwise a parameter of that
  // name is the plugin's own.
  bool takes_schedule = false;
  bool idempotent = false;  // to run it a second time does no harm: a crash in between need not end it
  bool persistent = false;  // one process for many requests, one after the other
  std::string provider;     // those with the same one share its slots
  Millis timeout = kTimeoutDefault;
  int at_once = 0;               // how many may run beside each other; 0: as the server has it
  Millis cooldown{0};            // between the end of one and the start of the next
  Millis idle_timeout{300'000};  // a persistent one without work ends after this

  std::filesystem::path folder;
  std::vector<std::string> command;                              // argv; the program is an absolute path
  std::vector<std::pair<std::string, std::string>> environment;  // its .env: nothing else of the server's reaches it
  // Behind walls (sandbox.h): what it may read beside its own folder and the system, and the one folder inside its own that
  // it may write to; empty: none.
  std::vector<std::string> reads;
  std::string writes;
  bool no_network = false;
  std::string edition;  // of the files that are run: with a new one a process that stays is replaced

  bool operator==(const Plugin&) const = default;
};

}  // namespace belfry::plugin
