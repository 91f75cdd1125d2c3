// Time zones by their IANA names, from the system's tzdata.
#pragma once

#include <string>
#include <string_view>

#include <absl/time/time.h>

#include "belfry/base/result.h"
#include "belfry/base/time.h"
#include "belfry/when/civil.h"

namespace belfry::when {

class Zone {
 public:
  Zone() : name_("UTC") {}
  // `Asia/Shanghai`, `UTC`, or an offset: `+08:00`.
  static Result<Zone> named(std::string_view name);
  static Zone fixed(int offset_seconds);
  static Zone utc() { return fixed(0); }

  const std::string& name() const { return name_; }
  Local local(Instant instant) const;
  int offset_seconds(Instant instant) const;
  // A local time that a step skipped moves forward by the step; one that comes twice is the first.
  Instant instant(const Local& local) const;
  // The first change of its offset behind this second; far away if there is none.
  std::int64_t next_change(std::int64_t seconds) const;
  // The second of two, for one that comes twice; else the same.
  Instant later_instant(const Local& local) const;
  // 2026-03-01T09:30:00+08:00, with milliseconds if there are any
  std::string iso(WallTime at) const;

 private:
  absl::TimeZone zone_;
  std::string name_;
};

// The name as it is known, for as long as the program runs; empty if there is no such zone.
std::string_view known_zone(const std::string& name);

}  // namespace belfry::when
