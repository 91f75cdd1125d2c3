#include "belfry/app/bundled.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace belfry::app {
namespace {

namespace fs = std::filesystem;

// The tree in whose build/PRESET the program is, or nothing.
fs::path source_tree_of(const fs::path& folder) {
  const fs::path build = folder.parent_path();
  std::error_code ignored;
  const bool built_here = build.filename() == "build" && fs::exists(build.parent_path() / "CMakeLists.txt", ignored);
  return built_here ? build.parent_path() : fs::path();
}

// Made by root, by whoever runs the program or by whoever put it there, and by nobody else to be changed: a folder such as
// /tmp/share anybody can make.
bool is_trusted(const fs::path& folder, const fs::path& program) {
  struct stat about{};
  struct stat about_program{};
  if (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || (about.st_mode & S_IWOTH)) return false;
  if (about.st_uid == 0 || about.st_uid == ::geteuid()) return true;
  return ::stat(program.c_str(), &about_program) == 0 && about.st_uid == about_program.st_uid;
}

}  // namespace

fs::path bundled_plugins_of(const fs::path& program) {
  const fs::path folder = program.parent_path();
  std::vector<fs::path> places{folder / "../share/belfry/plugins", folder / "plugins"};
  if (const fs::path tree = source_tree_of(folder); !tree.empty()) places = {tree / "plugins"};
  for (const fs::path& place : places)
    if (const fs::path normal = place.lexically_normal(); is_trusted(normal, program)) return normal;
  return {};
}

fs::path bundled_plugins() {
  std::error_code ec;
  const fs::path program = fs::read_symlink("/proc/self/exe", ec);
  return ec ? fs::path() : bundled_plugins_of(program);
}

}  // namespace belfry::app
