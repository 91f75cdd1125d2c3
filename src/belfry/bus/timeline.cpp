#include "belfry/bus/timeline.h"

#include <algorithm>

namespace belfry::bus {
namespace {

Nanos wall_minus_boot(const Now& now) { return now.wall.time_since_epoch() - now.boot.time_since_epoch(); }

// A wall clock that is slower than the elapsed one would make delays look early to who reads the wall: follow it soon.
constexpr Nanos kFollowBack = std::chrono::microseconds{100};
constexpr Nanos kFollowAhead = std::chrono::milliseconds{1};

// The calendar is read many seconds ahead, so its axis need not follow a drift below one.
constexpr std::int64_t kAxisSlackMs = 1'000;

}  // namespace

Timeline::Timeline(const Now& start, Millis ahead)
    : anchor_(wall_minus_boot(start)), ahead_(ahead), line_ms_(axis_ms(start)), line_boot_(start.boot) {}

void Timeline::observe(const Now& now) {
  const Nanos drift = wall_minus_boot(now) - anchor_;
  if (drift > kFollowAhead || drift < -kFollowBack) anchor_ += drift;

  const std::int64_t axis = axis_ms(now);
  const std::int64_t line = line_ms_ + std::chrono::floor<Millis>(now.boot - line_boot_).count();
  if (axis >= line) {
    line_ms_ = axis;
    line_boot_ = now.boot;
    return;
  }
  if (line - axis < kAxisSlackMs) return;
  ahead_ += Millis{line - axis};
  unsaved_ = true;
}

BootTime Timeline::boot_due(WallTime deliver_at) const {
  // In milliseconds first: the year 9999 does not fit into nanoseconds. Two centuries are never reached by an uptime.
  static constexpr Millis kFar = std::chrono::hours{24 * 365 * 200};
  const Millis anchor = std::chrono::floor<Millis>(anchor_);
  const Millis coarse = deliver_at.time_since_epoch() - anchor;
  return BootTime{std::min(coarse, kFar) - (anchor_ - anchor)};
}

}  // namespace belfry::bus
