#include "belfry/chat/private_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::chat {
namespace {

using testing::kNoon;
using testing::World;
using namespace std::chrono_literals;

class ScheduledTest : public ::testing::Test {
 protected:
  ScheduledTest() {
    w.add("bot");
    session = open({.people = {"ann"}, .agents = {"bot"}, .timezone = "Asia/Shanghai"});
  }
  std::string open(NewSession wanted) { return w.run(w.chats().open(std::move(wanted)))->session.id; }

  tool::CallOutcome call(const std::string& tool, const std::string& arguments, std::string in, std::string id = "") {
    return *w.run(
        w.tools().call({tool, arguments, {.agent_id = "bot", .session_id = std::move(in), .call_id = std::move(id)}}));
  }
  tool::CallOutcome schedule(const std::string& when, const std::string& text, bool replace = false) {
    return call("schedule_private_message",
                fmt::format(R"({{"send_at":"{}","message_text":"{}","replace_existing":{}}})", when, text, replace),
                session);
  }
  static std::string field(const tool::CallOutcome& outcome, std::string_view name) {
    const auto found = json::find(*json::parse(outcome.result), name);
    if (!found) return {};
    return found->kind == json::Kind::string ? json::text(*found) : std::string(found->raw);
  }
  std::string task(const std::string& when, const std::string& text) { return field(schedule(when, text), "task_id"); }

  Result<PrivateMessages::Created> create(NewScheduledMessage wanted) {
    return w.run(w.scheduled().create(std::move(wanted)));
  }
  ScheduledMessage get(const std::string& id) { return *w.run(w.scheduled().get(id)); }
  std::vector<Line> lines() { return *w.run(w.chats().lines({.session = session})); }
  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (const Line& line : lines()) all.push_back(text_of(line.payload));
    return all;
  }
  void away(Nanos duration) {
    w.crash();
    w.pass(duration);
    w.start();
    w.advance(1ms);
  }

  World w;
  std::string session;
};

// P1
TEST_F(ScheduledTest, ATimeIsReadInTheZoneOfTheChatAndSaidBack) {
  const auto outcome = schedule("明天早上9点", "开会");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_EQ(field(outcome, "send_at"), "2026-03-02T01:00:00.000Z");
  const std::string understood = field(outcome, "understood");
  EXPECT_NE(understood.find("Asia/Shanghai"), std::string::npos) << understood;
  EXPECT_NE(understood.find("sentence"), std::string::npos) << understood;
  EXPECT_EQ(field(schedule("2026-03-02T09:00:00", "no offset"), "send_at"), "2026-03-02T01:00:00.000Z");
  EXPECT_EQ(field(schedule("2026-03-02T09:00:00+01:00", "offset"), "send_at"), "2026-03-02T08:00:00.000Z");

  const auto again = schedule("every day at 9", "standup");
  EXPECT_EQ(field(again, "error"), "invalid_time");
  EXPECT_NE(field(schedule("明天9点", "which"), "understood").find("alternatives"), std::string::npos);
}

// P2
TEST_F(ScheduledTest, OnlyPrivateChatsHaveTheTools) {
  const std::string group = open({.kind = SessionKind::group, .people = {"ann", "bob"}, .agents = {"bot"}});
  const std::string arguments = R"({"send_at":"in 5 minutes","message_text":"hi"})";
  EXPECT_EQ(field(call("schedule_private_message", arguments, group), "error"), "not_private_chat");
  EXPECT_EQ(field(call("schedule_private_message", arguments, ""), "error"), "not_private_chat");
  EXPECT_EQ(field(call("list_scheduled_private_messages", "{}", group), "error"), "not_private_chat");
  EXPECT_EQ(field(call("cancel_scheduled_private_message", R"({"task_id":"x"})", group), "error"), "not_private_chat");
  EXPECT_EQ(create({.session = group, .text = "hi", .send_at = kNoon + 1h}).error().code, Errc::not_private_chat);

  const auto has = [this](const std::string& id) {
    const Session in = *w.run(w.chats().session(id));
    for (const tool::Definition* one : w.tools().definitions(&in))
      if (one->name == "schedule_private_message") return true;
    return false;
  };
  EXPECT_TRUE(has(session));
  EXPECT_FALSE(has(group));
}

