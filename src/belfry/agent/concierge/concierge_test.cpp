#include "belfry/agent/concierge/concierge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/agent/concierge/utterance.h"
#include "tests/support/world.h"

namespace belfry::agent {
namespace {

using testing::kNoon;
using testing::World;
using namespace std::chrono_literals;

class ConciergeTest : public ::testing::Test {
 protected:
  ConciergeTest() {
    w.add("concierge", kConcierge);
    session = open({.people = {"ann"}, .agents = {"concierge"}, .timezone = "Asia/Shanghai"});
  }
  std::string open(chat::NewSession wanted) { return w.run(w.chats().open(std::move(wanted)))->session.id; }
  void post(const std::string& text) {
    ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = text})));
    w.advance(0ns);
  }
  std::vector<chat::Line> lines() { return *w.run(w.chats().lines({.session = session})); }
  std::string last() { return chat::text_of(lines().back().payload); }
  std::vector<chat::ScheduledMessage> pending() {
    return w.run(w.scheduled().list({.session = session, .status = chat::ScheduledStatus::pending}))->messages;
  }

  World w;
  std::string session;
};

// P7: said in the agent's own name at its time, and nobody has to think about it then.
TEST_F(ConciergeTest, AReminderComesOnTimeAlsoAcrossARestart) {
  post("20秒后提醒我喝水");
  w.restart();
  w.advance(19s);
  EXPECT_EQ(lines().size(), 2u);
  w.advance(1s);
  ASSERT_EQ(lines().size(), 3u);
  EXPECT_EQ(last(), "提醒：喝水");
  EXPECT_EQ(lines().back().source, chat::Source::scheduled_send);
  EXPECT_EQ(lines().back().said_at, kNoon + 20s);
}

// P1: what it asked stands in the conversation, so the answer is understood in another life.
TEST_F(ConciergeTest, AnAnswerIsUnderstoodAfterARestart) {
  post("明天9点提醒我开会");
  const chat::Line question = lines().back();
  ASSERT_TRUE(question.question.has_value());
  w.restart();
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .in_reply_to = question.id, .quick_reply_index = 1})));
  w.advance(0ns);
  ASSERT_EQ(pending().size(), 1u);
  EXPECT_EQ(pending()[0].send_at, *parse_iso("2026-03-02T21:00:00+08:00"));
}

// P9: a crash at any moment of a turn neither loses the reminder nor makes a second one.
TEST_F(ConciergeTest, ATurnThatACrashInterruptsMakesOneReminder) {
  for (int writes = 0; writes < 40; ++writes) {
    World::Options options;
    World world(options);
    world.add("concierge", kConcierge);
    const auto opened = world.run(world.chats().open({.people = {"ann"}, .agents = {"concierge"}}));
    ASSERT_TRUE(world.run(world.agents().set_stopped("concierge", true)));
    ASSERT_TRUE(
        world.run(world.chats().post({.session = opened->session.id, .text = "remind me in 10 minutes to stretch"})));
    world.disk().cut_at(writes + 1);
    world.start_task(world.agents().set_stopped("concierge", false));
    world.advance(0ns);
    world.restart();
    ASSERT_TRUE(world.run(world.agents().set_stopped("concierge", false)));
    world.advance(20min);
    int said = 0;
    int answers = 0;
    for (const chat::Line& line : *world.run(world.chats().lines({.session = opened->session.id}))) {
      said += line.source == chat::Source::scheduled_send ? 1 : 0;
      answers += line.source == chat::Source::agent ? 1 : 0;
    }
    EXPECT_EQ(said, 1) << "cut after " << writes;
    EXPECT_EQ(answers, 1) << "cut after " << writes;
  }
}

// P2: tasks are for private chats.
TEST_F(ConciergeTest, InAGroupItRefersToAPrivateChat) {
  session = open({.kind = chat::SessionKind::group, .people = {"ann", "bob"}, .agents = {"concierge"}});
  ASSERT_TRUE(
      w.run(w.chats().post({.session = session, .from = "ann", .text = "@concierge remind me in 5 minutes to go"})));
  w.advance(0ns);
  EXPECT_NE(last().find("private chats"), std::string::npos);
  EXPECT_TRUE(pending().empty());
}

TEST_F(ConciergeTest, ToOtherAgentsItSaysNothing) {
  w.add("other", kConcierge);
  w.send({.to = "concierge", .from = "other", .payload = R"({"text":"remind me in 5 minutes to go"})"});
  w.advance(1min);
  EXPECT_EQ(w.bus().totals().accepted, 1);
  EXPECT_EQ(w.bus().totals().acked, 1);
}

// Whoever writes over the bus writes what they like; a payload of another form is a text like any other, or none.
TEST_F(ConciergeTest, APayloadOfAnotherFormHarmsNobody) {
  post("remind me in 2 hours to eat");
  post("remind me tomorrow at 9 to swim");
  for (const char* const payload :
       {R"({"text":"1","messageId":5,"inReplyTo":{},"quickReplyIndex":"x"})", R"({"text":7})", R"([1])", R"("list")",
        R"({"text":"1","quickReplyIndex":-1})", R"({"text":"1","quickReplyIndex":4000000000})", "null"}) {
    w.send({.to = "concierge", .from = "ann", .payload = payload, .session_id = session});
    w.advance(0ns);
  }
  EXPECT_EQ(w.counts("concierge").pending, 0);
  EXPECT_EQ(w.bus().totals().dead, 0);
  post("list");
  EXPECT_NE(last().find("coming"), std::string::npos);
}

