#include "belfry/plugin/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

// Of all threads: an orphan is handed to any of them.
std::set<pid_t> children() {
  std::set<pid_t> out;
  std::error_code ec;
  for (fs::directory_iterator at("/proc/self/task", ec), end; !ec && at != end; at.increment(ec)) {
    std::ifstream file(at->path() / "children");
    for (pid_t pid = 0; file >> pid;) out.insert(pid);
  }
  return out;
}

}  // namespace

Orphans::Orphans() : before_(children()) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Orphans::~Orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, was_subreaper_); }

bool Orphans::end_all_but(const std::set<pid_t>& guards) const {
  bool none = true;
  // Twice: the list can lack some of those who stand behind one that ends while it is read.
  for (int round = 0; round < 2; ++round) {
    for (const pid_t pid : children()) {
      if (guards.contains(pid) || before_.contains(pid)) continue;
      none = false;
      // Ours and not waited for, so its number cannot be another's.
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);
    }
  }
  return none;
}

}  // namespace belfry::plugin
