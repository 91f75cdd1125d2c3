#include "belfry/clock/simulated_clock.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/task_group.h"

namespace belfry {
namespace {

using namespace std::chrono_literals;

// Some sleepers on a simulated clock, and what they noted on waking.
class Dormitory {
 public:
  // A sleeper with a Wake of its own.
  Task<void> sleep_alone(std::string name, Nanos duration) {
    Wake wake;
    co_await clock.sleep_until(start + duration, wake);
    note(name);
  }

  Task<void> sleep(std::string name, Nanos duration, Wake* wake) {
    co_await clock.sleep_until(start + duration, *wake);
    note(name);
  }

  void spawn(Task<void> task) { asio::co_spawn(context, std::move(task), asio::detached); }

  void note(const std::string& name) {
    names.push_back(name);
    times.push_back(clock.now().boot - start);
  }

  asio::io_context context;
  SimulatedClock clock{context};
  const BootTime start = clock.now().boot;
  std::vector<std::string> names;
  std::vector<Nanos> times;
};

using Names = std::vector<std::string>;

TEST(SimulatedClock, StartsAtNoonAndStandsStill) {
  asio::io_context context;
  SimulatedClock clock(context);

  clock.settle();

  EXPECT_EQ(to_iso(round_down(clock.now().wall)), "2026-03-01T12:00:00.000Z");
  EXPECT_EQ(clock.now().boot.time_since_epoch(), 1h);
}

TEST(SimulatedClock, WakesSleepersAtTheirMomentInOrderOfDueThenArrival) {
  Dormitory d;
  d.spawn(d.sleep_alone("late", 3s));
  d.spawn(d.sleep_alone("first of two", 2s));
  d.spawn(d.sleep_alone("second of two", 2s));
  d.spawn(d.sleep_alone("early", 1s));

  d.clock.advance(10s);

  EXPECT_EQ(d.names, (Names{"early", "first of two", "second of two", "late"}));
  EXPECT_EQ(d.times, (std::vector<Nanos>{1s, 2s, 2s, 3s}));
  EXPECT_EQ(d.clock.now().boot - d.start, 10s);
}

// G4
TEST(SimulatedClock, WakesNobodyANanosecondEarly) {
  Dormitory d;
  d.spawn(d.sleep_alone("sleeper", 1s));

  d.clock.advance(1s - 1ns);
  EXPECT_TRUE(d.names.empty());

  d.clock.advance(1ns);
  EXPECT_EQ(d.names, Names{"sleeper"});
}

TEST(SimulatedClock, SleepThatIsOverAlreadyEndsAtOnce) {
  Dormitory d;
  d.spawn(d.sleep_alone("past", -1h));
  d.spawn(d.sleep_alone("now", 0s));

  d.clock.advance(0s);

  EXPECT_EQ(d.names, (Names{"past", "now"}));
  EXPECT_EQ(d.clock.now().boot, d.start);
}

TEST(SimulatedClock, SleeperThatSleepsAgainWakesAtEachMomentOnTheWay) {
  Dormitory d;
  const auto walk = [](Dormitory* dormitory) -> Task<void> {
    Wake wake;
    for (int i = 1; i <= 5; ++i) {
      co_await dormitory->clock.sleep_until(dormitory->start + i * 1min, wake);
      dormitory->note("step");
    }
  };
  d.spawn(walk(&d));

  d.clock.advance(1h);

  EXPECT_EQ(d.times, (std::vector<Nanos>{1min, 2min, 3min, 4min, 5min}));
}

RC_GTEST_PROP(SimulatedClock, EverybodyWakesOnTimeHoweverTimePasses, ()) {
  Dormitory d;
  const auto delays = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 500));
  for (std::size_t i = 0; i < delays.size(); ++i) d.spawn(d.sleep_alone(std::to_string(delays[i]), Millis{delays[i]}));

  while (d.clock.now().boot < d.start + 500ms) d.clock.advance(Millis{*rc::gen::inRange(1, 100)});

  RC_ASSERT(d.names.size() == delays.size());
  for (std::size_t i = 0; i < d.names.size(); ++i) {
    RC_ASSERT(d.times[i] == Millis{std::stoi(d.names[i])});
    if (i > 0) RC_ASSERT(d.times[i - 1] <= d.times[i]);
  }
}

TEST(Wake, EndsASleepBeforeItsTime) {
  Dormitory d;
  Wake wake;
  d.spawn(d.sleep("rung", 1h, &wake));
  d.clock.advance(1min);

  wake.ring();
  EXPECT_TRUE(d.names.empty()) << "posted, not called: whoever rings is in the middle of something";
  d.clock.settle();

  EXPECT_EQ(d.names, Names{"rung"});
  EXPECT_EQ(d.times, std::vector<Nanos>{1min});
  d.clock.advance(2h);
  EXPECT_EQ(d.names.size(), 1u);
}

TEST(Wake, RingBeforeTheSleepIsNotLost) {
  Dormitory d;
  Wake wake;
  wake.ring();
  wake.ring();

  d.spawn(d.sleep("first", 1h, &wake));
  d.clock.settle();
  EXPECT_EQ(d.names, Names{"first"});

  d.spawn(d.sleep("second", 1h, &wake));
  d.clock.settle();
  EXPECT_EQ(d.names, Names{"first"}) << "however often it was rung, it ends one sleep";
}

