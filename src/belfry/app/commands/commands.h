// The commands, one file each. Each function registers its own; what it does runs when CLI11 has parsed the line.
#pragma once

#include <functional>
#include <string>

#include "belfry/base/result.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace belfry::app {

enum ExitCode { kExitDone = 0, kExitRefused = 1, kExitUsage = 2, kExitNoServer = 3 };

void add_serve(CLI::App& app);
void add_send(CLI::App& app);
void add_receive(CLI::App& app);
void add_messages(CLI::App& app);
void add_mailbox(CLI::App& app);
void add_agents(CLI::App& app);
void add_tools(CLI::App& app);
void add_plugin(CLI::App& app);
void add_run(CLI::App& app);
void add_runs(CLI::App& app);
void add_schedule(CLI::App& app);
void add_chat(CLI::App& app);
void add_people(CLI::App& app);
void add_why(CLI::App& app);
void add_when(CLI::App& app);
void add_doctor(CLI::App& app);
void add_bench(CLI::App& app);

// A subcommand with the flags that all have.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description);

// What the command does. It runs only if no subcommand was named, and refuses flags that stand in front of its own name:
// `messages --server X cancel ID` would act on another server than it says.
void on_run(CLI::App* command, std::function<void()> work);

// How a command ends that cannot do what it was asked. main prints it.
struct Refusal {
  Error error;
  int exit_code;
};
[[noreturn]] void refuse(Errc code, std::string message, int exit_code = kExitRefused);
// For what is wrong about the command line itself.
[[noreturn]] void refuse_usage(std::string message, Errc code = Errc::invalid_argument);

// `error: …` in one line on stderr; with --json {"error","message"} on stdout, where answers go. Returns the exit code.
int print_refusal(const Refusal& refusal, bool json);

// Whether all that was printed has reached stdout. A flush alone does not know: a write that failed before has emptied the
// buffer.
bool all_printed();

// All of stdin. One that cannot be read is refused: nothing is not what was meant.
std::string read_stdin();

// A check for options: a whole number in a range.
CLI::Validator number_from(int least, int most);
// Options with an empty value are refused: an empty variable in a script must not mean "not given". So is what is not UTF-8,
// unless it is a FILE or a DIR: on its way it would be made into UTF-8, and two keys that differ could become one.
void check_values(CLI::App& app);

// Checks a name or the id of a message before it becomes a part of a route; `what` is the argument's name.
void check_name_argument(const std::string& what, const std::string& name);
void check_message_argument(const std::string& id);

}  // namespace belfry::app
