// Time that stands still until a test moves it.
#pragma once

#include "belfry/clock/clock.h"

namespace belfry {

class SimulatedClock final : public Clock {
 public:
  // 2026-03-01T12:00:00Z, an hour after the simulated machine was started.
  static Now noon();
  explicit SimulatedClock(asio::io_context& context, Now start = noon());

  Now now() const override { return now_; }
  Task<void> sleep_until(BootTime due, Wake& wake) override { return sleepers_.sleep(due, wake); }
  void on_step(std::function<void()> stepped) override { stepped_ = std::move(stepped); }

  // Runs everything that is ready, then lets time pass, stopping at each sleeper on the way.
  void advance(Nanos duration);
  // Runs everything that is ready at this moment.
  void settle();
  // The process died: whoever slept is gone without a word.
  void drop_sleepers() { sleepers_.clear(); }
  // The machine was suspended: time has passed, and whoever slept finds out afterwards.
  void suspend(Nanos duration);
  // Somebody sets the wall clock; elapsed time does not notice. Without `told`, the kernel's notice is lost.
  void step_wall(Nanos change, bool told = true);

 private:
  asio::io_context& context_;
  SleepQueue sleepers_;
  Now now_;
  std::function<void()> stepped_;
};

}  // namespace belfry
