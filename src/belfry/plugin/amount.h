// What a plugin's processes take: how many there are, their memory, and what they leave. Looked at by the guard.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "belfry/plugin/sandbox.h"

namespace belfry::plugin {

enum class Excess : int { none, processes, memory, entries, levels, bytes };

// Everything below a process, the nearest first.
struct Descendants {
  std::vector<pid_t> processes;
  std::size_t threads = 0;  // of all together; those of the process itself count, too
};
// Of more than so many threads only the first ones: they may grow faster than they are looked at.
Descendants descendants_of(pid_t process, std::size_t most);

// Their memory that is not files: their own, and what they share.
std::int64_t memory_of(const std::vector<pid_t>& processes);
// Files that they hold open and that have no name any more: no folder shows them.
std::int64_t nameless_bytes_of(const std::vector<pid_t>& processes);

struct Output {
  int entries = 0;
  int levels = 0;
  std::int64_t bytes = 0;
};
// Looks no further than it is too much.
Output output_in(const std::string& folder, const Amounts& most);
Excess excess(const Output& output, const Amounts& most);

}  // namespace belfry::plugin
