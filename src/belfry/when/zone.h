// Time zones by their IANA names, from the system's tzdata.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <absl/time/time.h>

#include "belfry/base/result.h"
#include "belfry/base/time.h"
#include "belfry/when/civil.h"

namespace belfry::when {

class Zone {
 public:
  Zone();  // UTC
  // `Asia/Shanghai`, `UTC`, or an offset: `+08:00`.
  static Result<Zone> named(std::string_view name);
  static Zone fixed(int offset_seconds);
  static Zone utc() { return fixed(0); }

  const std::string& name() const { return data_->name; }
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
  // Each zone is loaded once and kept for as long as the program runs: there are not many, and a zone is as cheap to copy
  // as a pointer.
  struct Change {
    std::int64_t at;
    int before;  // offsets in seconds
    int after;
    std::int64_t local_end() const {
      return at + std::max(before, after);
    }  // the first local time that is only after it
    std::int64_t local_begin() const { return at + after; }  // the first one that can be after it
  };
  struct Data {
    Data(std::string_view called, const absl::TimeZone& loaded);
    std::string name;
    absl::TimeZone zone;
    int first_offset;
    std::vector<Change> changes;  // up to kTableEnd; the library knows them, but computes a calendar at each look
    bool in_table = true;         // no two changes so close that local times of one reach into the other
  };
  struct Kept;
  static Kept& kept();
  explicit Zone(const Data* data) : data_(data) {}
  static const Data* find(std::string_view name);
  static const Data* keep(std::string_view name, const absl::TimeZone& zone);

  bool in_table(std::int64_t seconds) const;
  template <class Threshold>
  Instant instant_by_table(std::int64_t local, Threshold threshold) const;

  const Data* data_;
};

}  // namespace belfry::when