// P10: what was asked is taken back, not something else that is scheduled.
TEST_F(ConciergeTest, ToBackOutOfAQuestionCancelsNothing) {
  post("remind me tomorrow at 9am to call mom");
  for (const char* const text : {"cancel it", "stop it", "forget about it", "cancel that", "取消这个", "不用提醒了"}) {
    post("remind me to buy milk");
    post(text);
    EXPECT_EQ(pending().size(), 1u) << text;
  }
}

// P10: with only one there, "cancel" is that one; words that may mean anything are asked about.
TEST_F(ConciergeTest, TheOnlyOneIsCancelledOnlyIfThatIsWhatWasSaid) {
  post("remind me tomorrow at 9am to call mom");
  for (const char* const text : {"stop", "undo", "forget that", "I don't want that", "你取消了吗？"}) {
    post(text);
    EXPECT_EQ(pending().size(), 1u) << text;
  }
  post("cancel it");
  EXPECT_TRUE(pending().empty());
}

// P7, P10: what others are told later is listed, cancelled and moved like a reminder, and keeps its time through a stop.
TEST_F(ConciergeTest, WhatOthersWillBeToldIsListedMovedAndCancelled) {
  ASSERT_TRUE(w.run(w.chats().add_person("bob")));
  w.add("ops-bot");
  post("remind me in 2 hours to eat");
  post("tell bob in 1 hour that the build is green");
  EXPECT_NE(last().find("the build is green"), std::string::npos);
  post("tell ops-bot in 3 hours to rest");
  post("list");
  EXPECT_NE(
      last().find("1. Sun 1 Mar 21:00 tell bob: the build is green\n2. Sun 1 Mar 22:00 eat\n3. Sun 1 Mar 23:00 tell"
                  " ops-bot: rest"),
      std::string::npos)
      << last();
  post("cancel the last one");
  EXPECT_EQ(last(), "Cancelled: tell ops-bot: rest");
  EXPECT_EQ(w.counts("ops-bot").delayed, 0);
  post("move the bob one to 10:30pm");
  post("cancel eat");
  EXPECT_TRUE(pending().empty());
  w.restart();
  w.advance(2h);
  EXPECT_EQ(w.run(w.chats().sessions("bob", "", 10))->sessions.at(0).last_seq, 0);
  w.advance(30min);
  const auto theirs = w.run(w.chats().sessions("bob", "", 10))->sessions.at(0);
  const auto heard = *w.run(w.chats().lines({.session = theirs.id}));
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(chat::text_of(heard[0].payload), "ann asked me to tell you: the build is green");
}

// P10: however many there are.
TEST_F(ConciergeTest, CancelAllMeansAll) {
  for (int i = 0; i < 130; ++i)
    ASSERT_TRUE(w.run(w.scheduled().create({.session = session, .text = "x", .send_at = kNoon + 1h})));
  post("cancel all");
  EXPECT_EQ(w.run(w.scheduled().list({.session = session, .status = chat::ScheduledStatus::pending}))->messages.size(),
            0u);
  EXPECT_NE(last().find("and 120 more"), std::string::npos);
}

// P10: a list of long texts is still an answer.
TEST_F(ConciergeTest, LongTextsAreListedShortened) {
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(
        w.run(w.scheduled().create({.session = session, .text = std::string(20'000, '\1'), .send_at = kNoon + 1h})));
  post("list");
  EXPECT_TRUE(last().starts_with("This is coming:"));
}

// P1: said twice before it was read, an answer is one answer.
TEST_F(ConciergeTest, AnAnswerCountsOnce) {
  post("remind me every day at 9am to swim");
  ASSERT_TRUE(w.run(w.agents().set_stopped("concierge", true)));
  const std::string question = lines().back().id;
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = "yes"})));
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = "yes"})));
  ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = "yes", .in_reply_to = question})));
  ASSERT_TRUE(w.run(w.agents().set_stopped("concierge", false)));
  w.advance(0ns);
  EXPECT_EQ(pending().size(), 1u);
}

// A short text has no right to much time: what it costs grows with its length, not with the square of it.
TEST_F(ConciergeTest, AListOfManyThingsIsReadInBoundedSteps) {
  int reads = 0;
  const ReadTime count = [&reads](std::string_view) -> Result<when::Reading> {
    ++reads;
    return fail(Errc::not_a_time, "none");
  };
  std::string chinese = "取消";
  std::string english = "cancel ";
  for (int i = 0; i < 900; ++i) {
    chinese += "a，";
    english += "a, ";
  }
  understand(chinese, count);
  understand(english, count);
  EXPECT_LT(reads, 50);
}

// P10: numbers are those of the list that was shown, whatever has changed since.
TEST_F(ConciergeTest, ANumberMeansTheListThatWasShown) {
  post("remind me in 1 hour to eat");
  post("remind me in 2 hours to sleep");
  post("list");
  post("remind me in 5 minutes to drink");
  post("cancel 2");
  EXPECT_EQ(last(), "Cancelled: sleep");
  EXPECT_EQ(pending().size(), 2u);
}

// D9: a long or odd text is answered like any other.
TEST_F(ConciergeTest, WhateverIsWrittenIsAnswered) {
  for (const std::string& text : {std::string(90'000, 'x'), std::string("/"), std::string("🙂"), std::string("。。。"),
                                  std::string("remind me"), std::string("提醒我"), std::string("cancel"),
                                  std::string("\xE2\x80\x8F"), std::string("tell"), std::string("[1]")}) {
    const std::size_t before = lines().size();
    post(text);
    EXPECT_EQ(lines().size(), before + 2) << text.substr(0, 20);
  }
}

}  // namespace
}  // namespace belfry::agent
