#include "belfry/base/side_threads.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/thread_pool.hpp>

namespace belfry {

struct SideThreads::Pool {
  explicit Pool(int threads) : threads(static_cast<std::size_t>(threads)) {}
  asio::thread_pool threads;
};

SideThreads::SideThreads(asio::io_context& kernel, int threads) : kernel_(kernel) {
  if (threads > 0) pool_ = std::make_unique<Pool>(threads);
}

SideThreads::~SideThreads() {
  if (!pool_) return;
  pool_->threads.stop();
  pool_->threads.join();
}

// The kernel does not end while it is waited for.
void SideThreads::post(std::move_only_function<void()> work) {
  asio::post(pool_->threads, [work = std::move(work), guard = asio::make_work_guard(kernel_)]() mutable { work(); });
}

void SideThreads::resume_there(std::move_only_function<void()> resume) { asio::post(kernel_, std::move(resume)); }

}  // namespace belfry
