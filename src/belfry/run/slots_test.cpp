#include "belfry/run/slots.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::run {
namespace {

using namespace std::chrono_literals;

const BootTime kStart{1'000s};

Appetite eats(std::string tool, std::string provider = "p", int at_once = 0, Millis cooldown = 0ms) {
  return {.tool = std::move(tool), .provider = std::move(provider), .at_once = at_once, .cooldown = cooldown};
}

// F14
TEST(Slots, WhoeverCannotStartHoldsUpNobodyElse) {
  Slots slots({.total = 3, .per_tool = 1, .per_provider = 3});
  slots.wait({1, 0}, eats("a"));
  slots.wait({2, 0}, eats("a"));
  slots.wait({3, 0}, eats("b"));
  EXPECT_EQ(slots.take(kStart), (StepKey{1, 0}));
  EXPECT_EQ(slots.take(kStart), (StepKey{3, 0}));
  EXPECT_EQ(slots.take(kStart), std::nullopt);
  slots.give_back({1, 0}, kStart);
  EXPECT_EQ(slots.take(kStart), (StepKey{2, 0}));
}

// F14
TEST(Slots, APauseBeginsWithTheEnd) {
  Slots slots({});
  slots.wait({1, 0}, eats("a", "p", 1, 30s));
  slots.wait({2, 0}, eats("a", "p", 1, 30s));
  EXPECT_TRUE(slots.take(kStart));
  slots.give_back({1, 0}, kStart + 10s);
  EXPECT_EQ(slots.take(kStart + 10s), std::nullopt);
  EXPECT_EQ(slots.next_look(kStart + 10s), kStart + 40s);
  EXPECT_EQ(slots.take(kStart + 40s - 1ns), std::nullopt);
  EXPECT_EQ(slots.take(kStart + 40s), (StepKey{2, 0}));
}

// F14
TEST(Slots, WhoeverLeavesIsNotCalled) {
  Slots slots({});
  slots.wait({1, 0}, eats("a"));
  EXPECT_TRUE(slots.leave({1, 0}));
  EXPECT_FALSE(slots.leave({1, 0}));
  EXPECT_EQ(slots.take(kStart), std::nullopt);
  EXPECT_EQ(slots.waiting(), 0u);
}

// F14
TEST(Slots, WhoeverWaitsTwiceIsCalledOnce) {
  Slots slots({});
  slots.wait({1, 0}, eats("a"));
  slots.wait({1, 0}, eats("a"));
  EXPECT_EQ(slots.take(kStart), (StepKey{1, 0}));
  slots.wait({1, 0}, eats("a"));
  EXPECT_EQ(slots.take(kStart), std::nullopt);
  slots.give_back({1, 0}, kStart);
  EXPECT_EQ(slots.running(), 0u);
}

// F14
RC_GTEST_PROP(SlotsProperty, NoLimitIsEverExceededAndEverybodyGetsATurnInOrder, ()) {
  const SlotLimits limits{
      .total = *rc::gen::inRange(1, 5), .per_tool = *rc::gen::inRange(1, 4), .per_provider = *rc::gen::inRange(1, 5)};
  Slots slots(limits);
  struct One {
    std::string tool;
    std::string provider;
  };
  std::map<StepKey, One> all;
  std::vector<StepKey> running;
  std::map<std::string, std::int64_t> last_of_tool;
  const auto names = std::vector<std::string>{"a", "b", "c"};
  const int steps = *rc::gen::inRange(1, 40);
  for (int i = 0; i < steps; ++i) {
    const int tool = *rc::gen::inRange(0, 3);
    all[{i, 0}] = {names[tool], tool < 2 ? "x" : "y"};
  }
  std::size_t started = 0;
  const auto pump = [&] {
    while (const auto next = slots.take(kStart)) {
      ++started;
      running.push_back(*next);
      const One& one = all.at(*next);
      RC_ASSERT(!last_of_tool.contains(one.tool) || last_of_tool[one.tool] < next->run);
      last_of_tool[one.tool] = next->run;
      const auto same = [&](auto member, const std::string& value) {
        return std::ranges::count_if(running, [&](StepKey key) { return all.at(key).*member == value; });
      };
      RC_ASSERT(static_cast<int>(running.size()) <= limits.total);
      RC_ASSERT(same(&One::tool, one.tool) <= limits.per_tool);
      RC_ASSERT(same(&One::provider, one.provider) <= limits.per_provider);
    }
  };
  for (const auto& [key, one] : all) {
    slots.wait(key, eats(one.tool, one.provider));
    if (*rc::gen::arbitrary<bool>()) pump();
  }
  pump();
  while (!running.empty()) {
    const auto index = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(running.size())));
    slots.give_back(running[index], kStart);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
    pump();
  }
  RC_ASSERT(started == all.size());
}

}  // namespace
}  // namespace belfry::run
