#include "belfry/due/timekeeper.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/task_group.h"
#include "belfry/clock/simulated_clock.h"

namespace belfry {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kHeartbeat = 1s;  // what an unnoticed clock step may cost

// Things that come due by either clock, kept in two lists.
class FakeSource final : public DueSource {
 public:
  struct Fired {
    Due due;
    Now at;
  };

  void add(Due due) { dues_.push_back(due); }

  std::optional<Due> next_due(const Now& now) const override {
    const auto earlier = [&now](const Due& a, const Due& b) { return on_boot_clock(a, now) < on_boot_clock(b, now); };
    const auto first = std::min_element(dues_.begin(), dues_.end(), earlier);
    return first == dues_.end() ? std::nullopt : std::optional(*first);
  }

  Task<int> fire_due(Now now, int limit) override {
    ++calls;
    largest_limit = std::max(largest_limit, limit);
    int count = 0;
    std::vector<Due> left;
    for (const Due& due : dues_) {
      if (count < limit && is_due(due, now)) {
        fired.push_back({due, now});
        ++count;
      } else {
        left.push_back(due);
      }
    }
    dues_ = std::move(left);
    co_return count;
  }

  std::vector<Fired> fired;
  int calls = 0;
  int largest_limit = 0;

 private:
  static bool is_due(const Due& due, const Now& now) {
    if (const auto* boot = std::get_if<BootTime>(&due)) return *boot <= now.boot;
    return std::get<WallTime>(due) <= round_down(now.wall);
  }

  std::vector<Due> dues_;
};

class TimekeeperTest : public ::testing::Test {
 public:
  TimekeeperTest() {
    keeper.add(source);
    tasks.spawn("timekeeper", keeper.run());
    clock.settle();
  }
  ~TimekeeperTest() override {
    keeper.stop();
    clock.settle();
    EXPECT_EQ(tasks.running(), 0) << "the loop ends when it is told to";
  }

 protected:
  BootTime boot() const { return clock.now().boot; }
  WallTime wall() const { return round_up(clock.now().wall); }

  // As a source does that has something new.
  void add(Due due) {
    source.add(due);
    keeper.look_again();
  }

