#include "belfry/tool/executor.h"

#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::tool {
namespace {

using testing::kNoon;
using testing::World;
using namespace std::chrono_literals;

class ToolTest : public ::testing::Test {
 protected:
  ToolTest() : ToolTest(World::Options{}) {}
  explicit ToolTest(World::Options options) : w(std::move(options)) { w.add("planner"); }

  CallOutcome call(std::string tool, std::string arguments, ToolContext context = {.agent_id = "planner"}) {
    auto outcome = w.run(w.tools().call({std::move(tool), std::move(arguments), std::move(context)}));
    EXPECT_TRUE(outcome.has_value()) << outcome.error().detail;
    return outcome ? *outcome : CallOutcome{};
  }
  static std::string text(const CallOutcome& outcome, std::string_view name) {
    const auto found = json::find(*json::parse(outcome.result), name);
    if (!found) return {};
    return found->kind == json::Kind::string ? json::text(*found) : std::string(found->raw);
  }
  std::string code(std::string tool, std::string arguments, ToolContext context = {.agent_id = "planner"}) {
    const CallOutcome outcome = call(std::move(tool), std::move(arguments), std::move(context));
    return outcome.ok ? "done" : text(outcome, "error");
  }
  std::vector<CallRecord> records() { return w.run(w.tools().calls({}))->records; }

  // As if the server had died before the ends were written.
  void cut_off() {
    auto job = [](store::Connection& connection) -> Result<> {
      connection.run("UPDATE tool_call SET state = 'interrupted', result = '', ended_ms = NULL WHERE call_id <> ''");
      return {};
    };
    ASSERT_TRUE(w.run(w.store().write<void>(std::move(job))));
  }

  World w;
};

// A5, D21
TEST_F(ToolTest, RecordsOfCallsStayHoweverOldTheyAre) {
  call("send_message", R"({"to":"worker","payload":{}})", {.agent_id = "planner", .call_id = "c1"});
  w.crash();
  w.pass(24h * 400);
  w.start();
  EXPECT_TRUE(
      call("send_message", R"({"to":"worker","payload":{}})", {.agent_id = "planner", .call_id = "c1"}).repeated);
  call("send_message", R"({"to":"worker","payload":{}})");
  EXPECT_EQ(records().size(), 2u);
}

std::string definition_of(const World&, Executor& tools, std::string_view name) {
  for (const Definition* one : tools.definitions()) {
    if (one->name != name) continue;
    json::Writer writer;
    write_definition(writer, *one);
    return writer.take();
  }
  return {};
}

json::Value at(json::Value value, std::initializer_list<std::string_view> path) {
  for (const std::string_view key : path) {
    const auto found = json::find(value, key);
    if (!found) return {};
    value = *found;
  }
  return value;
}

// D15
TEST_F(ToolTest, SendMessageIsDescribedToModelsWordForWord) {
  const std::string definition = definition_of(w, w.tools(), "send_message");
  const json::Value all = *json::parse(definition);
  EXPECT_EQ(json::text(at(all, {"type"})), "function");
  EXPECT_EQ(json::text(at(all, {"function", "description"})),
            "发送异步消息。from 默认使用当前智能体 id。taskId 由系统自动处理，无需传入。");
  const json::Value properties = at(all, {"function", "parameters", "properties"});
  EXPECT_EQ(json::text(at(properties, {"to", "type"})), "string");
  EXPECT_EQ(json::text(at(properties, {"payload", "type"})), "object");
  EXPECT_EQ(json::text(at(properties, {"delayMs", "type"})), "number");
  EXPECT_EQ(json::text(at(properties, {"delayMs", "description"})),
            "延迟投递时间（毫秒），消息将在指定时间后才进入收件人队列。不指定或为0则立即投递。");
  EXPECT_EQ(at(all, {"function", "parameters", "required"}).raw, R"(["to", "payload"])");
}

// Q8
TEST_F(ToolTest, TheDefinitionSaysInSchemaAndInWordsWhatQuickRepliesAre) {
  const std::string definition = definition_of(w, w.tools(), "send_message");
  const json::Value replies = at(*json::parse(definition), {"function", "parameters", "properties", "quickReplies"});
  EXPECT_EQ(json::text(at(replies, {"type"})), "array");
  EXPECT_EQ(json::text(at(replies, {"items", "type"})), "string");
  EXPECT_EQ(at(replies, {"maxItems"}).raw, "10");
  const std::string words = json::text(at(replies, {"description"}));
  for (const char* const word : {"可选", "最多 10 个", "字符串数组", "Optional", "at most 10", "strings"})
    EXPECT_NE(words.find(word), std::string::npos) << word;
}

// D10, D15
TEST_F(ToolTest, AMessageGoesOutInTheAgentsNameWithItsTask) {
  const CallOutcome outcome = call("send_message", R"({"to":"worker","payload":{"text":"tea"},"delayMs":90000})",
                                   {.agent_id = "planner", .task_id = "t1"});
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_EQ(text(outcome, "scheduledDeliveryTime"), to_iso(kNoon + 90s));
  w.advance(90s);
  const auto got = w.drain();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from, "planner");
  EXPECT_EQ(got[0].task_id, "t1");
  EXPECT_EQ(bus::to_text(got[0].id), text(outcome, "messageId"));
}

