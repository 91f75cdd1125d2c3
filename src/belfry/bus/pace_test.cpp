#include "belfry/bus/pace.h"

#include <gtest/gtest.h>

namespace belfry::bus {
namespace {

using namespace std::chrono_literals;

constexpr int kMost = 2'000;

// D12
TEST(Pace, GrowsWhileRowsAreCheapAndNoFartherThanItMay) {
  Pace pace(kMost);
  const int first = pace.rows();
  pace.took(1ms);
  EXPECT_EQ(pace.rows(), 2 * first);
  for (int i = 0; i < 20; ++i) pace.took(0ms);
  EXPECT_EQ(pace.rows(), kMost);
}

// D12
TEST(Pace, ShrinksWhenOthersWouldHaveToWaitAndNotToNothing) {
  Pace pace(kMost);
  const int first = pace.rows();
  pace.took(Pace::kPatience + 1ns);
  EXPECT_EQ(pace.rows(), first / 2);
  for (int i = 0; i < 20; ++i) pace.took(1s);
  EXPECT_EQ(pace.rows(), Pace::kRowsMin);
}

TEST(Pace, StaysWhereItIsAboutRight) {
  Pace pace(kMost);
  const int first = pace.rows();
  pace.took(Pace::kPatience);
  pace.took(Pace::kPatience / 2);
  EXPECT_EQ(pace.rows(), first);
}

TEST(Pace, NeverExceedsASmallLimit) {
  Pace pace(3);
  EXPECT_EQ(pace.rows(), 3);
  pace.took(1s);
  EXPECT_EQ(pace.rows(), 3);
  pace.took(0s);
  EXPECT_EQ(pace.rows(), 3);
}

}  // namespace
}  // namespace belfry::bus
