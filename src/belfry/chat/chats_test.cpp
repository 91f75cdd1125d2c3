#include "belfry/chat/chats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/bus/quick_replies.h"
#include "tests/support/world.h"

namespace belfry::chat {
namespace {

using testing::World;
using namespace std::chrono_literals;

constexpr const char* kAnn = "ann";
constexpr const char* kBot = "bot";

// A person, an agent and their private conversation.
class ChatTest : public ::testing::Test {
 protected:
  ChatTest() {
    w.add(kBot);
    session = open({.people = {kAnn}, .agents = {kBot}}).id;
  }

  Session open(NewSession wanted) {
    auto opened = w.run(w.chats().open(std::move(wanted)));
    EXPECT_TRUE(opened.has_value()) << opened.error().detail;
    return opened ? opened->session : Session{};
  }
  Result<Posted> post(Post post) {
    if (post.session.empty()) post.session = session;
    return w.run(w.chats().post(std::move(post)));
  }
  Result<Posted> type(std::string text) { return post({.text = std::move(text)}); }
  Result<Posted> press(const std::string& question, int index) {
    return post({.in_reply_to = question, .quick_reply_index = index});
  }
  std::vector<Line> lines(std::int64_t after = 0) { return lines_of(session, after); }
  std::vector<Line> lines_of(const std::string& id, std::int64_t after = 0) {
    auto read = w.run(w.chats().lines({.session = id, .after = after}));
    EXPECT_TRUE(read.has_value()) << read.error().detail;
    return read ? *read : std::vector<Line>{};
  }
  // The agent asks; the id of the question.
  std::string ask(std::vector<std::string> replies = {"tea", "coffee", "water"}, Millis delay = 0ms,
                  std::string payload = R"({"text":"What would you like?"})") {
    const auto sent = w.send({.to = kAnn,
                              .from = kBot,
                              .payload = std::move(payload),
                              .quick_replies = std::move(replies),
                              .session_id = session,
                              .delay = delay});
    w.clock().settle();
    return bus::to_text(sent.id);
  }
  Line line(const std::string& id) {
    for (Line& one : lines())
      if (one.id == id) return one;
    ADD_FAILURE() << "there is no line " << id;
    return {};
  }
  QuestionState state(const std::string& id) {
    const Line asked = line(id);
    EXPECT_TRUE(asked.question.has_value());
    return asked.question ? asked.question->state : QuestionState::closed;
  }
  std::vector<std::string> problems() {
    auto job = [](store::Connection& connection) -> Result<std::vector<std::string>> {
      return ChatTables::problems(connection);
    };
    return *w.run(w.store().read<std::vector<std::string>>(std::move(job)));
  }

  World w;
  std::string session;
};

// A8
TEST_F(ChatTest, WhatIsSaidIsInTheLogInOrderWithDenseNumbers) {
  ASSERT_TRUE(type("hello"));
  ask({}, 0ms, R"({"text":"good morning"})");
  ASSERT_TRUE(type("how are you?"));

  const auto log = lines();
  ASSERT_EQ(log.size(), 3u);
  for (std::size_t i = 0; i < log.size(); ++i) EXPECT_EQ(log[i].seq, static_cast<std::int64_t>(i) + 1);
  EXPECT_EQ(text_of(log[0].payload), "hello");
  EXPECT_EQ(log[0].source, Source::user);
  EXPECT_EQ(log[0].from, kAnn);
  EXPECT_EQ(text_of(log[1].payload), "good morning");
  EXPECT_EQ(log[1].source, Source::agent);
  EXPECT_EQ(log[1].from, kBot);
  EXPECT_EQ(lines(1).front().seq, 2);
  EXPECT_TRUE(problems().empty());
}

// D20
TEST_F(ChatTest, AnAgentGetsWhatAPersonSaysWithTheSessionAndATaskOfItsOwn) {
  ASSERT_TRUE(type("hello"));
  ASSERT_TRUE(type("and again"));

  const auto got = w.drain(kBot);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].from, kAnn);
  EXPECT_EQ(got[0].session_id, session);
  EXPECT_EQ(text_of(got[0].payload), "hello");
  EXPECT_FALSE(got[0].task_id.empty());
  EXPECT_NE(got[0].task_id, got[1].task_id);
}

