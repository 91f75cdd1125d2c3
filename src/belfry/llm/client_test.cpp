#include "belfry/llm/client.h"

#include <rapidcheck.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/clock/simulated_clock.h"
#include "tests/support/scripted_client.h"

namespace belfry::llm {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedClient;
using testing::ScriptedReceiver;
using testing::ScriptedStream;
using Pieces = std::vector<ScriptedStream::Piece>;

constexpr const char* kKey = "sk-a-key-that-nobody-may-see";
constexpr const char* kDone = "data: [DONE]\n\n";

// Half of a pause is chance; without chance it is the other half.
class NoChance final : public Random {
 public:
  std::uint64_t next() override { return 0; }
};

std::string chunk(std::string_view delta, std::string_view reason = "") {
  return fmt::format("data: {{\"choices\":[{{\"index\":0,\"delta\":{},\"finish_reason\":{}}}]}}\n\n", delta,
                     reason.empty() ? "null" : json::quoted(reason));
}
std::string says(std::string_view text) { return chunk(fmt::format("{{\"content\":{}}}", json::quoted(text))); }
std::string ends(std::string_view reason = "stop") { return chunk("{}", reason) + kDone; }

net::WebAnswer status(int code, std::string body = {}, std::optional<Millis> retry_after = {}) {
  return {.fate = net::Fate::answered, .status = code, .body = std::move(body), .retry_after = retry_after};
}
ScriptedStream refuses(int code, std::string body = {}, std::optional<Millis> retry_after = {}) {
  return {.head = status(code, std::move(body), retry_after)};
}
ScriptedStream streams(Pieces pieces, ScriptedStream::End end = ScriptedStream::End::clean) {
  return {.head = status(200), .pieces = std::move(pieces), .end = end};
}
ScriptedStream answers(std::string_view text) { return streams({{0ms, says(text)}, {0ms, ends()}}); }

class Heard final : public Progress {
 public:
  explicit Heard(Clock& clock) : clock_(clock), start_(clock.now().boot) {}
  void wrote(std::string_view text) override {
    const auto at = std::chrono::floor<Millis>(clock_.now().boot - start_);
    lines.push_back(fmt::format("{} {}", at.count(), text));
  }

  std::vector<std::string> lines;  // when, and what stood there

 private:
  Clock& clock_;
  BootTime start_;
};

struct Bench {
  explicit Bench(ClientOptions options = {}) : client(web, clock, random, with_defaults(std::move(options))) {
    server.stream = [this](const net::WebRequest&) {
      asked_at.push_back(elapsed());
      if (script.empty()) return answers("fine");
      ScriptedStream next = script.front();
      if (script.size() > 1) script.erase(script.begin());  // the last one stays
      return next;
    };
  }
  ~Bench() {
    clock.drop_sleepers();
    clock.settle();
  }

  static ClientOptions with_defaults(ClientOptions options) {
    options.base = net::parse_web_url("https://models.example/v1").value();
    options.model = "small";
    options.key = Secret(kKey);
    return options;
  }
  Millis elapsed() const { return std::chrono::floor<Millis>(clock.now().boot - start); }

  struct Asked {
    std::optional<Result<ChatAnswer>> result;
    Millis ended{0};
    std::shared_ptr<Cancel> cancel = std::make_shared<Cancel>();
    bool done() const { return result.has_value(); }
  };
  std::shared_ptr<Asked> ask() {
    auto asked = std::make_shared<Asked>();
    ChatRequest request{.messages = {{Role::user, "Which hour is it?", {}, {}}}};
    asio::co_spawn(context, client.complete(std::move(request), heard, asked->cancel),
                   [this, asked](std::exception_ptr failure, Result<ChatAnswer> result) {
                     if (failure) return;
                     asked->result = std::move(result);
                     asked->ended = elapsed();
                   });
    clock.settle();
    return asked;
  }
  Result<ChatAnswer> ask_and_wait(Millis patience = 600s) {
    const auto asked = ask();
    clock.advance(patience);
    EXPECT_TRUE(asked->done());
    ended = asked->ended;
    return asked->result.value_or(fail(Errc::timed_out, "the test waited in vain"));
  }

