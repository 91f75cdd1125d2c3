#include "belfry/server/wire.h"

#include <string>

#include <gtest/gtest.h>

#include "belfry/server/http_message.h"

namespace belfry::server::wire {
namespace {

struct Refusal {
  std::string body;
  Errc code;
  std::string says;  // must stand in the message
};

template <class Read>
void expect_refusals(Read read, const std::vector<Refusal>& table) {
  for (const Refusal& line : table) {
    const auto result = read(line.body);
    ASSERT_FALSE(result) << line.body;
    EXPECT_EQ(word(result.error().code), word(line.code)) << line.body;
    EXPECT_NE(result.error().detail.find(line.says), std::string::npos) << line.body << "\n" << result.error().detail;
  }
}

// D10, D20
TEST(Wire, ReadsASendWithAllItsFields) {
  const auto request = read_send(
      R"({"to":"worker","payload": {"b":1.50},"from":"planner","taskId":"t","delayMs":1500,"expiresAt":4070908800000,"key":"k"})");

  ASSERT_TRUE(request) << request.error().detail;
  EXPECT_EQ(request->to, std::vector<std::string>{"worker"});
  EXPECT_FALSE(request->to_is_list);
  EXPECT_EQ(request->message.payload, R"({"b":1.50})");
  EXPECT_EQ(request->message.from, "planner");
  EXPECT_EQ(request->message.task_id, "t");
  EXPECT_EQ(request->message.delay, Millis{1500});
  EXPECT_EQ(to_iso(*request->message.expires_at), "2099-01-01T00:00:00.000Z");
  EXPECT_EQ(request->message.key, "k");
  EXPECT_TRUE(request->warnings.empty());
}

TEST(Wire, ANullStandsForNotGivenButIsAPayload) {
  const auto request = read_send(R"({"to":"worker","payload":null,"from":null,"deliverAt":null,"delayMs":null})");

  ASSERT_TRUE(request);
  EXPECT_EQ(request->message.payload, "null");
  EXPECT_EQ(request->message.from, "user");
  EXPECT_FALSE(request->message.deliver_at);
}

// D4
TEST(Wire, ADelayThatIsNoNumberIsAWarning) {
  const auto request = read_send(R"({"to":"worker","payload":1,"delayMs":{}})");

  ASSERT_TRUE(request);
  EXPECT_EQ(request->message.delay, Millis{0});
  EXPECT_EQ(request->warnings.size(), 1u);
}

TEST(Wire, RefusesSendsThatMakeNoSense) {
  const std::string long_key(kKeyBytesMax + 1, 'k');
  const std::string list_key(kKeyBytesMax - kIdBytesMax, 'k');
  expect_refusals(
      read_send,
      {
          {"", Errc::invalid_argument, "to is missing"},
          {"{}", Errc::invalid_argument, "to is missing"},
          {"[]", Errc::invalid_argument, "the body is an array"},
          {"\"x\"", Errc::invalid_argument, "the body is a string"},
          {"{", Errc::invalid_json, "byte 1"},
          {"{} x", Errc::invalid_json, "after the end"},
          {R"({"to":"a","to":"b"})", Errc::invalid_json, "\"to\" stands twice"},
          {R"({"to":"a"})", Errc::invalid_argument, "payload is missing"},
          {R"({"to":1,"payload":1})", Errc::invalid_argument, "to is a number"},
          {R"({"to":[],"payload":1})", Errc::invalid_argument, "empty list"},
          {R"({"to":["a",2],"payload":1})", Errc::invalid_argument, "an entry of to is a number"},
          {R"({"to":["a","b","a"],"payload":1})", Errc::invalid_argument, "\"a\" stands twice in to"},
          {R"({"to":"A","payload":1})", Errc::invalid_id, "\"A\""},
          {R"({"to":"a","payload":1,"delay":5})", Errc::unknown_field, "\"delay\"; a send knows: to, payload"},
          {R"({"to":"a","payload":1,"replies":[]})", Errc::unknown_field, "quickReplies"},
          {R"({"to":"a","payload":1,"schedule":5})", Errc::invalid_argument, "schedule is a number; a time like"},
          {R"({"to":"a","payload":1,"schedule":{"at":"soon"}})", Errc::unknown_field, "schedule knows: when"},
          {R"({"to":"a","payload":1,"schedule":"soon","delayMs":5})", Errc::invalid_argument,
           "one message has one time"},
          {R"({"to":"a","payload":1,"taskId":""})", Errc::invalid_argument, "taskId is empty"},
          {R"({"to":"a","payload":1,"from":5})", Errc::invalid_argument, "from is a number; a string"},
          {R"({"to":"a","payload":1,"key":[]})", Errc::invalid_argument, "key is an array"},
          {R"({"to":"a","payload":1,"deliverAt":"soon"})", Errc::invalid_time, "deliverAt"},
          {R"({"to":"a","payload":1,"deliverAt":false})", Errc::invalid_argument, "an instant"},
          {R"({"to":"a","payload":1,"deliverAt":1e15})", Errc::invalid_time, "year 9999"},
          {R"({"to":"a","payload":1,"deliverAt":-1e14})", Errc::invalid_time, "since 1970"},
          {R"({"to":"a","payload":1,"deliverAt":1.5})", Errc::invalid_time, "whole number"},
          {R"({"to":"a","payload":1,"expiresAt":"2027-01-01"})", Errc::invalid_time, "expiresAt"},
          {R"({"to":"a","payload":1,"key":")" + long_key + "\"}", Errc::invalid_argument, "at most 256"},
          {R"({"to":["a"],"payload":1,"key":")" + list_key + "\"}", Errc::invalid_argument, "with a list"},
      });
}