// D15
TEST_F(ToolTest, ATextAsPayloadIsWrapped) {
  ASSERT_TRUE(call("send_message", R"({"to":"worker","payload":"tea"})").ok);
  EXPECT_EQ(w.drain().at(0).payload, R"({"text":"tea"})");
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":5})"), "invalid_argument");
}

// D4: the rule for delays wins over the schema's "number".
TEST_F(ToolTest, ADelayThatIsNoNumberIsDeliveredAtOnceWithAWarning) {
  const CallOutcome outcome = call("send_message", R"({"to":"worker","payload":{},"delayMs":"soon"})");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_NE(text(outcome, "warnings").find("delayMs"), std::string::npos);
  EXPECT_EQ(w.drain().size(), 1u);
}

// F15
TEST_F(ToolTest, AScheduleIsTheTimeOfDelivery) {
  const CallOutcome outcome = call("send_message", R"({"to":"worker","payload":{"text":"x"},"schedule":"2分钟后"})");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_EQ(text(outcome, "scheduledDeliveryTime"), to_iso(kNoon + 2min));
  EXPECT_TRUE(w.drain().empty());
  w.advance(2min);
  EXPECT_EQ(w.drain().size(), 1u);
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{},"schedule":"in 5 minutes","delayMs":5})"),
            "invalid_argument");
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{},"schedule":"never ever"})"), "not_a_time");
}

// F15: the session's zone is the one that counts.
TEST_F(ToolTest, AScheduleIsReadInTheZoneOfTheSession) {
  const auto opened = w.run(w.chats().open({.people = {"ann"}, .agents = {"planner"}, .timezone = "Asia/Shanghai"}));
  ASSERT_TRUE(opened);
  const CallOutcome outcome = call("send_message", R"({"to":"worker","payload":{},"schedule":"明天早上9点"})",
                                   {.agent_id = "planner", .session_id = opened->session.id});
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_EQ(text(outcome, "scheduledDeliveryTime"), "2026-03-02T01:00:00.000Z");
}

// D14
TEST_F(ToolTest, AnUnknownRecipientFailsItsOwnEntryOnly) {
  EXPECT_EQ(code("send_message", R"({"to":"nobody","payload":{}})"), "unknown_recipient");
  const CallOutcome outcome = call("send_message", R"({"to":["worker","nobody"],"payload":{"text":"x"}})");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_NE(outcome.result.find("unknown_recipient"), std::string::npos);
  EXPECT_EQ(w.drain().size(), 1u);
  EXPECT_EQ(code("send_message", R"({"to":["worker","No Body"],"payload":{}})"), "invalid_id");
  EXPECT_TRUE(w.drain().empty());
}