// P3
TEST_F(ScheduledTest, WhatCannotBeScheduledIsRefusedAndLeavesNothing) {
  EXPECT_EQ(field(schedule("qwerty", "x"), "error"), "invalid_time");
  EXPECT_EQ(field(schedule("2026-02-30", "x"), "error"), "invalid_time");
  EXPECT_EQ(field(schedule("2020-01-01T00:00:00Z", "x"), "error"), "invalid_time");
  EXPECT_EQ(field(schedule("in 5 minutes", ""), "error"), "empty_text");
  EXPECT_EQ(field(schedule("in 5 minutes", "　"), "error"), "empty_text");
  EXPECT_EQ(field(schedule("in 5 minutes", std::string(kScheduledTextBytesMax + 1, 'x')), "error"), "too_large");
  EXPECT_EQ(create({.session = "nowhere", .text = "x", .send_at = kNoon + 1h}).error().code, Errc::not_found);
  EXPECT_TRUE(w.run(w.scheduled().list({}))->messages.empty());
  EXPECT_EQ(schedule("in 5 minutes", std::string(kScheduledTextBytesMax, 'x')).ok, true);
}

// P3
TEST_F(ScheduledTest, ATimeThatHasJustPassedIsNowAndOneFurtherBackIsRefused) {
  EXPECT_EQ(create({.session = session, .text = "x", .send_at = kNoon - kPastTolerated - 1ms}).error().code,
            Errc::invalid_time);
  const auto created = create({.session = session, .text = "just now", .send_at = kNoon - kPastTolerated});
  ASSERT_TRUE(created);
  w.advance(1ms);
  EXPECT_EQ(texts(), std::vector<std::string>{"just now"});
  const ScheduledMessage sent = get(created->message.id);
  EXPECT_EQ(sent.late(), kPastTolerated);
  EXPECT_NE(lines()[0].payload.find("late_ms"), std::string::npos);
}

// P4, P6
TEST_F(ScheduledTest, ReplacingCancelsWhatIsPendingInThisChatAndSaysWhich) {
  const std::string other = open({.people = {"bob"}, .agents = {"bot"}});
  const auto kept = create({.session = other, .text = "bob's", .send_at = kNoon + 1h});
  const std::string first = task("in 1 hour", "one");
  const std::string second = task("in 2 hours", "two");
  const auto outcome = schedule("in 3 hours", "three", true);
  EXPECT_EQ(field(outcome, "cancelled_task_ids"), fmt::format(R"(["{}","{}"])", first, second));
  EXPECT_EQ(field(outcome, "message_text"), "three");
  EXPECT_EQ(field(outcome, "session_id"), session);
  EXPECT_EQ(field(outcome, "replace_existing"), "true");
  EXPECT_EQ(get(first).status, ScheduledStatus::cancelled);
  EXPECT_EQ(get(first).reason, "replaced");
  EXPECT_EQ(get(kept->message.id).status, ScheduledStatus::pending);
  w.advance(4h);
  EXPECT_EQ(texts(), std::vector<std::string>{"three"});
}

