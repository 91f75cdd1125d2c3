#include "belfry/agent/processor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::agent {
namespace {

using testing::World;
using namespace std::chrono_literals;

// An agent that does what its test says, and takes simulated time.
class Scripted final : public Agent {
 public:
  using Script = std::function<Task<Result<>>(bus::Delivery, Hands&)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  Task<Result<>> handle(bus::Delivery message, Hands& hands) override { return script_(std::move(message), hands); }

 private:
  Script script_;
};

struct Event {
  std::string agent;
  Nanos began{0};
  Nanos ended{0};
  std::string text;
  auto operator<=>(const Event&) const = default;
};

class ProcessorTest : public ::testing::Test {
 protected:
  World::Options options() {
    World::Options options;
    options.host = [this](Processor& processor) {
      processor.host("scripted", [this] { return std::make_unique<Scripted>(script); });
      processor.host("echo", make_echo);
    };
    return options;
  }
  World& world() {
    if (!w) w.emplace(options());
    return *w;
  }
  // Takes `how_long`, and notes when.
  Task<Result<>> work(bus::Delivery message, Millis how_long) {
    Event event{message.to, elapsed(), {}, chat::text_of(message.payload)};
    ++at_work;
    most_at_work = std::max(most_at_work, at_work);
    Wake wake;
    co_await world().clock().sleep_until(world().clock().now().boot + how_long, wake);
    --at_work;
    event.ended = elapsed();
    events.push_back(event);
    co_return Result<>{};
  }
  // Waits for nothing, or works.
  Task<Result<>> hang_or_work(bus::Delivery message, bool hangs, Millis how_long) {
    if (hangs) co_await suspend<int>([this](Resume<int> resume) { hung.push_back(std::move(resume)); });
    co_return co_await work(std::move(message), how_long);
  }
  static Task<Result<>> fail_somehow(int& tries) {
    if (++tries == 2) throw std::runtime_error("oh");
    co_return fail(Errc::unavailable, "no");
  }
  // Sends, and works or fails as the send did.
  Task<Result<>> send_then_work(bus::Delivery message, Hands& hands, Millis how_long) {
    const auto sent = co_await hands.send({.to = "worker", .payload = R"({"text":"done"})"});
    if (!sent) co_return std::unexpected(sent.error());
    co_return co_await work(std::move(message), how_long);
  }
  // Works or hangs, and sends then.
  Task<Result<>> work_then_send(bus::Delivery message, Hands& hands) {
    const bool hangs = message.to == "hung";
    co_await hang_or_work(std::move(message), hangs, 2s);
    const auto sent = co_await hands.send({.to = "worker", .payload = R"({"text":"done"})"});
    co_return sent ? Result<>{} : fail(Errc::stopping, "not taken");
  }
  // Two that are the same in every try, and one that is not.
  Task<Result<>> send_thrice(bus::Delivery message, Hands& hands, int one_try) {
    co_await hands.send({.to = "worker", .payload = R"({"text":"same"})"});
    co_await hands.send({.to = "worker", .payload = R"({"text":"same"})"});
    co_await hands.send({.to = "worker", .payload = fmt::format(R"({{"text":"try {}"}})", one_try)});
    co_return co_await work(std::move(message), 1s);
  }
  Task<Nanos> stop_within(Nanos deadline) {
    co_await world().agents().stop(world().clock().now().boot + deadline);
    co_return elapsed();
  }
  Nanos elapsed() { return world().clock().now().boot - SimulatedClock::noon().boot; }
  void send(const std::string& to, std::string text = "", Millis delay = 0ms) {
    world().send({.to = to, .payload = fmt::format(R"({{"text":"{}"}})", text), .delay = delay});
  }

