// Coroutines with a name and an owner: nothing runs detached.
#pragma once

#include <string>

#include "belfry/base/asio.h"

namespace belfry {

// Lives on the thread of its io_context. An exception that leaves a task is logged and ends that task only.
class TaskGroup {
 public:
  explicit TaskGroup(asio::io_context& context) : context_(context) {}
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  void spawn(std::string name, Task<void> task);
  int running() const { return running_; }
  // Resumes when the last task has ended. The owner has told the tasks to end before.
  Task<void> join();

 private:
  void ended();

  asio::io_context& context_;
  int running_ = 0;
  Resume<int> joined_;
};

}  // namespace belfry