// P6: one transaction. A power cut at any moment leaves the old ones or the new one.
TEST_F(ScheduledTest, AReplacementHappensAsAWholeOrNotAtAll) {
  for (int n = 1; n < 40; ++n) {
    World world;
    world.add("bot");
    const std::string in = world.run(world.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    const auto old = world.run(world.scheduled().create({.session = in, .text = "old", .send_at = kNoon + 1h}));
    ASSERT_TRUE(old);
    world.disk().cut_at(n);
    auto made = world.start_task(
        world.scheduled().create({.session = in, .text = "new", .send_at = kNoon + 2h, .replace_existing = true}));
    world.advance(1s);
    const bool acknowledged = made.done() && made.value().has_value();
    const bool survived = world.disk().running();
    world.crash();
    world.start();
    world.advance(3h);
    std::vector<std::string> said;
    for (const Line& line : *world.run(world.chats().lines({.session = in}))) said.push_back(text_of(line.payload));
    ASSERT_EQ(said.size(), 1u) << n;
    if (acknowledged) EXPECT_EQ(said[0], "new") << n;
    if (survived) break;
  }
}

// P7, P8
TEST_F(ScheduledTest, WhenItIsDueTheTextIsSaidAsItIsWhateverWasSaidMeanwhile) {
  const std::string id = task("in 20 seconds", "起来走走");
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = "never mind, I am up"})));
  w.advance(20s - 1ms);
  EXPECT_EQ(lines().size(), 1u);
  w.advance(1ms);
  const auto all = lines();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(text_of(all[1].payload), "起来走走");
  EXPECT_EQ(all[1].source, Source::scheduled_send);
  EXPECT_EQ(all[1].from, "bot");
  EXPECT_EQ(all[1].to, "ann");
  EXPECT_EQ(all[1].said_at, kNoon + 20s);
  const ScheduledMessage sent = get(id);
  EXPECT_EQ(sent.status, ScheduledStatus::sent);
  EXPECT_EQ(sent.sent_message_id, all[1].id);
  EXPECT_EQ(sent.sent_at, kNoon + 20s);
  EXPECT_FALSE(sent.late());
  EXPECT_EQ(w.counts("bot").pending, 1) << "only what ann said: nobody is woken to think";
}