  Scripted::Script script;
  std::vector<Event> events;
  std::vector<Resume<int>> hung;  // handlers that wait for nothing
  int at_work = 0;
  int most_at_work = 0;
  std::optional<World> w;
};

// D19
TEST_F(ProcessorTest, AnAgentHandlesOneMessageAtATimeInOrder) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  world().add("a", "scripted");
  for (int i = 0; i < 5; ++i) send("a", std::to_string(i));
  world().advance(10s);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(most_at_work, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(events[static_cast<std::size_t>(i)].text, std::to_string(i));
    EXPECT_EQ(events[static_cast<std::size_t>(i)].ended, 1s * (i + 1));
  }
  EXPECT_EQ(world().counts("a").pending, 0);
}

// D19
TEST_F(ProcessorTest, ThreeAgentsWorkAtOnceAndTheOthersWaitOneTurnOfEach) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) world().add(name, "scripted");
  for (int i = 0; i < 10; ++i) send("a", "busy");
  for (const char* const name : {"b", "c", "d", "e", "f"})
    for (int i = 0; i < 3; ++i) send(name);
  world().advance(60s);
  EXPECT_EQ(events.size(), 25u);
  EXPECT_EQ(most_at_work, 3);
  // Everybody's first message is handled before anybody's third.
  std::map<std::string, int> turns;
  for (const Event& event : events) {
    ++turns[event.agent];
    if (turns[event.agent] == 3) EXPECT_EQ(turns.size(), 6u);
  }
}

// D20
TEST_F(ProcessorTest, WhatAnAgentSendsBelongsToTheTaskAndTheSessionOfTheMessage) {
  script = [](bus::Delivery, Hands& hands) -> Task<Result<>> {
    const auto sent = co_await hands.send({.to = "worker", .payload = R"({"text":"on it"})", .delay = 5s});
    const auto called = co_await hands.call("send_message", R"({"to":"ann","payload":{"text":"hello"}})", "c1");
    co_return sent&& called && called->ok ? Result<>{} : fail(Errc::storage_failed, "not sent");
  };
  world().add("a", "scripted");
  const auto opened = world().run(world().chats().open({.people = {"ann"}, .agents = {"a"}}));
  ASSERT_TRUE(opened);
  ASSERT_TRUE(world().run(world().chats().post({.session = opened->session.id, .text = "hi"})));
  world().advance(5s);
  const auto lines = *world().run(world().chats().lines({.session = opened->session.id}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].from, "a");
  EXPECT_EQ(lines[1].task_id, lines[0].task_id);
  const auto got = world().drain();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from, "a");
  EXPECT_EQ(got[0].task_id, lines[0].task_id);
}

// D18
TEST_F(ProcessorTest, AFailingAgentIsTriedAgainLaterAndItsMessageEndsAsADeadLetter) {
  int tries = 0;
  script = [&tries](bus::Delivery, Hands&) { return fail_somehow(tries); };
  world().add("a", "scripted");
  send("a");
  world().advance(500ms);
  EXPECT_EQ(tries, 1);
  world().advance(10min);
  EXPECT_EQ(tries, kAttemptsMax);
  EXPECT_EQ(world().bus().totals().dead, 1);
}

// D18
TEST_F(ProcessorTest, ALongTurnKeepsItsLease) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 5min); };
  world().add("a", "scripted");
  send("a", "long");
  world().advance(10min);
  EXPECT_EQ(events.size(), 1u);
  EXPECT_EQ(world().bus().totals().acked, 1);
}

