#include "belfry/tool/schema/decimal.h"

#include <algorithm>
#include <charconv>

#include "belfry/base/assert.h"

namespace belfry::tool {
namespace {

__extension__ using Wide = unsigned __int128;

// Beyond this all numbers of a sign count as equally far away; sums of two such exponents still fit.
constexpr std::int64_t kExponentMax = 1'000'000'000'000'000;

std::int64_t read_exponent(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return 0;
  std::int64_t exponent = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (read.ec != std::errc{}) return text.starts_with('-') ? -kExponentMax : kExponentMax;
  return std::clamp(exponent, -kExponentMax, kExponentMax);
}

std::uint64_t remainder(std::string_view digits, std::uint64_t divisor) {
  std::uint64_t rest = 0;
  for (const char digit : digits)
    rest = static_cast<std::uint64_t>((Wide{rest} * 10 + static_cast<unsigned>(digit - '0')) % divisor);
  return rest;
}

std::uint64_t power_of_ten(std::int64_t exponent, std::uint64_t divisor) {
  Wide result = 1 % divisor;
  Wide square = 10 % divisor;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = result * square % divisor;
    square = square * square % divisor;
  }
  return static_cast<std::uint64_t>(result);
}

}  // namespace

Decimal::Decimal(std::string_view json_number) {
  negative_ = json_number.starts_with('-');
  if (negative_) json_number.remove_prefix(1);
  const std::size_t e = std::min(json_number.find_first_of("eE"), json_number.size());
  const std::string_view mantissa = json_number.substr(0, e);
  exponent_ = e == json_number.size() ? 0 : read_exponent(json_number.substr(e + 1));

  const std::size_t point = mantissa.find('.');
  digits_ = mantissa.substr(0, point);
  if (point != std::string_view::npos) {
    digits_ += mantissa.substr(point + 1);
    exponent_ -= static_cast<std::int64_t>(mantissa.size() - point - 1);
  }
  digits_.erase(0, std::min(digits_.find_first_not_of('0'), digits_.size()));
  const std::size_t length = digits_.find_last_not_of('0') + 1;
  exponent_ += static_cast<std::int64_t>(digits_.size() - length);
  digits_.resize(length);
  if (digits_.empty()) exponent_ = 0, negative_ = false;
}

bool Decimal::is_multiple_of(const Decimal& divisor) const {
  BELFRY_ASSERT(!divisor.is_zero() && divisor.digits_.size() <= kDivisorDigitsMax);
  if (is_zero()) return true;
  const std::int64_t shift = exponent_ - divisor.exponent_;
  if (shift < 0) return false;  // it would have to end in zeros, and its digits do not
  std::uint64_t whole = 0;
  std::from_chars(divisor.digits_.data(), divisor.digits_.data() + divisor.digits_.size(), whole);
  return Wide{remainder(digits_, whole)} * power_of_ten(shift, whole) % whole == 0;
}

std::uint64_t Decimal::clamped(std::uint64_t most) const {
  if (is_zero() || negative_) return 0;
  if (order() > 19) return most;
  std::string whole = digits_.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(order(), 0)));
  whole.resize(static_cast<std::size_t>(std::max<std::int64_t>(order(), 0)), '0');
  std::uint64_t value = 0;
  std::from_chars(whole.data(), whole.data() + whole.size(), value);
  return std::min(value, most);
}

std::strong_ordering Decimal::compare_size(const Decimal& other) const {
  if (is_zero() || other.is_zero()) return digits_.size() <=> other.digits_.size();
  if (order() != other.order()) return order() <=> other.order();
  return digits_ <=> other.digits_;  // from the first digit on; the longer one goes on with more than zeros
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative_ != other.negative_) return negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  return negative_ ? other.compare_size(*this) : compare_size(other);
}

}  // namespace belfry::tool
