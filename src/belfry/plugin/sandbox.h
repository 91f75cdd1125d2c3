// What stands around a plugin's processes, as settings and config.json say it. walls.h builds it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace belfry::plugin {

enum class Sandbox {
  strict,  // all walls, or the plugin is not started
  usual,   // those that this kernel has
  off,     // none
};
inline constexpr std::array<std::pair<std::string_view, Sandbox>, 3> kSandboxWords{
    {{"strict", Sandbox::strict}, {"usual", Sandbox::usual}, {"off", Sandbox::off}}};
inline std::optional<Sandbox> sandbox_of(std::string_view word) {
  for (const auto& [name, sandbox] : kSandboxWords)
    if (name == word) return sandbox;
  return std::nullopt;
}
inline std::string_view word(Sandbox sandbox) {
  for (const auto& [name, one] : kSandboxWords)
    if (one == sandbox) return name;
  return "?";
}

// How much one plugin process and all that it starts may take, unless there are no walls.
struct Amounts {
  int processes = 256;
  int memory_mib = 2'048;  // in all
  // What it leaves, for one step.
  int entries = 10'000;
  int levels = 32;
  int output_mib = 1'024;

  bool operator==(const Amounts&) const = default;
};

// Of Landlock's ABI, whatever number the next kernels give it.
inline constexpr int kLandlockNewest = 1'000;

// The walls, as bits.
enum Wall : unsigned {
  kFilesWall = 1,      // Landlock: it reads and writes what it may
  kProcessesWall = 2,  // namespaces of its own: it sees and reaches no other process, and mounts stand read-only
  kCallsWall = 4,      // seccomp: no ptrace, mount, bpf, …
  kNetworkWall = 8,    // only if it asks to have no network
};
inline constexpr unsigned kWallsAlways = kFilesWall | kProcessesWall | kCallsWall;
// "files (Landlock), other processes (namespaces)"
std::string names_of_walls(unsigned walls);

}  // namespace belfry::plugin
