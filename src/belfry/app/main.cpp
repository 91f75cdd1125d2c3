#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/commands/commands.h"
#include "belfry/plugin/guard.h"

namespace {

using namespace belfry;
using namespace belfry::app;

// Looked for by hand: whoever asked for JSON wants it for a mistyped line too, which CLI11 cannot read to its end.
bool wants_json(int count, char** arguments) {
  for (int i = 1; i < count && std::string_view(arguments[i]) != "--"; ++i)
    if (std::string_view(arguments[i]) == "--json") return true;
  return false;
}

// `belfry messages list`, as far as the line was understood.
std::string command_of(const CLI::App& app) {
  std::string out = "belfry";
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    out += " " + at->get_name();
  }
  return out;
}

bool has_commands(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return !at->get_subcommands([](const CLI::App*) { return true; }).empty();
}

// What CLI11 found wrong, in our words: "--max: At Most 1 required but received 2" helps nobody.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  if (const auto unknown = app.remaining(true); !unknown.empty()) {
    const std::string& first = unknown.front();
    if (first.starts_with('-')) return fmt::format("there is no flag {}", first);
    if (has_commands(app)) return fmt::format("there is no command \"{}\"", first);
    return fmt::format("\"{}\" is one argument too many", first);
  }
  std::string text = error.what();
  if (text == "A subcommand is required") return "a command is missing";
  const auto ends = [&](std::string_view end) { return text.ends_with(end); };
  if (ends(" is required")) return text.substr(0, text.rfind(" is required")) + " is missing";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.find(": ") != std::string::npos)
    return text.substr(0, text.find(": ")) +
           (ends(" missing") ? ": the value is missing" : ": it can be given only once");
  return text;
}

int run(int count, char** arguments) {
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
  add_tools(app);
  add_plugin(app);
  add_run(app);
  add_runs(app);
  add_schedule(app);
  add_chat(app);
  add_people(app);
  add_why(app);
  add_when(app);
  add_doctor(app);
  add_bench(app);
  check_values(app);
  const bool json = wants_json(count, arguments);
  try {
    app.parse(count, arguments);
    return kExitDone;
  } catch (const Refusal& refusal) {
    return print_refusal(refusal, json);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help and --version
  } catch (const CLI::ParseError& e) {
    const std::string problem = fmt::format("{}; see {} --help", usage_problem(app, e), command_of(app));
    return print_refusal({{Errc::invalid_argument, problem}, kExitUsage}, json);
  }
}

// What the caller has closed is held by something that fails in the same way: else the next file or connection that is
// opened would get its number, and be read as stdin or printed to.
void hold_closed_streams() {
  for (int at = 0; at <= 2; ++at) {
    if (::fcntl(at, F_GETFD) >= 0) continue;
    // Takes the lowest number that is free: this one.
    if (::open("/dev/null", at == 0 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

// A full disk behind `>` must not look like success.
int after_output(int code) {
  if (code != kExitDone) return code;
  std::cout.flush();
  if (all_printed() && std::cout.good()) return code;
  std::fprintf(stderr, "error: the output could not be written\n");
  return kExitRefused;
}

}  // namespace

int main(int count, char** arguments) {
  // The server itself runs this, for each plugin. Before anything else: it must stay small and have one thread.
  if (count > 1 && arguments[1] == plugin::kGuardCommand) return plugin::run_guard();
  hold_closed_streams();
  try {
    return after_output(run(count, arguments));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
