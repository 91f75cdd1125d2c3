#include "belfry/chat/chats.h"

#include <deque>

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
  // Runs one statement on the tables, to make what nothing else makes.
  void execute(const char* sql) {
    auto job = [sql](store::Connection& connection) -> Result<> {
      connection.execute(sql);
      return {};
    };
    ASSERT_TRUE(w.run(w.store().write<void>(std::move(job))));
  }
  // How the database looks something up, one step a line.
  std::string query_plan(const char* sql) {
    auto job = [sql](store::Connection& connection) -> Result<std::string> {
      static std::deque<std::string> kept;  // a connection keeps statements by their address
      std::string steps;
      auto rows = connection.query(kept.emplace_back(std::string("EXPLAIN QUERY PLAN ") + sql).c_str());
      while (rows.next()) steps += std::string(rows.text(3)) + "\n";
      return steps;
    };
    return *w.run(w.store().read<std::string>(std::move(job)));
  }
  std::int64_t number(const char* sql) {
    auto job = [sql](store::Connection& connection) -> Result<std::int64_t> {
      auto rows = connection.query(sql);
      return rows.next() ? rows.integer(0) : -1;
    };
    return *w.run(w.store().read<std::int64_t>(std::move(job)));
  }
  std::vector<Session> sessions_of(const std::string& member) {
    const auto page = w.run(w.chats().sessions(member, "", 100));
    EXPECT_TRUE(page.has_value());
    return page ? page->sessions : std::vector<Session>{};
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

// --- readers ---

TEST_F(ChatTest, AStopReleasesWhoeverWaitsForALine) {
  auto reading = w.start_task(w.chats().lines({.session = session, .wait = 30s}));
  w.advance(1s);
  EXPECT_FALSE(reading.done());
  w.chats().release_readers();
  w.clock().settle();
  ASSERT_TRUE(reading.done());
  EXPECT_TRUE(reading.value()->empty());
  EXPECT_TRUE(w.run(w.chats().lines({.session = session, .wait = 30s}))->empty());
}

TEST_F(ChatTest, AReaderWhoseClientIsGoneStandsInNobodysWay) {
  std::vector<std::shared_ptr<bus::Departure>> clients;
  std::vector<World::Pending<Result<std::vector<Line>>>> readings;
  for (int i = 0; i < 1'000; ++i) {
    clients.push_back(std::make_shared<bus::Departure>());
    readings.push_back(w.start_task(w.chats().lines({.session = session, .wait = 60s, .departure = clients.back()})));
  }
  w.clock().settle();
  const auto one_more = w.run(w.chats().lines({.session = session, .wait = 30s}));
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, Errc::overloaded);
  EXPECT_TRUE(w.run(w.chats().lines({.session = session})));
  EXPECT_TRUE(w.run(w.chats().lines({.session = session, .before = 5, .wait = 30s})));

  for (const auto& client : clients) client->leave();
  w.clock().settle();
  for (const auto& reading : readings) ASSERT_TRUE(reading.done());
  auto patient = w.start_task(w.chats().lines({.session = session, .wait = 30s}));
  w.advance(1s);
  ASSERT_TRUE(type("hello"));
  w.clock().settle();
  ASSERT_TRUE(patient.done());
  EXPECT_EQ(patient.value()->size(), 1u);
}

// A8
TEST_F(ChatTest, AListenerHearsEveryLineOnceInOrder) {
  struct Ear final : Listener {
    void said(const std::string& session, const Line& line) override {
      heard.push_back(fmt::format("{} {} {}", session, line.seq, text_of(line.payload)));
    }
    std::vector<std::string> heard;
  } ear;
  w.chats().listen(ear);
  ASSERT_TRUE(type("hello"));
  ASSERT_TRUE(post({.text = "again", .key = "k"}));
  ASSERT_TRUE(post({.text = "again", .key = "k"}));
  ask({"yes", "no"}, 0ms, due_in(1h, R"({"action":"default","index":0})"));
  w.advance(1h);
  std::vector<std::string> expected;
  for (const Line& line : lines())
    expected.push_back(fmt::format("{} {} {}", session, line.seq, text_of(line.payload)));
  EXPECT_EQ(ear.heard, expected);
  EXPECT_EQ(ear.heard.size(), 4u);
  w.chats().unlisten(ear);
  ASSERT_TRUE(type("unheard"));
  EXPECT_EQ(ear.heard.size(), 4u);
}

