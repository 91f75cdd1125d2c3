#include "belfry/bus/message_bus.h"

#include <climits>
#include <deque>

#include <gtest/gtest.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/bus/send_request.h"
#include "tests/support/world.h"

namespace belfry::bus {
namespace {

using namespace std::chrono_literals;
using testing::kNoon;
using testing::kWorker;
using testing::World;

// D1, D6
TEST(MessageBus, DelayedMessageAppearsExactlyAtItsDueTime) {
  World w;
  const Sent sent = w.send({.delay = 5min});
  EXPECT_EQ(sent.scheduled_at, kNoon + 5min);
  EXPECT_EQ(w.counts().delayed, 1);

  w.advance(5min - 1ns);
  EXPECT_TRUE(w.receive().empty());

  w.advance(1ns);
  EXPECT_EQ(w.counts().pending, 1);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].id, sent.id);
  EXPECT_EQ(got[0].delivered_at, kNoon + 5min);
}

// D2
TEST(MessageBus, MessageWithoutDelayIsThereAtOnceAndHasNoScheduledTime) {
  World w;
  const Sent sent = w.send({.payload = R"({"text":"hello"})"});
  EXPECT_FALSE(sent.scheduled_at);

  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].payload, R"({"text":"hello"})");
  EXPECT_EQ(w.ack(got), 1);
  EXPECT_EQ(w.get(sent.id).state, MessageState::acked);
  EXPECT_TRUE(w.problems().empty());
}

// D2, D3
TEST(MessageBus, ZeroAndNegativeDelaysAreDeliveredAtOnceLikeNone) {
  World w;
  for (const Millis delay : {0ms, -1ms, -86'400'000ms}) EXPECT_FALSE(w.send({.delay = delay}).scheduled_at);
  EXPECT_EQ(w.counts().pending, 3);
  EXPECT_EQ(w.counts().delayed, 0);
}

// D1
TEST(MessageBus, DelayRoundsUpSoThatNotAFractionOfAMillisecondIsMissing) {
  World w;
  w.advance(300us);  // between two milliseconds
  const Sent sent = w.send({.delay = 10ms});
  EXPECT_EQ(sent.scheduled_at, kNoon + 11ms);

  w.advance(10ms);
  EXPECT_TRUE(w.receive().empty());
  w.advance(700us);
  EXPECT_EQ(w.receive().size(), 1u);
}

// D1
TEST(MessageBus, DelayCountsElapsedTimeWhateverHappensToTheWallClock) {
  for (const Nanos step : {Nanos{10min}, Nanos{-10min}, Nanos{24h * 400}, Nanos{-24h * 400}}) {
    for (const bool told : {true, false}) {
      World w;
      w.send({.delay = 5min});
      w.advance(1min);
      w.clock().step_wall(step, told);
      w.advance(4min - 1ns);
      EXPECT_TRUE(w.receive().empty()) << step.count() << told;
      w.advance(1ns);
      EXPECT_EQ(w.receive().size(), 1u) << step.count() << told;
    }
  }
}

// D1
TEST(MessageBus, FarDelayCountsElapsedTimeAcrossClockSteps) {
  for (const Nanos step : {Nanos{24h * 30}, Nanos{-24h * 30}}) {
    World w;
    w.send({.delay = 24h});
    w.advance(1h);
    w.clock().step_wall(step);
    w.send({.delay = 23h});  // due at the same elapsed moment, but written with another wall time
    w.advance(1h);
    w.clock().suspend(20h);
    w.advance(2h - 1ms);
    EXPECT_EQ(w.counts().pending, 0) << step.count();
    w.advance(1ms);
    EXPECT_EQ(w.counts().pending, 2) << step.count();
  }
}

// D1
TEST(MessageBus, AfterARestartADelayCountsOnTheWallClock) {
  World w;
  w.send({.delay = 1h});
  w.restart();
  w.clock().step_wall(59min);
  w.advance(1min - 1ms);
  EXPECT_TRUE(w.receive().empty());
  w.advance(1ms);
  EXPECT_EQ(w.receive().size(), 1u);
}

// D1, D10
TEST(MessageBus, InstantIsMetOnTheWallClock) {
  World w;
  const Sent sent = w.send({.deliver_at = kNoon + 1h});
  EXPECT_EQ(sent.scheduled_at, kNoon + 1h);
  w.clock().step_wall(59min);
  EXPECT_TRUE(w.receive().empty());
  w.advance(1min);
  EXPECT_EQ(w.drain().size(), 1u);

  w.send({.deliver_at = w.now() + 1h});
  w.clock().step_wall(-2h);
  w.advance(3h - 1ms);
  EXPECT_TRUE(w.receive().empty());
  w.advance(1ms);
  EXPECT_EQ(w.receive().size(), 1u);
}

// D10
TEST(MessageBus, InstantInThePastIsDeliveredAtOnceWithAWarning) {
  World w;
  const Sent sent = w.send({.deliver_at = kNoon - 1s});
  EXPECT_FALSE(sent.scheduled_at);
  ASSERT_EQ(sent.warnings.size(), 1u);
  EXPECT_EQ(w.receive().size(), 1u);
}

// D5
TEST(MessageBus, HugeDelaysSaturateAtTheEndOfTheCalendarWithAWarning) {
  World w;
  const Sent sent = w.send({.delay = Millis{INT64_MAX}});
  EXPECT_EQ(sent.scheduled_at, kLatestTime);
  EXPECT_EQ(sent.warnings.size(), 1u);
  w.clock().suspend(24h * 365 * 20);
  w.advance(1min);
  EXPECT_EQ(w.counts().delayed, 1);
  w.restart();
  EXPECT_EQ(w.counts().delayed, 1);
  EXPECT_TRUE(w.problems().empty());
}

// D5
TEST(MessageBus, ThirtyDaysAndTenYearsAreExact) {
  for (const Millis delay : {Millis{24h * 30}, Millis{24h * 3652}}) {
    World w;
    const Sent sent = w.send({.delay = delay});
    EXPECT_EQ(sent.scheduled_at, kNoon + delay);
    w.clock().suspend(delay - 1min);  // a second at a time would take all day
    w.advance(1min - 1ms);
    EXPECT_EQ(w.counts().pending, 0);
    w.advance(1ms);
    EXPECT_EQ(w.counts().pending, 1);
  }
}

// D6
TEST(MessageBus, WaitingReceiverIsWokenWhenTheMessageIsDue) {
  World w;
  auto waiting = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1, .wait = 10s}));
  w.send({.delay = 3s});
  w.advance(3s - 1ns);
  EXPECT_FALSE(waiting.done());
  w.advance(1ns);
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.value()->size(), 1u);
}

// D6: the bus has a tick of its own, once a second from its start; nothing may wait for that.
TEST(MessageBus, MessageComesAtItsMomentBetweenTwoTicks) {
  for (const Millis delay : {1ms, 300ms, 2'700ms}) {
    World w;
    auto waiting = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1, .wait = 10s}));
    w.send({.delay = delay});
    w.advance(delay - 1ns);
    EXPECT_FALSE(waiting.done()) << delay.count();
    w.advance(1ns);
    ASSERT_TRUE(waiting.done()) << delay.count();
    EXPECT_EQ(waiting.value()->size(), 1u) << delay.count();
  }
}

// D6, D18
TEST(MessageBus, ReceiverThatWaitsInVainGetsNothingAtItsDeadline) {
  World w;
  auto waiting = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1, .wait = 10s}));
  w.advance(10s - 1ns);
  EXPECT_FALSE(waiting.done());
  w.advance(1ns);
  ASSERT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.value()->empty());
}

std::vector<std::string> payloads(const std::vector<Delivery>& deliveries) {
  std::vector<std::string> all;
  for (const Delivery& delivery : deliveries) all.push_back(delivery.payload);
  return all;
}

// D7
TEST(MessageBus, MessagesDueTogetherArriveInOrderOfSendingAlsoAfterARestart) {
  for (const bool restart : {false, true}) {
    World w;
    w.send({.payload = "1", .delay = 60s});
    w.advance(10s);
    w.send({.payload = "2", .delay = 50s});
    w.advance(25s);
    w.send({.payload = "3", .deliver_at = kNoon + 60s});
    w.send({.payload = "4", .delay = 25s});
    if (restart) w.restart();
    w.advance(25s);
    EXPECT_EQ(payloads(w.receive()), (std::vector<std::string>{"1", "2", "3", "4"})) << restart;
  }
}