  asio::io_context context;
  SimulatedClock clock{context};
  BootTime start = clock.now().boot;
  ScriptedReceiver server;
  ScriptedClient web{clock, server};
  NoChance random;
  Heard heard{clock};
  std::vector<ScriptedStream> script;
  std::vector<Millis> asked_at;
  Millis ended{0};
  Client client;
};

std::string detail_of(const Result<ChatAnswer>& result) { return result ? "an answer" : result.error().detail; }
Errc code_of(const Result<ChatAnswer>& result) { return result ? Errc::not_found : result.error().code; }

TEST(ModelClient, GivesTheTextAsItComes) {
  Bench b;
  b.script = {streams({{100ms, says("It is")}, {50ms, says(" noon")}, {50ms, ": still thinking\n\n"}, {50ms, ends()}})};

  const auto answer = b.ask_and_wait();

  ASSERT_TRUE(answer) << detail_of(answer);
  EXPECT_EQ(answer->text, "It is noon");
  EXPECT_EQ(b.ended, 250ms);
  EXPECT_EQ(b.heard.lines, (std::vector<std::string>{"100 It is", "150 It is noon"}));
}

TEST(ModelClient, SaysWhatItWantsInTheFormOfChatCompletions) {
  Bench b;

  ASSERT_TRUE(b.ask_and_wait());

  ASSERT_EQ(b.server.heard.size(), 1u);
  const auto& heard = b.server.heard[0];
  EXPECT_EQ(heard.request.method, "POST");
  EXPECT_EQ(heard.request.url.target, "/v1/chat/completions");
  EXPECT_EQ(heard.header("Authorization"), std::string("Bearer ") + kKey);
  EXPECT_EQ(heard.header("Content-Type"), "application/json");
  EXPECT_TRUE(heard.request.body.starts_with(R"({"model":"small","messages":[{"role":"user")")) << heard.request.body;
}

TEST(ModelClient, AWrongListOfToolsIsTheCallersMistakeAndNotSent) {
  Bench b;
  std::optional<Result<ChatAnswer>> result;
  ChatRequest request{.tools = "{}"};
  asio::co_spawn(b.context, b.client.complete(std::move(request), b.heard, nullptr),
                 [&result](std::exception_ptr, Result<ChatAnswer> got) { result = std::move(got); });
  b.clock.settle();

  ASSERT_TRUE(result);
  EXPECT_EQ(code_of(*result), Errc::invalid_argument);
  EXPECT_EQ(b.server.calls, 0);
}

TEST(ModelClient, TriesAgainWithPausesThatDouble) {
  for (const int code : {408, 409, 429, 500, 502, 503, 529}) {
    Bench b;
    b.script = {refuses(code, R"({"error":{"message":"too busy"}})")};

    const auto answer = b.ask_and_wait();

    EXPECT_EQ(code_of(answer), Errc::model_unavailable);
    EXPECT_EQ(detail_of(answer), fmt::format("the model's server answered {}: too busy (after 4 tries)", code));
    EXPECT_EQ(b.asked_at, (std::vector<Millis>{0ms, 500ms, 1500ms, 3500ms}));
  }
}

TEST(ModelClient, PausesAreHalfChanceAndHaveAnEnd) {
  const ClientOptions options;
  EXPECT_EQ(pause_after(1, options, 0), 500ms);
  EXPECT_EQ(pause_after(1, options, 500), 1000ms);
  EXPECT_EQ(pause_after(1, options, 501), 500ms);
  EXPECT_EQ(pause_after(3, options, 2000), 4000ms);
  EXPECT_EQ(pause_after(6, options, 15000), 30000ms);
  EXPECT_EQ(pause_after(1000, options, 15000), 30000ms);
  EXPECT_EQ(pause_after(1, {.pause_first = 0ms}, 99), 0ms);
}

TEST(ModelClient, TheTryThatSucceedsCounts) {
  Bench b;
  b.script = {refuses(503), {.head = ScriptedReceiver::refused()}, answers("noon")};

  const auto answer = b.ask_and_wait();

  ASSERT_TRUE(answer) << detail_of(answer);
  EXPECT_EQ(answer->text, "noon");
  EXPECT_EQ(b.ended, 1500ms);
  EXPECT_EQ(b.client.statistics().attempts, 3);
  EXPECT_EQ(b.client.statistics().answered, 1);
}

TEST(ModelClient, WaitsAsLongAsTheServerWantsButNotForAnHour) {
  Bench b;
  b.script = {refuses(429, {}, 7s), refuses(503, {}, 60s), answers("noon")};
  ASSERT_TRUE(b.ask_and_wait());
  EXPECT_EQ(b.asked_at, (std::vector<Millis>{0s, 7s, 67s}));

  Bench c;
  c.script = {refuses(429, {}, 61s)};
  const auto answer = c.ask_and_wait();
  EXPECT_EQ(code_of(answer), Errc::model_unavailable);
  EXPECT_EQ(detail_of(answer), "the model's server answered 429; it wants to be asked again in 61 s");
  EXPECT_EQ(c.ended, 0ms);
  EXPECT_EQ(c.server.calls, 1);
}

TEST(ModelClient, AllTriesTogetherHaveOneDeadline) {
  Bench b({.whole = 100s});
  b.script = {refuses(429, {}, 40s)};

  const auto answer = b.ask_and_wait();

  EXPECT_EQ(code_of(answer), Errc::model_unavailable);
  EXPECT_EQ(b.asked_at, (std::vector<Millis>{0s, 40s, 80s}));
  EXPECT_EQ(b.ended, 80s);
}

TEST(ModelClient, WhatTheServerRefusesIsNotAskedAgain) {
  for (const int code : {301, 400, 401, 402, 403, 404, 413, 422}) {
    Bench b;
    b.script = {refuses(code, R"({"error":{"message":"no\nsuch model","type":"invalid_request_error"}})")};

    const auto answer = b.ask_and_wait();

    EXPECT_EQ(code_of(answer), Errc::model_refused);
    EXPECT_EQ(detail_of(answer), fmt::format("the model's server refused with {}: no such model", code));
    EXPECT_EQ(b.server.calls, 1);
  }
}

TEST(ModelClient, AnErrorInTheStreamIsLikeOneInFrontOfIt) {
  Bench b;
  b.script = {streams({{0ms, "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"}}),
              streams({{0ms, "data: {\"error\":{\"message\":\"too long\",\"code\":400}}\n\n"}})};

  const auto answer = b.ask_and_wait();

  EXPECT_EQ(code_of(answer), Errc::model_refused);
  EXPECT_EQ(detail_of(answer), "the model's server reports: too long (after 2 tries)");
}

TEST(ModelClient, EveryStepHasItsDeadline) {
  Bench connecting({.attempts = 1});
  connecting.script = {{.connect = 1h}};
  EXPECT_EQ(code_of(connecting.ask_and_wait()), Errc::model_unavailable);
  EXPECT_EQ(connecting.ended, 10s);

  Bench silent({.attempts = 1});
  silent.script = {{.head = status(200), .first_byte = 1h}};
  EXPECT_EQ(code_of(silent.ask_and_wait()), Errc::model_unavailable);
  EXPECT_EQ(silent.ended, 60s);

  Bench stuck({.attempts = 1});
  stuck.script = {streams({{10s, says("It is")}}, ScriptedStream::End::hang)};
  EXPECT_EQ(code_of(stuck.ask_and_wait()), Errc::model_garbled);
  EXPECT_EQ(stuck.ended, 70s);
}

TEST(ModelClient, AnAnswerThatDripsForEverEndsWithTheWhole) {
  Bench b;
  b.script = {{.head = status(200), .pieces = {{59s, says("tick ")}}, .endless = true}};

  const auto answer = b.ask_and_wait();

  EXPECT_EQ(code_of(answer), Errc::model_garbled);
  EXPECT_EQ(b.ended, 300s);
  EXPECT_EQ(b.server.calls, 1);
}

// A5
TEST(ModelClient, HalfACallIsAskedForAgainAndNeverGiven) {
  const std::string begins =
      chunk(R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"send_message","arguments":"{\"to\":"}}]})");
  const std::string rest = chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"\"ann\"}"}}]})");
  Bench b;
  b.script = {streams({{0ms, begins}}, ScriptedStream::End::cut), streams({{0ms, begins}}),
              streams({{0ms, begins}, {0ms, rest}, {0ms, ends("tool_calls")}})};

  const auto answer = b.ask_and_wait();

  ASSERT_TRUE(answer) << detail_of(answer);
  EXPECT_EQ(answer->calls, (std::vector<ToolCall>{{"a", "send_message", R"({"to":"ann"})"}}));
  EXPECT_EQ(b.ended, 1500ms);

  Bench never;
  never.script = {streams({{0ms, begins}, {0ms, rest}}, ScriptedStream::End::cut)};
  EXPECT_EQ(code_of(never.ask_and_wait()), Errc::model_garbled);
  EXPECT_EQ(never.server.calls, 3);
}