// D20
TEST_F(ChatTest, AReplyToAQuestionKeepsItsTask) {
  w.send({.to = kAnn,
          .from = kBot,
          .payload = R"({"text":"sure?"})",
          .quick_replies = {"yes"},
          .task_id = "t1",
          .session_id = session});
  w.clock().settle();
  ASSERT_TRUE(press(lines().back().id, 0));

  EXPECT_EQ(w.drain(kBot).back().task_id, "t1");
}

// A7
TEST_F(ChatTest, AMessageForAPersonOutsideASessionGoesIntoThePrivateOneOfTheTwo) {
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"hi"})"});
  w.clock().settle();
  EXPECT_EQ(text_of(lines().back().payload), "hi");

  w.add("other");
  w.send({.to = kAnn, .from = "other", .payload = R"({"text":"nice to meet you"})", .session_id = session});
  w.send({.to = kAnn, .from = "other", .payload = R"({"text":"again"})"});
  w.clock().settle();
  EXPECT_EQ(lines().size(), 1u);
  const auto page = w.run(w.chats().sessions(kAnn, "", 10));
  ASSERT_EQ(page->sessions.size(), 2u);
  EXPECT_EQ(page->sessions[0].agents(), std::vector<std::string>{"other"});
  EXPECT_EQ(lines_of(page->sessions[0].id).size(), 2u);
}

// Q6
TEST_F(ChatTest, ADelayedQuestionShowsItsButtonsAtDeliveryAfterACrashToo) {
  ask({"tea", "coffee", "water"}, 90s);
  w.advance(30s);
  w.crash();
  w.pass(10s);
  w.start();
  EXPECT_TRUE(lines().empty());

  w.advance(50s - 1ms);
  EXPECT_TRUE(lines().empty());
  w.advance(1ms);
  const auto log = lines();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(bus::quick_replies_of(log[0].payload), (std::vector<std::string>{"tea", "coffee", "water"}));
  EXPECT_EQ(log[0].said_at, testing::kNoon + 90s);
  ASSERT_TRUE(press(log[0].id, 1));
  EXPECT_EQ(state(log[0].id), QuestionState::answered);
}

// Q7
TEST_F(ChatTest, APressAnswersWithExactlyThatTextAndMarksTheQuestion) {
  const std::string question = ask();
  const auto posted = press(question, 1);
  ASSERT_TRUE(posted) << posted.error().detail;

  const Line answer = line(posted->id);
  EXPECT_EQ(text_of(answer.payload), "coffee");
  EXPECT_EQ(answer.in_reply_to, question);
  EXPECT_EQ(answer.quick_reply_index, 1);
  EXPECT_EQ(answer.closes, std::vector<std::string>{question});
  const Line asked = line(question);
  ASSERT_TRUE(asked.question && asked.question->answer);
  EXPECT_EQ(asked.question->answer->index, 1);
  EXPECT_EQ(asked.question->answer->text, "coffee");
  EXPECT_EQ(asked.question->answer->by, kAnn);
  const auto got = w.drain(kBot);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0].payload.find(R"("quickReplyIndex":1)"), std::string::npos);
}

// Q7
TEST_F(ChatTest, TheFirstAnswerWinsAndTheSecondIsToldAndSaysNothing) {
  const std::string question = ask();
  auto first = w.start_task(w.chats().post({.session = session, .in_reply_to = question, .quick_reply_index = 0}));
  auto second = w.start_task(w.chats().post({.session = session, .in_reply_to = question, .quick_reply_index = 2}));
  w.clock().settle();

  ASSERT_TRUE(first.value().has_value());
  ASSERT_FALSE(second.value().has_value());
  EXPECT_EQ(second.value().error().code, Errc::already_answered);
  EXPECT_NE(second.value().error().detail.find("tea"), std::string::npos);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(w.drain(kBot).size(), 1u);
}