// D7
TEST(MessageBus, OverdueMessagesAfterALongStopArriveInOrderOfTime) {
  World w;
  w.send({.payload = "9", .delay = 9h});
  w.send({.payload = "30", .delay = 30s});
  w.send({.payload = "1", .delay = 1h});
  w.send({.payload = "40", .delay = 24h * 40});
  w.crash();
  w.pass(24h * 50);
  w.start();
  w.advance(1s);
  EXPECT_EQ(payloads(w.receive()), (std::vector<std::string>{"30", "1", "9", "40"}));
}

// The first message that can be received while the loop turns.
Task<std::string> first_payload(MessageBus& bus) {
  for (int turn = 0; turn < 1'000; ++turn) {
    const auto got = co_await bus.receive({.recipient = kWorker, .max = 1});
    if (!got->empty()) co_return got->front().payload;
    co_await asio::post(asio::use_awaitable);
  }
  co_return "nothing";
}

// D7: the later one is in memory when both are overdue, the sooner one is not read yet.
TEST(MessageBus, MessagesThatAreOverdueTogetherCanBeReceivedInOrderOfTimeOnly) {
  World w;
  w.send({.payload = "later", .deliver_at = kNoon + 12h + 2min});
  w.clock().suspend(11h);
  w.advance(1s);
  w.send({.payload = "sooner", .deliver_at = kNoon + 12h + 1min});
  w.restart();
  const auto first = w.start_task(first_payload(w.bus()));
  w.clock().suspend(2h);
  ASSERT_TRUE(first.done());
  EXPECT_EQ(first.value(), "sooner");
}

// D8
TEST(MessageBus, SuspendedMachineDeliversWhenItWakesUp) {
  World w;
  w.send({.delay = 5min});
  w.send({.deliver_at = kNoon + 6min});
  w.clock().suspend(1h);
  w.advance(1s);
  EXPECT_EQ(w.receive().size(), 2u);
}

// D8
TEST(MessageBus, UnnoticedClockStepIsFoundWithinASecond) {
  World w;
  w.send({.deliver_at = kNoon + 1h});
  w.clock().step_wall(2h, false);
  w.advance(1s);
  EXPECT_EQ(w.receive().size(), 1u);
}

std::vector<std::string> lines_of(const std::vector<std::string>& lines, std::string_view text) {
  std::vector<std::string> found;
  for (const std::string& line : lines)
    if (line.find(text) != std::string::npos) found.push_back(line);
  return found;
}

// D9
TEST(MessageBus, SchedulingAndDeliveryAreLoggedWithTheirFields) {
  World w;
  std::vector<std::string> lines;
  const log::Capture capture([&](std::string_view line) { lines.emplace_back(line); });

  const Sent sent = w.send({.from = "planner", .delay = 90s});
  w.send({});
  w.advance(90s);

  const std::string id = to_text(sent.id);
  const auto scheduled = lines_of(lines, "发送延迟消息");
  ASSERT_EQ(scheduled.size(), 1u);
  for (const std::string& part :
       {std::string(R"("event":"bus.scheduled")"), "\"id\":\"" + id + "\"", std::string(R"("to":"worker")"),
        std::string(R"("from":"planner")"), std::string(R"("delayMs":90000)"),
        std::string(R"("deliverAt":"2026-03-01T12:01:30.000Z")")})
    EXPECT_NE(scheduled[0].find(part), std::string::npos) << part << scheduled[0];
  const auto delivered = lines_of(lines, "消息已投递");
  ASSERT_EQ(delivered.size(), 1u) << "the one without a delay is for level debug";
  for (const std::string& part :
       {std::string(R"("event":"bus.delivered")"), std::string("延迟消息已投递"), "\"id\":\"" + id + "\"",
        std::string(R"("to":"worker")"), std::string(R"("from":"planner")"),
        std::string(R"("createdAt":"2026-03-01T12:00:00.000Z")"),
        std::string(R"("scheduledAt":"2026-03-01T12:01:30.000Z")"),
        std::string(R"("actualDeliveryAt":"2026-03-01T12:01:30.000Z")"), std::string(R"("delayDrift":0)")})
    EXPECT_NE(delivered[0].find(part), std::string::npos) << part << delivered[0];
}

// D9
TEST(MessageBus, DeliveryAfterARestartIsLoggedWithItsSenderToo) {
  World w;
  w.send({.from = "planner", .delay = 24h});
  w.restart();
  std::vector<std::string> lines;
  const log::Capture capture([&](std::string_view line) { lines.emplace_back(line); });
  w.clock().suspend(24h - 1min);
  w.advance(1min);
  const auto delivered = lines_of(lines, "延迟消息已投递");
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_NE(delivered[0].find(R"("from":"planner")"), std::string::npos);
}

// D9, D12
TEST(MessageBus, ForcedDeliveryIsLoggedWithItsCount) {
  World w;
  w.send({.delay = 1h});
  w.send({.delay = 24h * 40});
  w.send({});
  std::vector<std::string> lines;
  const log::Capture capture([&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_TRUE(w.run(w.bus().mark_all_delayed_as_forced()).has_value());
  const auto forced = lines_of(lines, "强制投递所有延迟消息");
  ASSERT_EQ(forced.size(), 1u);
  EXPECT_NE(forced[0].find(R"("event":"bus.forced")"), std::string::npos) << forced[0];
  EXPECT_NE(forced[0].find(R"("count":2)"), std::string::npos) << forced[0];
}

// D11
TEST(MessageBus, CountsDelayedMessagesPerRecipientAndInTotal) {
  World w;
  w.add("other");
  w.send({.delay = 1h});
  w.send({.delay = 2h});
  w.send({.to = "other", .delay = 24h * 400});
  EXPECT_EQ(w.bus().delayed_count(kWorker), 2);
  EXPECT_EQ(w.bus().delayed_count("other"), 1);
  EXPECT_EQ(w.bus().delayed_count(), 3);

  w.restart();
  EXPECT_EQ(w.bus().delayed_count(), 3);
  w.advance(1h);
  EXPECT_EQ(w.bus().delayed_count(kWorker), 1);
}

// D12, D22
TEST(MessageBus, ForcingDeliversEverythingDelayedInOrderAndMarksIt) {
  World w;
  w.send({.payload = "3", .delay = 3h});
  w.send({.payload = "1", .delay = 1h});
  w.send({.payload = "400", .delay = 24h * 400});
  w.send({.payload = "0"});

  const auto count = w.run(w.bus().force_deliver_all_delayed());
  ASSERT_TRUE(count.has_value());
  EXPECT_EQ(*count, 3);
  EXPECT_EQ(w.bus().delayed_count(), 0);
  EXPECT_EQ(w.counts().pending, 4);
  const auto got = w.receive();
  EXPECT_EQ(payloads(got), (std::vector<std::string>{"0", "1", "3", "400"}));
  EXPECT_FALSE(got[0].forced);
  for (std::size_t i = 1; i < got.size(); ++i) {
    EXPECT_TRUE(got[i].forced);
    EXPECT_EQ(got[i].delivered_at, kNoon);
  }
  EXPECT_EQ(got[1].deliver_at, kNoon + 1h);
  w.ack(got);
  EXPECT_TRUE(w.problems().empty());
}

// D12
TEST(MessageBus, GracefulStopMakesDelayedMessagesPendingAtTheNextStart) {
  World w;
  const Sent late = w.send({.payload = "2", .delay = 24h * 30});
  w.send({.payload = "1", .delay = 90s});
  w.send({.payload = "0"});
  w.stop(true);
  w.start();
  w.send({.payload = "new"});
  w.send({.payload = "newer", .delay = 1h});
  w.advance(10ms);

  EXPECT_EQ(w.counts().pending, 4);
  EXPECT_EQ(w.counts().delayed, 1);
  const auto info = w.get(late.id);
  EXPECT_EQ(info.state, MessageState::pending);
  EXPECT_TRUE(info.forced);
  EXPECT_EQ(info.deliver_at, kNoon + 24h * 30);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 4u);
  w.ack(got);
  EXPECT_EQ(w.get(late.id).state, MessageState::acked);
  EXPECT_TRUE(w.get(late.id).forced);
  w.advance(1h);
  EXPECT_EQ(payloads(w.drain()), std::vector<std::string>{"newer"});
  EXPECT_TRUE(w.problems().empty());
}

// D12
TEST(MessageBus, ForcedMessagesSurviveACrashAfterTheStop) {
  World w;
  for (int i = 0; i < 50; ++i) w.send({.payload = std::to_string(i), .delay = 1h * i});
  w.stop(true);
  w.start();
  w.restart();
  w.advance(10ms);
  EXPECT_EQ(w.bus().delayed_count(), 0);
  std::vector<std::string> expected;
  for (int i = 0; i < 50; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(payloads(w.drain()), expected);
  EXPECT_TRUE(w.problems().empty());
}

// D12
TEST(MessageBus, StopThatKeepsLeavesDelayedMessagesScheduled) {
  World w;
  w.send({.delay = 90s});
  w.stop(false);
  w.start();
  w.advance(90s - 1ms);
  EXPECT_TRUE(w.receive().empty());
  w.advance(1ms);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_FALSE(got[0].forced);
}

// D12, D14
TEST(MessageBus, StoppingBusRefusesSendsAndSendsWaitingReceiversHome) {
  World w;
  auto waiting = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1, .wait = 10s}));
  w.clock().settle();
  w.bus().refuse_sends();
  w.clock().settle();
  ASSERT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.value()->empty());
  EXPECT_EQ(w.try_send({}).error().code, Errc::stopping);
}

