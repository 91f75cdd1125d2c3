// The commands, one file each. Each function registers its own; what it does runs when CLI11 has parsed the line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace belfry::app {

enum ExitCode { kExitDone = 0, kExitRefused = 1, kExitUsage = 2, kExitNoServer = 3 };

void add_serve(CLI::App& app);
void add_send(CLI::App& app);
void add_receive(CLI::App& app);
void add_messages(CLI::App& app);
void add_mailbox(CLI::App& app);
void add_agents(CLI::App& app);
void add_why(CLI::App& app);
void add_doctor(CLI::App& app);
void add_bench(CLI::App& app);

// A subcommand with the flags that all have.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description);

// Prints `error: MESSAGE` to stderr and leaves the command.
[[noreturn]] void refuse(const std::string& message, int code = kExitRefused);

}  // namespace belfry::app
