// Notices that something changed in the folders of plugins, so that they can be read again.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "belfry/base/task_group.h"
#include "belfry/clock/pauses.h"

namespace belfry::plugin {

// Lives on the kernel's thread. Says that something changed, never what: whoever is told looks at everything.
class Watcher {
 public:
  Watcher(asio::io_context& context, Clock& clock, std::vector<std::filesystem::path> folders,
          std::function<void()> changed);

  // Before the first scan: then nothing can change between the two unnoticed.
  void start();
  Task<void> stop();

 private:
  bool renew();
  Task<void> run();

  std::vector<std::filesystem::path> folders_;
  std::function<void()> changed_;
  asio::posix::stream_descriptor events_;
  Pauses pauses_;
  TaskGroup tasks_;
  bool stopping_ = false;
  bool too_many_ = false;  // has been said
};

}  // namespace belfry::plugin
