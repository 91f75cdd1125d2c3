#include "belfry/app/bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "belfry/clock/real_clock.h"

namespace belfry::app::bench {

Line::~Line() {
  writer_.end();
  std::printf("%s\n", writer_.str().c_str());
  std::fflush(stdout);
}

Line& Line::number(std::string_view key, double value) {
  if (value != 0 && std::isfinite(value)) {
    const double scale = std::pow(10.0, 2 - std::floor(std::log10(std::abs(value))));
    value = std::round(value * scale) / scale;
  }
  writer_.field(key, value);
  return *this;
}

double Samples::quantile_ms(double share) {
  if (values_.empty()) return 0;
  if (!sorted_) std::sort(values_.begin(), values_.end());
  sorted_ = true;
  const auto last = static_cast<double>(values_.size() - 1);
  return static_cast<double>(values_[static_cast<std::size_t>(std::ceil(share * last))]) / 1e6;
}

std::int64_t Samples::negative() const {
  return std::count_if(values_.begin(), values_.end(), [](std::int64_t value) { return value < 0; });
}

Nanos elapsed_now() { return read_real_clocks().boot.time_since_epoch(); }

}  // namespace belfry::app::bench