TEST(ModelClient, AfterATryThatFailedTheTextBeginsAnew) {
  Bench b;
  b.script = {streams({{0ms, says("It is mid")}}, ScriptedStream::End::cut), answers("noon")};

  ASSERT_EQ(b.ask_and_wait()->text, "noon");

  EXPECT_EQ(b.heard.lines, (std::vector<std::string>{"0 It is mid", "500 noon"}));
}

TEST(ModelClient, GarbageIsTriedThreeTimes) {
  for (const std::string& garbage : {std::string("<html>hello</html>"), std::string("data: {nothing}\n\n"),
                                     std::string("\0\xFF\x01", 3), std::string(kDone), std::string()}) {
    Bench b;
    b.script = {streams({{0ms, garbage}})};

    const auto answer = b.ask_and_wait();

    EXPECT_EQ(code_of(answer), Errc::model_garbled);
    EXPECT_EQ(b.server.calls, 3);
  }
}

TEST(ModelClient, AnAnswerOfTenMegabytesIsNotTaken) {
  Bench b;
  b.script = {
      streams({{0ms, says(std::string(1u << 19, 'x'))}, {0ms, says(std::string(10u << 20, 'x'))}, {0ms, ends()}})};
  EXPECT_EQ(code_of(b.ask_and_wait()), Errc::model_garbled);

  Bench endless;
  endless.script = {{.head = status(200), .pieces = {{0ms, says(std::string(10'000, 'x'))}}, .endless = true}};
  EXPECT_EQ(code_of(endless.ask_and_wait()), Errc::model_garbled);
  EXPECT_LE(endless.heard.lines.back().size(), (1u << 20) + 10);

  Bench keep_alive;
  keep_alive.script = {{.head = status(200), .pieces = {{0ms, ":" + std::string(1u << 20, ' ')}}, .endless = true}};
  EXPECT_EQ(code_of(keep_alive.ask_and_wait()), Errc::model_garbled);
}

TEST(ModelClient, TakesAnAnswerThatIsNotStreamed) {
  Bench b;
  b.script = {streams({{0ms, R"({"choices":[{"message":{"content":"no)"}, {1ms, R"(on"},"finish_reason":"stop"}]})"}})};

  const auto answer = b.ask_and_wait();

  ASSERT_TRUE(answer) << detail_of(answer);
  EXPECT_EQ(answer->text, "noon");
  EXPECT_GT(answer->usage.prompt_tokens, 0);
  EXPECT_EQ(answer->usage.completion_tokens, 1);
}

TEST(ModelClient, CancelEndsItAtOnceAtEveryStage) {
  const ScriptedStream stages[] = {
      {.connect = 5s, .head = status(200)},
      {.head = status(200), .first_byte = 5s},
      streams({{0ms, says("It")}, {5s, says(" is")}, {0ms, ends()}}),
      streams({{0ms, says("It")}}, ScriptedStream::End::hang),
      refuses(503, {}, 10s),
  };
  for (const ScriptedStream& stage : stages) {
    Bench b;
    b.script = {stage};
    const auto asked = b.ask();
    b.clock.advance(2s);
    ASSERT_FALSE(asked->done());

    asked->cancel->cancel();
    b.clock.settle();

    ASSERT_TRUE(asked->done());
    EXPECT_EQ(code_of(*asked->result), Errc::cancelled);
    EXPECT_EQ(asked->ended, 2s);
    b.clock.advance(100s);
    EXPECT_EQ(b.server.calls, 1);
  }
}

TEST(ModelClient, WhatIsCancelledBeforeItBeginsIsNotSent) {
  Bench b;
  std::optional<Result<ChatAnswer>> result;
  const auto cancel = std::make_shared<Cancel>();
  cancel->cancel();
  asio::co_spawn(b.context, b.client.complete({}, b.heard, cancel),
                 [&result](std::exception_ptr, Result<ChatAnswer> got) { result = std::move(got); });
  b.clock.settle();

  ASSERT_TRUE(result);
  EXPECT_EQ(code_of(*result), Errc::cancelled);
  EXPECT_EQ(b.server.calls, 0);
}

TEST(ModelClient, AServerThatFailsAgainAndAgainIsLeftAloneAndThenProbed) {
  Bench b({.attempts = 1});
  b.script = {refuses(503)};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(code_of(b.ask_and_wait(0ms)), Errc::model_unavailable);
  EXPECT_EQ(b.client.statistics().circuit_opened, 1);

  b.clock.advance(29'999ms);
  const auto turned_away = b.ask_and_wait(0ms);
  EXPECT_EQ(code_of(turned_away), Errc::model_unavailable);
  EXPECT_EQ(detail_of(turned_away),
            "the model's server has failed 5 times in a row; it is asked again at 2026-03-01T12:00:30.000Z");
  EXPECT_EQ(b.server.calls, 5);

  // One asks; whoever comes meanwhile does not.
  b.clock.advance(1ms);
  b.script = {{.head = status(503), .first_byte = 10s}};
  const auto probe = b.ask();
  const auto other = b.ask();
  EXPECT_EQ(b.server.calls, 6);
  ASSERT_TRUE(other->done());
  EXPECT_EQ(code_of(*other->result), Errc::model_unavailable);
  b.clock.advance(10s);
  EXPECT_EQ(code_of(*probe->result), Errc::model_unavailable);

  // It failed: the pause begins again. The next one succeeds, and everybody may ask.
  b.script = {answers("noon")};
  b.clock.advance(29'999ms);
  EXPECT_FALSE(b.ask_and_wait(0ms));
  b.clock.advance(1ms);
  EXPECT_TRUE(b.ask_and_wait(0ms));
  EXPECT_TRUE(b.ask_and_wait(0ms));
  EXPECT_EQ(b.server.calls, 8);
}

TEST(ModelClient, WhenTheCircuitOpensThoseUnderWayGiveUp) {
  Bench b({.attempts = 2, .circuit_failures = 2});
  b.script = {{.head = status(503), .first_byte = 1s}};
  std::vector<std::shared_ptr<Bench::Asked>> asked;
  for (int i = 0; i < 2; ++i) asked.push_back(b.ask());
  b.clock.advance(2s);
  for (int i = 0; i < 3; ++i) asked.push_back(b.ask());

  b.clock.advance(10s);

  for (const auto& one : asked) {
    ASSERT_TRUE(one->done());
    EXPECT_EQ(code_of(*one->result), Errc::model_unavailable);
  }
  EXPECT_EQ(asked[0]->ended, 2500ms);  // two tries; then the circuit opens
  EXPECT_EQ(asked[4]->ended, 3000ms);  // and those who came later make one
  EXPECT_EQ(b.server.calls, 7);
  EXPECT_EQ(b.client.statistics().circuit_opened, 1);
}

TEST(ModelClient, AProbeIsOneTryAndWhoCancelsItLeavesTheNextOneToProbe) {
  Bench b({.circuit_failures = 1});
  b.script = {refuses(503)};
  ASSERT_FALSE(b.ask_and_wait(4s));
  b.clock.advance(30s);
  const int before = b.server.calls;

  b.script = {{.head = status(503), .first_byte = 5s}};
  const auto probe = b.ask();
  probe->cancel->cancel();
  b.clock.settle();
  ASSERT_TRUE(probe->done());
  const auto second = b.ask();
  b.clock.advance(5s);

  ASSERT_TRUE(second->done());
  EXPECT_EQ(b.server.calls, before + 2);
  EXPECT_EQ(code_of(b.ask_and_wait(0ms)), Errc::model_unavailable);
  EXPECT_EQ(b.server.calls, before + 2);
}

TEST(ModelClient, WhatWorksInBetweenKeepsTheCircuitClosed) {
  Bench b({.attempts = 1});
  for (int i = 0; i < 20; ++i) {
    b.script = {i % 5 == 4 ? refuses(401) : refuses(503)};
    ASSERT_FALSE(b.ask_and_wait(0ms));
  }
  EXPECT_EQ(b.server.calls, 20);
  EXPECT_EQ(b.client.statistics().circuit_opened, 0);
}

TEST(ModelClient, LogsNumbersAndNoContent) {
  std::vector<std::string> lines;
  const log::Capture capture([&lines](std::string_view line) { lines.emplace_back(line); }, log::Level::debug);
  Bench b;
  b.script = {refuses(503, R"({"error":{"message":"what you asked was: Which hour"}})"), answers("noon")};

  ASSERT_TRUE(b.ask_and_wait());

  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  for (const char* event : {"llm.asked", "llm.answered", "llm.retry"})
    EXPECT_NE(all.find(event), std::string::npos) << all;
  for (const char* content : {"Which hour", "noon", kKey}) EXPECT_EQ(all.find(content), std::string::npos) << all;
}

TEST(ModelClient, NoPartOfTheKeyStandsWhereAMessageIsCut) {
  for (std::size_t size = 460; size < 520; ++size) {
    Bench b;
    const std::string echoed = std::string(size, 'x') + kKey + std::string(600, 'y');
    b.script = {refuses(401, fmt::format(R"({{"error":{{"message":"{}"}}}})", echoed))};
    const auto answer = b.ask_and_wait();
    EXPECT_EQ(detail_of(answer).find("sk-"), std::string::npos) << detail_of(answer);
  }
}

// Whatever a server echoes, wherever it stands, and wherever it is cut.
RC_GTEST_PROP(ModelClient, TheKeyIsInNoErrorAndNoLogLine, ()) {
  std::string all;
  const log::Capture capture([&all](std::string_view line) { all += line; }, log::Level::debug);
  const std::string before(*rc::gen::inRange<std::size_t>(0, 520), *rc::gen::element('a', ' ', '\n', '"', '\\'));
  const std::string echoed = before + std::string(kKey).substr(0, *rc::gen::element<std::size_t>(5, 12, 28)) +
                             *rc::gen::element("", kKey, "!");
  const std::string as_json = *rc::gen::element<std::string>(
      fmt::format(R"({{"error":{{"message":{}}}}})", json::quoted(echoed)), json::quoted(echoed),
      fmt::format(R"({{"error":{}}})", json::quoted(echoed)), fmt::format(R"({{"key":{}}})", json::quoted(echoed)),
      fmt::format(R"({{"choices":[{{"delta":{{"content":{0}}},"finish_reason":{0}}}]}})", json::quoted(echoed)),
      fmt::format(R"({{"choices":{}}})", json::quoted(echoed)));
  const std::string body = *rc::gen::element(echoed, as_json, "data: " + as_json + "\n\n", "data: " + echoed);
  Bench b({.attempts = 2});
  b.script = {refuses(*rc::gen::element(400, 401, 429, 500), body),
              streams({{0ms, body}}),
              streams({{0ms, body}}, ScriptedStream::End::cut),
              {.head = {.what = "no trust in " + echoed}}};
  for (int skip = *rc::gen::inRange(0, 4); skip > 0; --skip) b.script.erase(b.script.begin());

  const auto answer = b.ask_and_wait();

  // The whole of it is never there; a beginning is not where a text was cut off.
  if (!answer) RC_ASSERT(answer.error().detail.find(kKey) == std::string::npos);
  RC_ASSERT(all.find(kKey) == std::string::npos);
}

}  // namespace
}  // namespace belfry::llm
