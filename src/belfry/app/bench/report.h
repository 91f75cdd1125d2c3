// What a benchmark prints: one JSON object a line, each with its name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/time.h"

namespace belfry::app::bench {

// A line under construction; printed when it goes out of scope.
class Line {
 public:
  explicit Line(std::string_view name) { writer_.object().field("bench", name); }
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  template <class T>
  Line& add(std::string_view key, const T& value) {
    writer_.field(key, value);
    return *this;
  }
  // Rounded to three significant places: more would claim a precision that no run has.
  Line& number(std::string_view key, double value);

 private:
  json::Writer writer_;
};

// Durations or latenesses, in nanoseconds.
class Samples {
 public:
  void add(Nanos value) { values_.push_back(value.count()); }
  std::size_t size() const { return values_.size(); }
  // In milliseconds; `share` 0.5 is the median, 1.0 the largest.
  double quantile_ms(double share);
  std::int64_t negative() const;

 private:
  std::vector<std::int64_t> values_;
  bool sorted_ = false;
};

Nanos elapsed_now();

}  // namespace belfry::app::bench
