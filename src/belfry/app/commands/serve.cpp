#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/app/config.h"
#include "belfry/app/model.h"
#include "belfry/app/runtime.h"
#include "belfry/base/json.h"
#include "belfry/clock/real_clock.h"

namespace belfry::app {
namespace {

// Flags as they were given; what was not given stays empty and leaves the file and the environment their say.
struct Flags {
  std::string config_file;
  std::string listen;
  std::string data;
  std::string token_file;
  std::string on_stop;
  std::string stop_deadline;
  std::vector<std::string> allow_hosts;
  std::vector<std::string> plugins;
  std::string log_level;
  std::string log_format;
  bool accept_loss = false;
  bool json = false;
};

constexpr Millis kStopDeadlineMax{3'600'000};

Config read_config(const Flags& flags) {
  auto read = read_settings(flags.config_file);
  if (!read) refuse_usage(read.error().detail, read.error().code);
  Config config = std::move(*read);
  struct Given {
    const char* flag;
    const char* section;
    const char* key;
    const std::string& value;
  };
  std::string hosts;
  std::string folders;
  for (const std::string& folder : flags.plugins) folders += (folders.empty() ? "" : ",") + folder;
  for (const std::string& name : flags.allow_hosts) hosts += (hosts.empty() ? "" : ",") + name;
  for (const Given& given :
       {Given{"--listen", "server", "listen", flags.listen}, Given{"--data", "server", "data", flags.data},
        Given{"--token-file", "server", "token_file", flags.token_file},
        Given{"--allow-host", "server", "allow_hosts", hosts}, Given{"--on-stop", "server", "on_stop", flags.on_stop},
        Given{"--plugins", "plugins", "dirs", folders}, Given{"--log-level", "log", "level", flags.log_level},
        Given{"--log-format", "log", "format", flags.log_format}}) {
    if (given.value.empty()) continue;
    const auto done = set(config, given.section, given.key, given.value);
    if (!done) refuse_usage(fmt::format("{}: {}", given.flag, done.error().detail));
  }
  if (!flags.stop_deadline.empty()) {
    config.stop_deadline = duration_argument("--stop-deadline", flags.stop_deadline);
    if (config.stop_deadline > kStopDeadlineMax) refuse_usage("--stop-deadline: an hour is the longest there is");
  }
  return config;
}

std::string read_token(const std::string& path) {
  if (path.empty()) return "";
  auto token = read_token_file(path);
  if (!token) refuse(token.error().code, token.error().detail);
  if (exposure_of(path) == Exposure::anybody_writes)
    refuse(Errc::invalid_argument, fmt::format("anybody can write to the token file {}; chmod 600 it first", path));
  return std::move(*token);
}

log::Options log_options(const Config& config) {
  const bool terminal = config.log_form == LogForm::terminal || (config.log_form == LogForm::automatic && ::isatty(2));
  return {
      .level = config.log_level, .form = terminal ? log::Form::terminal : log::Form::json, .descriptor = 2, .now = [] {
        return round_down(read_real_clocks().wall);
      }};
}

void print_ready(const std::string& url, bool json) {
  if (json) {
    json::Writer writer;
    std::printf("%s\n", writer.object().field("ready", true).field("url", url).end().str().c_str());
  } else {
    std::printf("Belfry is ready: %s\n", url.c_str());
  }
  std::fflush(stdout);
  std::clearerr(stdout);  // a server whose stdout nobody reads serves all the same
}

// What this process knows (the token, the model's key, what people say) is nobody's to read in /proc or in a dump of its
// memory, also not for other processes of the same user. LeakSanitizer reads it, where it is built in.
void hide_memory() {
#if !__has_feature(address_sanitizer)
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
}

void serve(const Flags& flags) {
  const Config config = read_config(flags);
  auto key = take_model_key(config.llm);
  if (!key) refuse(key.error().code, key.error().detail);
  auto model = model_options(config.llm, std::move(*key));
  if (!model) refuse(model.error().code, model.error().detail);
  const auto data = data_directory(config);
  if (!data) refuse(data.error().code, data.error().detail);
  std::string token = read_token(config.token_file);
  ::umask(077);  // what is in the messages is nobody else's business

  hide_memory();

  log::Writer log(log_options(config));
  if (!config.llm.api_key_file.empty() && exposure_of(config.llm.api_key_file) != Exposure::none)
    log::warn("server.key_exposed", "other users of this machine can read the file with the model's key; chmod 600 it",
              {{"file", config.llm.api_key_file}});
  if (!config.token_file.empty() && exposure_of(config.token_file) != Exposure::none)
    log::warn("server.token_exposed", "other users of this machine can read the token file; chmod 600 it",
              {{"file", config.token_file}});
  Runtime runtime({.config = config,
                   .data = *data,
                   .token = std::move(token),
                   .accept_loss = flags.accept_loss,
                   .model = std::move(*model),
                   .flush_log = [&log] { log.flush(); },
                   .ready = [json = flags.json](const std::string& url) { print_ready(url, json); }});
  if (const auto opened = runtime.open(); !opened) {
    log.flush();
    refuse(opened.error().code, opened.error().detail);
  }
  runtime.run();
}

}  // namespace

void add_serve(CLI::App& app) {
  CLI::App* const command = add_command(app, "serve", "Start the server");
  auto flags = std::make_shared<Flags>();
  command->add_option("--listen", flags->listen, "Address and port [127.0.0.1:7171]; port 0 takes a free one")
      ->type_name("HOST:PORT");
  command->add_option("--data", flags->data, "Directory of the data [${XDG_DATA_HOME:-~/.local/share}/belfry]")
      ->type_name("DIR");
  command
      ->add_option("--token-file", flags->token_file,
                   "File with the token that clients must send; needed for another address than loopback")
      ->type_name("FILE");
  command
      ->add_option(
          "--on-stop", flags->on_stop,
          "What a graceful stop does with delayed messages: deliver them at once, or keep them scheduled [deliver]")
      ->type_name("deliver|keep");
  command
      ->add_option("--stop-deadline", flags->stop_deadline,
                   "How long a stop waits for messages in flight: 30s, 5m; without a unit, seconds [30s]")
      ->type_name("DURATION");
  command
      ->add_option("--allow-host", flags->allow_hosts, "Another name under which clients reach the server; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--plugins", flags->plugins,
                   "A folder with plugins, beside those that Belfry brings along; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->add_option("--config", flags->config_file, "Configuration file [belfry.toml here, if there is one]")
      ->type_name("FILE");
  command->add_option("--log-level", flags->log_level, "Least level that is logged [info]")
      ->type_name("debug|info|warn|error");
  command->add_option("--log-format", flags->log_format, "Lines for people or for programs [terminal on a terminal]")
      ->type_name("auto|json|terminal");
  command->add_flag("--accept-loss", flags->accept_loss,
                    "Serve what is left of data of which acknowledged messages are missing; refused where nothing is");
  command->add_flag("--json", flags->json, "Print the line that says it is ready as JSON");
  command->footer(
      "When the server is ready it prints one line with its address; everything else is logged to stderr.\n"
      "The first SIGTERM or Ctrl-C stops it gracefully, a second one at once; nothing accepted is lost either way.\n"
      "Settings come from belfry.toml, then BELFRY_SERVER_LISTEN and the like, then flags: docs/operations.md.");
  on_run(command, [flags] { serve(*flags); });
}

}  // namespace belfry::app
