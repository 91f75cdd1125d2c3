#include "belfry/chat/outbox.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/net/signature.h"
#include "tests/support/world.h"

namespace belfry::chat {
namespace {

using net::Fate;
using net::WebAnswer;
using testing::kNoon;
using testing::ScriptedReceiver;
using testing::World;
using namespace std::chrono_literals;

const Secret kSecret("a secret of some length");

Webhook webhook_of(const std::string& person, bool idempotent = false) {
  return {.person = person,
          .url = fmt::format("https://{}.example/hook", person),
          .secret = kSecret,
          .idempotent = idempotent,
          .timeout = Millis{10s}};
}

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    w.add("bot");
    session = open("ann");
    set_webhook();
  }
  std::string open(const std::string& person) {
    return w.run(w.chats().open({.people = {person}, .agents = {"bot"}}))->session.id;
  }
  void set_webhook(bool idempotent = false, const std::string& person = "ann") {
    ASSERT_TRUE(w.run(w.webhooks().set(webhook_of(person, idempotent))));
  }
  ScriptedReceiver& receiver() { return w.receiver(); }
  void always(WebAnswer answer) {
    receiver().answer = [answer](const net::WebRequest&) { return answer; };
  }
  std::string schedule(const std::string& text, Nanos after, std::string in = "", std::optional<Millis> max_late = {}) {
    return w
        .run(w.scheduled().create({.session = in.empty() ? session : in,
                                   .text = text,
                                   .send_at = round_up(w.now() + after),
                                   .max_late = max_late}))
        ->message.id;
  }
  ScheduledMessage get(const std::string& id) { return *w.run(w.scheduled().get(id)); }
  std::vector<std::string> texts(std::string in = "") {
    std::vector<std::string> all;
    for (const Line& line : *w.run(w.chats().lines({.session = in.empty() ? session : in})))
      all.push_back(text_of(line.payload));
    return all;
  }
  std::vector<OutboxRow> rows(const std::string& person = "ann") {
    return w.run(w.webhooks().outbox({.person = person}))->rows;
  }
  std::string heard_text(std::size_t at) {
    return json::text(*json::find(*json::parse(receiver().heard.at(at).request.body), "text"));
  }
  void say(const std::string& text, const std::string& to = "ann") {
    w.send({.to = to, .from = "bot", .payload = json::quoted(text)});
    w.advance(1ms);
  }
  // When each attempt was made, in seconds after the first.
  std::vector<std::int64_t> seconds() {
    std::vector<std::int64_t> all;
    for (const auto& heard : receiver().heard)
      all.push_back(std::chrono::duration_cast<std::chrono::seconds>(heard.at - receiver().heard.front().at).count());
    return all;
  }

  World w;
  std::string session;
};

// P13
TEST_F(OutboxTest, AScheduledMessageGoesOutSignedAndIsSaidWhenItHasArrived) {
  const std::string id = schedule("起来走走", 20s);
  receiver().takes = 2s;
  w.advance(20s);
  ASSERT_EQ(receiver().heard.size(), 1u);
  const auto& heard = receiver().heard[0];
  EXPECT_EQ(heard.at, kNoon + 20s);
  EXPECT_EQ(heard.request.url.host(), "ann.example");
  EXPECT_EQ(heard_text(0), "起来走走");
  EXPECT_EQ(heard.key(), json::text(*json::find(*json::parse(heard.request.body), "id")));
  EXPECT_TRUE(net::verify(kSecret, heard.header(net::kSignatureHeader), heard.request.body, heard.at));
  EXPECT_TRUE(texts().empty()) << "nobody knows yet whether it arrives";
  EXPECT_EQ(get(id).status, ScheduledStatus::pending);

  w.advance(2s);
  EXPECT_EQ(texts(), std::vector<std::string>{"起来走走"});
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(get(id).attempts, 1);
  EXPECT_EQ(get(id).sent_message_id, heard.key());
  w.advance(1h);
  EXPECT_EQ(receiver().heard.size(), 1u);
  EXPECT_EQ(rows()[0].state, OutboxState::sent);
}