// A5
TEST_F(ToolTest, EveryCallIsRecordedAlsoThoseThatFail) {
  call("send_message", R"({"to":"worker","payload":{}})", {.agent_id = "planner", .task_id = "t", .call_id = "c1"});
  call("send_message", R"({"to":"nobody","payload":{}})");
  call("send_message", R"({"payload":{}})");
  w.restart();
  {
    call("no_such_tool", "{}");
    call("send_message", "{", {.agent_id = "planner", .session_id = "nowhere"});
    const auto refused = records();
    ASSERT_EQ(refused.size(), 5u);
    EXPECT_EQ(refused[1].error, "unknown_tool");
    EXPECT_EQ(refused[0].error, "not_found");
    call("send_message", "{");
    EXPECT_EQ(records().at(0).error, "invalid_json");
  }

  auto all = records();
  all.erase(all.begin(), all.begin() + 3);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[2].state, CallState::done);
  EXPECT_EQ(all[2].context.agent_id, "planner");
  EXPECT_EQ(all[2].context.call_id, "c1");
  EXPECT_EQ(all[2].arguments, R"({"to":"worker","payload":{}})");
  EXPECT_NE(all[2].result.find("messageId"), std::string::npos);
  EXPECT_EQ(all[2].ended_at, kNoon);
  EXPECT_EQ(all[1].state, CallState::failed);
  EXPECT_EQ(all[1].error, "unknown_recipient");
  EXPECT_EQ(all[0].state, CallState::failed);
}

// A5
TEST_F(ToolTest, TheSameCallAgainHasTheFirstOnesResultAndNoOtherEffect) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":"worker","payload":{"text":"once"}})";
  const CallOutcome first = call("send_message", arguments, context);
  w.restart();
  const CallOutcome again = call("send_message", arguments, context);
  EXPECT_TRUE(again.repeated);
  EXPECT_EQ(first.result, again.result);
  EXPECT_EQ(w.drain().size(), 1u);
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{"text":"other"}})", context), "key_conflict");
  EXPECT_TRUE(w.drain().empty());
}

// A5
TEST_F(ToolTest, ACallThatACrashInterruptedIsTakenUpAgainWithoutASecondMessage) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":"worker","payload":{"text":"once"}})";
  call("send_message", arguments, context);
  auto job = [](store::Connection& connection) -> Result<> {  // as if the end had not been written any more
    connection.run("UPDATE tool_call SET state = 'running', result = ''");
    return {};
  };
  ASSERT_TRUE(w.run(w.store().write<void>(std::move(job))));
  w.restart();
  EXPECT_EQ(records().at(0).state, CallState::interrupted);
  EXPECT_TRUE(call("send_message", arguments, context).ok);
  EXPECT_EQ(w.drain().size(), 1u);
}

// A5: "in an hour" is another instant when the call is made again; the first one's message stands.
TEST_F(ToolTest, ACutOffCallMadeAgainLaterKeepsTheTimeOfTheFirst) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":["worker","planner"],"payload":{"text":"once"},"schedule":"in 1 hour"})";
  const CallOutcome first = call("send_message", arguments, context);
  cut_off();
  w.restart();
  w.advance(5min);
  const CallOutcome again = call("send_message", arguments, context);
  ASSERT_TRUE(again.ok) << again.result;
  EXPECT_NE(again.result.find(to_iso(kNoon + 1h)), std::string::npos) << again.result;
  w.advance(2h);
  EXPECT_EQ(w.drain().size(), 1u);

  const std::string id = bus::to_text(w.send({.from = "planner", .delay = 1h}).id);
  const ToolContext cancel{.agent_id = "planner", .call_id = "c2"};
  ASSERT_EQ(code("cancel_message", R"({"messageId":")" + id + R"("})", cancel), "done");
  cut_off();
  EXPECT_EQ(code("cancel_message", R"({"messageId":")" + id + R"("})", cancel), "done");
  EXPECT_EQ(code("cancel_message", R"({"messageId":")" + id + R"("})"), "already_cancelled");
}

// A5
TEST_F(ToolTest, ACallUnderWayIsNotMadeASecondTime) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":"worker","payload":{"text":"once"}})";
  auto first = w.start_task(w.tools().call({"send_message", arguments, context}));
  auto second = w.start_task(w.tools().call({"send_message", arguments, context}));
  w.advance(1s);
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_TRUE(first.value()->ok);
  EXPECT_EQ(second.value()->code, Errc::wrong_state);
  EXPECT_EQ(w.drain().size(), 1u);
}

// A5: the disk was full, the server stopped: that is not the call's last word.
TEST_F(ToolTest, AFailureThatPassesIsNotTheEndOfACall) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":"worker","payload":{"text":"once"}})";
  w.bus().refuse_sends();
  EXPECT_EQ(code("send_message", arguments, context), "stopping");
  w.restart();
  EXPECT_EQ(code("send_message", arguments, context), "done");
  EXPECT_EQ(w.drain().size(), 1u);
  EXPECT_EQ(code("send_message", R"({"to":"nobody","payload":{}})", {.agent_id = "planner", .call_id = "c2"}),
            "unknown_recipient");
  w.add("nobody");
  EXPECT_EQ(code("send_message", R"({"to":"nobody","payload":{}})", {.agent_id = "planner", .call_id = "c2"}),
            "unknown_recipient");
}

