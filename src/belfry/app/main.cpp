#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "belfry/app/commands/commands.h"

namespace {

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
    // --help and --version end here too, with 0.
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