// A8, Q9
TEST_F(ChatTest, AFaultOfAListenerEndsNeitherDeliveriesNorDeadlines) {
  struct Fault final : Listener {
    void said(const std::string&, const Line&) override {
      if (std::exchange(fails, false)) throw std::runtime_error("a fault");
    }
    bool fails = true;
  } fault;
  w.chats().listen(fault);
  ask({}, 0ms, R"({"text":"one"})");
  ask({}, 0ms, R"({"text":"two"})");
  w.advance(2min);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(w.counts(kAnn).pending + w.counts(kAnn).in_flight, 0);

  const std::string first = ask({"yes"}, 0ms, due_in(10min, R"({"action":"expire"})"));
  const std::string second = ask({"yes"}, 0ms, due_in(20min, R"({"action":"expire"})"));
  fault.fails = true;
  w.advance(20min);
  EXPECT_EQ(state(first), QuestionState::expired);
  EXPECT_EQ(state(second), QuestionState::expired);
}

// --- what the disk does ---

// A7
TEST(Chat, AFailedReadOfAPersonsMessagesIsTriedAgain) {
  bool struck = true;
  for (int n = 1; n < 100 && struck; ++n) {
    World w;
    w.add(kBot);
    const auto opened = w.run(w.chats().open({.people = {kAnn}, .agents = {kBot}}));
    ASSERT_TRUE(opened);
    w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"hi"})", .session_id = opened->session.id, .delay = 10min});
    w.restart();
    w.disk().fail_at(testing::Operation::read, n, testing::DiskError::io, testing::Lasting::for_good);
    w.advance(10min + 5s);
    struck = w.disk().failed();
    w.disk().heal();
    w.advance(5s);
    const auto read = w.run(w.chats().lines({.session = opened->session.id}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->size(), 1u) << n;
  }
  EXPECT_FALSE(struck) << "each read was to fail";
}

// Q9
TEST_F(ChatTest, ADeadlineThatCouldNotBeStoredIsTriedAgain) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"default","index":1})"));
  w.disk().fail_at(testing::Operation::write, 1, testing::DiskError::no_space, testing::Lasting::for_good);
  w.advance(10min + 5s);
  w.disk().heal();
  EXPECT_EQ(state(question), QuestionState::open);
  w.advance(2s);
  EXPECT_EQ(state(question), QuestionState::defaulted);
}

// --- looking things up ---

TEST_F(ChatTest, WhoSpokeLastAndWhichConversationIsPrivateAreFoundByAnIndex) {
  const std::string speaker = query_plan(ChatTables::kLastSpeaker);
  EXPECT_NE(speaker.find("INDEX line_recipient (session=? AND recipient=?)"), std::string::npos) << speaker;
  const std::string pair = query_plan(ChatTables::kFindPrivate);
  EXPECT_NE(pair.find("PRIMARY KEY (person=? AND agent=?)"), std::string::npos) << pair;
  for (const std::string& plan : {speaker, pair}) {
    EXPECT_EQ(plan.find("SCAN"), std::string::npos) << plan;
    EXPECT_EQ(plan.find("TEMP B-TREE"), std::string::npos) << plan;
  }
}

// A7
TEST_F(ChatTest, ThePrivateConversationIsTheOneThatWasUsedLast) {
  const std::string newer = open({.people = {kAnn}, .agents = {kBot}}).id;
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"into the newer"})"});
  w.clock().settle();
  EXPECT_EQ(lines_of(newer).size(), 1u);
  ASSERT_TRUE(type("in the older one"));
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"into the older"})"});
  w.clock().settle();
  EXPECT_EQ(text_of(lines().back().payload), "into the older");
}

