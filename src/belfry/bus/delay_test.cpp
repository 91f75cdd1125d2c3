#include "belfry/bus/delay.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace belfry::bus {
namespace {

DelayReading read(std::string_view text) {
  const auto value = json::parse(text);
  EXPECT_TRUE(value.has_value()) << text;
  return read_delay(*value);
}

// D4
TEST(Delay, NumbersAndNumericStringsCountAndFractionsRoundUp) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"0", 0},           {"5000", 5000}, {R"("5000")", 5000},
      {R"("1e3")", 1000}, {"1e3", 1000},  {"0.1", 1},
      {"1.0000001", 2},   {"1.0", 1},     {R"(" 250 ")", 250},
      {R"("+7")", 7},     {"1e-400", 1},  {"9007199254740993", 9007199254740993},
      {"null", 0},        {"-0", 0},
  };
  for (const auto& [text, millis] : cases) {
    EXPECT_EQ(read(text).delay.count(), millis) << text;
    EXPECT_TRUE(read(text).warning.empty()) << text;
  }
}

// D3
TEST(Delay, NegativeIsNone) {
  for (const char* text : {"-1", "-1e400", "-0.5", R"("-5000")"}) {
    EXPECT_EQ(read(text).delay.count(), 0) << text;
    EXPECT_TRUE(read(text).warning.empty()) << text;
  }
}

// D5
TEST(Delay, HugeIsHugeAndNotNonsense) {
  for (const char* text : {"1e400", "1e300", R"("1e400")", "99999999999999999999999999"}) {
    EXPECT_GE(read(text).delay.count(), std::int64_t{1} << 60) << text;
    EXPECT_TRUE(read(text).warning.empty()) << text;
  }
}

// D4, D5: what fits into no double may be large or small, however it is written.
TEST(Delay, WhatNoDoubleHoldsIsLargeOrSmallByItsDigits) {
  const std::string zeros(400, '0');
  for (const std::string& small :
       std::vector<std::string>{"0." + zeros + "1", "1e-400", "1" + zeros + "e-900", "0.1e-9999999999999999999"})
    EXPECT_EQ(read(small).delay.count(), 1) << small;
  for (const std::string& large :
       std::vector<std::string>{fmt::format("1{0}{0}e-5", zeros), "0.001e500", "1" + zeros, "1e99999999999999999999"})
    EXPECT_GE(read(large).delay.count(), std::int64_t{1} << 60) << large;
}

// D4
TEST(Delay, AnythingElseIsDeliveredAtOnceWithAWarning) {
  for (const char* text :
       {R"("soon")", R"("")", R"("5s")", "true", "[]", "{}", R"("NaN")", R"("inf")", R"("0x10")", R"("infinity")"}) {
    EXPECT_EQ(read(text).delay.count(), 0) << text;
    EXPECT_FALSE(read(text).warning.empty()) << text;
  }
}

}  // namespace
}  // namespace belfry::bus
