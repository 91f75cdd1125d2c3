#include "belfry/bus/delay.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace belfry::bus {
namespace {

// Longer than any calendar: adding it saturates, and that is where the warning about it is made.
constexpr Millis kForever{std::int64_t{1} << 60};

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<Millis> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ptr != end || text.empty()) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (read.ec == std::errc::result_out_of_range) {
    // Either too large for a double or too small: an exponent below zero tells which.
    const bool tiny = text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    if (negative) return Millis{0};
    return tiny ? Millis{1} : kForever;
  }
  if (read.ec != std::errc{} || std::isnan(value)) return std::nullopt;
  if (std::isinf(value) && text.find_first_of("0123456789") == std::string_view::npos)
    return std::nullopt;  // the word "inf"
  if (value <= 0) return Millis{0};
  if (value >= static_cast<double>(kForever.count())) return kForever;
  // An integer is exact; a fraction rounds up, so that nothing is early.
  std::int64_t whole = 0;
  if (const auto exact = std::from_chars(text.data(), end, whole); exact.ptr == end && exact.ec == std::errc{})
    return Millis{whole};
  return Millis{static_cast<std::int64_t>(std::ceil(value))};
}

}  // namespace

DelayReading read_delay(json::Value value) {
  if (value.kind == json::Kind::null) return {};
  if (value.kind == json::Kind::number || value.kind == json::Kind::string) {
    const std::string text = value.kind == json::Kind::string ? json::text(value) : std::string(value.raw);
    if (const auto delay = parse_number(trim(text))) return {*delay, {}};
  }
  return {Millis{0}, fmt::format("delayMs is not a number of milliseconds but {}; the message was delivered at once",
                                 json::name(value.kind))};
}

}  // namespace belfry::bus
