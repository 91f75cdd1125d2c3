// Time zones by their IANA names, from the system's tzdata.
#pragma once

#include <string>
#include <string_view>

#include <absl/time/time.h>

#include "belfry/base/result.h"
#include "belfry/when/civil.h"

namespace belfry::when {

class Zone {
 public:
  // `Asia/Shanghai`, `UTC`, or an offset: `+08:00`.
  static Result<Zone> named(std::string_view name);
  static Zone fixed(int offset_seconds);
  static Zone utc() { return fixed(0); }

  const std::string& name() const { return name_; }
  Local local(Instant instant) const;
  int offset_seconds(Instant instant) const;
  // A local time that a step skipped moves forward by the step; one that comes twice is the first.
  Instant instant(const Local& local) const;
  // 2026-03-01T09:30:00+08:00
  std::string iso(Instant instant) const;

 private:
  absl::TimeZone zone_;
  std::string name_;
};

}  // namespace belfry::when