  asio::io_context context;
  SimulatedClock clock{context};
  FakeSource source;
  TaskGroup tasks{context};
  Timekeeper keeper{clock};
};

// D1, G4
TEST_F(TimekeeperTest, FiresExactlyAtTheDueMoment) {
  add(boot() + 5min);
  add(wall() + 5min);

  clock.advance(5min - 1ns);
  EXPECT_TRUE(source.fired.empty());

  clock.advance(1ns);
  EXPECT_EQ(source.fired.size(), 2u);
}

TEST_F(TimekeeperTest, FiresAtTheMomentOnTheWayHoweverFarTimeJumps) {
  const BootTime start = boot();
  for (const Millis delay : {1ms, 1500ms, 3'600'000ms}) add(start + delay);

  clock.advance(24h);

  ASSERT_EQ(source.fired.size(), 3u);
  for (const auto& fired : source.fired) EXPECT_EQ(fired.at.boot, std::get<BootTime>(fired.due));
}

// D6: a wall time that falls between two nanosecond readings is not early.
TEST_F(TimekeeperTest, WallTimeIsMetToTheNanosecond) {
  clock.advance(1'234'567ns);
  const WallTime due = round_down(clock.now().wall) + 100ms;
  add(due);

  clock.advance(1h);

  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_EQ(source.fired[0].at.wall, WallInstant{due});
}

TEST_F(TimekeeperTest, SleepsUntilToldOfSomethingEarlier) {
  add(boot() + 10min);
  clock.advance(1min);
  add(boot() + 1ms);

  clock.advance(1ms);

  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_EQ(source.fired[0].at.boot, std::get<BootTime>(source.fired[0].due));
}

// D8: even a wake-up that was forgotten costs a heartbeat at most.
TEST_F(TimekeeperTest, LostWakeUpCostsAHeartbeat) {
  const BootTime due = boot() + 10ms;
  source.add(due);

  clock.advance(1min);

  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_LE(source.fired[0].at.boot - due, kHeartbeat);
}

TEST_F(TimekeeperTest, LooksOnlyAtEachHeartbeatWhenNothingIsDue) {
  const int before = source.calls;

  clock.advance(1min);

  EXPECT_EQ(source.calls - before, 60);
}

// G7
TEST_F(TimekeeperTest, BurstIsFiredInSlicesAllAtTheSameMoment) {
  const BootTime due = boot() + 1s;
  for (int i = 0; i < 5'500; ++i) source.add(due);
  int before = source.calls;
  clock.advance(999ms);
  before = source.calls;

  clock.advance(1ms);

  EXPECT_EQ(source.fired.size(), 5'500u);
  EXPECT_EQ(source.calls - before, 6);
  EXPECT_EQ(source.largest_limit, 1'000);
}

TEST_F(TimekeeperTest, OthersGetTheirTurnBetweenTwoSlices) {
  std::vector<std::size_t> seen;
  const auto look = [&](auto& self) -> void {
    seen.push_back(source.fired.size());
    if (seen.size() < 50) asio::post(context, [&self] { self(self); });
  };
  for (int i = 0; i < 5'000; ++i) source.add(boot());

  keeper.look_again();
  asio::post(context, [&look] { look(look); });
  clock.settle();

  for (const std::size_t slice : {1'000u, 2'000u, 3'000u, 4'000u})
    EXPECT_NE(std::find(seen.begin(), seen.end(), slice), seen.end()) << slice;
}

TEST_F(TimekeeperTest, ServesSeveralSources) {
  FakeSource other;
  keeper.add(other);
  add(boot() + 2s);
  other.add(boot() + 1500ms);
  keeper.look_again();

  clock.advance(1500ms);
  EXPECT_EQ(other.fired.size(), 1u);
  EXPECT_TRUE(source.fired.empty());
  clock.advance(500ms);
  EXPECT_EQ(source.fired.size(), 1u);
}

// D8, G4
TEST_F(TimekeeperTest, WallSteppedForwardFiresWallTimesAtOnceAndElapsedOnesNot) {
  add(wall() + 1h);
  add(boot() + 1h);
  clock.settle();  // it sleeps when the clock is set

  clock.step_wall(2h);
  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<WallTime>(source.fired[0].due));

  clock.advance(1h);
  ASSERT_EQ(source.fired.size(), 2u);
  EXPECT_EQ(source.fired[1].at.boot, std::get<BootTime>(source.fired[1].due));
}

// G4
TEST_F(TimekeeperTest, WallSteppedBackFiresWallTimesLaterAndElapsedOnesInTime) {
  const WallTime due = wall() + 1h;
  add(due);
  add(boot() + 1h);

  clock.step_wall(-30min);
  clock.advance(1h);
  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<BootTime>(source.fired[0].due));

  clock.advance(30min);
  ASSERT_EQ(source.fired.size(), 2u);
  EXPECT_EQ(source.fired[1].at.wall, WallInstant{due});
}

// D8
TEST_F(TimekeeperTest, UnnoticedStepForwardCostsAHeartbeat) {
  add(wall() + 1h);
  clock.advance(300ms);

  clock.step_wall(2h, /*told=*/false);
  EXPECT_TRUE(source.fired.empty());
  const BootTime stepped = boot();
  clock.advance(1min);

  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_LE(source.fired[0].at.boot - stepped, kHeartbeat);
}

// D8, G4
TEST_F(TimekeeperTest, UnnoticedStepBackIsNeverEarlyAndStillExact) {
  const WallTime due = wall() + 500ms;
  add(due);

  clock.step_wall(-1h, /*told=*/false);
  clock.advance(1h + 499ms);
  EXPECT_TRUE(source.fired.empty());

  clock.advance(1ms);
  ASSERT_EQ(source.fired.size(), 1u);
  EXPECT_EQ(source.fired[0].at.wall, WallInstant{due});
}

TEST_F(TimekeeperTest, SuspendFiresEverythingMissedOnResume) {
  add(boot() + 1h);
  add(wall() + 2h);
  add(boot() + 9h);

  clock.suspend(8h);

  EXPECT_EQ(source.fired.size(), 2u);
  clock.advance(1h);
  EXPECT_EQ(source.fired.size(), 3u);
}

TEST_F(TimekeeperTest, FarthestInstantsDoNotOverflow) {
  add(kLatestTime);
  add(BootTime::max());
  clock.advance(1h);
  EXPECT_TRUE(source.fired.empty());

  add(kEarliestTime);
  add(WallTime{Millis{0}});
  clock.settle();
  EXPECT_EQ(source.fired.size(), 2u);
}

TEST(OnBootClock, CountsFromTheReadingOfBothClocks) {
  const Now now{WallInstant{Nanos{10'000'000'500}}, BootTime{Nanos{777}}};

  EXPECT_EQ(on_boot_clock(WallTime{10s}, now), BootTime{Nanos{277}});
  EXPECT_EQ(on_boot_clock(WallTime{11s}, now), BootTime{1s + Nanos{277}});
  EXPECT_EQ(on_boot_clock(BootTime{5s}, now), BootTime{5s});
}

// Promise 4, for any due times and any abuse of the wall clock: nothing early, nothing lost, nothing late by more than a
// heartbeat once its moment has come on its own clock.
RC_GTEST_PROP(Timekeeper, NeverEarlyAndNeverLaterThanAHeartbeat, ()) {
  asio::io_context context;
  SimulatedClock clock(context);
  FakeSource source;
  TaskGroup tasks(context);
  Timekeeper keeper(clock);
  keeper.add(source);
  tasks.spawn("timekeeper", keeper.run());
  std::size_t added = 0;
  std::optional<std::pair<Due, BootTime>> overdue;  // the first in line, and since when

  for (int step = *rc::gen::inRange(1, 30); step > 0; --step) {
    const Millis amount{*rc::gen::inRange(0, 5'000)};
    switch (*rc::gen::inRange(0, 6)) {
      case 0: source.add(clock.now().boot + amount), ++added, keeper.look_again(); break;
      case 1: source.add(round_up(clock.now().wall) + amount), ++added, keeper.look_again(); break;
      case 2: clock.step_wall(-amount, *rc::gen::arbitrary<bool>()); break;
      case 3: clock.step_wall(amount, *rc::gen::arbitrary<bool>()); break;
      case 4: clock.suspend(amount); break;
      default: clock.advance(amount + Nanos{*rc::gen::inRange(0, 1'000'000)});
    }
    const Now now = clock.now();
    const auto next = source.next_due(now);
    if (!next || on_boot_clock(*next, now) > now.boot) {
      overdue.reset();
    } else if (!overdue || overdue->first != *next) {
      overdue.emplace(*next, now.boot);
    } else {
      RC_ASSERT(now.boot - overdue->second < kHeartbeat);
    }
  }
  clock.advance(5min);
  RC_ASSERT(source.fired.size() == added);
  for (const auto& fired : source.fired) {
    if (const auto* wall = std::get_if<WallTime>(&fired.due)) RC_ASSERT(WallInstant{*wall} <= fired.at.wall);
    if (const auto* boot = std::get_if<BootTime>(&fired.due)) RC_ASSERT(*boot <= fired.at.boot);
  }
  keeper.stop();
  clock.settle();
}

}  // namespace
}  // namespace belfry