// D14
TEST(MessageBus, UnknownRecipientIsRefusedAndNothingIsStored) {
  World w;
  const auto sent = w.try_send({.to = "nobody"});
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, Errc::unknown_recipient);
  EXPECT_EQ(w.bus().totals().accepted, 0);
}

// D14
TEST(MessageBus, MessageWhoseRecipientWasRemovedGoesToTheDeadLetters) {
  World w;
  const Sent delayed = w.send({.delay = 1h});
  const Sent pending = w.send({});
  ASSERT_TRUE(w.run(w.bus().remove_recipient(kWorker)).has_value());
  w.clock().settle();
  EXPECT_EQ(w.get(pending.id).state, MessageState::dead);
  w.advance(1h);
  const auto info = w.get(delayed.id);
  EXPECT_EQ(info.state, MessageState::dead);
  EXPECT_EQ(info.reason, "recipient_removed");
  EXPECT_EQ(w.bus().totals().dead, 2);
  w.add(kWorker);
  EXPECT_TRUE(w.receive().empty());
  EXPECT_TRUE(w.problems().empty());
}

// D16
TEST(MessageBus, CancelledMessageNeverArrives) {
  for (const Millis delay : {0ms, 500ms, Millis{20s}, Millis{1h}, Millis{24h * 400}}) {
    World w;
    const Sent sent = w.send({.delay = delay});
    ASSERT_TRUE(w.run(w.bus().cancel(sent.id, "tester")).has_value()) << delay.count();
    EXPECT_EQ(w.run(w.bus().cancel(sent.id, "tester")).error().code, Errc::already_cancelled);
    EXPECT_EQ(w.counts().delayed + w.counts().pending, 0);
    w.clock().suspend(delay);
    w.advance(2s);
    EXPECT_TRUE(w.receive().empty()) << delay.count();
    if (delay > 24h) continue;  // its record is gone by then
    EXPECT_EQ(w.get(sent.id).state, MessageState::cancelled);
    EXPECT_EQ(w.get(sent.id).ended_by, "tester");
    EXPECT_TRUE(w.problems().empty());
  }
}

// D16
TEST(MessageBus, CancelRefusesWhatIsDeliveredOrUnknown) {
  World w;
  const Sent sent = w.send({});
  const auto got = w.receive();
  EXPECT_EQ(w.run(w.bus().cancel(sent.id, "t")).error().code, Errc::already_delivered);
  w.ack(got);
  EXPECT_EQ(w.run(w.bus().cancel(sent.id, "t")).error().code, Errc::already_delivered);
  EXPECT_EQ(w.run(w.bus().cancel(MessageId{12345}, "t")).error().code, Errc::not_found);
}

// D16
TEST(MessageBus, CancelRacingWithTheDueTimeHasOneWinner) {
  World w;
  const Sent sent = w.send({.delay = 10s});
  w.advance(10s - 1ns);
  auto cancelled = w.start_task(w.bus().cancel(sent.id, "t"));
  auto received = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1, .wait = 1s}));
  w.advance(2s);
  ASSERT_TRUE(cancelled.done() && received.done());
  EXPECT_NE(cancelled.value().has_value(), !received.value()->empty());
}

// Receives when the loop has turned some times.
Task<Result<std::vector<Delivery>>> receive_after(MessageBus& bus, int turns) {
  for (int i = 0; i < turns; ++i) co_await asio::post(asio::use_awaitable);
  co_return co_await bus.receive({.recipient = kWorker, .max = 1});
}

// D16, G10
TEST(MessageBus, ReceiveRacingWithACancelHasOneWinner) {
  for (int turns = 0; turns < 10; ++turns) {
    World w;
    const Sent sent = w.send({});
    auto cancelled = w.start_task(w.bus().cancel(sent.id, "t"));
    auto received = w.start_task(receive_after(w.bus(), turns));
    w.clock().settle();
    ASSERT_TRUE(cancelled.done() && received.done());
    EXPECT_NE(cancelled.value().has_value(), !received.value()->empty()) << turns;
    EXPECT_TRUE(w.problems().empty());
  }
}

// Cancels when the loop has turned some times.
Task<Result<>> cancel_after(MessageBus& bus, MessageId id, int turns) {
  for (int i = 0; i < turns; ++i) co_await asio::post(asio::use_awaitable);
  co_return co_await bus.cancel(id, "t");
}

// D16, G10: after a crash an attempt is written before its message is handed out, and a cancel can come meanwhile.
TEST(MessageBus, CancelRacingWithAReceiveAfterACrashHasOneWinner) {
  for (int turns = 0; turns < 20; ++turns) {
    World w;
    const Sent sent = w.send({});
    w.restart();
    auto received = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1}));
    auto cancelled = w.start_task(cancel_after(w.bus(), sent.id, turns));
    w.clock().settle();
    ASSERT_TRUE(cancelled.done() && received.done());
    EXPECT_NE(cancelled.value().has_value(), !received.value()->empty()) << turns;
    EXPECT_TRUE(w.problems().empty());
  }
}

// D16
TEST(MessageBus, RescheduledMessageKeepsItsIdAndArrivesAtItsNewTimeOnly) {
  for (const auto& [from, to] : std::vector<std::pair<Millis, Millis>>{
           {10min, 20min}, {20min, 10min}, {5s, 10s}, {20s, 24h * 40}, {24h * 40, 5s}}) {
    World w;
    const Sent sent = w.send({.delay = from});
    const auto moved = w.run(w.bus().reschedule(sent.id, kNoon + to));
    ASSERT_TRUE(moved.has_value());
    EXPECT_EQ(moved->deliver_at, kNoon + to);
    if (to > 24h) w.clock().suspend(to - 1min);
    w.advance(kNoon + to - w.now() - 1ms);
    EXPECT_TRUE(w.receive().empty());
    w.advance(1ms);
    const auto got = w.receive();
    ASSERT_EQ(got.size(), 1u) << to.count();
    EXPECT_EQ(got[0].id, sent.id);
    w.ack(got);
    w.clock().suspend(from);
    w.advance(2s);
    EXPECT_TRUE(w.receive().empty());
    EXPECT_TRUE(w.problems().empty());
  }
}

// D16
TEST(MessageBus, DeliverNowMakesADelayedMessagePending) {
  World w;
  const Sent sent = w.send({.delay = 24h * 40});
  ASSERT_TRUE(w.run(w.bus().deliver_now(sent.id)).has_value());
  EXPECT_EQ(w.receive().size(), 1u);
  EXPECT_EQ(w.run(w.bus().deliver_now(sent.id)).error().code, Errc::already_delivered);
}

// D16
TEST(MessageBus, ListsByRecipientSenderAndStateInDueOrder) {
  World w;
  w.add("other");
  const Sent far = w.send({.from = "a", .delay = 24h * 40});
  const Sent near = w.send({.from = "b", .delay = 10s});
  const Sent mid = w.send({.from = "a", .delay = 1h});
  const Sent pending = w.send({.from = "a"});
  w.send({.to = "other", .from = "a", .delay = 1h});
  const Sent gone = w.send({.from = "a", .delay = 2h});
  ASSERT_TRUE(w.run(w.bus().cancel(gone.id, "t")).has_value());

  const auto ids = [&](ListRequest request) {
    std::vector<MessageId> all;
    request.to = kWorker;
    while (true) {
      const auto page = w.run(w.bus().list(request));
      if (!page) break;
      for (const MessageInfo& info : page->messages) all.push_back(info.id);
      if (page->next.empty()) break;
      request.after = page->next;
    }
    return all;
  };
  EXPECT_EQ(ids({}), (std::vector<MessageId>{pending.id, near.id, mid.id, far.id}));
  EXPECT_EQ(ids({.limit = 1}), (std::vector<MessageId>{pending.id, near.id, mid.id, far.id}));
  EXPECT_EQ(ids({.from = "a", .state = MessageState::delayed}), (std::vector<MessageId>{mid.id, far.id}));
  EXPECT_EQ(ids({.state = MessageState::cancelled}), (std::vector<MessageId>{gone.id}));
  EXPECT_EQ(ids({.state = MessageState::pending}), (std::vector<MessageId>{pending.id}));
}