// D17
TEST(Wire, AKeyCountsForEachRecipientOfAListAlone) {
  const auto request = read_send(R"({"to":["a","b"],"payload":1,"key":"k"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(message_for(*request, "a").key, "k\na");
  EXPECT_EQ(message_for(*request, "b").key, "k\nb");
  EXPECT_EQ(message_for(*request, "b").to, "b");
}

TEST(Wire, RefusesTooManyRecipients) {
  std::string body = R"({"payload":1,"to":["a")";
  for (int i = 0; i < kRecipientsPerSendMax; ++i) body += ",\"a\"";
  expect_refusals(read_send, {{body + "]}", Errc::invalid_argument, "at most 1000"}});
}

// D16
TEST(Wire, ReadsAChangeOfTime) {
  EXPECT_EQ(read_move(R"({"delayMs":"5000"})")->delay, Millis{5000});
  EXPECT_EQ(to_iso(*read_move(R"({"deliverAt":0})")->deliver_at), "1970-01-01T00:00:00.000Z");
  expect_refusals(read_move, {
                                 {"", Errc::invalid_argument, "one of deliverAt, delayMs and schedule"},
                                 {R"({"delayMs":1,"deliverAt":0})", Errc::invalid_argument, "only one"},
                                 {R"({"delayMs":"soon"})", Errc::invalid_argument, "a number of milliseconds"},
                                 {R"({"schedule":"tomorrow","delayMs":5})", Errc::invalid_argument, "and only one"},
                             });
}

// D18
TEST(Wire, ReadsAReceiveWithItsDefaults) {
  const auto request = read_receive("");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->max, 1);
  EXPECT_EQ(request->wait, Millis{0});
  EXPECT_EQ(request->lease, Millis{30'000});
  EXPECT_EQ(read_receive(R"({"max":10,"waitMs":5e3,"leaseMs":1000})")->wait, Millis{5000});
  expect_refusals(read_receive, {
                                    {R"({"max":"1"})", Errc::invalid_argument, "max is a string; a whole number"},
                                    {R"({"max":1.5})", Errc::invalid_argument, "max is 1.5"},
                                    {R"({"waitMs":1e99})", Errc::invalid_argument, "waitMs is 1e99"},
                                    {R"({"wait":1})", Errc::unknown_field, "max, waitMs, leaseMs"},
                                });
}

TEST(Wire, ReadsAcksReleasesAndExtensions) {
  EXPECT_EQ(read_ack(R"({"leases":["x"]})")->leases.size(), 1u);
  EXPECT_EQ(read_ack(R"({"messageIds":["x","y"]})")->ids.size(), 2u);
  EXPECT_EQ(read_release(R"({"leases":["x"],"delayMs":5})")->delay, Millis{5});
  EXPECT_EQ(read_extend(R"({"leases":["x"],"leaseMs":5000})")->lease, Millis{5000});
  expect_refusals(read_ack, {
                                {"{}", Errc::invalid_argument, "one of leases and messageIds"},
                                {R"({"leases":[],"messageIds":[]})", Errc::invalid_argument, "only one"},
                                {R"({"leases":"x"})", Errc::invalid_argument, "a list of strings"},
                                {R"({"ids":[]})", Errc::unknown_field, "leases, messageIds"},
                            });
  expect_refusals(read_release, {
                                    {"", Errc::invalid_argument, "leases is missing"},
                                    {R"({"leases":["x"],"delayMs":"x"})", Errc::invalid_argument, "milliseconds"},
                                });
  expect_refusals(read_extend, {{R"({"leases":[]})", Errc::invalid_argument, "leases is missing"}});
}

TEST(Wire, ReadsAgents) {
  EXPECT_EQ(read_agent(R"({"id":"worker"})", "model")->kind, "external");
  const auto thinking = read_agent(R"({"id":"ann","kind":"model","prompt":"p","tools":[]})", "model");
  ASSERT_TRUE(thinking);
  EXPECT_EQ(thinking->profile, R"({"prompt":"p","tools":[]})");
  const auto read_plain = [](std::string_view body) { return read_agent(body, "model"); };
  expect_refusals(read_plain, {
                                  {"", Errc::invalid_argument, "id is missing"},
                                  {R"({"id":5})", Errc::invalid_argument, "id is a number"},
                                  {R"({"name":"a"})", Errc::unknown_field, "id, kind"},
                              });
}

// D16
TEST(Wire, ReadsTheQueryOfAList) {
  const auto request = read_list_query("to=a&from=b&state=dead&limit=7&after=c%2Fd");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->to, "a");
  EXPECT_EQ(request->from, "b");
  EXPECT_EQ(request->state, bus::MessageState::dead);
  EXPECT_EQ(request->limit, 7);
  EXPECT_EQ(request->after, "c/d");
  expect_refusals(read_list_query, {
                                       {"state=asleep", Errc::invalid_argument, "delayed, pending"},
                                       {"limit=0", Errc::invalid_argument, "1 to 1000"},
                                       {"limit=5x", Errc::invalid_argument, "1 to 1000"},
                                       {"to=No", Errc::invalid_id, "\"No\""},
                                       {"who=a", Errc::unknown_field, "to, from, state, limit, after"},
                                       {"to=%4", Errc::invalid_argument, "hexadecimal"},
                                   });
}

TEST(Wire, WritesAnswers) {
  bus::Sent one{.id = {1}, .scheduled_at = wall_from_ms(0), .warnings = {"second"}};
  const std::string id = bus::to_text(one.id);
  EXPECT_EQ(sent(one, {"first"}),
            R"({"messageId":")" + id +
                R"(","scheduledDeliveryTime":"1970-01-01T00:00:00.000Z","warnings":["first","second"]})");
  EXPECT_EQ(changed(one.id), R"({"messageId":")" + id + R"(","result":"done"})");

  bus::AckOutcome acks{.acked = 1, .refused = {{"x", {Errc::lease_lost, "gone"}}}};
  EXPECT_EQ(outcome("acked", acks),
            R"({"acked":1,"refused":[{"messageId":"x","error":"lease_lost","message":"gone"}]})");
  EXPECT_EQ(deliveries({}, true), R"({"messages":[],"stopping":true})");
  EXPECT_EQ(counts("a", {1, 2, 3}), R"({"recipient":"a","pending":1,"delayed":2,"inFlight":3})");
}