// Q7
TEST_F(ChatTest, ATypedReplyClosesWhatThatAgentAskedHereAndNothingElse) {
  w.add("other");
  const std::string elsewhere = open({.people = {kAnn}, .agents = {kBot}}).id;
  const std::string one = ask();
  const std::string two = ask({"yes", "no"});
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"?"})", .quick_replies = {"a"}, .session_id = elsewhere});
  w.send({.to = kAnn, .from = "other", .payload = R"({"text":"?"})", .quick_replies = {"b"}});
  w.clock().settle();

  const auto posted = type("something else");
  ASSERT_TRUE(posted);
  EXPECT_EQ(state(one), QuestionState::closed);
  EXPECT_EQ(state(two), QuestionState::closed);
  EXPECT_EQ(line(posted->id).closes, (std::vector<std::string>{one, two}));
  EXPECT_EQ(lines_of(elsewhere).back().question->state, QuestionState::open);
  const auto refused = press(one, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::question_closed);
}

// Q7
TEST_F(ChatTest, TheSameKeyAgainSaysNothingTwiceAndAnotherBodyIsRefused) {
  const std::string question = ask();
  const Post answer{.session = session, .in_reply_to = question, .quick_reply_index = 0, .key = "k"};
  const auto first = post(answer);
  w.restart();
  const auto again = post(answer);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->id, again->id);
  EXPECT_EQ(first->seq, again->seq);
  EXPECT_TRUE(again->repeated);
  const auto other = post({.text = "else", .key = "k"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::key_conflict);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(w.drain(kBot).size(), 1u);
}

// Q7
TEST_F(ChatTest, AnAnswerThatFitsNoQuestionIsRefusedAndChangesNothing) {
  const std::string question = ask();
  const std::string elsewhere = open({.people = {kAnn}, .agents = {kBot}}).id;
  const auto code = [&](Post wrong) {
    const auto result = post(std::move(wrong));
    return result ? "taken" : std::string(word(result.error().code));
  };
  EXPECT_EQ(code({.in_reply_to = question, .quick_reply_index = 3}), "invalid_argument");
  EXPECT_EQ(code({.in_reply_to = question, .quick_reply_index = -1}), "invalid_argument");
  EXPECT_EQ(code({.text = "beer", .in_reply_to = question, .quick_reply_index = 1}), "invalid_argument");
  EXPECT_EQ(code({.quick_reply_index = 1}), "invalid_argument");
  EXPECT_EQ(code({.in_reply_to = "nowhere", .quick_reply_index = 1}), "not_found");
  EXPECT_EQ(code({.session = elsewhere, .in_reply_to = question, .quick_reply_index = 1}), "not_found");
  EXPECT_EQ(code({.session = "nowhere", .text = "hello"}), "not_found");
  EXPECT_EQ(code({.text = "  \n"}), "invalid_argument");
  EXPECT_EQ(code({.from = "bob", .text = "hello"}), "invalid_argument");
  EXPECT_EQ(lines().size(), 1u);
  EXPECT_EQ(state(question), QuestionState::open);
  EXPECT_TRUE(w.drain(kBot).empty());
}

std::string due_in(Millis delay, const std::string& on_timeout) {
  return fmt::format(R"({{"text":"Sure?","answerBy":"{}","onTimeout":{}}})", to_iso(testing::kNoon + delay),
                     on_timeout);
}

