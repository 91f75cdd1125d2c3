#include "belfry/tool/schema/decimal.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::tool {
namespace {

TEST(ToolDecimal, EqualNumbersAreEqualHoweverTheyAreWritten) {
  EXPECT_EQ(Decimal("1"), Decimal("1.0"));
  EXPECT_EQ(Decimal("1200"), Decimal("0.12E+4"));
  EXPECT_EQ(Decimal("-0.0"), Decimal("0e99"));
  EXPECT_NE(Decimal("1"), Decimal("-1"));
}

TEST(ToolDecimal, OrdersNumbersThatNoDoubleHolds) {
  EXPECT_LT(Decimal("1e400"), Decimal("1.1e400"));
  EXPECT_LT(Decimal("-1e400"), Decimal("1e-400"));
  EXPECT_LT(Decimal("1e-400"), Decimal("1e-399"));
  EXPECT_LT(Decimal("-2"), Decimal("-1.9"));
  EXPECT_LT(Decimal("0"), Decimal("0.0001"));
  EXPECT_LT(Decimal("-0.0001"), Decimal("0"));
  EXPECT_LT(Decimal("12"), Decimal("12.5"));
}

TEST(ToolDecimal, CountsAreCutToWhatIsAskedFor) {
  EXPECT_EQ(Decimal("1e400").clamped(7), 7u);
  EXPECT_EQ(Decimal("120").clamped(1'000), 120u);
  EXPECT_EQ(Decimal("12e1").clamped(UINT64_MAX), 120u);
  EXPECT_EQ(Decimal("0").clamped(7), 0u);
  EXPECT_EQ(Decimal("-5").clamped(7), 0u);
}

RC_GTEST_PROP(ToolDecimal, AgreesWithIntegers, ()) {
  const auto a = *rc::gen::arbitrary<std::int64_t>();
  const auto b = *rc::gen::arbitrary<std::int64_t>();
  const auto divisor = *rc::gen::inRange<std::int64_t>(1, 1'000);
  const Decimal left(std::to_string(a));

  RC_ASSERT((left <=> Decimal(std::to_string(b))) == (a <=> b));
  RC_ASSERT(left.is_multiple_of(Decimal(std::to_string(divisor))) == (a % divisor == 0));
  RC_ASSERT(left == Decimal(std::to_string(a) + "00e-2"));
}

RC_GTEST_PROP(ToolDecimal, AgreesWithCentsOnMultiplesOfFractions, ()) {
  const auto cents = *rc::gen::inRange<std::int64_t>(0, 100'000'000);
  const auto step = *rc::gen::inRange<std::int64_t>(1, 10'000);
  const auto in_cents = [](std::int64_t number) { return std::to_string(number) + "e-2"; };

  RC_ASSERT(Decimal(in_cents(cents)).is_multiple_of(Decimal(in_cents(step))) == (cents % step == 0));
}

}  // namespace
}  // namespace belfry::tool