// D19
TEST_F(ProcessorTest, AHungAgentIsGivenUpAndItsMessageComesAgain) {
  int tries = 0;
  script = [this, &tries](bus::Delivery message, Hands&) { return hang_or_work(std::move(message), ++tries == 1, 1s); };
  world().add("a", "scripted");
  send("a", "stuck");
  world().advance(10min + 10s);
  EXPECT_EQ(tries, 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(world().bus().totals().acked, 1);
  hung.clear();
}

// D19: whoever is not hung has the same times to the nanosecond, whether somebody else is or not.
TEST_F(ProcessorTest, OneHungAgentChangesNobodyElsesTiming) {
  const auto run = [this](bool with_hung) {
    w.reset();
    events.clear();
    script = [this](bus::Delivery message, Hands&) {
      const bool hangs = message.to == "hung";
      return hang_or_work(std::move(message), hangs, 40ms);
    };
    for (int i = 0; i < 20; ++i) world().add(fmt::format("a{}", i), "scripted");
    world().add("hung", "scripted");
    if (with_hung) send("hung");
    // Two at once at most: the hung one has the third place until patience with it ends.
    for (int i = 0; i < 400; ++i) send(fmt::format("a{}", i % 20), std::to_string(i), Millis{1 + i * 20});
    world().advance(60s);
    hung.clear();
    return std::exchange(events, {});
  };
  const auto alone = run(false);
  const auto beside = run(true);
  EXPECT_EQ(alone.size(), 400u);
  EXPECT_EQ(alone, beside);
}

// D19: when everybody is busy, the hung one's place goes to the others as soon as patience with it ends.
TEST_F(ProcessorTest, AHungAgentDoesNotKeepItsPlace) {
  script = [this](bus::Delivery message, Hands&) {
    const bool hangs = message.to == "hung";
    return hang_or_work(std::move(message), hangs, 1s);
  };
  world().add("hung", "scripted");
  send("hung");
  for (const char* const name : {"a", "b", "c", "d"}) {
    world().add(name, "scripted");
    for (int i = 0; i < 100; ++i) send(name);
  }
  world().advance(9s);
  EXPECT_EQ(most_at_work, 2);
  world().advance(10s);
  EXPECT_EQ(most_at_work, 3);
  hung.clear();
}

TEST_F(ProcessorTest, AStoppedAgentKeepsItsQueueAlsoOverARestart) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  world().add("a", "scripted");
  ASSERT_TRUE(world().run(world().agents().set_stopped("a", true)));
  send("a");
  world().advance(10s);
  world().restart();
  world().advance(10s);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(world().counts("a").pending, 1);
  ASSERT_TRUE(world().run(world().agents().set_stopped("a", false)));
  world().advance(2s);
  EXPECT_EQ(events.size(), 1u);
  const auto refused = world().run(world().agents().set_stopped("worker", true));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::wrong_state);
}

// D12: a stop lets agents finish, and takes what they send; a hung one does not hold it up.
TEST_F(ProcessorTest, AStopWaitsForTheAgentsAtWorkAndNoLonger) {
  script = [this](bus::Delivery message, Hands& hands) { return work_then_send(std::move(message), hands); };
  world().add("a", "scripted");
  send("a");
  send("a", "next");
  world().advance(500ms);
  auto stopped = world().start_task(stop_within(20s));
  world().advance(1s);
  EXPECT_FALSE(stopped.done());
  world().advance(30s);
  ASSERT_TRUE(stopped.done());
  EXPECT_EQ(stopped.value(), 2s);
  EXPECT_EQ(world().counts("worker").pending, 1);
  EXPECT_EQ(world().counts("a").pending, 1);
  world().restart();

  world().add("hung", "scripted");
  send("hung");
  world().advance(100ms);
  const Nanos asked = elapsed();
  stopped = world().start_task(stop_within(5s));
  world().advance(30s);
  ASSERT_TRUE(stopped.done());
  EXPECT_EQ(stopped.value() - asked, 5s);
  hung.clear();
}

// D14
TEST_F(ProcessorTest, ARemovedAgentsMessagesGoToTheDeadLetters) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  world().add("a", "scripted");
  for (int i = 0; i < 3; ++i) send("a");
  world().advance(500ms);
  ASSERT_TRUE(world().run(world().bus().remove_recipient("a")));
  world().advance(10s);
  EXPECT_EQ(events.size(), 1u);
  EXPECT_EQ(world().bus().totals().dead, 3) << "what it had in hand, too: nobody can ack it any more";
  world().add("a", "scripted");
  send("a");
  world().advance(10s);
  EXPECT_EQ(events.size(), 2u);
}

