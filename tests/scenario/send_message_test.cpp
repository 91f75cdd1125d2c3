// send_message as people came to know it, told from end to end: calls as a model makes them, restarts in between.
#include <gtest/gtest.h>

#include "belfry/bus/quick_replies.h"
#include "tests/support/world.h"

namespace belfry::testing {
namespace {

std::string field(const tool::CallOutcome& outcome, std::string_view name) {
  const auto found = json::find(*json::parse(outcome.result), name);
  return found && found->kind == json::Kind::string ? json::text(*found) : "";
}

tool::CallOutcome send_message(World& w, const std::string& session, std::string arguments) {
  auto outcome = w.run(w.tools().call({.tool = "send_message",
                                       .arguments = std::move(arguments),
                                       .context = {.agent_id = "bot", .session_id = session}}));
  BELFRY_ASSERT(outcome.has_value());
  return *outcome;
}

std::vector<chat::Line> lines(World& w, const std::string& session) {
  return *w.run(w.chats().lines({.session = session}));
}

std::string open_session(World& w) {
  w.add("bot");
  return w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}, .timezone = "Asia/Shanghai"}))->session.id;
}

// F15: a reminder that is written now and arrives at its time, and not before.
TEST(SendMessage, AScheduledReminderReachesThePersonAtItsTimeThroughARestart) {
  World w;
  const std::string session = open_session(w);
  const auto sent =
      send_message(w, session, R"({"to":"ann","payload":{"text":"会议将在10分钟后开始"},"schedule":"明天 08:50"})");
  ASSERT_TRUE(sent.ok) << sent.result;
  EXPECT_EQ(field(sent, "scheduledDeliveryTime"), "2026-03-02T00:50:00.000Z");

  w.advance(6h);
  w.restart();
  w.advance(6h + 50min - 1ms);
  EXPECT_TRUE(lines(w, session).empty());
  w.advance(1ms);
  const auto log = lines(w, session);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(chat::text_of(log[0].payload), "会议将在10分钟后开始");
  EXPECT_EQ(log[0].from, "bot");
}

// F15: told now, delivered then; a schedule does not only hold back the news that it was sent.
TEST(SendMessage, ANoticeInTenMinutesIsDeliveredInTenMinutes) {
  World w;
  const std::string session = open_session(w);
  const auto sent =
      send_message(w, session, R"({"to":"ann","payload":"会议提醒：10分钟后开始","schedule":"in 10 minutes"})");
  ASSERT_TRUE(sent.ok) << sent.result;
  w.advance(10min - 1ms);
  EXPECT_TRUE(lines(w, session).empty());
  w.advance(1ms);
  EXPECT_EQ(chat::text_of(lines(w, session).at(0).payload), "会议提醒：10分钟后开始");
}

// Q6, D1: three options, delayed, a crash in between; the answer closes the question and reaches the agent.
TEST(SendMessage, ADelayedMessageWithThreeOptionsIsAnsweredAfterACrash) {
  World w;
  const std::string session = open_session(w);
  const auto sent = send_message(
      w, session,
      R"({"to":"ann","payload":{"text":"午饭吃什么？"},"delayMs":90000,"quickReplies":["面条","米饭","都行"]})");
  ASSERT_TRUE(sent.ok) << sent.result;
  w.advance(30s);
  w.restart();
  w.advance(60s);
  const auto asked = lines(w, session);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].id, field(sent, "messageId"));
  EXPECT_EQ(asked[0].said_at, kNoon + 90s);
  EXPECT_EQ(bus::quick_replies_of(asked[0].payload), (std::vector<std::string>{"面条", "米饭", "都行"}));

  ASSERT_TRUE(w.run(w.chats().post({.session = session, .in_reply_to = asked[0].id, .quick_reply_index = 2})));
  w.restart();
  const auto answered = lines(w, session);
  ASSERT_EQ(answered.size(), 2u);
  EXPECT_EQ(answered[0].question->state, chat::QuestionState::answered);
  EXPECT_EQ(answered[1].closes, std::vector<std::string>{asked[0].id});
  EXPECT_EQ(chat::text_of(w.drain("bot").at(0).payload), "都行");
}

}  // namespace
}  // namespace belfry::testing