// Q9
TEST_F(ChatTest, ADefaultAnswerIsTakenExactlyAtTheDeadlineAndALateOneIsToldSo) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"default","index":1})"));
  w.advance(10min - 1ms);
  EXPECT_EQ(state(question), QuestionState::open);
  w.advance(1ms);
  EXPECT_EQ(state(question), QuestionState::defaulted);

  const auto log = lines();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[1].source, Source::system);
  EXPECT_EQ(text_of(log[1].payload), "no");
  EXPECT_EQ(log[1].quick_reply_index, 1);
  EXPECT_EQ(log[1].closes, std::vector<std::string>{question});
  EXPECT_EQ(log[1].said_at, testing::kNoon + 10min);
  const auto got = w.drain(kBot);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0].payload.find("question_defaulted"), std::string::npos);
  const auto late = press(question, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::question_closed);
  EXPECT_NE(late.error().detail.find("too late"), std::string::npos);
}

// Q9
TEST_F(ChatTest, AQuestionThatExpiresTellsItsAgentEvenIfNothingRanAtThatTime) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"expire"})"));
  w.crash();
  w.pass(1h);
  w.start();
  w.advance(1s);

  EXPECT_EQ(state(question), QuestionState::expired);
  const auto got = w.drain(kBot);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0].payload.find("question_expired"), std::string::npos);
  EXPECT_TRUE(problems().empty());
}

// Q9
TEST_F(ChatTest, RemindersComeAsOftenAsAskedAndThenTheQuestionExpires) {
  ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"remind","text":"Still there?","every":"5m","times":2})"));
  w.advance(10min);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(text_of(lines().back().payload), "Still there?");
  EXPECT_EQ(lines().back().from, kBot);
  w.advance(5min);
  EXPECT_EQ(lines().size(), 3u);
  w.advance(5min);
  EXPECT_EQ(lines().size(), 4u);
  EXPECT_EQ(lines().front().question->state, QuestionState::expired);
  w.advance(1h);
  EXPECT_EQ(lines().size(), 4u);
}

// Q9
TEST_F(ChatTest, AnAnswerEndsReminders) {
  const std::string question =
      ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"remind","every":300000,"times":5})"));
  w.advance(10min);
  EXPECT_EQ(text_of(lines().back().payload), "Sure?");
  ASSERT_TRUE(press(question, 0));
  w.advance(1h);
  EXPECT_EQ(lines().size(), 3u);
}

TEST_F(ChatTest, InAGroupItGoesToWhomItCallsElseToWhoSpokeToThatPersonLast) {
  w.add("cook");
  session = open({.kind = SessionKind::group, .people = {kAnn, "bob"}, .agents = {kBot, "cook"}}).id;
  const auto nobody = post({.from = kAnn, .text = "mail me at ann@cook or so"});
  ASSERT_TRUE(nobody);
  EXPECT_EQ(nobody->warnings.size(), 1u);
  ASSERT_TRUE(post({.from = kAnn, .text = "hello @cook."}));
  EXPECT_EQ(w.drain("cook").size(), 1u);
  EXPECT_TRUE(w.drain(kBot).empty());

  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"hi"})", .session_id = session});
  w.clock().settle();
  ASSERT_TRUE(post({.from = kAnn, .text = "thanks"}));
  const auto to_bob = post({.from = "bob", .text = "me too"});
  ASSERT_TRUE(to_bob);
  EXPECT_FALSE(to_bob->warnings.empty());
  EXPECT_EQ(w.drain(kBot).size(), 1u);
  EXPECT_TRUE(w.drain("cook").empty());
  const auto who = type("who am I?");
  ASSERT_FALSE(who);
}

TEST_F(ChatTest, ASessionNeedsAPersonAndAnAgentThatAreNotTheSame) {
  const auto code = [&](NewSession wanted) {
    const auto result = w.run(w.chats().open(std::move(wanted)));
    return result ? "taken" : std::string(word(result.error().code));
  };
  EXPECT_EQ(code({.people = {kAnn}, .agents = {"nobody"}}), "unknown_recipient");
  EXPECT_EQ(code({.people = {kBot}, .agents = {kBot}}), "invalid_argument");
  EXPECT_EQ(code({.people = {testing::kWorker}, .agents = {kBot}}), "already_exists");
  EXPECT_EQ(code({.people = {"bob"}, .agents = {kAnn}}), "invalid_argument");
  EXPECT_EQ(code({.people = {"Bob"}, .agents = {kBot}}), "invalid_id");
  EXPECT_EQ(code({.people = {kAnn}}), "invalid_argument");
  EXPECT_EQ(code({.people = {kAnn, "bob"}, .agents = {kBot}}), "invalid_argument");
  EXPECT_EQ(code({.people = {kAnn}, .agents = {kBot}, .timezone = "Mars/North"}), "unknown_timezone");
}

