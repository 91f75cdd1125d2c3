// Slow work on files beside the kernel's thread: what a tool has left is removed, or written to the disk for good.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>

#include "belfry/base/asio.h"

namespace belfry {

// Belongs to the kernel's thread. Without threads the work is done there and at once: for simulations.
class SideThreads {
 public:
  SideThreads(asio::io_context& kernel, int threads);
  // Waits for what has begun, which must therefore be short; what has not is dropped.
  ~SideThreads();
  SideThreads(const SideThreads&) = delete;
  SideThreads& operator=(const SideThreads&) = delete;

  // What `job()` gives; what it throws is thrown here.
  template <class Job, class T = std::invoke_result_t<Job>>
  Task<T> run(Job job) {
    if (!pool_) co_return job();
    struct Done {
      std::optional<T> value;
      std::exception_ptr thrown;
    };
    Done done = co_await suspend<Done>([&](Resume<Done> resume) {
      post([this, job = std::move(job), resume = std::move(resume)]() mutable {
        Done made;
        try {
          made.value.emplace(job());
        } catch (...) {
          made.thrown = std::current_exception();
        }
        resume_there([resume = std::move(resume), made = std::move(made)]() mutable { resume(std::move(made)); });
      });
    });
    if (done.thrown) std::rethrow_exception(done.thrown);
    co_return std::move(*done.value);
  }

 private:
  struct Pool;
  void post(std::move_only_function<void()> work);
  void resume_there(std::move_only_function<void()> resume);

  asio::io_context& kernel_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace belfry
