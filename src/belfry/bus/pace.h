// How many rows of background work go into one transaction: as many as others can wait for.
//
// How long a row takes depends on whether its pages are in memory, so it is measured: right after a start one takes ten
// times as long as an hour later.
#pragma once

#include <algorithm>

#include "belfry/base/time.h"

namespace belfry::bus {

class Pace {
 public:
  // Whoever else wants the disk waits about this long at most.
  static constexpr Nanos kPatience = std::chrono::milliseconds{4};
  static constexpr int kRowsMin = 50;  // fewer are hardly faster: the commit itself is what takes time then

  explicit Pace(int rows_max) : rows_max_(rows_max), rows_(std::min(rows_max, 4 * kRowsMin)) {}

  int rows() const { return rows_; }
  void took(Nanos time) {
    if (time > kPatience) {
      rows_ = std::min(rows_max_, std::max(rows_ / 2, kRowsMin));
    } else if (time < kPatience / 2) {
      rows_ = std::min(rows_ * 2, rows_max_);
    }
  }

 private:
  int rows_max_;
  int rows_;
};

}  // namespace belfry::bus
