#include "belfry/clock/real_clock.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "belfry/base/assert.h"

namespace belfry {
namespace {

Nanos read(clockid_t id) {
  timespec ts{};
  BELFRY_ASSERT(clock_gettime(id, &ts) == 0);
  return std::chrono::seconds{ts.tv_sec} + Nanos{ts.tv_nsec};
}

int make_timer(clockid_t id) {
  const int fd = timerfd_create(id, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  return fd;
}

void set_timer(int fd, int flags, Nanos at) {
  itimerspec spec{};
  // Zero would disarm the timer; a nanosecond after the epoch is as good as "now".
  const Nanos value = std::max(at, Nanos{1});
  spec.it_value.tv_sec = static_cast<time_t>(value.count() / 1'000'000'000);
  spec.it_value.tv_nsec = static_cast<long>(value.count() % 1'000'000'000);
  if (timerfd_settime(fd, flags, &spec, nullptr) != 0 && errno != ECANCELED)
    throw std::system_error(errno, std::generic_category(), "timerfd_settime");
}

}  // namespace

// One who is put to sleep between two readings would pair an old one with a new one, and on a busy machine that is
// milliseconds: a delay that has passed on one clock would not have on the other. Of a few pairs, the closest.
Now read_real_clocks() {
  static constexpr Nanos kClose = std::chrono::microseconds{20};
  static constexpr int kTries = 4;
  Now best;
  Nanos apart = Nanos::max();
  for (int i = 0; i < kTries && apart > kClose; ++i) {
    const Nanos before = read(CLOCK_BOOTTIME);
    const Nanos wall = read(CLOCK_REALTIME);
    const Nanos after = read(CLOCK_BOOTTIME);
    if (after - before >= apart) continue;
    apart = after - before;
    best = {WallInstant{wall}, BootTime{before}};
  }
  return best;
}

RealClock::RealClock(asio::io_context& context)
    : sleepers_(context), timer_(context, make_timer(CLOCK_BOOTTIME)), step_(context, make_timer(CLOCK_REALTIME)) {
  wait_for_timer();
  wait_for_step();
}

Now RealClock::now() const { return read_real_clocks(); }

Task<void> RealClock::sleep_until(BootTime due, Wake& wake) {
  // The timer is armed before the caller sleeps; being woken once too often is harmless, never is not.
  if (due < armed_) {
    armed_ = due;
    set_timer(timer_.native_handle(), TFD_TIMER_ABSTIME, due.time_since_epoch());
  }
  return sleepers_.sleep(due, wake);
}

void RealClock::on_step(std::function<void()> stepped) { stepped_ = std::move(stepped); }

void RealClock::stop() {
  boost::system::error_code ignored;
  timer_.close(ignored);
  step_.close(ignored);
}

void RealClock::arm() {
  armed_ = sleepers_.earliest().value_or(BootTime::max());
  if (armed_ != BootTime::max()) set_timer(timer_.native_handle(), TFD_TIMER_ABSTIME, armed_.time_since_epoch());
}

void RealClock::wait_for_timer() {
  timer_.async_wait(asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto size = ::read(timer_.native_handle(), &expirations, sizeof expirations);
    sleepers_.wake_due(now().boot);
    arm();
    wait_for_timer();
  });
}

void RealClock::wait_for_step() {
  // Armed for a time that no clock can be set to; setting the wall clock cancels it, and that is the news.
  static constexpr Nanos kNever = Nanos::max();
  set_timer(step_.native_handle(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, kNever);
  step_.async_wait(asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto size = ::read(step_.native_handle(), &expirations, sizeof expirations);
    if (stepped_) stepped_();
    wait_for_step();
  });
}

}  // namespace belfry
