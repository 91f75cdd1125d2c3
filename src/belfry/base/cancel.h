// Lets somebody end what another one waits for.
#pragma once

#include <functional>
#include <utility>

namespace belfry {

// Shared by the one who waits and the one who may end it. Lives on the kernel's thread.
class Cancel {
 public:
  void cancel() {
    if (std::exchange(cancelled_, true)) return;
    if (on_cancel_) std::exchange(on_cancel_, nullptr)();
  }
  bool cancelled() const { return cancelled_; }
  // What to do when it is ended; null once nothing waits any more. Called at once if it has ended already.
  void on_cancel(std::function<void()> then) {
    on_cancel_ = std::move(then);
    if (cancelled_ && on_cancel_) std::exchange(on_cancel_, nullptr)();
  }

 private:
  std::function<void()> on_cancel_;
  bool cancelled_ = false;
};

}  // namespace belfry
