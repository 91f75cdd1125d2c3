#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "belfry/app/commands/commands.h"

namespace {

// The first word that should have been a command and is none.
std::string unknown_command(const CLI::App& app, int count, char** arguments) {
  const CLI::App* at = &app;
  for (int i = 1; i < count; ++i) {
    std::string word = arguments[i];
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    if (word.starts_with('-') || commands.empty()) return "";
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* command) { return command->get_name() == word; });
    if (found == commands.end()) return word;
    at = *found;
  }
  return "";
}

int run(int count, char** arguments) {
  using namespace belfry::app;
  CLI::App app("Belfry: messages for agents, tools and people that arrive when they should.", "belfry");
  app.set_version_flag("--version", "belfry " BELFRY_VERSION);
  app.require_subcommand(1);
  app.footer("`belfry COMMAND --help` explains a command. Exit codes: 0 done, 1 refused, 2 wrong usage, 3 no server.");
  add_serve(app);
  add_send(app);
  add_receive(app);
  add_messages(app);
  add_mailbox(app);
  add_agents(app);
  add_why(app);
  add_doctor(app);
  add_bench(app);
  try {
    app.parse(count, arguments);
    return kExitDone;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    // --help and --version end here too, with 0. For a mistyped command CLI11 only says that one is missing.
    if (const std::string unknown = unknown_command(app, count, arguments); !unknown.empty()) {
      std::fprintf(stderr, "there is no command \"%s\"\nRun with --help for more information.\n", unknown.c_str());
      return kExitUsage;
    }
    return app.exit(e) == 0 ? kExitDone : kExitUsage;
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
