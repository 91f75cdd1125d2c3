#include "belfry/plugin/watcher.h"

#include <sys/inotify.h>

#include <cerrno>
#include <cstring>

#include <boost/asio/as_tuple.hpp>

#include "belfry/base/log.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

// A copied folder is many changes; whoever edits does not notice a fifth of a second.
constexpr Millis kSettle{200};
// A thousand folders and their watches are more than any set of plugins has.
constexpr int kWatchesMax = 1'000;

constexpr std::uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_ATTRIB |
                                   IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

// The folders in a folder, which may be links to elsewhere only if they are plugins.
std::vector<fs::path> watch_folders_in(int fd, const fs::path& folder, bool links, int& watches) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end && watches < kWatchesMax; at.increment(ec)) {
    std::error_code ignored;
    const std::string name = at->path().filename().string();
    if (name.starts_with('.') || name == "__pycache__" || !at->is_directory(ignored)) continue;
    if (!links && at->is_symlink(ignored)) continue;
    if (::inotify_add_watch(fd, at->path().c_str(), kChanges) < 0) continue;
    ++watches;
    out.push_back(at->path());
  }
  return out;
}

// Every plugin, and then what is in it: modules may stand in folders of their own.
void watch_plugins(int fd, const fs::path& folder, int& watches) {
  std::vector<fs::path> level = watch_folders_in(fd, folder, true, watches);
  while (!level.empty()) {
    std::vector<fs::path> next;
    for (const fs::path& one : level)
      for (fs::path& inner : watch_folders_in(fd, one, false, watches)) next.push_back(std::move(inner));
    level = std::move(next);
  }
}

// One that is not there yet is noticed by the folder in which it will be.
void watch(int fd, const fs::path& folder, int& watches) {
  if (::inotify_add_watch(fd, folder.c_str(), kChanges) >= 0) {
    watch_plugins(fd, folder, watches);
  } else {
    ::inotify_add_watch(fd, folder.parent_path().c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  }
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
  int watches = 0;
  for (const fs::path& folder : folders_) watch(fd, folder, watches);
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