// A7
TEST_F(ChatTest, DataOfTheFirstVersionKeepsItsPrivateConversationsAndKeys) {
  ASSERT_TRUE(post({.text = "hello", .key = "k"}));
  const std::string newer = open({.people = {kAnn}, .agents = {kBot}}).id;
  w.advance(1min);
  ASSERT_TRUE(type("the older one was used last"));
  execute(
      "DROP TABLE private_pair; DROP INDEX line_key_used; ALTER TABLE line_key DROP COLUMN used_ms;"
      "ALTER TABLE line DROP COLUMN due_ms;"
      "UPDATE schema_version SET version = 1 WHERE part = 'chat'");
  w.restart();

  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"hi"})"});
  w.clock().settle();
  EXPECT_EQ(text_of(lines().back().payload), "hi");
  EXPECT_TRUE(lines_of(newer).empty());
  const auto again = post({.text = "hello", .key = "k"});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeated);
}

// A8, D6: asked, due and said are three times, and all of them stay on record.
TEST_F(ChatTest, ALineThatHadToWaitSaysWhenItWasDue) {
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"now"})", .session_id = session});
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"later"})", .session_id = session, .delay = 5min});
  w.advance(5min);
  w.restart();
  const auto log = lines();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_FALSE(log[0].due_at);
  EXPECT_EQ(log[1].created_at, testing::kNoon);
  EXPECT_EQ(log[1].due_at, testing::kNoon + 5min);
  EXPECT_EQ(log[1].said_at, testing::kNoon + 5min);
}

TEST_F(ChatTest, LinesAreFoundByWhatTheySay) {
  for (int i = 1; i <= 30; ++i) ASSERT_TRUE(type(i % 10 == 0 ? fmt::format("Tea {} 喝茶", i) : "nothing"));
  const auto find = [&](std::string text, std::int64_t before, int limit) {
    return w.run(w.chats().search({.session = session, .text = std::move(text), .before = before, .limit = limit}));
  };
  const auto seqs = [](const Result<ChatTables::Found>& found) {
    std::vector<std::int64_t> all;
    for (const Line& line : found->lines) all.push_back(line.seq);
    return all;
  };
  EXPECT_EQ(seqs(find("tea", INT64_MAX, 50)), (std::vector<std::int64_t>{10, 20, 30}));
  EXPECT_EQ(seqs(find("喝茶", INT64_MAX, 50)).size(), 3u);
  EXPECT_TRUE(seqs(find("text", INT64_MAX, 50)).empty());  // a word of the payload's form, not of the text
  EXPECT_TRUE(seqs(find("%", INT64_MAX, 50)).empty());
  const auto page = find("TEA", INT64_MAX, 2);
  EXPECT_EQ(seqs(page), (std::vector<std::int64_t>{20, 30}));
  EXPECT_TRUE(page->more);
  const auto rest = find("TEA", page->examined_to, 2);
  EXPECT_EQ(seqs(rest), std::vector<std::int64_t>{10});
  EXPECT_FALSE(rest->more);
  EXPECT_EQ(find(" ", INT64_MAX, 2).error().code, Errc::empty_text);
  EXPECT_EQ(w.run(w.chats().search({.session = "none", .text = "x"})).error().code, Errc::not_found);
}

// Q7
TEST(Chat, AKeyIsRememberedAsLongAsTheKeysOfSends) {
  World::Options options;
  options.bus.retention = 1h;
  World w(std::move(options));
  w.add(kBot);
  const auto opened = w.run(w.chats().open({.people = {kAnn}, .agents = {kBot}}));
  ASSERT_TRUE(opened);
  const auto post = [&](std::string key) {
    return *w.run(w.chats().post({.session = opened->session.id, .text = "hi", .key = std::move(key)}));
  };
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(post(std::to_string(i)).repeated);
  w.advance(59min);
  EXPECT_TRUE(post("3").repeated);
  w.advance(2min);
  EXPECT_FALSE(post("3").repeated);
  for (int i = 100; i < 110; ++i) EXPECT_FALSE(post(std::to_string(i)).repeated);
  auto count = [](store::Connection& connection) -> Result<std::int64_t> {
    auto rows = connection.query("SELECT count(*) FROM line_key");
    rows.next();
    return rows.integer(0);
  };
  EXPECT_EQ(*w.run(w.store().read<std::int64_t>(std::move(count))), 11);
}

