// The six properties of delayed delivery, for any sends, any way time may pass, clock steps and restarts.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/world.h"

namespace belfry::bus {
namespace {

using namespace std::chrono_literals;
using testing::World;

// What happens between two looks at the mailbox.
enum class Happening { time_passes, crash, keep_stop, wall_ahead, wall_back, suspend };

Happening any_happening() {
  return *rc::gen::weightedElement<Happening>({{12, Happening::time_passes},
                                               {2, Happening::crash},
                                               {1, Happening::keep_stop},
                                               {1, Happening::wall_ahead},
                                               {1, Happening::wall_back},
                                               {2, Happening::suspend}});
}

struct Expected {
  MessageId id;
  BootTime boot_due;  // while the life that sent it lasts
  WallTime deliver_at;
  int life = 0;
};

// Sends and lets things happen; `look` sees every delivery at the moment it is received.
class Story {
 public:
  World w;
  int life = 0;
  std::map<std::int64_t, Expected> sent;

  void send(Millis delay) {
    const BootTime before = w.clock().now().boot;
    const Sent result = w.send({.delay = delay});
    sent[result.id.sequence] = {result.id, before + std::max(delay, Millis{0}), result.scheduled_at.value_or(w.now()),
                                life};
  }

  void happen(Happening what) {
    const Millis some{*rc::gen::inRange(1, 120'000)};
    switch (what) {
      case Happening::time_passes: w.advance(some); break;
      case Happening::suspend: w.clock().suspend(some); break;
      case Happening::crash:
        w.crash();
        w.pass(some);
        w.start();
        ++life;
        break;
      case Happening::keep_stop:
        w.stop(false);
        w.pass(some);
        w.start();
        ++life;
        break;
      case Happening::wall_ahead: w.clock().step_wall(some); break;
      case Happening::wall_back: w.clock().step_wall(-some); break;
    }
    w.clock().settle();
  }

  // Never before its time, on the clock that it waits on.
  bool too_early(const Delivery& delivery) {
    const Expected& expected = sent.at(delivery.id.sequence);
    if (expected.life == life) return w.clock().now().boot < expected.boot_due;
    return w.now() < expected.deliver_at;
  }
};

// D1: a delayed message is never there early (property 1).
RC_GTEST_PROP(DelayedDelivery, MessageIsNeverThereBeforeItsTime, ()) {
  Story story;
  for (int i = *rc::gen::inRange(1, 20); i > 0; --i) {
    story.send(Millis{*rc::gen::inRange(-1'000, 200'000)});
    story.happen(any_happening());
    for (const Delivery& delivery : story.w.drain()) RC_ASSERT(!story.too_early(delivery));
  }
}

// D8: a delayed message is eventually there (property 2).
RC_GTEST_PROP(DelayedDelivery, MessageIsThereOnceItsTimeHasComeWhateverHappened, ()) {
  Story story;
  std::size_t received = 0;
  const int count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i) {
    story.send(Millis{*rc::gen::inRange(-1'000, 200'000)});
    story.happen(any_happening());
    received += story.w.drain().size();
  }
  // The steps back may add up to as much again.
  story.w.advance(200s + 120s * count + 2s);
  received += story.w.drain().size();
  RC_ASSERT(received == static_cast<std::size_t>(count));
  RC_ASSERT(story.w.problems().empty());
}

std::string look_of(const Delivery& delivery) {
  return delivery.to + delivery.from + delivery.payload + delivery.task_id + std::to_string(delivery.attempt) +
         std::to_string(delivery.forced) + to_iso(delivery.created_at) + to_iso(delivery.deliver_at) +
         to_iso(delivery.delivered_at);
}

// Sends the same message into two worlds, once with a delay that should be none, and compares all that can be seen.
void expect_like_no_delay(Millis delay) {
  const auto payload = std::to_string(*rc::gen::arbitrary<int>());
  const auto task = std::to_string(*rc::gen::inRange(0, 5));
  World plain;
  World delayed;
  const Nanos passed{*rc::gen::inRange(0, 5'000'000)};
  plain.advance(passed);
  delayed.advance(passed);
  const Sent a = plain.send({.payload = payload, .task_id = task});
  const Sent b = delayed.send({.payload = payload, .task_id = task, .delay = delay});
  RC_ASSERT(a.id == b.id);
  RC_ASSERT(a.scheduled_at == b.scheduled_at);
  RC_ASSERT(plain.counts().pending == 1);
  RC_ASSERT(delayed.counts().pending == 1);
  RC_ASSERT(look_of(plain.receive().at(0)) == look_of(delayed.receive().at(0)));
}

// D2: no delay and a delay of zero are the same (property 3).
RC_GTEST_PROP(DelayedDelivery, DelayOfZeroIsLikeNone, ()) { expect_like_no_delay(0ms); }

// D3: a negative delay and none are the same (property 4).
RC_GTEST_PROP(DelayedDelivery, NegativeDelayIsLikeNone, ()) {
  expect_like_no_delay(-Millis{*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 62)});
}

// D7: messages due together arrive in order of sending (property 5).
RC_GTEST_PROP(DelayedDelivery, MessagesDueTogetherKeepTheOrderOfSending, ()) {
  World w;
  const WallTime due = w.now() + Millis{*rc::gen::inRange(60'000, 40'000'000)};
  std::vector<MessageId> order;
  for (int i = *rc::gen::inRange(2, 30); i > 0; --i) {
    if (*rc::gen::inRange(0, 2) == 0) {
      order.push_back(w.send({.delay = due - w.now()}).id);
    } else {
      order.push_back(w.send({.deliver_at = due}).id);
    }
    w.advance(Millis{*rc::gen::inRange(0, 2'000)});
    if (*rc::gen::inRange(0, 8) == 0) w.restart();
  }
  const bool long_stop = *rc::gen::arbitrary<bool>();
  if (long_stop) {
    w.crash();
    w.pass(due - w.now_when_stopped() + 1s);
    w.start();
  } else {
    w.clock().suspend(due - w.now() - 1s);
    w.advance(1s);
  }
  w.advance(10ms);
  std::vector<MessageId> got;
  for (const Delivery& delivery : w.drain()) got.push_back(delivery.id);
  RC_ASSERT(got == order);
}

// D12: a graceful stop delivers everything delayed (property 6).
RC_GTEST_PROP(DelayedDelivery, GracefulStopDeliversEverythingDelayedInOrder, ()) {
  World w;
  std::vector<std::pair<WallTime, std::int64_t>> delayed;
  for (int i = *rc::gen::inRange(1, 30); i > 0; --i) {
    const Sent sent = w.send({.delay = Millis{*rc::gen::inRange<std::int64_t>(60'000, 100'000'000'000)}});
    delayed.emplace_back(*sent.scheduled_at, sent.id.sequence);
    w.advance(Millis{*rc::gen::inRange(0, 1'000)});
  }
  const bool in_one_life = *rc::gen::arbitrary<bool>();
  if (in_one_life) {
    const auto forced = w.run(w.bus().force_deliver_all_delayed());
    RC_ASSERT(forced.value() == static_cast<std::int64_t>(delayed.size()));
  } else {
    w.stop(true);
    w.start();
    w.advance(10ms);
  }
  RC_ASSERT(w.bus().delayed_count() == 0);
  std::sort(delayed.begin(), delayed.end());
  std::vector<std::pair<WallTime, std::int64_t>> got;
  for (const Delivery& delivery : w.drain()) {
    RC_ASSERT(delivery.forced);
    got.emplace_back(delivery.deliver_at, delivery.id.sequence);
  }
  RC_ASSERT(got == delayed);
  RC_ASSERT(w.problems().empty());
}

}  // namespace
}  // namespace belfry::bus
