#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/app/config.h"
#include "belfry/app/runtime.h"
#include "belfry/base/json.h"
#include "belfry/clock/real_clock.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves it out of the headers

namespace belfry::app {
namespace {

constexpr const char* kConfigFile = "belfry.toml";

// Flags as they were given; what was not given stays empty and leaves the file and the environment their say.
struct Flags {
  std::string config_file;
  std::string listen;
  std::string data;
  std::string token_file;
  std::string on_stop;
  std::string stop_deadline;
  std::vector<std::string> allow_hosts;
  std::string log_level;
  std::string log_format;
  bool json = false;
};

Result<Config> read_config(const Flags& flags) {
  Config config;
  if (!flags.config_file.empty()) {
    BELFRY_CHECK(read_config_file(config, flags.config_file));
  } else if (std::filesystem::exists(kConfigFile)) {
    BELFRY_CHECK(read_config_file(config, kConfigFile));
  }
  BELFRY_CHECK(read_environment(config, environ));
  struct Given {
    const char* section;
    const char* key;
    const std::string& value;
  };
  for (const Given& given : {Given{"server", "listen", flags.listen}, Given{"server", "data", flags.data},
                             Given{"server", "token_file", flags.token_file}, Given{"server", "on_stop", flags.on_stop},
                             Given{"log", "level", flags.log_level}, Given{"log", "format", flags.log_format}})
    if (!given.value.empty()) BELFRY_CHECK(set(config, given.section, given.key, given.value));
  if (!flags.allow_hosts.empty()) config.allow_hosts = flags.allow_hosts;
  if (!flags.stop_deadline.empty()) config.stop_deadline = duration_argument("--stop-deadline", flags.stop_deadline);
  return config;
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
}

void serve(const Flags& flags) {
  const auto config = read_config(flags);
  if (!config) refuse(config.error().detail);
  std::string data = config->data;
  if (data.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread is running yet
    const auto found = default_data_directory([](const char* name) { return std::getenv(name); });
    if (!found) refuse(found.error().detail);
    data = *found;
  }
  std::string token;
  if (!config->token_file.empty()) {
    auto read = read_token_file(config->token_file);
    if (!read) refuse(read.error().detail);
    token = std::move(*read);
  }
  ::umask(077);  // what is in the messages is nobody else's business

  log::Writer log(log_options(*config));
  Runtime runtime({.config = *config,
                   .data = data,
                   .token = std::move(token),
                   .flush_log = [&log] { log.flush(); },
                   .ready = [json = flags.json](const std::string& url) { print_ready(url, json); }});
  if (const auto opened = runtime.open(); !opened) {
    log.flush();
    refuse(fmt::format("{} ({})", opened.error().detail, word(opened.error().code)));
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
  command->add_option("--stop-deadline", flags->stop_deadline, "How long a stop waits for messages in flight [30s]")
      ->type_name("DURATION");
  command
      ->add_option("--allow-host", flags->allow_hosts, "Another name under which clients reach the server; repeatable")
      ->type_name("NAME");
  command->add_option("--config", flags->config_file, "Configuration file [belfry.toml here, if there is one]")
      ->type_name("FILE");
  command->add_option("--log-level", flags->log_level, "Least level that is logged [info]")
      ->type_name("debug|info|warn|error");
  command->add_option("--log-format", flags->log_format, "Lines for people or for programs [terminal on a terminal]")
      ->type_name("auto|json|terminal");
  command->add_flag("--json", flags->json, "Print the line that says it is ready as JSON");
  command->footer(
      "When the server is ready it prints one line with its address; everything else is logged to stderr.\n"
      "The first SIGTERM or Ctrl-C stops it gracefully, a second one at once; nothing accepted is lost either way.\n"
      "Settings come from belfry.toml, then BELFRY_SERVER_LISTEN and the like, then flags: docs/operations.md.");
  command->callback([flags] { serve(*flags); });
}

}  // namespace belfry::app