// A5
TEST_F(ToolTest, AFullDiskTakesNoNewCallsAndAcksGoOn) {
  World::Options options;
  options.reserve = 256 * 1024;
  World small(options);
  small.send();
  const auto got = small.receive();
  ASSERT_EQ(got.size(), 1u);
  small.disk().set_capacity(small.disk().bytes_used());
  const std::string large = R"({"to":"worker","payload":{"text":")" + std::string(20'000, 'x') + R"("}})";
  for (int i = 0; i < 50; ++i) {
    const auto outcome = small.run(small.tools().call({"send_message", large, {.agent_id = "worker"}}));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, Errc::disk_full);
  }
  EXPECT_EQ(small.ack(got), 1);
}

class ToolRetentionTest : public ToolTest {
 protected:
  static World::Options for_a_week() {
    World::Options options;
    options.calls_retention = kRetentionDefault;
    return options;
  }
  ToolRetentionTest() : ToolTest(for_a_week()) {}
};

// A5, D21
TEST_F(ToolRetentionTest, CallsAreForgottenAfterTheTimeThatWasSet) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  const std::string arguments = R"({"to":"worker","payload":{"text":"once"}})";
  call("send_message", arguments, context);
  for (int i = 0; i < 9; ++i) call("list_messages", "{}");
  const auto pass = [this](Nanos duration) {
    w.crash();
    w.pass(duration);
    w.start();
  };
  pass(kRetentionDefault - 1s);
  EXPECT_TRUE(call("send_message", arguments, context).repeated);
  EXPECT_EQ(records().size(), 10u);
  pass(2s);
  EXPECT_FALSE(call("send_message", arguments, context).repeated);
  for (int i = 0; i < 3; ++i) call("list_messages", "{}");
  EXPECT_EQ(records().size(), 4u);  // the new ones
}

// A5
TEST_F(ToolTest, ARepeatMayWriteItsMembersInAnotherOrder) {
  const ToolContext context{.agent_id = "planner", .call_id = "c1"};
  ASSERT_TRUE(call("send_message", R"({"to":"worker","payload":{"a":1,"b":2}})", context).ok);
  const CallOutcome again = call("send_message", R"({"payload": {"b":2.0,"a":1}, "to":"worker"})", context);
  EXPECT_TRUE(again.ok && again.repeated) << again.result;
}

TEST_F(ToolTest, APageOfCallsThatIsCutShortSaysWhereTheNextBegins) {
  const std::string large = R"({"to":"worker","payload":{"text":")" + std::string(900'000, 'x') + R"("}})";
  for (int i = 0; i < 7; ++i) call("send_message", large);
  const auto first = *w.run(w.tools().calls({}));
  EXPECT_EQ(first.records.size(), 5u);
  ASSERT_TRUE(first.next);
  const auto second = *w.run(w.tools().calls({.before = *first.next}));
  EXPECT_EQ(second.records.size(), 2u);
  EXPECT_FALSE(second.next);
}

// D17: what the executor remembers its sends by is not for clients to write.
TEST_F(ToolTest, AClientsKeyCannotMeetACallsOwn) {
  for (int i = 1; i < 5; ++i) {
    const std::string name = "call " + std::to_string(i);
    for (const std::string& key : {name, "\x01" + name})
      w.send({.from = "planner", .payload = R"({"text":"client"})", .key = key});
  }
  ASSERT_TRUE(call("send_message", R"({"to":"worker","payload":{"text":"tool"}})").ok);
  EXPECT_EQ(w.drain().back().payload, R"({"text":"tool"})");
}

// Q2
TEST_F(ToolTest, ManyWrongQuickRepliesAreStillTheWrongType) {
  std::string many = "1";
  for (int i = 0; i < 99; ++i) many += ",1";
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{},"quickReplies":[)" + many + "]}"),
            "quickReplies_invalid_type");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":[)" + many + "]}"), "unknown_recipient");
  ASSERT_TRUE(w.run(w.chats().add_person("ann")));
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":[)" + many + "]}"), "quickReplies_invalid_type");
}