// --- late answers ---

// Q9
TEST_F(ChatTest, ALateAnswerIsRefusedThoughItsDeadlineIsStillToBeWorkedOff) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"default","index":1})"));
  w.disk().fail_at(testing::Operation::write, 1, testing::DiskError::no_space, testing::Lasting::for_good);
  w.advance(10min);
  w.disk().heal();
  ASSERT_EQ(state(question), QuestionState::open);
  const auto late = press(question, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::question_closed);
  EXPECT_NE(late.error().detail.find(to_iso(testing::kNoon + 10min)), std::string::npos) << late.error().detail;
  const auto typed = post({.text = "yes!", .in_reply_to = question});
  ASSERT_TRUE(typed);
  EXPECT_TRUE(line(typed->id).closes.empty());
  w.advance(2s);
  EXPECT_EQ(state(question), QuestionState::defaulted);
  EXPECT_EQ(line(question).question->answer->text, "no");
}

// Q9
TEST_F(ChatTest, ManyDeadlinesOfOneMomentEndInAFewTransactions) {
  std::vector<std::string> questions;
  for (int i = 0; i < 120; ++i)
    questions.push_back(ask({"yes", "no"}, 0ms, due_in(1h, R"({"action":"default","index":1})")));
  w.advance(1h - 1ms);
  const std::int64_t before = w.disk().counters().syncs;
  w.advance(1ms);
  EXPECT_LE(w.disk().counters().syncs - before, 10);
  for (const std::string& question : questions) {
    auto job = [question](store::Connection& connection) -> Result<QuestionState> {
      return ChatTables::find_question(connection, question)->state;
    };
    EXPECT_EQ(*w.run(w.store().read<QuestionState>(std::move(job))), QuestionState::defaulted);
  }
  EXPECT_EQ(w.drain(kBot).size(), 120u);
  EXPECT_TRUE(problems().empty());
}

// Q9
TEST_F(ChatTest, ADeadlineWithoutItsQuestionIsGivenUp) {
  ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"expire"})"));
  ask({"tea"}, 0ms, due_in(10min, R"({"action":"expire"})"));
  execute("UPDATE question SET session = 999 WHERE seq = 1");
  w.advance(10min);
  EXPECT_EQ(number("SELECT count(*) FROM question WHERE next_ms IS NOT NULL"), 0);
  EXPECT_EQ(lines().size(), 3u);
}

// Q9
TEST_F(ChatTest, TooLateNamesTheTimeAtWhichAQuestionEnded) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"remind","every":"5m","times":2})"));
  w.advance(20min);
  ASSERT_EQ(state(question), QuestionState::expired);
  w.advance(5min);
  const auto late = press(question, 0);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().detail.find(to_iso(testing::kNoon + 20min)), std::string::npos) << late.error().detail;

  const auto typed = post({.text = "yes, of course", .in_reply_to = question});
  ASSERT_TRUE(typed);
  ASSERT_EQ(typed->warnings.size(), 1u);
  EXPECT_NE(typed->warnings[0].find("too late"), std::string::npos) << typed->warnings[0];
}

// Q9
TEST_F(ChatTest, ARemindedQuestionTakesAnAnswerUntilItExpires) {
  const std::string question = ask({"yes", "no"}, 0ms, due_in(10min, R"({"action":"remind","every":"5m","times":1})"));
  w.advance(15min - 1ms);
  EXPECT_TRUE(press(question, 0));
}