TEST_F(ChatTest, ASessionUnderAKeyIsMadeOnce) {
  const NewSession wanted{.people = {kAnn}, .agents = {kBot}, .key = "k"};
  const auto first = w.run(w.chats().open(wanted));
  w.restart();
  const auto again = w.run(w.chats().open(wanted));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->session.id, again->session.id);
  EXPECT_TRUE(again->repeated);
  EXPECT_NE(first->session.id, session);
  w.add("other");
  const auto other = w.run(w.chats().open({.people = {kAnn}, .agents = {"other"}, .key = "k"}));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::key_conflict);
}

TEST_F(ChatTest, AReaderWaitsForTheNextLine) {
  auto reading = w.start_task(w.chats().lines({.session = session, .wait = 30s}));
  w.advance(10s);
  EXPECT_FALSE(reading.done());
  ASSERT_TRUE(type("hello"));
  w.clock().settle();
  ASSERT_TRUE(reading.done());
  EXPECT_EQ(reading.value()->size(), 1u);
  auto in_vain = w.start_task(w.chats().lines({.session = session, .after = 1, .wait = 30s}));
  w.advance(30s);
  ASSERT_TRUE(in_vain.done());
  EXPECT_TRUE(in_vain.value()->empty());
}

// A8
TEST_F(ChatTest, UnderOneIdSomethingIsSaidOnce) {
  const Saying saying{.id = "x1", .session = session, .from = kBot, .to = kAnn, .payload = R"({"text":"hi"})"};
  const auto first = w.run(w.chats().say(saying));
  w.restart();
  const auto again = w.run(w.chats().say(saying));
  ASSERT_TRUE(first && again);
  EXPECT_FALSE(first->repeated);
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(lines().size(), 1u);
}

// A8: between the log and the ack, too, when the message is in the log and comes once more from the bus.
TEST(Chat, ACrashAtAnyMomentNeitherLosesNorDoublesALine) {
  int cuts = 0;
  for (int at = 1; at <= 60; ++at) {
    World w;
    w.add(kBot);
    const auto opened = w.run(w.chats().open({.people = {kAnn}, .agents = {kBot}}));
    ASSERT_TRUE(opened);
    w.disk().cut_at(at);
    const auto sent =
        w.try_send({.to = kAnn, .from = kBot, .payload = R"({"text":"hi"})", .session_id = opened->session.id});
    w.clock().settle();
    if (!w.disk().running()) ++cuts;
    w.restart();
    w.advance(60s);
    const auto read = w.run(w.chats().lines({.session = opened->session.id}));
    ASSERT_TRUE(read);
    EXPECT_LE(read->size(), 1u) << at;
    if (sent) EXPECT_EQ(read->size(), 1u) << at;
    EXPECT_EQ(w.counts(kAnn).pending, 0);
  }
  EXPECT_GT(cuts, 5);
}

TEST_F(ChatTest, RestartsNeitherLoseNorDoubleALine) {
  for (int i = 0; i < 20; ++i) {
    w.send({.to = kAnn, .from = kBot, .payload = fmt::format(R"({{"text":"{}"}})", i), .session_id = session});
    if (i % 3 == 0) w.restart();
  }
  w.restart();
  w.advance(60s);
  const auto log = lines();
  ASSERT_EQ(log.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(text_of(log[static_cast<std::size_t>(i)].payload), std::to_string(i));
  EXPECT_TRUE(problems().empty());
}

}  // namespace
}  // namespace belfry::chat