// D16
TEST(MessageBus, AListedPageIsFullWhileThereIsMoreAndTheLastHasNoNext) {
  World w;
  for (int i = 0; i < 10; ++i) w.send({.from = i % 2 == 0 ? "a" : "b", .delay = i < 4 ? 0s : 1h});
  const auto page = [&](ListRequest request) { return w.run(w.bus().list(std::move(request))).value(); };
  const ListResult first = page({.from = "b", .state = MessageState::delayed, .limit = 2});
  EXPECT_EQ(first.messages.size(), 2u);
  ASSERT_FALSE(first.next.empty());
  const ListResult last = page({.from = "b", .state = MessageState::delayed, .limit = 2, .after = first.next});
  EXPECT_EQ(last.messages.size(), 1u);
  EXPECT_TRUE(last.next.empty());
  EXPECT_TRUE(page({.limit = 10}).next.empty());
  EXPECT_FALSE(page({.limit = 9}).next.empty());
}

// D2
TEST(MessageBus, TwoServersDoNotGiveOutTheSameIds) {
  World::Options other;
  other.seed = 77;
  World a;
  World b(std::move(other));
  EXPECT_NE(a.send({}).id, b.send({}).id);
}

// D16
TEST(MessageBus, ACursorThatNobodyGaveOutIsRefused) {
  World w;
  for (const char* after : {"x", "c", "c.1.2.3", "z.0.0.0.0", "c.0.0.0.0.0", "d.4.0.0.x"})
    EXPECT_EQ(w.run(w.bus().list({.after = after})).error().code, Errc::invalid_argument) << after;
}

// D7, D12: what lies in the mailbox's memory at a stop is older than what lies in its backlog, and comes first again.
TEST(MessageBus, AfterAStopADeepQueueComesInOrderAndWhole) {
  for (const bool forced : {true, false}) {
    World::Options options;
    options.bus.mailbox_max = 2;
    options.bus.refill_rows = 3;
    World w(std::move(options));
    std::vector<MessageId> sent;
    for (int i = 0; i < 10; ++i) sent.push_back(w.send({}).id);
    if (forced) sent.push_back(w.send({.delay = 1h}).id);
    w.advance(1s);
    if (forced) {
      w.stop(true);
      w.start();
    } else {
      w.restart();
    }
    w.advance(2s);
    std::vector<MessageId> came;
    for (int i = 0; i < 20; ++i) {
      for (const Delivery& one : w.receive(kWorker, 3)) came.push_back(one.id);
      w.advance(1ms);
    }
    EXPECT_EQ(came, sent) << (forced ? "forced" : "crash");
  }
}

// Keeps back what the store answers to reads, from a certain one on.
struct HeldReads {
  int let_through = INT_MAX;
  bool newest_first = false;
  std::deque<std::move_only_function<void()>> answers;

  void of(World::Options& options) {
    options.store.hold_answer = [this](std::move_only_function<void()>& answer) {
      if (let_through > 0) {
        --let_through;
        return false;
      }
      answers.push_back(std::move(answer));
      return true;
    };
  }
  void give_one() {
    auto answer = std::move(newest_first ? answers.back() : answers.front());
    if (newest_first) {
      answers.pop_back();
    } else {
      answers.pop_front();
    }
    answer();
  }
  void give_all() {
    let_through = INT_MAX;
    while (!answers.empty()) give_one();
  }
};

// D7, D12: the same, whatever has been read when somebody receives.
TEST(MessageBus, AfterAStopADeepQueueComesInOrderHoweverSlowlyItIsRead) {
  for (int round = 0; round < 120; ++round) {
    const int let_through = round / 4;
    const bool only_others_are_forced = round % 4 >= 2;
    World::Options options;
    options.bus.mailbox_max = 2;
    options.bus.refill_rows = 3;
    options.bus.chunk_rows = 2;
    HeldReads reads;
    reads.newest_first = round % 2 == 1;
    reads.of(options);
    World w(std::move(options));
    std::vector<MessageId> sent;
    for (int i = 0; i < 10; ++i) sent.push_back(w.send({}).id);
    if (!only_others_are_forced) sent.push_back(w.send({.delay = 1h}).id);
    w.add("other");  // whose messages are the last to be sorted in
    for (int i = 0; i < 6; ++i) w.send({.to = "other", .delay = 2h});
    w.advance(1s);
    w.stop(true);
    reads.let_through = let_through;
    w.start();
    std::vector<MessageId> came;
    const auto receive = [&] {
      const auto got = w.start_task(w.bus().receive({.recipient = kWorker, .max = 3, .lease = 10min}));
      w.clock().settle();
      while (!got.done()) {
        BELFRY_ASSERT(!reads.answers.empty());
        reads.give_one();
        w.clock().settle();
      }
      for (const Delivery& one : *got.value()) came.push_back(one.id);
    };
    for (int i = 0; i < 60; ++i) {
      receive();
      if (!reads.answers.empty()) reads.give_one();
      w.advance(1ms);
    }
    reads.give_all();
    w.advance(100ms);  // less than a tick: nothing is looked for again
    for (int i = 0; i < 10; ++i) receive();
    EXPECT_EQ(came, sent) << round;
  }
}

// G14, D18: the second that is now is so crowded that its rows are moved to finer places while somebody sends into it.
TEST(MessageBus, WhatIsSentWhileItsCrowdedSecondIsSplitEndsWithItsAck) {
  World::Options options;
  options.bus.chunk_rows = 4;
  HeldReads reads;
  reads.of(options);
  World w(std::move(options));
  w.add("quick");
  constexpr int kCrowd = 300;
  for (int i = 0; i < kCrowd; ++i) w.send({.deliver_at = kNoon + 10s});
  w.crash();
  w.pass(kNoon + 10s - w.now_when_stopped());
  reads.let_through = 30;
  w.start();
  ASSERT_FALSE(reads.answers.empty());
  w.send({.to = "quick"});
  const auto got = w.receive("quick");
  ASSERT_EQ(got.size(), 1u);

  reads.give_all();
  w.advance(100ms);
  EXPECT_TRUE(w.bus().caught_up());
  EXPECT_EQ(w.ack(got), 1);
  w.advance(1min);
  EXPECT_EQ(w.problems(), std::vector<std::string>{});
  EXPECT_TRUE(w.receive("quick").empty());
  EXPECT_EQ(w.drain().size(), static_cast<std::size_t>(kCrowd));
  EXPECT_EQ(w.problems(), std::vector<std::string>{});
}

// After a stop that delivered many: one of them is in hand, the rest is still being sorted in.
struct HalfSwept {
  static constexpr std::size_t kMany = 200;
  HeldReads reads;
  World w{options()};
  std::vector<Delivery> got;

  HalfSwept() {
    for (std::size_t i = 0; i < kMany; ++i) w.send({.delay = 1h + 1min * static_cast<int>(i)});
    w.stop(true);
    reads.let_through = 10;
    w.start();
    while (got.empty()) {
      BELFRY_ASSERT(!reads.answers.empty());
      reads.give_one();
      w.clock().settle();
      got = w.receive(kWorker, 1);
    }
  }
  World::Options options() {
    World::Options options;
    options.bus.chunk_rows = 4;
    reads.of(options);
    return options;
  }
};

