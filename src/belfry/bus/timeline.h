// How the bus reads two clocks without ever being early or losing a message to a clock step.
//
// Delays wait on the elapsed clock, instants on the wall clock. Both are shown as wall times, so the timeline keeps an
// anchor between the two: a delay's `deliverAt` is the elapsed clock plus the anchor, and equal `deliverAt`s are due at
// the same elapsed moment, which keeps the order of sending (D7). The anchor follows the wall clock when that drifts.
//
// The calendar on disk has one axis for both: a row lies where it must be looked at again, at the latest. The axis never
// falls behind either clock: when the wall clock is set back, `ahead_ms` grows, and it is stored, since rows of this
// life lie where that axis says. A row that is looked at too early is put back (docs/adr/0003).
#pragma once

#include <utility>

#include "belfry/base/time.h"

namespace belfry::bus {

class Timeline {
 public:
  Timeline(const Now& start, Millis ahead);

  // Takes note of the clocks.
  void observe(const Now& now);
  // True once after `ahead()` grew: it must be stored.
  bool take_unsaved() { return std::exchange(unsaved_, false); }

  // The elapsed clock written as a wall time.
  WallInstant elapsed_as_wall(BootTime boot) const { return WallInstant{(boot + anchor_).time_since_epoch()}; }
  // The elapsed moment that is written as `deliver_at`.
  BootTime boot_due(WallTime deliver_at) const;

  std::int64_t axis_ms(const Now& now) const { return to_ms(round_down(now.wall)) + ahead_.count(); }
  // How far the axis runs before the wall clock.
  Millis ahead() const { return ahead_; }

 private:
  Nanos anchor_;
  Millis ahead_;
  std::int64_t line_ms_;  // the axis as the elapsed clock alone would have it, from `line_boot_` on
  BootTime line_boot_;
  bool unsaved_ = false;
};

}  // namespace belfry::bus
