// Time as a part that is passed in. The real clock is made in main and nowhere else; simulations make their own.
#pragma once

#include <functional>

#include "belfry/base/asio.h"
#include "belfry/base/time.h"
#include "belfry/clock/sleep_queue.h"

namespace belfry {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Now now() const = 0;
  // Resumes at or after `due`, never before, unless `wake` is rung. One timer stands behind all sleepers.
  virtual Task<void> sleep_until(BootTime due, Wake& wake) = 0;
  // `stepped` is called when somebody sets the wall clock. One listener: the Timekeeper.
  virtual void on_step(std::function<void()> stepped) = 0;
};

}  // namespace belfry