TEST_F(ToolTest, ArgumentsThatDoNotFitAreNamedEachWithItsPlaceAndNothingHappens) {
  const CallOutcome outcome = call("ask", R"({"to":5,"quickReplies":["a"]})");
  EXPECT_FALSE(outcome.ok);
  EXPECT_EQ(text(outcome, "error"), "invalid_argument");
  EXPECT_NE(text(outcome, "violations").find("/to"), std::string::npos);
  EXPECT_NE(text(outcome, "message").find("text"), std::string::npos);
  EXPECT_EQ(code("send_message", "[]"), "invalid_argument");
  EXPECT_EQ(code("send_message", "{"), "invalid_json");
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{},"delayMS":5})"), "unknown_field");
  EXPECT_EQ(code("no_such_tool", "{}"), "unknown_tool");
  EXPECT_EQ(code("send_message", R"({"to":"worker","payload":{}})", {.agent_id = "planner", .session_id = "nowhere"}),
            "not_found");
  EXPECT_TRUE(w.drain().empty());
}

// D16
TEST_F(ToolTest, AnAgentSeesCancelsAndMovesItsOwnDelayedMessagesOnly) {
  const std::string own = text(call("send_message", R"({"to":"worker","payload":{},"delayMs":60000})"), "messageId");
  const std::string others = bus::to_text(w.send({.from = "other", .delay = 1h}).id);
  const CallOutcome listed = call("list_messages", "{}");
  EXPECT_NE(listed.result.find(own), std::string::npos);
  EXPECT_EQ(listed.result.find(others), std::string::npos);
  EXPECT_EQ(code("cancel_message", R"({"messageId":")" + others + R"("})"), "not_found");
  EXPECT_EQ(code("reschedule_message", R"({"messageId":")" + others + R"(","delayMs":5})"), "not_found");
  EXPECT_EQ(code("reschedule_message", R"({"messageId":")" + own + R"("})"), "invalid_argument");

  const CallOutcome moved = call("reschedule_message", R"({"messageId":")" + own + R"(","schedule":"in 2 hours"})");
  EXPECT_EQ(text(moved, "scheduledDeliveryTime"), to_iso(kNoon + 2h));
  EXPECT_EQ(code("cancel_message", R"({"messageId":")" + own + R"("})"), "done");
  EXPECT_EQ(code("cancel_message", R"({"messageId":")" + own + R"("})"), "already_cancelled");
}

// Q9
TEST_F(ToolTest, AskPutsAQuestionWithADeadlineToAPerson) {
  const auto opened = w.run(w.chats().open({.people = {"ann"}, .agents = {"planner"}}));
  ASSERT_TRUE(opened);
  const ToolContext context{.agent_id = "planner", .session_id = opened->session.id};
  const CallOutcome asked = call("ask",
                                 R"({"to":"ann","text":"Sure?","quickReplies":["yes","no"],"answerBy":"in 10 minutes",)"
                                 R"("onTimeout":{"action":"default","index":1}})",
                                 context);
  ASSERT_TRUE(asked.ok) << asked.result;
  EXPECT_EQ(text(asked, "answerBy"), to_iso(kNoon + 10min));
  w.advance(10min);
  const auto lines = *w.run(w.chats().lines({.session = opened->session.id}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].id, text(asked, "messageId"));
  EXPECT_EQ(lines[0].question->state, chat::QuestionState::defaulted);

  EXPECT_EQ(code("ask", R"({"to":"worker","text":"?","quickReplies":["a"]})"), "invalid_argument");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":[]})"), "invalid_argument");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":[""]})"), "quickReplies_empty_string");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":" ","quickReplies":["a"]})"), "invalid_argument");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":["a"],"onTimeout":{"action":"expire"}})"),
            "invalid_argument");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":["a"],"answerBy":"in 5 minutes",)"
                        R"("onTimeout":{"action":"default","index":1}})"),
            "invalid_argument");
  EXPECT_EQ(code("ask", R"({"to":"ann","text":"?","quickReplies":["a"],"answerBy":"2020-01-01T00:00:00Z"})"),
            "invalid_time");
}

}  // namespace
}  // namespace belfry::tool
