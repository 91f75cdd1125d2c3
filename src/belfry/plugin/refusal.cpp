#include "belfry/plugin/refusal.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace belfry::plugin {
namespace {

constexpr std::size_t kPathShown = 200;

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

// The first path in the words that is not the plugin's to begin with.
std::optional<std::string_view> foreign_path(std::string_view words, const Plugin& plugin) {
  const std::string own = plugin.folder.string();
  for (auto at = words.find('/'); at != std::string_view::npos; at = words.find('/', at)) {
    const bool begins = at == 0 || std::string_view(" '\"(:=\n").contains(words[at - 1]);
    const auto end = std::min(words.find_first_of(" '\"):,;\n", at), words.size());
    const std::string_view path = words.substr(at, end - at);
    at = end;
    const bool granted = std::ranges::any_of(plugin.reads, [&](const auto& one) { return is_below(path, one); });
    // Of its own folder it may write to one only.
    if (begins && path.size() > 1 && !is_system(path) && !granted) return path;
  }
  return std::nullopt;
}

}  // namespace

std::string refusal_of_walls(std::string_view words, const Plugin& plugin) {
  const bool no_way_out = has_any(words, {"Network is unreachable", "Temporary failure in name resolution",
                                          "Address family not supported", "Could not resolve host"});
  if (plugin.no_network && no_way_out)
    return "it has no network, because its config.json says so (\"network\": \"none\")";
  const bool refused =
      has_any(words, {"Permission denied", "PermissionError", "EACCES", "Read-only file system", "EROFS"});
  if (const auto path = refused ? foreign_path(words, plugin) : std::nullopt) {
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
