#include "belfry/base/task_group.h"

#include <exception>

#include "belfry/base/log.h"

namespace belfry {

TaskGroup::~TaskGroup() = default;

void TaskGroup::spawn(std::string name, Task<void> task) {
  ++running_;
  asio::co_spawn(context_, std::move(task), [this, name = std::move(name)](std::exception_ptr failure) {
    if (failure) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& e) {
        log::error("task.failed", "a task ended with an exception", {{"task", name}, {"what", e.what()}});
      }
    }
    ended();
  });
}

void TaskGroup::ended() {
  if (--running_ > 0 || !joined_) return;
  asio::post(context_, [joined = std::move(joined_)]() mutable { joined(0); });
}

Task<void> TaskGroup::join() {
  if (running_ == 0) co_return;
  co_await suspend<int>([this](Resume<int> resume) { joined_ = std::move(resume); });
}

}  // namespace belfry