// D18, D12, D16: what a stop forced is given back for later, and moved or cancelled, while the rest of it is still being
// sorted in.
TEST(MessageBus, WhatIsReleasedWhileAStopIsSortedInComesOnceAndAtItsTime) {
  enum class Then { nothing, moved, cancelled };
  for (const Then then : {Then::nothing, Then::moved, Then::cancelled}) {
    HalfSwept half_swept;
    auto& [reads, w, got] = half_swept;
    constexpr std::size_t kMany = HalfSwept::kMany;
    ASSERT_FALSE(w.bus().caught_up());
    const auto released = w.run(w.bus().release(kWorker, {got[0].lease}, then == Then::cancelled ? 20s : 60s));
    ASSERT_TRUE(released.has_value());
    ASSERT_FALSE(w.bus().caught_up());
    std::optional<World::Pending<Result<MessageInfo>>> moving;
    if (then == Then::moved) moving = w.start_task(w.bus().reschedule(got[0].id, w.now() + 30min));
    std::optional<World::Pending<Result<>>> cancelling;
    if (then == Then::cancelled) cancelling = w.start_task(w.bus().cancel(got[0].id, "test"));
    w.clock().settle();
    while (cancelling && !cancelling->done()) {
      ASSERT_FALSE(reads.answers.empty());
      reads.give_one();
      w.clock().settle();
    }
    if (cancelling) {
      w.advance(8s);  // the calendar reads on, up to the time for which it was given back
      for (int i = 0; i < 10 && !reads.answers.empty(); ++i) {
        reads.give_one();
        w.clock().settle();
      }
    }
    ASSERT_FALSE(w.bus().caught_up());
    reads.give_all();
    w.advance(1s);
    if (moving) {
      ASSERT_TRUE(moving->done() && moving->value().has_value());
    }
    if (cancelling) {
      ASSERT_TRUE(cancelling->value().has_value());
    }
    ASSERT_TRUE(w.bus().caught_up());
    EXPECT_EQ(w.get(got[0].id).state, then == Then::cancelled ? MessageState::cancelled : MessageState::delayed);
    EXPECT_EQ(w.drain().size(), kMany - 1);

    w.advance(58s);
    EXPECT_EQ(w.counts().pending, 0);
    EXPECT_TRUE(w.drain().empty());
    if (then == Then::moved) {
      w.advance(28min);
      EXPECT_TRUE(w.drain().empty());
      w.advance(1min);
    }
    w.advance(1s);
    const auto last = w.drain();
    ASSERT_EQ(last.size(), then == Then::cancelled ? 0u : 1u);
    if (!last.empty()) EXPECT_EQ(last[0].id, got[0].id);
    EXPECT_EQ(w.counts().pending, 0);
    EXPECT_EQ(w.problems(), std::vector<std::string>{});
  }
}

// D1, D12, G4: the process dies while a stop is still being sorted in; what was given a later time meanwhile keeps it.
TEST(MessageBus, WhatIsReleasedOrMovedWhileAStopIsSortedInKeepsItsTimeThroughACrash) {
  for (const bool moved : {false, true}) {
    HalfSwept half_swept;
    auto& [reads, w, got] = half_swept;
    constexpr std::size_t kMany = HalfSwept::kMany;
    const auto released = w.run(w.bus().release(kWorker, {got[0].lease}, 10min));
    ASSERT_TRUE(released.has_value());
    Millis later = 10min;
    if (moved) {
      later = 30min;
      const auto moving = w.start_task(w.bus().reschedule(got[0].id, w.now() + later));
      w.clock().settle();
    }
    ASSERT_FALSE(w.bus().caught_up());
    reads.answers.clear();
    reads.let_through = INT_MAX;
    w.crash();
    w.start();
    w.advance(1s);
    ASSERT_TRUE(w.bus().caught_up());

    EXPECT_EQ(w.get(got[0].id).state, MessageState::delayed);
    EXPECT_FALSE(w.get(got[0].id).forced);
    EXPECT_EQ(w.drain().size(), kMany - 1);
    w.advance(later - 2s);
    EXPECT_TRUE(w.drain().empty());
    w.advance(2s);
    EXPECT_EQ(w.drain().size(), 1u);
    EXPECT_EQ(w.problems(), std::vector<std::string>{});
  }
}

// D12, D22: everything is forced again before what was forced first has been sorted in.
TEST(MessageBus, WhatIsForcedAgainMeanwhileIsDelivered) {
  for (int let_through = 0; let_through < 40; ++let_through) {
    World::Options options;
    options.bus.chunk_rows = 4;
    HeldReads reads;
    reads.of(options);
    World w(std::move(options));
    constexpr std::size_t kMany = 30;
    for (std::size_t i = 0; i < kMany; ++i) w.send({.delay = 1h + 1min * static_cast<int>(i)});
    w.advance(1s);
    reads.let_through = let_through;
    const auto first = w.start_task(w.bus().force_deliver_all_delayed());
    w.clock().settle();
    const auto got = w.start_task(w.bus().receive({.recipient = kWorker, .max = 1}));
    w.clock().settle();
    // What somebody gives back for later is forced, too, though the sweep may have passed it.
    const bool given_back = got.done() && !got.value()->empty();
    if (given_back) w.start_task(w.bus().release(kWorker, {got.value()->at(0).lease}, 2h));
    w.clock().settle();
    const auto second = w.start_task(w.bus().force_deliver_all_delayed());
    w.clock().settle();
    reads.give_all();
    w.advance(5s);
    ASSERT_TRUE(first.done() && got.done() && second.done()) << let_through;
    EXPECT_TRUE(w.bus().caught_up()) << let_through;
    const std::size_t in_hand = given_back ? 0 : got.value()->size();
    EXPECT_EQ(in_hand + w.drain().size(), kMany) << let_through;
    EXPECT_EQ(w.bus().delayed_count(), 0) << let_through;
    EXPECT_EQ(w.problems(), std::vector<std::string>{}) << let_through;
  }
}

// D22, G14: much more is due than a mailbox holds, and the rest is on its way to the disk. What is due last was sent first: a
// bucket has it first, and so the sweep meets what is last on its way.
TEST(MessageBus, WhatOverflowsWhileAllIsForcedIsCountedOnce) {
  World::Options options;
  options.bus.mailbox_max = 2;
  options.bus.refill_rows = 3;
  options.bus.chunk_rows = 4;
  World w(std::move(options));
  // Woken before the timekeeper is, so that forcing finds everything due and nothing delivered.
  const auto force_in_a_second = [](World& world) -> Task<Result<std::int64_t>> {
    Wake never;
    co_await world.clock().sleep_until(world.clock().now().boot + 1s, never);
    co_return co_await world.bus().force_deliver_all_delayed();
  };
  const auto forced = w.start_task(force_in_a_second(w));
  w.clock().settle();
  constexpr std::size_t kMany = 40;
  for (std::size_t i = 0; i < kMany; ++i) w.send({.delay = 5s - Millis{i}});
  w.send({.delay = 1h});
  w.clock().suspend(5s);
  w.advance(1s);

  ASSERT_TRUE(forced.done());
  EXPECT_EQ(*forced.value(), 1);
  EXPECT_EQ(w.counts().pending, static_cast<std::int64_t>(kMany + 1));
  EXPECT_EQ(w.drain().size(), kMany + 1);
  EXPECT_EQ(w.counts().pending, 0);
  EXPECT_EQ(w.problems(), std::vector<std::string>{});
}

// D18
TEST(MessageBus, AnAckDoesNotWaitForAllThatOverflowsIntoAnothersBacklog) {
  World::Options options;
  options.bus.mailbox_max = 2;
  World w(std::move(options));
  w.add("quick");
  const auto groups_until_acked = [](World& world) -> Task<std::int64_t> {
    const auto got = co_await world.bus().receive({.recipient = "quick", .wait = 10s});
    BELFRY_ASSERT(got && got->size() == 1);
    const std::int64_t before = world.store().statistics().groups;
    const auto acked = co_await world.bus().ack_leases("quick", {got->front().lease}, "test");
    BELFRY_ASSERT(acked && acked->acked == 1);
    co_return world.store().statistics().groups - before;
  };
  const auto groups = w.start_task(groups_until_acked(w));

  // All at once, so that sends take most of each group and overflow piles up behind them.
  constexpr int kMany = 8 * kGroupRowsMax;
  std::vector<World::Pending<Result<Sent>>> sends;
  for (int i = 0; i <= kMany; ++i)
    sends.push_back(w.start_task(w.bus().send({.to = i < kMany ? kWorker : "quick", .payload = "{}"})));
  w.clock().settle();
  for (const auto& sent : sends) ASSERT_TRUE(sent.value().has_value());
  ASSERT_TRUE(groups.done());
  EXPECT_LE(groups.value(), 2);
  EXPECT_EQ(w.counts().pending, kMany);
}

// D14
TEST(MessageBus, RemovingARecipientWithADeepQueueMakesAllOfItDeadLetters) {
  World::Options options;
  options.bus.mailbox_max = 5;
  options.bus.refill_rows = 3;
  World w(std::move(options));
  for (int i = 0; i < 40; ++i) w.send({});
  const auto leased = w.receive(kWorker, 2);
  ASSERT_EQ(leased.size(), 2u);
  ASSERT_TRUE(w.run(w.bus().remove_recipient(kWorker)).has_value());
  EXPECT_EQ(w.bus().in_flight(), 0) << "what was leased can be acked no more, and nobody waits for it";
  w.advance(2s);
  EXPECT_EQ(w.bus().totals().dead, 40);
  EXPECT_FALSE(w.run(w.bus().ack_leases(kWorker, {leased[0].lease}, "late")).has_value());
  EXPECT_EQ(w.bus().totals().live.pending, 0);
  EXPECT_EQ(w.bus().totals().live.delayed, 0);
  EXPECT_TRUE(w.problems().empty());
}

