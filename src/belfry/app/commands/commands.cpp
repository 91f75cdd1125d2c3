#include "belfry/app/commands/commands.h"

#include <cstdio>

#include <CLI/CLI.hpp>

namespace belfry::app {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->set_version_flag("--version", "belfry " BELFRY_VERSION);
  return command;
}

void refuse(const std::string& message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", message.c_str());
  throw CLI::RuntimeError(code);
}

}  // namespace belfry::app