// D14: whoever gets the name of a removed agent gets its own messages.
TEST_F(ProcessorTest, ATurnThatWaitsWhenItsAgentIsRemovedTakesNothingFromTheNextOfThatName) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  for (const char* const name : {"a", "b", "c", "z"}) world().add(name, "scripted");
  for (const char* const name : {"a", "b", "c", "z"}) send(name);
  world().advance(500ms);
  ASSERT_TRUE(world().run(world().bus().remove_recipient("z")));
  world().add("z", "external");
  for (int i = 0; i < 5; ++i) send("z");
  world().advance(1min);
  EXPECT_EQ(events.size(), 3u);
  EXPECT_EQ(world().receive("z").size(), 5u);
}

TEST_F(ProcessorTest, WhoeverGetsTheNameOfAStoppedAgentIsNotStopped) {
  script = [this](bus::Delivery message, Hands&) { return work(std::move(message), 1s); };
  world().add("a", "scripted");
  ASSERT_TRUE(world().run(world().agents().set_stopped("a", true)));
  ASSERT_TRUE(world().run(world().bus().remove_recipient("a")));
  world().add("a", "scripted");
  EXPECT_FALSE(world().agents().is_stopped("a"));
  world().restart();
  EXPECT_FALSE(world().agents().is_stopped("a"));
  send("a");
  world().advance(5s);
  EXPECT_EQ(events.size(), 1u);
}

// D18: what Belfry itself cannot do just now is no failure of the agent's.
TEST_F(ProcessorTest, AFullDiskCostsAnAgentNoAttempt) {
  int tries = 0;
  script = [this, &tries](bus::Delivery message, Hands& hands) {
    ++tries;
    return send_then_work(std::move(message), hands, 1s);
  };
  World::Options with_reserve = options();
  with_reserve.reserve = 1 << 20;
  w.emplace(with_reserve);
  world().add("a", "scripted");
  ASSERT_TRUE(world().run(world().agents().set_stopped("a", true)));
  send("a");
  world().disk().set_capacity(world().disk().bytes_used());
  ASSERT_TRUE(world().run(world().agents().set_stopped("a", false)));
  world().advance(5min);
  EXPECT_GT(tries, 10);
  EXPECT_TRUE(events.empty());
  world().disk().set_capacity(testing::Disk::kUnlimited);
  world().advance(10s);
  EXPECT_EQ(events.size(), 1u);
  EXPECT_EQ(world().bus().totals().dead, 0);
  EXPECT_EQ(world().bus().totals().acked, 1);
}

// D18: a crash between what a turn sends and its ack brings the turn again, and not what it sent.
TEST_F(ProcessorTest, ATurnTakenAgainSendsNothingTwice) {
  int tries = 0;
  script = [this, &tries](bus::Delivery message, Hands& hands) {
    return send_thrice(std::move(message), hands, ++tries);
  };
  world().add("a", "scripted");
  send("a");
  world().advance(500ms);
  world().restart();
  world().advance(1min);
  EXPECT_EQ(tries, 2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(world().drain().size(), 4u);  // two that are the same in each try, and one of each
}

// A7
TEST_F(ProcessorTest, AnEchoAnswersInTheSessionAndTwoOfThemFallSilent) {
  world().add("parrot", "echo");
  world().add("other", "echo");
  const auto opened = world().run(world().chats().open({.people = {"ann"}, .agents = {"parrot"}}));
  ASSERT_TRUE(world().run(world().chats().post({.session = opened->session.id, .text = "你好"})));
  world().advance(1s);
  const auto lines = *world().run(world().chats().lines({.session = opened->session.id}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(chat::text_of(lines[1].payload), "你好");
  world().send({.to = "other", .from = "parrot", .payload = R"({"text":"hi"})"});
  world().advance(1min);
  EXPECT_EQ(world().bus().totals().live.pending, 0);
}

}  // namespace
}  // namespace belfry::agent
