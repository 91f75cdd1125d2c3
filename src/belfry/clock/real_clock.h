// The machine's clocks: CLOCK_REALTIME for the wall, CLOCK_BOOTTIME for elapsed time, one timerfd for all sleepers.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>

#include "belfry/clock/clock.h"

namespace belfry {

class RealClock final : public Clock {
 public:
  explicit RealClock(asio::io_context& context);

  Now now() const override;
  Task<void> sleep_until(BootTime due, Wake& wake) override;
  void on_step(std::function<void()> stepped) override;
  // Lets the io_context run out of work: no timer is waited for any more.
  void stop();

 private:
  void arm();
  void wait_for_timer();
  void wait_for_step();

  SleepQueue sleepers_;
  asio::posix::stream_descriptor timer_;
  asio::posix::stream_descriptor step_;
  BootTime armed_ = BootTime::max();
  std::function<void()> stepped_;
};

// For code without an io_context (commands, log lines).
Now read_real_clocks();

}  // namespace belfry