// D14
TEST(MessageBus, ADeadLetterOfARemovedRecipientCannotBeRetriedButDropped) {
  World w;
  const Sent sent = w.send({});
  ASSERT_TRUE(w.run(w.bus().remove_recipient(kWorker)).has_value());
  w.advance(2s);
  EXPECT_EQ(w.run(w.bus().retry(sent.id)).error().code, Errc::unknown_recipient);
  EXPECT_TRUE(w.run(w.bus().drop(sent.id, "t")).has_value());
  EXPECT_EQ(w.bus().totals().dead, 0);
  EXPECT_EQ(w.bus().totals().cancelled, 1);
  EXPECT_TRUE(w.problems().empty());
}

// D18: an answer has a bound in bytes, also when the bodies come from the disk.
TEST(MessageBus, AReceiveOfLargeMessagesHandsOutWhatFitsAndKeepsTheRest) {
  World::Options options;
  options.bus.body_cache_bytes = 1;
  World w(std::move(options));
  const std::string large = "\"" + std::string(900'000, 'x') + "\"";
  std::vector<MessageId> sent;
  for (int i = 0; i < 20; ++i) sent.push_back(w.send({.payload = large}).id);
  std::vector<MessageId> came;
  std::size_t rounds = 0;
  for (; rounds < 20 && came.size() < sent.size(); ++rounds) {
    const auto some = w.receive(kWorker, 1'000);
    std::size_t bytes = 0;
    for (const Delivery& one : some) {
      came.push_back(one.id);
      bytes += one.payload.size();
    }
    EXPECT_LT(bytes, kReceiveBytesMax + large.size() + 1) << rounds;
  }
  EXPECT_EQ(came, sent);
  EXPECT_GT(rounds, 1u);
}

// D23
TEST(MessageBus, ManyThatExpireTogetherAllExpire) {
  World w;
  for (int i = 0; i < 3'000; ++i) w.send({.expires_at = w.now() + 10s});
  w.advance(15s);
  EXPECT_EQ(w.bus().totals().expired, 3'000);
  EXPECT_TRUE(w.receive(kWorker, 10).empty());
  EXPECT_TRUE(w.problems().empty());
}

// D17
TEST(MessageBus, AKeyThatIsUsedAgainAfterItsTimeIsKeptForTheNewUse) {
  for (const bool restart : {false, true}) {
    World::Options options;
    options.bus.retention = 1h;
    World w(std::move(options));
    const Sent first = w.send({.payload = "1", .key = "weekly"});
    w.advance(1h + 1s);
    const Sent second = w.send({.payload = "1", .key = "weekly"});
    EXPECT_NE(second.id, first.id);
    if (restart) w.restart();
    w.advance(11min);  // the old one is dropped
    EXPECT_EQ(w.send({.payload = "1", .key = "weekly"}).id, second.id) << restart;
  }
}

// D17
TEST(MessageBus, SameKeyAndBodyIsTheSameMessageAndAnotherBodyAConflict) {
  World w;
  const Sent first = w.send({.payload = "1", .delay = 1h, .key = "k"});
  for (const bool restart : {false, true}) {
    if (restart) w.restart();
    w.advance(1s);
    const Sent again = w.send({.payload = "1", .delay = 1h, .key = "k"});
    EXPECT_EQ(again.id, first.id);
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.scheduled_at, first.scheduled_at);
    EXPECT_EQ(w.try_send({.payload = "2", .delay = 1h, .key = "k"}).error().code, Errc::key_conflict);
    EXPECT_EQ(w.bus().totals().accepted, 1);
  }
  EXPECT_NE(w.send({.from = "other", .payload = "1", .delay = 1h, .key = "k"}).id, first.id);
}

// D17, D23: the answer to the first send was lost, and meanwhile its time has come or gone.
TEST(MessageBus, ARepeatIsNotRefusedForWhatWasRightAtTheFirstSend) {
  World w;
  const Outgoing soon{.to = kWorker, .payload = "1", .delay = 2s, .expires_at = w.now() + 3s, .key = "soon"};
  const Outgoing past{.to = kWorker, .payload = "1", .deliver_at = w.now() + 2s, .key = "at two"};
  const Sent first = w.send(soon);
  const Sent second = w.send(past);
  for (const Nanos later : {Nanos{2s}, Nanos{10s}}) {
    w.advance(later);
    const Sent again = w.send(soon);
    EXPECT_EQ(again.id, first.id);
    EXPECT_EQ(again.scheduled_at, first.scheduled_at);
    EXPECT_EQ(w.send(past).id, second.id);
    EXPECT_EQ(w.send(past).warnings, std::vector<std::string>{});
  }
  EXPECT_EQ(w.bus().totals().accepted, 2);
  Outgoing another = soon;
  another.payload = "2";
  EXPECT_EQ(w.try_send(another).error().code, Errc::key_conflict);
  another.key = "a new one";
  EXPECT_EQ(w.try_send(another).error().code, Errc::invalid_argument);
  EXPECT_EQ(w.problems(), std::vector<std::string>{});
}

// D17, W
TEST(MessageBus, ARepeatIsRecognizedByTheWordsOfItsTime) {
  World w;
  const TimeReader times(w.clock(), {});
  const auto send = [&](const std::string& when) {
    SendRequest request;
    request.message = {.to = kWorker, .payload = "1", .key = when.substr(0, 2)};
    request.schedule = TimeText{.text = when};
    EXPECT_TRUE(resolve_schedule(request, times));
    return w.try_send(request.message);
  };
  for (const char* when : {"in 5 minutes", "tomorrow at 9"}) {
    const auto first = send(when);
    ASSERT_TRUE(first) << when;
    w.advance(25h);  // the words mean another instant by now
    const auto again = send(when);
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->id, first->id);
    EXPECT_EQ(again->scheduled_at, first->scheduled_at);
  }
  EXPECT_EQ(send("in 6 minutes").error().code, Errc::key_conflict);
}

// D1, W: elapsed time is elapsed time, in numbers and in words.
TEST(MessageBus, InFiveMinutesIsFiveMinutesHoweverTheClockIsSet) {
  World w;
  const TimeReader times(w.clock(), {});
  for (const char* when : {"in 5 minutes", "5分钟后", "tomorrow at 9"}) {
    SendRequest request;
    request.message = {.to = kWorker, .payload = "1"};
    request.schedule = TimeText{.text = when};
    ASSERT_TRUE(resolve_schedule(request, times)) << when;
    w.send(request.message);
  }
  w.clock().step_wall(24h);
  w.advance(2s);
  EXPECT_EQ(w.ack(w.receive(kWorker, 10)), 1) << "tomorrow has come";
  w.advance(5min - 2s - 1ms);
  EXPECT_EQ(w.receive(kWorker, 10).size(), 0u);
  w.advance(1ms);
  EXPECT_EQ(w.receive(kWorker, 10).size(), 2u);
}

// D17
TEST(MessageBus, TwinsWithOneKeyInOneGroupMakeOneMessage) {
  World w;
  auto a = w.start_task(w.bus().send({.to = kWorker, .payload = "1", .key = "k"}));
  auto b = w.start_task(w.bus().send({.to = kWorker, .payload = "1", .key = "k"}));
  w.clock().settle();
  EXPECT_EQ(a.value()->id, b.value()->id);
  EXPECT_EQ(w.counts().pending, 1);
}

// D18
TEST(MessageBus, MessageThatIsNotAckedComesBackWhenItsLeaseEnds) {
  World w;
  w.send({});
  const auto first = w.receive();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(w.counts().in_flight, 1);
  w.advance(30s - 1ns);
  EXPECT_TRUE(w.receive().empty());
  w.advance(1ns);
  const auto second = w.receive();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].attempt, 2);
  EXPECT_EQ(w.ack(first), 0) << "a stale owner's ack is refused";
  EXPECT_EQ(w.ack(second), 1);
}

