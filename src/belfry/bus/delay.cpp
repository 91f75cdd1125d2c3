#include "belfry/bus/delay.h"

#include <algorithm>
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

// Whether a decimal that fits into no double is too large for one; else it is too small. Its digits are known to be right.
bool is_huge(std::string_view text) {
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, exponent_at);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  // How many places the first digit that is not zero stands before the point, or behind it.
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  std::string_view exponent = text.substr(std::min(exponent_at + 1, text.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t shift = 0;
  if (std::from_chars(exponent.data(), exponent.data() + exponent.size(), shift).ec == std::errc::result_out_of_range)
    return !exponent.starts_with('-');
  return place + std::clamp(shift, -kForever.count(), kForever.count()) > 0;
}

std::optional<Millis> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ptr != end || text.empty()) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (read.ec == std::errc::result_out_of_range) {
    if (negative) return Millis{0};
    return is_huge(text) ? kForever : Millis{1};
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