// Every error has a status of its own choosing, and what it quotes is UTF-8 in the answer.
TEST(HttpMessage, ErrorsAreJsonWhateverTheyQuote) {
  EXPECT_EQ(error_json({Errc::not_found, "no \xff\"here\""}),
            "{\"error\":\"not_found\",\"message\":\"no ?\\\"here\\\"\"}");
  const Response busy = error_response({Errc::overloaded, "later"});
  EXPECT_EQ(busy.status, 429);
  EXPECT_NE(busy.body.find("\"retryAfterMs\":200"), std::string::npos);
  ASSERT_EQ(busy.headers.size(), 1u);
  EXPECT_EQ(busy.headers[0].value, "1");
}

TEST(Wire, ARouteWithoutFieldsSaysSo) {
  EXPECT_TRUE(read_nothing(""));
  EXPECT_TRUE(read_nothing("{}"));
  expect_refusals(read_nothing, {{R"({"a":1})", Errc::unknown_field, "takes no fields"},
                                 {"[1]", Errc::invalid_argument, "takes none, or an empty object"}});
}

// D17
TEST(Wire, AnEmptyKeyIsNotTakenForNone) {
  expect_refusals(read_send, {{R"({"to":"worker","payload":1,"key":""})", Errc::invalid_argument, "key is empty"}});
}