TEST(Wake, RingBetweenWakingAndRunningIsNotLost) {
  Dormitory d;
  Wake wake;
  d.spawn(d.sleep("first", 1h, &wake));
  d.clock.settle();

  wake.ring();
  wake.ring();
  d.clock.settle();
  d.spawn(d.sleep("second", 1h, &wake));
  d.clock.settle();

  EXPECT_EQ(d.names, (Names{"first", "second"}));
}

TEST(Wake, RingAtTheDueMomentWakesOnceAndEndsTheNextSleep) {
  Dormitory d;
  Wake wake;
  Wake other;
  const auto ring = [](Dormitory* dormitory, Wake* own, Wake* to_ring) -> Task<void> {
    co_await dormitory->clock.sleep_until(dormitory->start + 1s, *own);
    to_ring->ring();
  };
  d.spawn(ring(&d, &other, &wake));
  d.spawn(d.sleep("sleeper", 1s, &wake));

  d.clock.advance(1s);

  EXPECT_EQ(d.names, Names{"sleeper"});
}

// A sleeper that owns something; AddressSanitizer and the count judge.
Task<void> sleep_holding(SimulatedClock* clock, std::shared_ptr<int> held, Wake* wake) {
  co_await clock->sleep_until(clock->now().boot + 1h, *wake);
  *held += 1;
}

TEST(SleepQueue, DestroyedWhileOthersSleepItEndsThem) {
  auto held = std::make_shared<int>(0);
  {
    asio::io_context context;
    auto clock = std::make_unique<SimulatedClock>(context);
    Wake wake;
    asio::co_spawn(context, sleep_holding(clock.get(), held, &wake), asio::detached);
    clock->settle();
    EXPECT_GT(held.use_count(), 1);

    clock.reset();
    wake.ring();
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(SleepQueue, SleeperWithItsOwnWakeIsEndedWithTheClock) {
  auto held = std::make_shared<int>(0);
  const auto sleep = [](SimulatedClock* clock, std::shared_ptr<int> kept) -> Task<void> {
    Wake wake;
    co_await clock->sleep_until(clock->now().boot + 1h, wake);
    *kept += 1;
  };
  {
    asio::io_context context;
    SimulatedClock clock(context);
    asio::co_spawn(context, sleep(&clock, held), asio::detached);
    clock.settle();
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(SleepQueue, DestroyedWakeEndsItsSleeper) {
  auto held = std::make_shared<int>(0);
  asio::io_context context;
  SimulatedClock clock(context);
  {
    Wake wake;
    asio::co_spawn(context, sleep_holding(&clock, held, &wake), asio::detached);
    clock.settle();
  }

  clock.advance(2h);

  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(SleepQueue, RungSleeperThatNeverRunsIsEndedToo) {
  auto held = std::make_shared<int>(0);
  {
    asio::io_context context;
    SimulatedClock clock(context);
    Wake wake;
    asio::co_spawn(context, sleep_holding(&clock, held, &wake), asio::detached);
    clock.settle();
    wake.ring();
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(SimulatedClock, StepMovesTheWallAndNotElapsedTime) {
  Dormitory d;
  int told = 0;
  d.clock.on_step([&told] { ++told; });
  d.spawn(d.sleep_alone("sleeper", 1h));
  const WallInstant noon = d.clock.now().wall;

  d.clock.step_wall(24h);
  d.clock.step_wall(-1h, /*told=*/false);

  EXPECT_EQ(told, 1);
  EXPECT_EQ(d.clock.now().wall, noon + 23h);
  EXPECT_EQ(d.clock.now().boot, d.start);
  EXPECT_TRUE(d.names.empty());
}

TEST(SimulatedClock, SuspendIsNoticedOnlyAfterwards) {
  Dormitory d;
  d.spawn(d.sleep_alone("one", 1min));
  d.spawn(d.sleep_alone("two", 2min));
  d.spawn(d.sleep_alone("tomorrow", 24h));
  d.clock.settle();

  d.clock.suspend(8h);

  EXPECT_EQ(d.names, (Names{"one", "two"}));
  EXPECT_EQ(d.times, (std::vector<Nanos>{8h, 8h}));
}

TEST(TaskGroup, JoinWaitsForTheLastTaskAndSurvivesAFailingOne) {
  Dormitory d;
  TaskGroup tasks(d.context);
  const auto fail = []() -> Task<void> {
    throw std::runtime_error("a fault");
    co_return;
  };
  const auto join = [](TaskGroup* group, Dormitory* dormitory) -> Task<void> {
    co_await group->join();
    dormitory->note("joined");
  };
  tasks.spawn("sleeper", d.sleep_alone("sleeper", 1min));
  tasks.spawn("faulty", fail());
  d.spawn(join(&tasks, &d));

  d.clock.settle();
  EXPECT_EQ(tasks.running(), 1);
  d.clock.advance(1min);

  EXPECT_EQ(d.names, (Names{"sleeper", "joined"}));
  EXPECT_EQ(tasks.running(), 0);
}

}  // namespace
}  // namespace belfry
