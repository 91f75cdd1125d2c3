// The walls themselves: what this kernel has, and how a process is put behind them (Landlock, namespaces, seccomp).
//
// All is prepared before the fork; what happens between fork and exec is system calls only. Landlock has no wrapper in the C
// library, and headers are older than kernels: its numbers stand in walls.cpp.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "belfry/base/descriptor.h"
#include "belfry/plugin/sandbox.h"

namespace belfry::plugin {

// What a kernel has, as it says itself.
struct KernelWalls {
  int landlock_abi = 0;  // 0: none
  bool namespaces = false;
  bool seccomp = false;

  unsigned walls() const;
};
// Tries it, in a child process. For programs with one thread.
KernelWalls walls_here();
bool seccomp_here();
// 0 if there is none.
int landlock_abi();

// Which files can be reached.
struct FileWall {
  std::vector<std::string> reads;   // files and folders, with all that is below
  std::vector<std::string> writes;  // folders
};

// Read and run by every plugin: programs, libraries, and files that libraries look at.
std::vector<std::string> system_reads();

// One Landlock domain, to be entered.
class Landlock {
 public:
  // As a kernel of at most `abi_max` has it. Not open: there is no Landlock here.
  Landlock(const FileWall& wall, int abi_max);
  bool open() const { return ruleset_.open(); }
  int abi() const { return abi_; }
  // The places that a process in furnished namespaces has for itself. Only system calls.
  void allow_own_places() const;
  // Without namespaces: what /proc says of the process itself.
  void allow_own_process() const;
  bool enter() const;

 private:
  bool allow(const char* path, std::uint64_t access) const;

  Descriptor ruleset_;
  int abi_ = 0;
};

struct CallWall {
  bool no_network = false;   // sockets of any other kind than unix
  bool no_machine = false;   // sockets to the machine that this one runs in, which no namespace keeps out
  bool no_truncate = false;  // by path: for Landlock before ABI 3, which knows nothing of it
  bool no_others = false;    // limits and places of other processes, where no namespace hides them
};
std::vector<sock_filter> call_filter(const CallWall& wall);
// For good. Only system calls.
bool enter_call_filter(const std::vector<sock_filter>& filter);

// In a child that was cloned into namespaces of its own: it keeps its user, its mounts cannot be written to but below
// `writes`, /proc shows what is in here, and /dev/shm is a small one of its own. False: this system does not let us. Only system calls.
inline constexpr unsigned long kNamespaces =
    0x10000000 | 0x20000000 | 0x00020000 | 0x08000000;  // user, pid, mount, ipc
inline constexpr unsigned long kNetworkNamespace = 0x40000000;
struct Identity {
  std::string users;   // lines of /proc/self/uid_map
  std::string groups;  // … gid_map
};
Identity own_identity();
bool furnish_namespaces(const Identity& identity, const std::vector<std::string>& writes);
// No rights of root, now and whatever is run. Only system calls.
void drop_capabilities();

}  // namespace belfry::plugin
