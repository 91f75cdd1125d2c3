#include "belfry/agent/concierge/concierge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

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