// Q9
TEST_F(ChatTest, AWrongDeadlineIsRefusedAtTheSend) {
  const auto refusal = [&](const std::string& payload, std::vector<std::string> replies = {"yes", "no"}) {
    const auto sent = w.try_send({.to = kAnn, .from = kBot, .payload = payload, .quick_replies = std::move(replies)});
    return sent ? "taken" : std::string(word(sent.error().code)) + ": " + sent.error().detail;
  };
  const std::string by = R"("answerBy":"2027-01-01T09:00:00Z")";
  const auto expect = [&](const std::string& got, std::string_view code, std::string_view words) {
    EXPECT_TRUE(got.starts_with(code)) << got;
    EXPECT_NE(got.find(words), std::string::npos) << got;
  };
  expect(refusal(R"({"text":"?","answerBy":"tomorrow"})"), "invalid_time", "answerBy");
  expect(refusal(R"({"text":"?","answerBy":7})"), "invalid_argument", "an instant");
  expect(refusal(R"({"text":"?","onTimeout":{"action":"expire"}})"), "invalid_argument", "without answerBy");
  expect(refusal("{" + by + R"(,"onTimeout":{"action":"default","index":2}})"), "invalid_argument", "0 to 1");
  expect(refusal("{" + by + R"(,"onTimeout":{"action":"default"}})"), "invalid_argument", "index is missing");
  expect(refusal("{" + by + R"(,"onTimeout":{"action":"shout"}})"), "invalid_argument", "expire");
  expect(refusal("{" + by + R"(,"onTimeout":{"action":"expire","text":"x"}})"), "unknown_field", "text");
  expect(refusal("{" + by + "}", {}), "invalid_argument", "without quickReplies");
  EXPECT_EQ(refusal("{" + by + R"(,"onTimeout":{"action":"default","index":1}})"), "taken");
  EXPECT_EQ(refusal(R"({"text":"?","answerBy":null,"onTimeout":null})"), "taken");
  // For an agent they are words like any other.
  EXPECT_TRUE(w.try_send({.to = kBot, .payload = R"({"answerBy":"tomorrow"})"}));
}

// --- who speaks to whom ---

// A7
TEST_F(ChatTest, APersonsMessageToAnotherIsRefusedAndPointsToSessions) {
  open({.people = {"bob"}, .agents = {kBot}});
  const auto sent = w.try_send({.to = "bob", .from = kAnn, .payload = R"({"text":"psst"})"});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::wrong_state);
  EXPECT_NE(sent.error().detail.find("POST /v1/sessions/{id}/messages"), std::string::npos) << sent.error().detail;
  EXPECT_EQ(sessions_of("bob").size(), 1u);
}

// A7
TEST_F(ChatTest, WhatIsSentInAPersonsOwnNameComesFromTheSystemInOneConversation) {
  w.send({.to = kAnn, .from = kAnn, .payload = R"({"text":"one"})"});
  w.send({.to = kAnn, .from = kAnn, .payload = R"({"text":"two"})", .delay = 1min});
  w.advance(1min);
  const auto all = sessions_of(kAnn);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].people(), std::vector<std::string>{kAnn});
  EXPECT_EQ(all[0].agents(), std::vector<std::string>{kBelfry});
  const auto log = lines_of(all[0].id);
  ASSERT_EQ(log.size(), 2u);
  for (const Line& line : log) {
    EXPECT_EQ(line.from, kBelfry);
    EXPECT_EQ(line.source, Source::system);
  }
  // Where it names a conversation, it is said there.
  w.send({.to = kAnn, .from = kAnn, .payload = R"({"text":"three"})", .session_id = session});
  w.clock().settle();
  EXPECT_EQ(lines().back().source, Source::system);
}

