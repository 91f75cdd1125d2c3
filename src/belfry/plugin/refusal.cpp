#include "belfry/plugin/refusal.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace belfry::plugin {
namespace {

constexpr std::size_t kPathShown = 200;
constexpr std::size_t kNearby = 300;  // bytes of a reason

bool has_any(std::string_view words, std::initializer_list<std::string_view> wanted) {
  return std::ranges::any_of(wanted, [&](std::string_view one) { return words.contains(one); });
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// What every plugin may read.
bool is_system(std::string_view path) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"/usr", "/lib", "/lib64", "/bin", "/sbin"},
                             [&](std::string_view folder) { return is_below(path, folder); });
}

// The paths in the words that are not the plugin's to begin with, in their order.
std::vector<std::string_view> foreign_paths(std::string_view words, const Plugin& plugin) {
  std::vector<std::string_view> out;
  for (auto at = words.find('/'); at != std::string_view::npos; at = words.find('/', at)) {
    const bool begins = at == 0 || std::string_view(" '\"(:=\n").contains(words[at - 1]);
    const auto end = std::min(words.find_first_of(" '\"):,;\n", at), words.size());
    const std::string_view path = words.substr(at, end - at);
    at = end;
    const bool granted = std::ranges::any_of(plugin.reads, [&](const auto& one) { return is_below(path, one); });
    // Of its own folder it may write to one only.
    if (begins && path.size() > 1 && !is_system(path) && !granted) out.push_back(path);
  }
  return out;
}

constexpr std::string_view kRefusals[] = {"Permission denied", "Read-only file system", "PermissionError", "EACCES",
                                          "EROFS"};

// Python and others say the path behind the reason, the shell's programs in front of it; what else stands in the words
// (where a program was when it failed) is farther away.
std::optional<std::string_view> refused_path(std::string_view words, const Plugin& plugin) {
  for (const std::string_view reason : kRefusals) {
    const auto at = words.find(reason);
    if (at == std::string_view::npos) continue;
    const auto behind = words.substr(at + reason.size(), kNearby);
    if (behind.starts_with(": ") || behind.starts_with(", "))
      if (const auto paths = foreign_paths(behind, plugin); !paths.empty()) return paths.front();
    const auto from = at > kNearby ? at - kNearby : 0;
    if (const auto paths = foreign_paths(words.substr(from, at - from), plugin); !paths.empty()) return paths.back();
  }
  return std::nullopt;
}

}  // namespace

std::string refusal_of_walls(std::string_view words, const Plugin& plugin) {
  const bool no_way_out = has_any(words, {"Network is unreachable", "Temporary failure in name resolution",
                                          "Address family not supported", "Could not resolve host"});
  if (plugin.no_network && no_way_out)
    return "it has no network, because its config.json says so (\"network\": \"none\")";
  const bool refused = std::ranges::any_of(kRefusals, [&](std::string_view one) { return words.contains(one); });
  if (const auto path = refused_path(words, plugin)) {
    if (is_below(*path, plugin.folder.string()))
      return fmt::format(
          "a wall of its sandbox refused {}: in its own folder it may write only to what \"writes\" in its "
          "config.json names",
          path->substr(0, kPathShown));
    return fmt::format(
        "a wall of its sandbox refused {}: it may read what \"reads\" in its config.json names, and write to "
        "its output folder",
        path->substr(0, kPathShown));
  }
  if (refused || has_any(words, {"Operation not permitted", "EPERM"}))
    return "a wall of its sandbox may have refused that; belfry plugin check says what it may do";
  return {};
}

}  // namespace belfry::plugin