// P13, A8
TEST_F(OutboxTest, WhatAgentsSayIsInTheLogAtOnceAndGoesOutInOrder) {
  receiver().takes = 1s;
  for (const char* text : {"one", "two", "three"}) say(text);
  EXPECT_EQ(texts(), (std::vector<std::string>{"one", "two", "three"}));
  w.advance(1min);
  ASSERT_EQ(receiver().heard.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(heard_text(i), texts()[i]);
  EXPECT_EQ(seconds(), (std::vector<std::int64_t>{0, 1, 2})) << "one at a time";
}

// P13
TEST_F(OutboxTest, WhoHasNoWebhookIsTalkedToInTheChatOnly) {
  const std::string bobs = open("bob");
  const std::string id = schedule("hi", 1s, bobs);
  say("hello", "bob");
  w.advance(2s);
  EXPECT_EQ(texts(bobs), (std::vector<std::string>{"hello", "hi"}));
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(receiver().calls, 0);
}

// P12
TEST_F(OutboxTest, AFailingReceiverIsTriedFiveTimesWithinTenMinutes) {
  for (const WebAnswer& answer :
       {ScriptedReceiver::status(500), ScriptedReceiver::status(503), ScriptedReceiver::busy(0ms)}) {
    receiver().heard.clear();
    always(answer);
    const std::string id = schedule("hi", 1s);
    w.advance(11min);
    EXPECT_EQ(seconds(), (std::vector<std::int64_t>{0, 10, 40, 130, 370}));
    const ScheduledMessage failed = get(id);
    EXPECT_EQ(failed.status, ScheduledStatus::failed);
    EXPECT_EQ(failed.reason, "channel_failed");
    EXPECT_EQ(failed.attempts, 5);
    EXPECT_EQ(failed.last_error, fmt::format("the receiver answered {}", answer.status));
    w.advance(1h);
    EXPECT_EQ(receiver().heard.size(), 5u);
  }
  EXPECT_TRUE(texts().empty());
}

// P12: a restart after every attempt changes nothing.
TEST_F(OutboxTest, ARestartBetweenAttemptsChangesNothing) {
  always(ScriptedReceiver::status(500));
  const std::string id = schedule("hi", 1s);
  for (int i = 0; i < 100; ++i) {
    w.advance(7s);
    w.restart();
  }
  EXPECT_EQ(receiver().heard.size(), 5u);
  EXPECT_LE(seconds().back(), 600);
  std::set<std::string> bodies;
  for (const auto& heard : receiver().heard) bodies.insert(heard.key() + heard.request.body);
  EXPECT_EQ(bodies.size(), 1u) << "one key, one body";
  EXPECT_EQ(get(id).reason, "channel_failed");
}

// P12: what is overdue for an attempt has it at the next start, and ends there if that fails.
TEST_F(OutboxTest, AfterALongAbsenceItIsTriedOnceMore) {
  always(ScriptedReceiver::refused());
  const std::string id = schedule("hi", 1s);
  w.advance(5s);
  w.crash();
  w.pass(2h);
  w.start();
  w.advance(1s);
  EXPECT_EQ(receiver().calls, 2);
  EXPECT_EQ(get(id).reason, "channel_failed");
  EXPECT_EQ(get(id).last_error, "connection refused");
}

// P12
TEST_F(OutboxTest, WhatWasNotSentIsTriedAgainAndArrives) {
  int refusals = 2;
  receiver().answer = [&](const net::WebRequest&) {
    return refusals-- > 0 ? ScriptedReceiver::refused() : ScriptedReceiver::status(204);
  };
  const std::string id = schedule("hi", 1s);
  w.advance(12s);
  EXPECT_EQ(get(id).status, ScheduledStatus::pending);
  EXPECT_EQ(get(id).last_error, "connection refused");
  w.advance(1min);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(get(id).attempts, 3);
  EXPECT_EQ(get(id).last_error, "");
  EXPECT_EQ(texts(), std::vector<std::string>{"hi"});
}

// P12
TEST_F(OutboxTest, AReceiverThatWantsToBeLeftAloneIs) {
  always(ScriptedReceiver::busy(60s));
  schedule("hi", 1s);
  w.advance(70s);
  EXPECT_EQ(seconds(), (std::vector<std::int64_t>{0, 60}));
  w.advance(11min);
  receiver().heard.clear();

  always(ScriptedReceiver::busy(11min));
  const std::string id = schedule("later", 1s);
  w.advance(2s);
  EXPECT_EQ(get(id).reason, "channel_failed") << "it may not be asked again within the time that there is";
  EXPECT_EQ(receiver().heard.size(), 1u);
}

// P13
TEST_F(OutboxTest, AnythingElseThanALaterTimeIsARefusal) {
  for (const int status : {301, 304, 400, 401, 404, 408, 410, 422}) {
    always(ScriptedReceiver::status(status));
    receiver().heard.clear();
    const std::string id = schedule("hi", 1s);
    w.advance(20min);
    EXPECT_EQ(get(id).status, ScheduledStatus::failed) << status;
    EXPECT_EQ(get(id).reason, "refused") << status;
    EXPECT_EQ(receiver().heard.size(), 1u) << status;
  }
}

// P13
TEST_F(OutboxTest, WithoutAnAnswerTheOutcomeIsUnknownAndNothingIsSentAgain) {
  always(ScriptedReceiver::silent());
  const std::string id = schedule("hi", 1s);
  w.advance(1h);
  w.restart();
  w.advance(1h);
  EXPECT_EQ(get(id).status, ScheduledStatus::failed);
  EXPECT_EQ(get(id).reason, "outcome_unknown");
  EXPECT_EQ(get(id).last_error, "the connection ended");
  EXPECT_EQ(receiver().heard.size(), 1u);
  EXPECT_TRUE(texts().empty());
}

// P13
TEST_F(OutboxTest, AReceiverThatKnowsKeysIsAskedAgain) {
  set_webhook(true);
  receiver().takes = 20s;
  const std::string id = schedule("hi", 1s);
  w.advance(15s);
  EXPECT_EQ(get(id).status, ScheduledStatus::pending);
  EXPECT_EQ(w.run(w.scheduled().cancel(id, "", "")).error().code, Errc::being_sent) << "it may have arrived";
  receiver().takes = 0s;
  w.advance(1min);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  ASSERT_EQ(receiver().heard.size(), 2u);
  EXPECT_EQ(receiver().heard[0].key(), receiver().heard[1].key());
  EXPECT_EQ(receiver().heard[0].request.body, receiver().heard[1].request.body);
  EXPECT_NE(receiver().heard[0].header(net::kSignatureHeader), receiver().heard[1].header(net::kSignatureHeader));

  always(ScriptedReceiver::silent());
  const std::string other = schedule("lost", 1s);
  w.advance(11min);
  EXPECT_EQ(get(other).reason, "outcome_unknown") << "five times no answer is no answer";
  EXPECT_EQ(get(other).attempts, 5);
}

// P12, P13: a crash while the answer is awaited is no answer.
TEST_F(OutboxTest, ACrashDuringARequestIsNoAnswer) {
  for (const bool idempotent : {false, true}) {
    set_webhook(idempotent);
    receiver().heard.clear();
    receiver().takes = 5s;
    const std::string id = schedule("hi", 1s);
    const std::string behind = schedule("behind", 2s);
    w.advance(3s);
    w.restart();
    receiver().takes = 0s;
    EXPECT_EQ(get(id).status, idempotent ? ScheduledStatus::pending : ScheduledStatus::failed);
    w.advance(1min);
    EXPECT_EQ(get(id).reason, idempotent ? "" : "outcome_unknown");
    EXPECT_EQ(get(id).status, idempotent ? ScheduledStatus::sent : ScheduledStatus::failed);
    EXPECT_EQ(get(behind).status, ScheduledStatus::sent);
    EXPECT_EQ(receiver().heard.size(), idempotent ? 3u : 2u);
  }
}

// P13: wherever the power fails, an attempt that was heard is never forgotten.
TEST_F(OutboxTest, APowerCutNeitherDoublesNorForgets) {
  for (int n = 1; n < 60; ++n) {
    World world;
    world.add("bot");
    const std::string in = world.run(world.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    ASSERT_TRUE(world.run(world.webhooks().set(webhook_of("ann"))));
    const std::string id =
        world.run(world.scheduled().create({.session = in, .text = "once", .send_at = kNoon + 10s}))->message.id;
    world.advance(9s);
    world.receiver().takes = 1s;
    world.disk().cut_at(n);
    world.advance(5s);
    const bool survived = world.disk().running();
    world.crash();
    world.pass(1min);
    world.start();
    world.advance(1min);
    const ScheduledMessage end = *world.run(world.scheduled().get(id));
    const std::size_t lines = world.run(world.chats().lines({.session = in}))->size();
    // A claim that reached the disk at the last moment has no answer either, though nothing has left.
    ASSERT_LE(world.receiver().heard.size(), 1u) << n;
    ASSERT_NE(end.status, ScheduledStatus::pending) << n;
    ASSERT_EQ(lines, end.status == ScheduledStatus::sent ? 1u : 0u) << n;
    if (end.status != ScheduledStatus::sent) ASSERT_EQ(end.reason, "outcome_unknown") << n;
    if (end.status == ScheduledStatus::sent) ASSERT_EQ(world.receiver().heard.size(), 1u) << n;
    if (survived) break;
  }
}

// P13
TEST_F(OutboxTest, WhileItIsBeingSentItIsTooLateForAChange) {
  receiver().takes = 5s;
  const std::string id = schedule("hi", 1s);
  const std::string behind = schedule("behind", 2s);
  w.advance(3s);
  EXPECT_EQ(w.run(w.scheduled().cancel(id, "", "")).error().code, Errc::being_sent);
  EXPECT_EQ(w.run(w.scheduled().change(id, "", {.text = "other"})).error().code, Errc::being_sent);
  EXPECT_EQ(w.run(w.scheduled().send_now(id)).error().code, Errc::being_sent);
  const auto replaced =
      w.run(w.scheduled().create({.session = session, .text = "new", .send_at = kNoon + 1h, .replace_existing = true}));
  EXPECT_EQ(replaced->cancelled, std::vector<std::string>{behind}) << "of the two only the one that has not left";
  w.advance(1min);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(get(behind).status, ScheduledStatus::cancelled);
  EXPECT_EQ(receiver().heard.size(), 1u);
}

// P12, P13
TEST_F(OutboxTest, BetweenAttemptsItCanBeCancelledAndHurriedButNotChanged) {
  always(ScriptedReceiver::status(500));
  const std::string id = schedule("hi", 1s);
  w.advance(15s);
  EXPECT_EQ(receiver().heard.size(), 2u);
  EXPECT_EQ(w.run(w.scheduled().change(id, "", {.text = "other"})).error().code, Errc::being_sent);
  EXPECT_TRUE(w.run(w.scheduled().send_now(id)));
  w.advance(1ms);
  EXPECT_EQ(receiver().heard.size(), 3u);
  EXPECT_TRUE(w.run(w.scheduled().cancel(id, "", "")));
  w.advance(1h);
  EXPECT_EQ(receiver().heard.size(), 3u);
  EXPECT_EQ(get(id).status, ScheduledStatus::cancelled);
  EXPECT_EQ(w.run(w.scheduled().cancel(id, "", "")).error().code, Errc::already_cancelled);
}

// P13
TEST_F(OutboxTest, BeforeItsFirstAttemptItCanStillBeChanged) {
  receiver().takes = 5s;
  schedule("first", 1s);
  const std::string id = schedule("second", 2s);
  w.advance(3s);
  ASSERT_TRUE(w.run(w.scheduled().change(id, "", {.text = "other", .send_at = kNoon + 1min})));
  w.advance(50s);
  EXPECT_EQ(receiver().heard.size(), 1u);
  w.advance(1min);
  ASSERT_EQ(receiver().heard.size(), 2u);
  EXPECT_EQ(heard_text(1), "other");
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
}

// P11, P12
TEST_F(OutboxTest, BetweenAttemptsItExpires) {
  always(ScriptedReceiver::status(500));
  const std::string id = schedule("hi", 1s, "", Millis{20s});
  w.advance(10min);
  EXPECT_EQ(receiver().heard.size(), 2u);
  EXPECT_EQ(get(id).status, ScheduledStatus::failed);
  EXPECT_EQ(get(id).reason, "expired");
  EXPECT_EQ(get(id).last_error, "the receiver answered 500");
}

// P12
TEST_F(OutboxTest, AReceiverThatFailsHoldsUpNobodyElse) {
  const std::string bobs = open("bob");
  set_webhook(false, "bob");
  receiver().answer = [](const net::WebRequest& request) {
    return request.url.host() == "ann.example" ? ScriptedReceiver::status(500) : ScriptedReceiver::status(200);
  };
  for (int i = 0; i < 3; ++i) schedule("ann's", 1s);
  const std::string id = schedule("bob's", 2s, bobs);
  w.advance(2s + 1ms);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(receiver().heard.size(), 2u) << "ann's second waits for her first";
}

// P12: however many people there are.
TEST_F(OutboxTest, OnlySoManyRequestsAreUnderWayAtATime) {
  receiver().takes = 1s;
  std::vector<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const std::string person = fmt::format("p{}", i);
    const std::string in = open(person);
    set_webhook(false, person);
    ids.push_back(schedule("hi", 10s, in));
  }
  w.advance(10s);
  EXPECT_EQ(w.outbox().under_way(), 32u);
  w.advance(5s);
  EXPECT_EQ(receiver().heard.size(), 100u);
  for (const std::string& id : ids) EXPECT_EQ(get(id).status, ScheduledStatus::sent);
}

// P13
TEST_F(OutboxTest, WithoutTheWebhookWhatWaitsIsSaidInTheChat) {
  always(ScriptedReceiver::status(500));
  const std::string id = schedule("hi", 1s);
  say("a line");
  w.advance(5s);
  ASSERT_TRUE(w.run(w.webhooks().remove("ann")));
  w.advance(1s);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(texts(), (std::vector<std::string>{"a line", "hi"}));
  for (const OutboxRow& row : rows()) EXPECT_EQ(row.reason, "no_webhook");
  const int calls = receiver().calls;
  w.advance(1h);
  EXPECT_EQ(receiver().calls, calls);
}

// P13: whoever disappoints a receiver that is not idempotent any more does not send twice.
TEST_F(OutboxTest, AReceiverThatStopsKnowingKeysIsNotAskedAgain) {
  set_webhook(true);
  always(ScriptedReceiver::silent());
  const std::string id = schedule("hi", 1s);
  w.advance(2s);
  set_webhook(false);
  w.advance(1h);
  EXPECT_EQ(receiver().heard.size(), 1u);
  EXPECT_EQ(get(id).reason, "outcome_unknown");
}

// P13
TEST_F(OutboxTest, AStopAbandonsWhatTakesTooLong) {
  receiver().takes = 5s;
  const std::string id = schedule("hi", 1s);
  w.advance(2s);
  w.stop(true);
  w.start();
  EXPECT_EQ(get(id).reason, "outcome_unknown");
  w.advance(1h);
  EXPECT_EQ(receiver().heard.size(), 1u);
}

Task<int> stop(Outbox& outbox, BootTime deadline) {
  co_await outbox.stop(deadline);
  co_return 1;
}

// P13
TEST_F(OutboxTest, AStopWaitsForAnAnswerAndBeginsNothingNew) {
  receiver().takes = 5s;
  const std::string id = schedule("hi", 1s);
  const std::string behind = schedule("behind", 1s);
  w.advance(2s);
  const auto stopped = w.start_task(stop(w.outbox(), w.clock().now().boot + 20s));
  w.advance(2s);
  EXPECT_FALSE(stopped.done());
  w.advance(3s);
  EXPECT_TRUE(stopped.done());
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(get(behind).status, ScheduledStatus::pending);
  EXPECT_EQ(receiver().heard.size(), 1u);
  w.restart();
  w.advance(10s);
  EXPECT_EQ(get(behind).status, ScheduledStatus::sent);
}

// P13: an answer that cannot be stored is kept until it can.
TEST_F(OutboxTest, AFullDiskDoesNotForgetAnAnswer) {
  receiver().takes = 5s;
  const std::string id = schedule("hi", 1s);
  w.advance(3s);
  w.disk().set_capacity(w.disk().bytes_used());
  w.advance(1min);
  w.disk().set_capacity(testing::Disk::kUnlimited);
  w.advance(2s);
  EXPECT_EQ(get(id).status, ScheduledStatus::sent);
  EXPECT_EQ(receiver().heard.size(), 1u);
}

// P12, P13: the rules of an attempt, whatever came before.
// P12: attempts are not for free.
TEST_F(OutboxTest, TheSameWebhookSetAgainMakesNoAttempt) {
  always(ScriptedReceiver::status(503));
  schedule("hi", 1s);
  w.advance(2s);
  ASSERT_EQ(receiver().heard.size(), 1u);
  for (int i = 0; i < 5; ++i) {
    set_webhook();
    w.advance(1s);
  }
  EXPECT_EQ(receiver().heard.size(), 1u);
  set_webhook(true);
  w.advance(0ns);
  EXPECT_EQ(receiver().heard.size(), 2u) << "another one may be the cure";
}

// P12
TEST_F(OutboxTest, WhatStandsBehindAnotherCannotJumpTheQueueAtItsCost) {
  always(ScriptedReceiver::status(503));
  schedule("first", 1s);
  const std::string second = schedule("second", 2s);
  w.advance(3s);
  ASSERT_EQ(receiver().heard.size(), 1u);
  ASSERT_TRUE(w.run(w.scheduled().send_now(second)));
  w.advance(1s);
  EXPECT_EQ(receiver().heard.size(), 1u);
}

RC_GTEST_PROP(OutboxProperty, AnAttemptHasExactlyOneMeaning, ()) {
  OutboxRow row{.unclear = *rc::gen::arbitrary<bool>(), .attempts = *rc::gen::inRange(1, kSendAttemptsMax + 1)};
  const WallTime now = kNoon + Millis{*rc::gen::inRange(0, 700'000)};
  row.first_ms = to_ms(kNoon);
  const bool idempotent = *rc::gen::arbitrary<bool>();
  WebAnswer answer;
  answer.fate = *rc::gen::element(Fate::not_sent, Fate::unanswered, Fate::answered);
  answer.status = answer.fate == Fate::answered ? *rc::gen::inRange(200, 600) : 0;
  if (*rc::gen::arbitrary<bool>()) answer.retry_after = Millis{*rc::gen::inRange(0, 1'000'000)};

  const Verdict verdict = judge(row, answer, idempotent, now);

  const bool delivered = answer.status >= 200 && answer.status < 300;
  RC_ASSERT((verdict.state == OutboxState::sent) == delivered);
  if (delivered) return;
  const bool unclear = row.unclear || answer.fate == Fate::unanswered;
  RC_ASSERT(verdict.unclear == unclear);
  if (verdict.state == OutboxState::waiting) {
    RC_ASSERT(row.attempts < kSendAttemptsMax);
    RC_ASSERT(!unclear || idempotent);
    RC_ASSERT(verdict.again_at > now);
    RC_ASSERT(verdict.again_at <= kNoon + kSendWindow);
    RC_ASSERT(verdict.again_at >= now + answer.retry_after.value_or(Millis{0}));
    RC_ASSERT(answer.fate != Fate::answered || answer.status == 429 || answer.status >= 500);
  } else {
    RC_ASSERT(verdict.state == OutboxState::failed);
    RC_ASSERT((verdict.reason == "outcome_unknown") == unclear);
  }
}

// What a task may have become, by what its receiver heard and said.
struct Story {
  std::vector<std::string> bodies;
  int heard = 0;
  bool delivered = false;
  bool last = false;  // with this one it must end, if the receiver knows no keys
  int after_the_last = 0;
};

// P12, P13: cancels, moves, "now", crashes and every kind of answer, in whatever order: each task has exactly one end, no key
// is seen with two bodies, and nothing that may have arrived is sent again to a receiver that does not know keys.
TEST_F(OutboxTest, WhateverHappensEveryMessageHasExactlyOneEnd) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SeededRandom dice(seed);
    World::Options options;
    options.seed = seed;
    World world(options);
    world.add("bot");
    const bool idempotent = dice.next() % 2 == 0;
    const std::string in = world.run(world.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    ASSERT_TRUE(world.run(world.webhooks().set(webhook_of("ann", idempotent))));
    std::map<std::string, Story> stories;
    bool is_kind = false;
    world.receiver().answer = [&](const net::WebRequest& request) -> WebAnswer {
      const std::uint64_t roll = is_kind ? 9 : dice.next() % 10;
      world.receiver().takes =
          Millis{static_cast<std::int64_t>(!is_kind && dice.next() % 3 == 0 ? dice.next() % 15'000 : 0)};
      if (roll == 0) return ScriptedReceiver::refused();
      Story& story = stories[request.headers[1].second];
      story.bodies.push_back(request.body);
      story.after_the_last += story.last ? 1 : 0;
      ++story.heard;
      story.last = story.last || roll == 1 || roll > 5 || world.receiver().takes > Millis{10s};
      if (roll == 1) return ScriptedReceiver::silent();
      if (roll == 2) return ScriptedReceiver::status(400);
      if (roll <= 5) return ScriptedReceiver::status(503);
      story.delivered = true;
      return ScriptedReceiver::status(200);
    };
    std::vector<std::string> ids;
    std::set<std::string> cancelled;
    std::vector<std::pair<std::string, World::Pending<Result<ScheduledMessage>>>> cancels;
    for (int step = 0; step < 60; ++step) {
      const std::string id = ids.empty() ? "" : ids[dice.next() % ids.size()];
      switch (dice.next() % 9) {
        case 0:
        case 1:
          ids.push_back(world
                            .run(world.scheduled().create(
                                {.session = in,
                                 .text = fmt::format("text {}", step),
                                 .send_at = world.now() + Millis{static_cast<std::int64_t>(dice.next() % 30'000)}}))
                            ->message.id);
          break;
        case 2:
          if (!id.empty()) cancels.emplace_back(id, world.start_task(world.scheduled().cancel(id, "", "")));
          break;
        case 3:
          if (!id.empty())
            world.start_task(world.scheduled().change(id, "", {.text = "changed", .send_at = world.now() + 5s}));
          break;
        case 4:
          if (!id.empty()) world.start_task(world.scheduled().send_now(id));
          break;
        case 5: world.restart(); break;
        default: world.advance(Millis{static_cast<std::int64_t>(dice.next() % 20'000)});
      }
    }
    // From here on the receiver takes everything, and whoever waits for an attempt is hurried by a new setting.
    is_kind = true;
    for (int i = 0; i < 10; ++i) {
      Webhook another = webhook_of("ann", idempotent);
      another.timeout = Millis{9'000 + i};
      ASSERT_TRUE(world.run(world.webhooks().set(another)));
      world.advance(4s);
    }
    std::set<std::string> said;
    for (const Line& line : *world.run(world.chats().lines({.session = in, .limit = 500})))
      ASSERT_TRUE(said.insert(line.id).second) << seed;
    for (const auto& [id, outcome] : cancels)
      if (outcome.done() && outcome.value()) ASSERT_TRUE(cancelled.insert(id).second) << seed << " " << id;
    for (const std::string& id : ids) {
      const ScheduledMessage end = *world.run(world.scheduled().get(id));
      const Story& story = stories["s" + id];
      ASSERT_NE(end.status, ScheduledStatus::pending) << seed << " " << id;
      EXPECT_EQ(said.contains("s" + id), end.status == ScheduledStatus::sent) << seed << " " << id;
      if (end.status == ScheduledStatus::sent) EXPECT_TRUE(story.delivered) << seed << " " << id;
      if (cancelled.contains(id)) EXPECT_EQ(end.status, ScheduledStatus::cancelled) << seed << " " << id;
      if (end.status == ScheduledStatus::cancelled) EXPECT_FALSE(story.delivered) << seed << " " << id;
      if (story.delivered && end.status != ScheduledStatus::sent)
        EXPECT_EQ(end.reason, "outcome_unknown") << seed << " " << id;
      if (!idempotent) EXPECT_EQ(story.after_the_last, 0) << seed << " " << id;
      EXPECT_LE(story.heard, kSendAttemptsMax) << seed << " " << id;
      EXPECT_LE(std::set(story.bodies.begin(), story.bodies.end()).size(), 1u) << seed << " " << id;
    }
  }
}

}  // namespace
}  // namespace belfry::chat