TEST(Wire, AParameterThatStandsTwiceIsRefused) {
  const auto query = read_list_query("to=a&limit=5&to=b");

  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, Errc::invalid_argument);
  EXPECT_NE(query.error().detail.find("\"to\" stands twice"), std::string::npos) << query.error().detail;
}

// W
TEST(Wire, ReadsATimeExpressionAndHowItIsMeant) {
  const auto plain = read_send(R"({"to":"a","payload":1,"schedule":"明天9点"})");
  ASSERT_TRUE(plain && plain->schedule);
  EXPECT_EQ(plain->schedule->text, "明天9点");
  const auto full =
      read_send(R"({"to":"a","payload":1,"schedule":{"when":"at 9","timezone":"Asia/Tokyo","language":"en"}})");
  ASSERT_TRUE(full && full->schedule);
  EXPECT_EQ(full->schedule->timezone, "Asia/Tokyo");
  EXPECT_EQ(full->schedule->language, "en");
  const auto when = read_when(R"({"text":"at 9","now":"2026-11-18T15:20:00+08:00","strict":true})");
  ASSERT_TRUE(when);
  EXPECT_TRUE(when->strict);
  EXPECT_TRUE(when->now.has_value());
  expect_refusals(read_when, {{"{}", Errc::invalid_argument, "text is missing"},
                              {R"({"text":"x","strict":1})", Errc::invalid_argument, "true or false"},
                              {R"({"text":"x","now":"soon"})", Errc::invalid_time, "now"},
                              {R"({"text":"x","tz":"UTC"})", Errc::unknown_field, "timezone"}});
}

// D7
TEST(Wire, AMailboxSaysUntilWhenItsCountsAreNotFinal) {
  const bus::Counts some{.pending = 0, .delayed = 7, .in_flight = 1};
  EXPECT_EQ(wire::counts("w", some, true), R"({"recipient":"w","pending":0,"delayed":7,"inFlight":1})");
  EXPECT_EQ(wire::counts("w", some, false),
            R"({"recipient":"w","pending":0,"delayed":7,"inFlight":1,"caughtUp":false})");
}

}  // namespace
}  // namespace belfry::server::wire