// A7
TEST_F(ChatTest, ASenderThatIsNotRegisteredHasAPrivateConversation) {
  w.send({.to = kAnn, .from = "cron", .payload = R"({"text":"one"})"});
  w.send({.to = kAnn, .from = "cron", .payload = R"({"text":"two"})"});
  w.send({.to = kAnn, .from = "carl", .payload = R"({"text":"later"})", .delay = 1min});
  w.clock().settle();
  const auto all = sessions_of(kAnn);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].agents(), std::vector<std::string>{"cron"});
  EXPECT_EQ(lines_of(all[0].id).size(), 2u);
  // Somebody who became a person since is heard, and is no agent.
  open({.people = {"carl"}, .agents = {kBot}});
  w.advance(1min);
  const Session heard = sessions_of(kAnn).front();
  EXPECT_EQ(heard.agents(), std::vector<std::string>{kBelfry});
  EXPECT_EQ(lines_of(heard.id).back().from, "carl");
  EXPECT_EQ(lines_of(heard.id).back().source, Source::user);
}

// A8
TEST_F(ChatTest, ADelayedMessageIsAScheduledSend) {
  ask({}, 1min, R"({"text":"later"})");
  ask({}, 0ms, R"({"text":"now"})");
  w.advance(1min);
  const auto log = lines();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].source, Source::agent);
  EXPECT_EQ(log[1].source, Source::scheduled_send);
}

// Q7
TEST_F(ChatTest, InAGroupAQuestionIsAnsweredByWhomItWasPutTo) {
  session = open({.kind = SessionKind::group, .people = {kAnn, "bob"}, .agents = {kBot}}).id;
  const std::string question = ask();
  const auto pressed = post({.from = "bob", .in_reply_to = question, .quick_reply_index = 0});
  ASSERT_FALSE(pressed);
  EXPECT_EQ(pressed.error().code, Errc::invalid_argument);
  EXPECT_NE(pressed.error().detail.find("\"ann\""), std::string::npos) << pressed.error().detail;
  ASSERT_TRUE(post({.from = "bob", .text = "@bot tea for me"}));
  const auto replied = post({.from = "bob", .text = "she likes coffee", .in_reply_to = question});
  ASSERT_TRUE(replied);
  EXPECT_EQ(replied->warnings.size(), 1u);
  EXPECT_EQ(state(question), QuestionState::open);
  ASSERT_TRUE(post({.from = kAnn, .text = "coffee", .in_reply_to = question}));
  EXPECT_EQ(state(question), QuestionState::answered);
}

// D20
TEST_F(ChatTest, AReplyToWhatIsNoQuestionBeginsATaskOfItsOwn) {
  w.send({.to = kAnn, .from = kBot, .payload = R"({"text":"done"})", .task_id = "t1", .session_id = session});
  w.clock().settle();
  ASSERT_TRUE(post({.text = "thanks", .in_reply_to = lines().back().id}));
  const auto got = w.drain(kBot);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_FALSE(got[0].task_id.empty());
  EXPECT_NE(got[0].task_id, "t1");
}

TEST_F(ChatTest, WhatCannotBeSeenIsNoText) {
  for (const char* text : {"", " \n", "\u3000\u200b", "\u00a0\ufeff"}) EXPECT_FALSE(type(text)) << text;
  EXPECT_TRUE(lines().empty());
}

// --- opening and listing ---

