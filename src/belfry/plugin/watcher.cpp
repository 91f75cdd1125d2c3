#include "belfry/plugin/watcher.h"

#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include <boost/asio/as_tuple.hpp>

#include "belfry/base/log.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

// A copied folder is many changes; whoever edits does not notice a fifth of a second.
constexpr Millis kSettle{200};
// A thousand folders and their watches are more than any set of plugins has.
constexpr int kWatchesMax = 1'000;
// For a folder that is not there: whoever makes and removes it all the time is not waited for.
constexpr int kLooksMax = 10;
// In which others keep what they fetch or make: nobody edits there, and there may be thousands.
constexpr std::array<std::string_view, 2> kOfOthers{"__pycache__", "node_modules"};

constexpr std::uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_ATTRIB |
                                   IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

// The folders in a folder, which may be links to elsewhere only if they are plugins.
std::vector<fs::path> watch_folders_in(int fd, const fs::path& folder, bool links, int& watches) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end && watches < kWatchesMax; at.increment(ec)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (name.starts_with('.') || std::ranges::find(kOfOthers, name) != kOfOthers.end() || !at->is_directory(ignored))
      continue;
    if (!links && at->is_symlink(ignored)) continue;
    if (::inotify_add_watch(fd, at->path().c_str(), kChanges) < 0) continue;
    ++watches;
    out.push_back(at->path());
  }
  return out;
}

fs::path nearest_that_exists(fs::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !fs::is_directory(path, ignored)) path = path.parent_path();
  return path;
}

// One that is not there yet is noticed by the folder in which it will be, or by the nearest one above that there is.
std::vector<fs::path> watch_plugins(int fd, const fs::path& folder, int& watches) {
  // Folders may come while we look for them: then the nearest is another one, and we look again.
  for (int look = 0; look < kLooksMax; ++look) {
    if (::inotify_add_watch(fd, folder.c_str(), kChanges) >= 0) return watch_folders_in(fd, folder, true, watches);
    const fs::path nearest = nearest_that_exists(folder.parent_path());
    ::inotify_add_watch(fd, nearest.c_str(),
                        IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_MASK_ADD);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) && nearest_that_exists(folder.parent_path()) == nearest) break;
  }
  return {};
}

// Every plugin, and then what is in it, for modules may stand in folders of their own: level by level, so that one with
// very many of them leaves the others theirs. False if there are more than can be watched.
bool watch_all(int fd, const std::vector<fs::path>& folders) {
  int watches = 0;
  std::vector<fs::path> level;
  for (const fs::path& folder : folders)
    std::ranges::move(watch_plugins(fd, folder, watches), std::back_inserter(level));
  while (!level.empty() && watches < kWatchesMax) {
    std::vector<fs::path> next;
    for (const fs::path& one : level)
      std::ranges::move(watch_folders_in(fd, one, false, watches), std::back_inserter(next));
    level = std::move(next);
  }
  return watches < kWatchesMax;
}

}  // namespace

Watcher::Watcher(asio::io_context& context, Clock& clock, std::vector<fs::path> folders, std::function<void()> changed)
    : folders_(std::move(folders)), changed_(std::move(changed)), events_(context), pauses_(clock), tasks_(context) {
  for (fs::path& folder : folders_) {
    folder = fs::absolute(folder).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
  }
}

void Watcher::start() {
  if (renew()) tasks_.spawn("watch over plugins", run());
}

Task<void> Watcher::stop() {
  stopping_ = true;
  boost::system::error_code ignored;
  events_.close(ignored);
  pauses_.end();
  return tasks_.join();
}

// Everything anew: a folder that was moved away would be watched where it is now.
bool Watcher::renew() {
  boost::system::error_code ignored;
  events_.close(ignored);
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    log::warn("plugin.watch_failed", "changes of plugins are not noticed until the next start",
              {{"why", std::strerror(errno)}});
    return false;
  }
  events_.assign(fd);
  const bool all = watch_all(fd, folders_);
  if (!all && !std::exchange(too_many_, true))
    log::warn("plugin.too_many_folders",
              "the plugins have more folders than can be watched; changes deep in them are not noticed",
              {{"watched", kWatchesMax}});
  return true;
}

Task<void> Watcher::run() {
  while (!stopping_) {
    const auto waited =
        co_await events_.async_wait(asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (std::get<0>(waited)) co_return;
    co_await pauses_.pause(kSettle);
    // First the watches, then the look: what changes in between is seen by both, not by neither.
    if (stopping_ || !renew()) co_return;
    changed_();
  }
}

}  // namespace belfry::plugin
