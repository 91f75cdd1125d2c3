// The process between the server and a plugin: it starts the plugin and sees to it that nothing of it is left.
//
// The server runs its own program as `belfry __plugin-guard NAME`, one for each plugin process. The guard is a subreaper,
// so whatever the plugin forks ends up as its child, however often it forks and whatever session it makes. It ends all of
// them (TERM, after the grace KILL) when the plugin's main process has ended, when the server says so, and when the server
// is gone. Then it says that all is gone, and ends itself. One thread, no log, no exceptions that matter.
//
// It also puts the plugin behind its walls (walls.h), and counts what it takes (amount.h). Where the kernel allows it, the
// plugin's processes have namespaces of their own: a first process, which is the guard's code, too, takes in who has ended,
// and with it all others end, however they fork.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/plugin/sandbox.h"

namespace belfry::plugin {

inline constexpr std::string_view kGuardCommand = "__plugin-guard";

// The guard's descriptors; 0, 1 and 2 are those of the plugin.
inline constexpr int kGuardControl = 3;  // reads what the server wants: kGuardEnd, kGuardKill, or its end
inline constexpr int kGuardStatus = 4;   // writes what has become of the plugin: one GuardStatus after the other
inline constexpr int kGuardOrder =
    5;  // a file with a GuardOrder: arguments could be seen by everybody in a list of processes

inline constexpr char kGuardEnd = 'E';   // TERM, and KILL after the grace
inline constexpr char kGuardKill = 'K';  // at once

// What to start.
struct GuardOrder {
  int grace_ms = 0;
  std::string folder;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // KEY=value

  Sandbox sandbox = Sandbox::off;  // what follows counts unless there are no walls
  int landlock_abi_max = 0;
  bool no_network = false;
  std::vector<std::string> reads;
  std::vector<std::string> writes;
  std::string output;  // the folder that is counted; empty: none
  Amounts amounts;

  bool operator==(const GuardOrder&) const = default;
};
std::string encode(const GuardOrder& order);
std::optional<GuardOrder> decode_order(std::string_view bytes);

// `started`, how the plugin's main process ended, and `all_gone` when nothing of it runs any more. Whoever is killed says
// less.
struct GuardStatus {
  enum class Kind : int {
    exited,
    signalled,
    not_started,
    started,
    all_gone,
    lacks,     // walls that this system does not have; it goes on without
    no_walls,  // the same, but it must not
    too_much,  // it takes more than it may, and is ended
  };
  Kind kind = Kind::exited;
  int number =
      0;  // the exit code, the signal, why it could not be started (errno), its process group, walls, or what (Excess)
};

// Returns the exit code of the guard.
int run_guard();

}  // namespace belfry::plugin