TEST_F(ChatTest, ASessionThatIsRefusedLeavesNobodyBehind) {
  const auto refused =
      w.run(w.chats().open({.kind = SessionKind::group, .people = {"newbie", testing::kWorker}, .agents = {kBot}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::already_exists);
  EXPECT_EQ(w.chats().people(), std::vector<std::string>{kAnn});
  const auto twice =
      w.run(w.chats().open({.kind = SessionKind::group, .people = {"bob", "cy", "bob"}, .agents = {kBot}}));
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Errc::invalid_argument);
  EXPECT_NE(twice.error().detail.find("\"bob\" stands twice"), std::string::npos) << twice.error().detail;
  EXPECT_FALSE(w.run(w.chats().open({.people = {kBelfry}, .agents = {kBot}})));
  EXPECT_EQ(w.chats().people(), std::vector<std::string>{kAnn});
}

TEST_F(ChatTest, ManyPeopleAndTheirSessionAreOneTransaction) {
  std::vector<std::string> people;
  for (int i = 0; i < 99; ++i) people.push_back(fmt::format("p{}", i));
  const std::int64_t before = w.disk().counters().syncs;
  open({.kind = SessionKind::group, .people = people, .agents = {kBot}});
  EXPECT_LE(w.disk().counters().syncs - before, 3);
  EXPECT_EQ(w.chats().people().size(), 100u);
  w.restart();
  EXPECT_EQ(w.chats().people().size(), 100u);
}

TEST_F(ChatTest, TwoThatOpenASessionWithTheSameNewPersonBothSucceed) {
  auto first = w.start_task(w.chats().open({.people = {"bob"}, .agents = {kBot}, .key = "same"}));
  auto second = w.start_task(w.chats().open({.people = {"bob"}, .agents = {kBot}}));
  auto third = w.start_task(w.chats().open({.people = {"bob"}, .agents = {kBot}, .key = "same"}));
  w.clock().settle();
  ASSERT_TRUE(first.value() && second.value() && third.value());
  EXPECT_EQ(first.value()->session.id, third.value()->session.id);
  EXPECT_TRUE(third.value()->repeated);
  EXPECT_EQ(sessions_of("bob").size(), 2u);
}

TEST_F(ChatTest, ARepeatUnderAKeyAgreesInEverythingAndNeedsNoAgentAnyMore) {
  const NewSession wanted{.kind = SessionKind::group,
                          .people = {"bob", kAnn},
                          .agents = {kBot},
                          .title = "Lunch",
                          .timezone = "Asia/Shanghai",
                          .key = "k"};
  const auto first = w.run(w.chats().open(wanted));
  ASSERT_TRUE(first);
  NewSession other = wanted;
  other.title = "Dinner";
  EXPECT_EQ(w.run(w.chats().open(other)).error().code, Errc::key_conflict);
  other = wanted;
  other.timezone = "Europe/Berlin";
  EXPECT_EQ(w.run(w.chats().open(other)).error().code, Errc::key_conflict);
  ASSERT_TRUE(w.run(w.bus().remove_recipient(kBot)));
  const auto again = w.run(w.chats().open(wanted));
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_TRUE(again->repeated);
}

TEST_F(ChatTest, AListOfSessionsHasALimitAndGoesOnAfterOneThatExists) {
  const auto code = [&](const std::string& after, int limit) {
    const auto page = w.run(w.chats().sessions("", after, limit));
    return page ? "taken" : std::string(word(page.error().code));
  };
  EXPECT_EQ(code("nonsense", 10), "invalid_argument");
  EXPECT_EQ(code("", 0), "invalid_argument");
  EXPECT_EQ(code("", 99'999), "invalid_argument");
  EXPECT_EQ(code(session, 500), "taken");
}

// A7
TEST_F(ChatTest, AListOfSessionsSaysWhoSpokeLastAndHowItBegins) {
  const auto last = [&] { return w.run(w.chats().sessions(kAnn, "", 10))->sessions.at(0); };
  EXPECT_EQ(last().last_from, "");
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = "hello"})));
  EXPECT_EQ(last().last_from, kAnn);
  EXPECT_EQ(last().last_text, "hello");
  const auto tell = [&](const std::string& text) {
    w.send({.to = kAnn, .from = kBot, .payload = fmt::format(R"({{"text":"{}"}})", text), .session_id = session});
    w.clock().settle();
  };
  std::string long_text;
  for (int i = 0; i < 300; ++i) long_text += "钟";
  tell(long_text);
  EXPECT_EQ(last().last_from, kBot);
  EXPECT_EQ(last().last_text, long_text.substr(0, 600));
  tell(std::string(70'000, 'x'));  // too much for a list
  EXPECT_EQ(last().last_from, "");
  EXPECT_EQ(last().last_seq, 3);
}

}  // namespace
}  // namespace belfry::chat