// P7: whenever the process dies around its time, the text stands in the log once.
TEST_F(ScheduledTest, ACrashNeitherLosesNorDoublesAMessage) {
  for (int n = 1; n < 60; ++n) {
    World world;
    world.add("bot");
    const std::string in = world.run(world.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    ASSERT_TRUE(world.run(world.scheduled().create({.session = in, .text = "once", .send_at = kNoon + 10s})));
    world.advance(9s);
    world.disk().cut_at(n);
    world.advance(5s);
    const bool survived = world.disk().running();
    world.crash();
    world.pass(1min);
    world.start();
    world.advance(1s);
    ASSERT_EQ(world.run(world.chats().lines({.session = in}))->size(), 1u) << n;
    if (survived) break;
  }
}

// P5
TEST_F(ScheduledTest, AChangeNamesTheStateThatItLeaves) {
  const std::string sent = task("in 5 seconds", "sent");
  const std::string cancelled = task("in 1 hour", "cancelled");
  w.advance(5s);
  ASSERT_TRUE(w.run(w.scheduled().cancel(cancelled, "", "")));
  for (const auto& [id, code] : {std::pair{sent, Errc::already_sent}, std::pair{cancelled, Errc::already_cancelled}}) {
    EXPECT_EQ(w.run(w.scheduled().cancel(id, "", "")).error().code, code);
    EXPECT_EQ(w.run(w.scheduled().change(id, "", {.send_at = kNoon + 2h})).error().code, code);
    EXPECT_EQ(w.run(w.scheduled().send_now(id)).error().code, code);
  }
  w.advance(3h);
  EXPECT_EQ(texts(), std::vector<std::string>{"sent"});
}

// P9
TEST_F(ScheduledTest, TheSameCallAgainMakesOneTask) {
  const std::string arguments = R"({"send_at":"in 1 hour","message_text":"x"})";
  const auto first = call("schedule_private_message", arguments, session, "c1");
  w.restart();
  w.advance(1min);
  EXPECT_EQ(field(call("schedule_private_message", arguments, session, "c1"), "task_id"), field(first, "task_id"));
  EXPECT_EQ(get(field(first, "task_id")).created_by_call, "c1");

  const NewScheduledMessage wanted{.session = session, .text = "http", .send_at = kNoon + 2h, .call = "k"};
  const auto made = create(wanted);
  const auto again = create(wanted);
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(made->message.id, again->message.id);
  NewScheduledMessage other = wanted;
  other.text = "another";
  EXPECT_EQ(create(other).error().code, Errc::key_conflict);
  EXPECT_EQ(w.run(w.scheduled().list({.session = session}))->messages.size(), 2u);

  w.advance(3h);
  const auto calls = w.run(w.tools().calls({}))->records;
  EXPECT_EQ(calls.size(), 1u) << "what comes due is no call of a tool";
}

// P10
TEST_F(ScheduledTest, TheyAreListedMovedCancelledAndSentNow) {
  const std::string late = task("in 3 hours", "late");
  const std::string early = task("in 1 hour", "early");
  const std::string foreign = open({.people = {"bob"}, .agents = {"bot"}});
  const std::string bobs = create({.session = foreign, .text = "bob's", .send_at = kNoon + 1h})->message.id;

  const std::string listed = call("list_scheduled_private_messages", "{}", session).result;
  EXPECT_LT(listed.find(early), listed.find(late));
  EXPECT_EQ(listed.find(bobs), std::string::npos);
  const auto refused = call("cancel_scheduled_private_message", fmt::format(R"({{"task_id":"{}"}})", bobs), session);
  EXPECT_EQ(field(refused, "error"), "not_found");
  EXPECT_EQ(field(call("cancel_scheduled_private_message", R"({"task_id":"nothing"})", session), "error"), "not_found");

  ASSERT_TRUE(w.run(w.scheduled().change(late, "", {.text = "earlier", .send_at = kNoon + 30min})));
  EXPECT_EQ(w.run(w.scheduled().change(late, "", {.send_at = kNoon - 1h})).error().code, Errc::invalid_time);
  EXPECT_EQ(w.run(w.scheduled().change(late, "", {.text = " "})).error().code, Errc::empty_text);
  w.advance(30min);
  EXPECT_EQ(texts(), std::vector<std::string>{"earlier"});
  const auto now = w.run(w.scheduled().send_now(early));
  ASSERT_TRUE(now);
  EXPECT_EQ(now->status, ScheduledStatus::sent);
  EXPECT_EQ(texts(), (std::vector<std::string>{"earlier", "early"}));
  w.advance(3h);
  EXPECT_EQ(lines().size(), 2u);
}

// P10
TEST_F(ScheduledTest, PagesOfAListHaveEachTaskOnce) {
  for (int i = 0; i < 25; ++i)
    ASSERT_TRUE(create({.session = session, .text = "x", .send_at = kNoon + 1h * (i % 3)}).has_value());
  std::set<std::string> seen;
  std::string after;
  do {
    const auto page = w.run(w.scheduled().list({.session = session, .after = after, .limit = 4}));
    ASSERT_TRUE(page);
    EXPECT_LE(page->messages.size(), 4u);
    for (const ScheduledMessage& one : page->messages) EXPECT_TRUE(seen.insert(one.id).second);
    after = page->next;
  } while (!after.empty());
  EXPECT_EQ(seen.size(), 25u);
  EXPECT_EQ(w.run(w.scheduled().list({.after = "nothing"})).error().code, Errc::invalid_argument);
}

// P11
TEST_F(ScheduledTest, WhatCameDueWhileNobodyRanIsSaidAtOnceInOrderAndMarkedLate) {
  const std::string second = task("in 2 hours", "second");
  const std::string first = task("in 1 hour", "first");
  const auto strict =
      create({.session = session, .text = "too late", .send_at = kNoon + 90min, .max_late = Millis{1min}});
  away(3h);
  EXPECT_EQ(texts(), (std::vector<std::string>{"first", "second"}));
  EXPECT_GE(get(first).late().value_or(0ms), 2h);
  EXPECT_GE(get(second).late().value_or(0ms), 1h);
  const ScheduledMessage expired = get(strict->message.id);
  EXPECT_EQ(expired.status, ScheduledStatus::failed);
  EXPECT_EQ(expired.reason, "expired");
}

// P11: a stop is no due time.
TEST_F(ScheduledTest, AGracefulStopLeavesThemTheirTime) {
  task("in 20 seconds", "喝水");
  w.stop(true);
  w.start();
  w.advance(20s - 1ms);
  EXPECT_TRUE(lines().empty());
  w.advance(1ms);
  EXPECT_EQ(lines().size(), 1u);
}

// P7: whoever races with whom, in whatever order the store takes them: each task has exactly one end.
TEST_F(ScheduledTest, OfThoseWhoRaceForATaskExactlyOneWins) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    World::Options options;
    options.seed = seed;
    World world(options);
    world.add("bot");
    const std::string in = world.run(world.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    const std::string id =
        world.run(world.scheduled().create({.session = in, .text = "it", .send_at = kNoon + 10s}))->message.id;
    world.advance(10s - 1ms);
    SeededRandom dice(seed);
    using Outcome = Result<ScheduledMessage>;
    std::vector<World::Pending<Outcome>> ends;
    std::vector<World::Pending<Outcome>> moves;
    std::vector<World::Pending<Result<PrivateMessages::Created>>> replacements;
    for (int i = 0; i < 4; ++i) {
      switch (dice.next() % 5) {
        case 0: ends.push_back(world.start_task(world.scheduled().cancel(id, "", ""))); break;
        case 1: ends.push_back(world.start_task(world.scheduled().send_now(id))); break;
        case 2: moves.push_back(world.start_task(world.scheduled().change(id, "", {.send_at = kNoon + 20s}))); break;
        case 3:
          replacements.push_back(world.start_task(world.scheduled().create(
              {.session = in, .text = "other", .send_at = kNoon + 1h, .replace_existing = true})));
          break;
        default: world.advance(1ms);
      }
      if (dice.next() % 3 == 0) world.advance(Millis{static_cast<std::int64_t>(dice.next() % 2)});
    }
    world.advance(1min);
    int winners = 0;
    for (const auto& one : ends) winners += one.done() && one.value() ? 1 : 0;
    for (const auto& one : replacements) {
      ASSERT_TRUE(one.done() && one.value());
      winners += static_cast<int>(std::ranges::count(one.value()->cancelled, id));
    }
    const ScheduledMessage end = *world.run(world.scheduled().get(id));
    const auto said = *world.run(world.chats().lines({.session = in}));
    const auto times = std::ranges::count_if(said, [](const Line& line) { return text_of(line.payload) == "it"; });
    ASSERT_NE(end.status, ScheduledStatus::pending) << seed;
    EXPECT_EQ(times, end.status == ScheduledStatus::sent ? 1 : 0) << seed;
    EXPECT_LE(winners, 1) << seed;
    if (end.status == ScheduledStatus::cancelled) EXPECT_EQ(winners, 1) << seed;
    for (const auto& one : moves)
      if (!one.value())
        EXPECT_TRUE(one.value().error().code == Errc::already_sent ||
                    one.value().error().code == Errc::already_cancelled);
  }
}

// P7: what is due is not held up for ever by one refusal of the disk.
TEST_F(ScheduledTest, AFullDiskHoldsThemUpAndLosesNone) {
  task("in 10 seconds", "x");
  w.disk().set_capacity(w.disk().bytes_used());
  w.advance(1min);
  EXPECT_TRUE(lines().empty());
  w.disk().set_capacity(testing::Disk::kUnlimited);
  w.advance(2s);
  EXPECT_EQ(lines().size(), 1u);
}

}  // namespace
}  // namespace belfry::chat