// D18
TEST(MessageBus, ExtendedLeaseLastsLonger) {
  World w;
  w.send({});
  const auto got = w.receive();
  w.advance(20s);
  ASSERT_EQ(w.bus().extend(kWorker, {got[0].lease}, 30s)->acked, 1);
  w.advance(30s - 1ns);
  EXPECT_TRUE(w.receive().empty());
  EXPECT_EQ(w.ack(got), 1);
}

// D18
TEST(MessageBus, ReleasedMessageComesBackAtOnceOrAfterItsDelay) {
  World w;
  w.send({});
  auto got = w.receive();
  ASSERT_EQ(w.run(w.bus().release(kWorker, {got[0].lease}, 0ms))->acked, 1);
  got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  ASSERT_EQ(w.run(w.bus().release(kWorker, {got[0].lease}, 5s))->acked, 1);
  w.clock().settle();
  EXPECT_EQ(w.counts().delayed, 1);
  w.advance(5s - 1ms);
  EXPECT_TRUE(w.receive().empty());
  w.advance(2ms);
  got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].attempt, 3);
  EXPECT_EQ(w.ack(got), 1);
  EXPECT_TRUE(w.problems().empty());
}

// D18
TEST(MessageBus, AfterFiveAttemptsAMessageIsADeadLetterThatCanBeRetriedOrDropped) {
  World w;
  const Sent sent = w.send({});
  for (int attempt = 1; attempt <= 5; ++attempt) {
    ASSERT_EQ(w.receive().size(), 1u) << attempt;
    w.advance(30s);
  }
  EXPECT_TRUE(w.receive().empty());
  EXPECT_EQ(w.get(sent.id).state, MessageState::dead);
  EXPECT_EQ(w.get(sent.id).attempts, 5);
  EXPECT_EQ(w.run(w.bus().list({.state = MessageState::dead}))->messages.size(), 1u);

  ASSERT_TRUE(w.run(w.bus().retry(sent.id)).has_value());
  w.advance(1ms);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].attempt, 1);
  for (int attempt = 1; attempt <= 5; ++attempt) {
    w.advance(30s);
    w.receive();
  }
  ASSERT_TRUE(w.run(w.bus().drop(sent.id, "t")).has_value());
  EXPECT_EQ(w.run(w.bus().retry(sent.id)).error().code, Errc::already_cancelled);
  EXPECT_EQ(w.bus().totals().dead, 0);
  EXPECT_EQ(w.bus().totals().cancelled, 1);
  EXPECT_TRUE(w.problems().empty());
}

// D18, D23
TEST(MessageBus, ADeadLetterThatHasExpiredIsNotRevivedAndStays) {
  World w;
  const Sent sent = w.send({.expires_at = w.now() + 1h});
  for (int attempt = 1; attempt <= 5; ++attempt) {
    ASSERT_EQ(w.receive().size(), 1u);
    w.advance(30s);
  }
  ASSERT_EQ(w.bus().totals().dead, 1);
  w.advance(1h);
  const auto retried = w.run(w.bus().retry(sent.id));
  ASSERT_FALSE(retried);
  EXPECT_EQ(retried.error().code, Errc::wrong_state);
  EXPECT_EQ(w.run(w.bus().get(sent.id))->state, MessageState::dead);
  EXPECT_EQ(w.problems(), std::vector<std::string>{});
}

// D18
TEST(MessageBus, CrashRedeliversWhatWasInFlight) {
  World w;
  w.send({});
  ASSERT_EQ(w.receive().size(), 1u);
  w.restart();
  w.advance(1ms);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(w.ack(got), 1);
  w.restart();
  w.advance(1ms);
  EXPECT_TRUE(w.receive().empty());
  EXPECT_TRUE(w.problems().empty());
}

// D18
TEST(MessageBus, MessageThatKillsItsProcessEachTimeEndsAsADeadLetter) {
  World w;
  const Sent sent = w.send({});
  int handed_out = 0;
  for (int life = 0; life < 10; ++life) {
    w.advance(1ms);
    handed_out += static_cast<int>(w.receive().size());
    w.restart();
  }
  w.advance(1ms);
  EXPECT_LE(handed_out, 6);
  EXPECT_EQ(w.get(sent.id).state, MessageState::dead);
}

// D20
TEST(MessageBus, TaskIdIsKeptThroughDelayAndRestart) {
  World w;
  w.send({.task_id = "task-7", .delay = 1h});
  w.restart();
  w.advance(1h);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].task_id, "task-7");
}

// D21
TEST(MessageBus, FinishedMessagesAndKeysStayReadableForSevenDays) {
  World w;
  const Sent sent = w.send({.payload = "1", .key = "k"});
  w.drain();
  w.clock().suspend(24h * 7 - 2h);
  w.advance(30min);
  EXPECT_EQ(w.get(sent.id).state, MessageState::acked);
  EXPECT_EQ(w.send({.payload = "1", .key = "k"}).id, sent.id);
  w.clock().suspend(24h * 2);
  w.advance(30min);
  EXPECT_EQ(w.run(w.bus().get(sent.id)).error().code, Errc::not_found);
  EXPECT_TRUE(w.run(w.bus().list({.state = MessageState::acked}))->messages.empty());
  EXPECT_NE(w.send({.payload = "1", .key = "k"}).id, sent.id);
}

// D21: records are dropped by the hour, but read by the millisecond.
TEST(MessageBus, FinishedMessageAndItsKeyAreForgottenAfterSevenDaysToTheMillisecond) {
  World w;
  const Sent sent = w.send({.payload = "1", .key = "k"});
  w.drain();
  w.clock().suspend(24h * 7);
  EXPECT_EQ(w.get(sent.id).state, MessageState::acked);
  EXPECT_EQ(w.send({.payload = "1", .key = "k"}).id, sent.id);
  w.advance(1ms);
  EXPECT_EQ(w.run(w.bus().get(sent.id)).error().code, Errc::not_found);
  EXPECT_NE(w.send({.payload = "1", .key = "k"}).id, sent.id);
}

// D22
TEST(MessageBus, DeliverDueMessagesDeliversWhatIsDueAndSaysHowMany) {
  World w;
  w.send({.deliver_at = kNoon + 5s});
  w.send({.deliver_at = kNoon + 6s});
  w.send({.deliver_at = kNoon + 6s + 1ms});
  w.clock().step_wall(6s, false);  // nobody else has noticed yet
  EXPECT_EQ(w.counts().pending, 0);
  EXPECT_EQ(w.bus().deliver_due_messages(), 2);
  EXPECT_EQ(w.counts().pending, 2);
  EXPECT_EQ(w.bus().deliver_due_messages(), 0);
}

// D22
TEST(MessageBus, WaitForMessageSaysWhetherOneCame) {
  World w;
  auto vain = w.start_task(w.bus().wait_for_message(kWorker, 1s));
  w.advance(1s);
  EXPECT_FALSE(vain.value());
  auto came = w.start_task(w.bus().wait_for_message(kWorker, 5s));
  w.send({.delay = 2s});
  w.advance(2s);
  ASSERT_TRUE(came.done());
  EXPECT_TRUE(came.value());
}

// D23
TEST(MessageBus, MessageEndsExpiredInsteadOfBeingDeliveredLate) {
  for (const auto& [outage, state] : std::vector<std::pair<Nanos, MessageState>>{
           {Nanos{10s - 1ms}, MessageState::pending}, {Nanos{10s}, MessageState::expired}}) {
    World w;
    const Sent sent = w.send({.delay = 5s, .expires_at = kNoon + 10s});
    w.crash();
    w.pass(outage);
    w.start();
    w.clock().settle();
    EXPECT_EQ(w.get(sent.id).state, state);
  }
}

// D23
TEST(MessageBus, PendingMessageThatNobodyReceivesExpiresAtItsTime) {
  World w;
  const Sent sent = w.send({.expires_at = kNoon + 10s});
  w.advance(10s - 1ms);
  EXPECT_EQ(w.counts().pending, 1);
  w.advance(1ms);
  EXPECT_EQ(w.counts().pending, 0);
  EXPECT_EQ(w.get(sent.id).state, MessageState::expired);
  EXPECT_EQ(w.bus().totals().expired, 1);
  EXPECT_TRUE(w.receive().empty());
  EXPECT_EQ(w.try_send({.delay = 11s, .expires_at = w.now() + 10s}).error().code, Errc::invalid_argument);
  EXPECT_TRUE(w.problems().empty());
}

