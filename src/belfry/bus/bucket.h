// Where in the calendar a message lies: buckets that widen with distance.
//
// A bucket of level L is 32^L milliseconds wide. What is due soon lies in fine buckets, what is due in years in a coarse
// one, so that inserts are appends at a few dozen places however far the delays spread. When a coarse bucket comes near,
// its rows move to finer ones (calendar.h). A bucket's key sorts by level, then by start.
#pragma once

#include <algorithm>
#include <cstdint>

namespace belfry::bus {

inline constexpr int kLevelBits = 5;
inline constexpr int kLevels = 10;  // 32^9 ms are a thousand years
inline constexpr int kFinestLevel =
    2;  // about a second: sends are not placed finer, only crowded buckets are split finer
inline constexpr int kStartBits = 50;  // the year 9999 needs 48

constexpr std::int64_t bucket_width(int level) { return std::int64_t{1} << (kLevelBits * level); }

struct Bucket {
  int level = 0;
  std::int64_t start_ms = 0;

  constexpr std::int64_t key() const {
    return (static_cast<std::int64_t>(level) << kStartBits) | std::max<std::int64_t>(start_ms, 0);
  }
  static constexpr Bucket from_key(std::int64_t key) {
    return {static_cast<int>(key >> kStartBits), key & ((std::int64_t{1} << kStartBits) - 1)};
  }
  // The bucket of that level around a moment.
  static constexpr Bucket around(int level, std::int64_t look_ms) {
    return {level, std::max<std::int64_t>(look_ms, 0) & ~(bucket_width(level) - 1)};
  }
  auto operator<=>(const Bucket&) const = default;
};

// The level for something that far away: at most 32 of its buckets lie between now and then.
constexpr int level_for(std::int64_t distance_ms) {
  int level = kFinestLevel;
  while (level < kLevels - 1 && distance_ms >= bucket_width(level + 1)) ++level;
  return level;
}

constexpr Bucket bucket_for(std::int64_t look_ms, std::int64_t now_ms) {
  return Bucket::around(level_for(look_ms - now_ms), look_ms);
}

}  // namespace belfry::bus
