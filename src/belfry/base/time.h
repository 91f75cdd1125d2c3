// The two kinds of time, and how they are written.
//
// WallTime is what people mean: a UTC instant in whole milliseconds, stored as such. BootTime is elapsed time since the
// machine was started, suspend included; it never outlives the boot and is never stored for another process to read.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/result.h"

namespace belfry {

struct BootClock {};  // a tag: only `clock/` can read it

using Millis = std::chrono::milliseconds;
using Nanos = std::chrono::nanoseconds;
using WallTime = std::chrono::sys_time<Millis>;
using WallInstant = std::chrono::sys_time<Nanos>;  // as the machine's clock says it, before rounding
using BootTime = std::chrono::time_point<BootClock, Nanos>;

// One reading of both clocks.
struct Now {
  WallInstant wall;
  BootTime boot;
};

// 9999-12-31T23:59:59.999Z: the last instant that ISO 8601 writes with four digits, so the latest there is (D5).
inline constexpr WallTime kLatestTime{Millis{253'402'300'799'999}};

// 0001-01-01T00:00:00Z: the first, for the same reason.
inline constexpr WallTime kEarliestTime{Millis{-62'135'596'800'000}};

inline WallTime round_down(WallInstant instant) { return std::chrono::floor<Millis>(instant); }
inline WallTime round_up(WallInstant instant) { return std::chrono::ceil<Millis>(instant); }

inline std::int64_t to_ms(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime wall_from_ms(std::int64_t ms) { return WallTime{Millis{ms}}; }

// `start + delay`, at most kLatestTime.
WallTime saturating_add(WallTime start, Millis delay);

// 2026-03-01T09:30:00.250Z
std::string to_iso(WallTime time);

// ISO 8601 with a date, a time of day and `Z` or an offset; finer than a millisecond rounds up, so that nothing is early.
Result<WallTime> parse_iso(std::string_view text);

// `90`, `90s`, `1500ms`, `5m`, `2h`, `1d`, `1h30m`: what a person types as a delay. A bare number is seconds.
Result<Millis> parse_duration(std::string_view text);

}  // namespace belfry