// D23: also one that nobody has read up to yet.
TEST(MessageBus, MessageDeepInAQueueExpiresAtItsTime) {
  World::Options options;
  options.bus.mailbox_max = 2;
  options.bus.refill_rows = 3;
  World w(std::move(options));
  for (int i = 0; i < 20; ++i) w.send({});
  const Sent deep = w.send({.expires_at = kNoon + 10s});
  const auto held = w.receive(kWorker, 2);
  EXPECT_EQ(held.size(), 2u);
  w.advance(10s - 1ms);
  EXPECT_EQ(w.get(deep.id).state, MessageState::pending);
  w.advance(1'001ms);
  EXPECT_EQ(w.get(deep.id).state, MessageState::expired);
  EXPECT_EQ(w.counts().pending, 18);
  EXPECT_EQ(w.bus().totals().expired, 1);
  EXPECT_EQ(w.drain().size(), 18u);
  EXPECT_TRUE(w.problems().empty());
}

// D16
TEST(MessageBus, TheLifeOfAMessageTellsEachTimeItHad) {
  World w;
  const Sent sent = w.send({.delay = 1h});
  w.advance(1s);
  ASSERT_TRUE(w.run(w.bus().reschedule(sent.id, kNoon + 2h)).has_value());
  ASSERT_TRUE(w.run(w.bus().deliver_now(sent.id)).has_value());
  auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(w.get(sent.id).leased_until, w.now() + kLeaseDefault);
  ASSERT_TRUE(w.run(w.bus().release(kWorker, {got[0].lease}, 5s)).has_value());
  w.clock().settle();
  const auto expect_story = [&](const MessageInfo& info) {
    ASSERT_EQ(info.moves.size(), 3u);
    EXPECT_EQ(info.moves[0].cause, "moved");
    EXPECT_EQ(info.moves[0].at, kNoon + 1s);
    EXPECT_EQ(info.moves[0].from, kNoon + 1h);
    EXPECT_EQ(info.moves[0].to, kNoon + 2h);
    EXPECT_EQ(info.moves[1].cause, "delivered_now");
    EXPECT_EQ(info.moves[1].from, kNoon + 2h);
    EXPECT_EQ(info.moves[2].cause, "released");
    EXPECT_EQ(info.moves[2].to, info.deliver_at);
  };
  expect_story(w.get(sent.id));
  w.restart();
  w.advance(5s);
  expect_story(w.get(sent.id));
  EXPECT_EQ(w.ack(w.receive()), 1);
  expect_story(w.get(sent.id));
}

// D16: a message that is moved for ever tells its latest times, and does not grow.
TEST(MessageBus, OnlyTheLatestMovesAreKept) {
  World w;
  const Sent sent = w.send({.delay = 1h});
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(w.run(w.bus().reschedule(sent.id, kNoon + 1h + Millis{i})).has_value());
  const auto moves = w.get(sent.id).moves;
  EXPECT_LT(moves.size(), 40u);
  ASSERT_GT(moves.size(), 10u);
  EXPECT_EQ(moves.back().to, kNoon + 1h + 100ms);
  EXPECT_EQ(moves.front().to, moves[1].from);
}

// D16, D18
TEST(MessageBus, CancelledAndDeadMessagesStillTellWhenTheyWereDelivered) {
  World w;
  const Sent cancelled = w.send({.delay = 2s});
  w.advance(5s);
  ASSERT_TRUE(w.run(w.bus().cancel(cancelled.id, "t")).has_value());
  EXPECT_EQ(w.get(cancelled.id).delivered_at, kNoon + 2s);
  EXPECT_EQ(w.get(cancelled.id).lateness, Millis{0});

  const Sent dead = w.send({.delay = 2s});
  w.advance(2s);
  for (int attempt = 1; attempt <= 5; ++attempt) {
    w.receive();
    w.advance(30s);
  }
  EXPECT_EQ(w.get(dead.id).state, MessageState::dead);
  EXPECT_EQ(w.get(dead.id).delivered_at, kNoon + 7s);
  ASSERT_TRUE(w.run(w.bus().drop(dead.id, "t")).has_value());
  EXPECT_EQ(w.get(dead.id).delivered_at, kNoon + 7s);
}

// D11, D21: recipients that come and go leave nothing behind, and the totals still add up.
TEST(MessageBus, ARemovedRecipientIsForgottenWithTheRecordsOfItsMessages) {
  World::Options options;
  options.bus.retention = 1h;
  World w(std::move(options));
  w.add("gone");
  const Sent sent = w.send({.to = "gone"});
  ASSERT_EQ(w.ack(w.receive("gone")), 1);
  const Sent dead = w.send({.to = "gone"});
  ASSERT_TRUE(w.run(w.bus().remove_recipient("gone")).has_value());
  w.advance(4h);
  EXPECT_EQ(w.get(dead.id).to, "gone");  // a dead letter keeps it
  ASSERT_TRUE(w.run(w.bus().drop(dead.id, "t")).has_value());
  w.advance(59min);
  EXPECT_EQ(w.get(dead.id).to, "gone");
  w.advance(4h);
  EXPECT_FALSE(w.run(w.bus().get(dead.id)).has_value());
  EXPECT_EQ(w.bus().totals().accepted, 2);
  EXPECT_EQ(w.bus().totals().acked, 1);
  auto count = [](store::Connection& connection) -> Result<std::int64_t> {
    auto rows = connection.query("SELECT count(*) FROM recipient");
    return rows.next() ? rows.integer(0) : -1;
  };
  EXPECT_EQ(*w.run(w.store().read<std::int64_t>(std::move(count))), 1);
  w.restart();
  w.add("gone");
  EXPECT_EQ(w.counts("gone").pending, 0);
  EXPECT_TRUE(w.problems().empty());
}

// D21: whoever asks for a cancelled message within its time learns whom it was for.
TEST(MessageBus, ARemovedRecipientStaysAsLongAsTheRecordOfItsLastMessage) {
  World::Options options;
  options.bus.retention = 1h;
  World w(std::move(options));
  w.add("gone");
  const Sent late = w.send({.to = "gone", .delay = 100h});
  ASSERT_TRUE(w.run(w.bus().remove_recipient("gone")).has_value());
  w.advance(5h);
  ASSERT_TRUE(w.run(w.bus().cancel(late.id, "t")).has_value());
  w.advance(50min);
  EXPECT_EQ(w.get(late.id).to, "gone");
  w.advance(5h);
  EXPECT_FALSE(w.run(w.bus().get(late.id)).has_value());
}

// D21
TEST(MessageBus, ARecordCanBeReadThoughItsRecipientIsForgotten) {
  World::Options options;
  options.bus.retention = 1h;
  World w(std::move(options));
  w.add("gone");
  w.clock().step_wall(6h);
  const Sent sent = w.send({.to = "gone"});
  ASSERT_EQ(w.ack(w.receive("gone")), 1);
  w.clock().step_wall(-6h);
  ASSERT_TRUE(w.run(w.bus().remove_recipient("gone")).has_value());
  w.advance(4h);
  EXPECT_EQ(w.get(sent.id).state, MessageState::acked);
  EXPECT_EQ(w.get(sent.id).to, "");
}

// After clocks were set around a crash, the calendar may have a message later than its own time. A stop forces it all the
// same; it comes up when others behind it have been read from the backlog already, and must not stay there.
// D12
TEST(MessageBus, AForcedMessageThatTheCalendarHasTooLateIsNotLeftBehind) {
  World::Options options;
  options.bus.mailbox_max = 1;
  options.bus.refill_rows = 1;
  options.bus.chunk_rows = 2;
  World w(options);
  const Sent late = w.send({.delay = 1s});
  auto job = [](store::Connection& connection) -> Result<> {
    const std::int64_t look_ms = to_ms(kNoon + 1h);
    auto rows = connection.query("SELECT bucket, sequence, due_ms, recipient FROM due");
    while (rows.next()) {
      const CalendarRow row{.bucket = rows.integer(0),
                            .sequence = rows.integer(1),
                            .due_ms = rows.integer(2),
                            .recipient = static_cast<RecipientNumber>(rows.integer(3))};
      MessageTables::replace(connection, row, look_ms, bucket_for(look_ms, to_ms(kNoon)));
      break;
    }
    return {};
  };
  ASSERT_TRUE(w.run(w.store().write<void>(std::move(job))));
  w.restart();
  w.advance(5s);
  for (int i = 0; i < 8; ++i) w.send({.delay = 10s + 30s * i});
  w.stop(true);
  w.start();

  std::set<std::int64_t> came;
  for (const Delivery& delivery : w.drain()) came.insert(delivery.id.sequence);
  EXPECT_EQ(came.size(), 9u);
  EXPECT_TRUE(came.contains(late.id.sequence));
  EXPECT_EQ(w.counts().pending, 0);
}

}  // namespace
}  // namespace belfry::bus
