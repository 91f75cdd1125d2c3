#include "belfry/plugin/sandbox.h"

#include <fmt/format.h>

namespace belfry::plugin {

std::string names_of_walls(unsigned walls) {
  static constexpr std::pair<unsigned, std::string_view> kNames[] = {{kFilesWall, "files (Landlock)"},
                                                                     {kProcessesWall, "other processes (namespaces)"},
                                                                     {kCallsWall, "system calls (seccomp)"},
                                                                     {kNetworkWall, "the network"}};
  std::string out;
  for (const auto& [wall, name] : kNames)
    if (walls & wall) out += fmt::format("{}{}", out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace belfry::plugin
