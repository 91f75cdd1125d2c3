// A JSON number exactly as it was written: `1.0` is `1`, `0.01` is a hundredth, and `1e400` is nothing special.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace belfry::tool {

class Decimal {
 public:
  // Divisors with more digits than these would need arithmetic of any length, and nobody writes them.
  static constexpr std::size_t kDivisorDigitsMax = 18;

  explicit Decimal(std::string_view json_number);

  bool is_zero() const { return digits_.empty(); }
  bool is_negative() const { return negative_; }
  bool is_integer() const { return exponent_ >= 0; }
  // Without zeros at either end: 2 for `1.50e9`.
  std::size_t significant_digits() const { return digits_.size(); }
  // `divisor` is above zero and has kDivisorDigitsMax digits at most.
  bool is_multiple_of(const Decimal& divisor) const;
  // What counts things: the number cut to 0 … `most`.
  std::uint64_t clamped(std::uint64_t most) const;

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;

 private:
  // How many digits stand before the point, negative for zeros behind it.
  std::int64_t order() const { return static_cast<std::int64_t>(digits_.size()) + exponent_; }
  std::strong_ordering compare_size(const Decimal& other) const;

  // The number is digits × 10^exponent; neither end of the digits is a zero, and zero has none. So equal numbers have
  // equal members.
  std::string digits_;
  std::int64_t exponent_ = 0;
  bool negative_ = false;
};

}  // namespace belfry::tool
