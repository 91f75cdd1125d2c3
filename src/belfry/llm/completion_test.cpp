#include "belfry/llm/completion.h"

#include <rapidcheck.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::llm {
namespace {

constexpr std::uint64_t kSeed = 7;

// A stream as OpenAI sends it: a role, a text in pieces, the reason, the usage, the end.
constexpr const char* kTextStream =
    R"(data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"Good "},"finish_reason":null}],"usage":null}

: keep-alive

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"mörning 🔔"},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17}}

data: [DONE]

)";

// Two calls, each in pieces, one inside the other's.
constexpr const char* kCallStream =
    R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"send_message","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"to\":"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"ask","arguments":"{"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"ann\"}"}},{"index":1,"function":{"arguments":"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

)";

Result<ChatAnswer> read(std::string_view bytes, bool clean_end = true, const std::vector<std::size_t>& pieces = {}) {
  CompletionReader reader(kSeed);
  // Like the client: what is refused or complete gets no more.
  bool wanted = true;
  for (const std::size_t size : pieces) {
    wanted = wanted && reader.feed(bytes.substr(0, size)) && !reader.done();
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  if (wanted && !reader.feed(bytes)) EXPECT_FALSE(reader.done());
  return reader.finish(clean_end, 400);
}

// What comes of these chunks, each with the choice around it.
Result<ChatAnswer> read_deltas(const std::vector<std::string>& deltas, const std::string& reason = "stop") {
  Completion completion(kSeed);
  for (const std::string& delta : deltas)
    BELFRY_CHECK(completion.eat(R"({"choices":[{"index":0,"delta":)" + delta + "}]}"));
  BELFRY_CHECK(completion.eat(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + reason + R"("}]})"));
  BELFRY_CHECK(completion.eat("[DONE]"));
  return completion.finish(false, 0);
}

std::vector<ToolCall> calls_of(const std::vector<std::string>& deltas, const std::string& reason = "tool_calls") {
  const auto answer = read_deltas(deltas, reason);
  EXPECT_TRUE(answer) << answer.error().detail;
  return answer ? answer->calls : std::vector<ToolCall>{};
}

Errc code_of(const Result<ChatAnswer>& answer) { return answer ? Errc::not_found : answer.error().code; }

TEST(RequestBody, IsInTheFormOfChatCompletions) {
  ChatRequest request{.messages = {{Role::system, "You ring bells.", {}, {}},
                                   {Role::user, "Ring \"it\".", {}, {}},
                                   {Role::assistant, "", {{"call_1", "ring", R"({"times":2})"}}, {}},
                                   {Role::tool, "rung", {}, "call_1"},
                                   {Role::assistant, "Done.", {}, {}}},
                      .tools = R"([{"type":"function","function":{"name":"ring"}}])"};

  EXPECT_EQ(
      request_body(request, "small").value(),
      R"({"model":"small","messages":[{"role":"system","content":"You ring bells."},{"role":"user","content":"Ring \"it\"."},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"ring","arguments":"{\"times\":2}"}}]},)"
      R"({"role":"tool","content":"rung","tool_call_id":"call_1"},{"role":"assistant","content":"Done."}],)"
      R"("tools":[{"type":"function","function":{"name":"ring"}}],"stream":true,"stream_options":{"include_usage":true}})");

  request.model = "large";
  EXPECT_TRUE(request_body(request, "small").value().starts_with(R"({"model":"large",)"));
}

TEST(RequestBody, NamesToolsOnlyIfThereAreAny) {
  EXPECT_EQ(request_body({.messages = {}, .tools = "[]"}, "m").value().find("tools"), std::string::npos);
  EXPECT_EQ(request_body({}, "m").value().find("tools"), std::string::npos);
  EXPECT_FALSE(request_body({.tools = "{}"}, "m"));
  EXPECT_FALSE(request_body({.tools = "[}"}, "m"));
}

TEST(Completion, ReadsATextThatIsStreamed) {
  const auto answer = read(kTextStream, false);

  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(answer->text, "Good mörning 🔔");
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_TRUE(answer->calls.empty());
  EXPECT_EQ(answer->usage.prompt_tokens, 12);
  EXPECT_EQ(answer->usage.completion_tokens, 5);
}

TEST(Completion, PutsCallsTogetherByTheirIndex) {
  const auto answer = read(kCallStream, false);

  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(answer->calls,
            (std::vector<ToolCall>{{"call_a", "send_message", R"({"to":"ann"})"}, {"call_b", "ask", "{}"}}));
  EXPECT_EQ(answer->finish_reason, "tool_calls");
}

TEST(Completion, EstimatesTheTokensThatNobodyCounted) {
  const auto answer = read(R"(data: {"choices":[{"delta":{"content":"12345678"},"finish_reason":"stop"}]})"
                           "\n\n");

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->usage.prompt_tokens, 100);
  EXPECT_EQ(answer->usage.completion_tokens, 2);
}

TEST(Completion, TakesAnAnswerThatIsNotStreamed) {
  const auto answer =
      read(R"( {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi",
    "tool_calls":[{"id":"x","type":"function","function":{"name":"ring","arguments":{"times":2}}}]},"finish_reason":"stop"}],
    "usage":{"prompt_tokens":1,"completion_tokens":2}} )");

  ASSERT_TRUE(answer) << answer.error().detail;
  EXPECT_EQ(answer->text, "Hi");
  EXPECT_EQ(answer->calls, (std::vector<ToolCall>{{"x", "ring", R"({"times":2})"}}));
  EXPECT_EQ(answer->usage.completion_tokens, 2);
}

// A5
TEST(Completion, NoBeginningOfAStreamGivesAnAnswerUntilItsReasonHasCome) {
  for (const std::string_view stream : {std::string_view(kTextStream), std::string_view(kCallStream)}) {
    const std::size_t reason = stream.find("\"finish_reason\":\"");
    const std::size_t done = stream.find("[DONE]") + 6;
    for (std::size_t size = 0; size < stream.size(); ++size) {
      if (size <= done) {
        EXPECT_EQ(code_of(read(stream.substr(0, size), false)), Errc::model_garbled) << size;
      }
      if (size < reason) {
        EXPECT_EQ(code_of(read(stream.substr(0, size), true)), Errc::model_garbled) << size;
      }
    }
  }
}

// A5
TEST(Completion, ACallThatALimitCutOffIsNotGiven) {
  const std::string half = R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ring","arguments":"{\"ti"}}]})";

  for (const char* reason : {"length", "max_tokens", "content_filter"})
    EXPECT_EQ(code_of(read_deltas({half}, reason)), Errc::model_garbled) << reason;
  EXPECT_EQ(read_deltas({R"({"content":"half a sent"})"}, "length")->finish_reason, "length");
}

TEST(Completion, IsLenientAboutHowCallsAreWritten) {
  const std::vector<ToolCall> ring{{"a", "ring", R"({"n":1})"}};
  const std::vector<ToolCall> both{{"a", "ring", "{}"}, {"b", "toll", "{}"}};
  // Without an index.
  EXPECT_EQ(calls_of({R"({"tool_calls":[{"id":"a","function":{"name":"ring","arguments":"{\"n\""}}]})",
                      R"({"tool_calls":[{"function":{"arguments":":1}"}}]})"}),
            ring);
  EXPECT_EQ(
      calls_of({R"({"tool_calls":[{"id":"a","function":{"name":"ring"}},{"id":"b","function":{"name":"toll"}}]})"}),
      both);
  // The same index for all.
  EXPECT_EQ(calls_of({R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ring","arguments":"{}"}}]})",
                      R"({"tool_calls":[{"index":0,"id":"b","function":{"name":"toll","arguments":"{}"}}]})"}),
            both);
  // Id and name with every piece; or in pieces themselves.
  EXPECT_EQ(calls_of({R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ring","arguments":"{\"n\""}}]})",
                      R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ring","arguments":":1}"}}]})"}),
            ring);
  EXPECT_EQ(calls_of({R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ri"}}]})",
                      R"({"tool_calls":[{"index":0,"id":null,"function":{"name":"ng","arguments":null}}]})",
                      R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":1}"}}]})"}),
            ring);
  // Finished by another word.
  EXPECT_EQ(
      calls_of({R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"ring","arguments":"{\"n\":1}"}}]})"}, "stop"),
      ring);
}

TEST(Completion, MakesUpIdsThatAreMissingOrStandTwice) {
  const auto calls = calls_of({R"({"tool_calls":[{"index":0,"function":{"name":"ring","arguments":"{}"}}]})",
                               R"({"tool_calls":[{"index":1,"id":"x","function":{"name":"ring","arguments":"{}"}}]})",
                               R"({"tool_calls":[{"index":2,"id":"x","function":{"name":"ring","arguments":"{}"}}]})"});

  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].id, "call_0000000000000007_0");
  EXPECT_EQ(calls[1].id, "x");
  EXPECT_EQ(calls[2].id, "call_0000000000000007_2");
}

TEST(Completion, TakesTheOldFormOfACall) {
  const auto calls = calls_of(
      {R"({"function_call":{"name":"ring","arguments":"{\"n\""}})", R"({"function_call":{"arguments":":1}"}})"},
      "function_call");

  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].name, "ring");
  EXPECT_EQ(calls[0].arguments, R"({"n":1})");
}

TEST(Completion, IsLenientAboutHowATextIsWritten) {
  EXPECT_EQ(read_deltas({R"({"role":"assistant"})", R"({"content":null,"reasoning_content":"hmm"})",
                         R"({"content":[{"type":"text","text":"Hel"},{"type":"image"},"lo"]})", R"({"refusal":"!"})"})
                ->text,
            "Hello!");
  Completion completion(kSeed);
  ASSERT_TRUE(
      completion.eat(R"({"choices":[{"index":1,"delta":{"content":"another"}},{"delta":{"content":"this"}}]})"));
  EXPECT_EQ(completion.text(), "this");
}

TEST(Completion, AnErrorInTheStreamSaysWhoseItIs) {
  const struct {
    const char* text;
    Errc code;
    const char* says;
  } table[] = {
      {R"({"error":{"message":"overloaded","type":"server_error"}})", Errc::model_unavailable, "overloaded"},
      {R"({"error":{"message":"slow down","code":429}})", Errc::model_unavailable, "slow down"},
      {R"({"error":{"message":"too long","code":400}})", Errc::model_refused, "too long"},
      {R"({"error":"no memory"})", Errc::model_unavailable, "no memory"},
      {R"({"object":"error","message":"bad","code":40303})", Errc::model_unavailable, "bad"},
      {R"({"error":{}})", Errc::model_unavailable, "an error"},
  };
  for (const auto& line : table) {
    for (const bool streamed : {true, false}) {
      const auto answer = read(streamed ? fmt::format("data: {}\n\n", line.text) : line.text);
      EXPECT_EQ(code_of(answer), line.code) << line.text;
      EXPECT_NE(answer.error().detail.find(line.says), std::string::npos) << answer.error().detail;
    }
  }
}

TEST(Completion, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"", "   ", "<html>nothing here</html>", "data: [DONE]\n\n", "data: {\n\n", "data: 7\n\n", "{", "{}", "[]",
        "data: {\"choices\":{}}\n\ndata: [DONE]\n\n", "data: {\"choices\":[7]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":7}]}\n\n", "data: {\"choices\":[{\"delta\":{\"content\":7}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":7}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[7]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"x\",\"arguments\":7}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\"}]},\"finish_reason\":\"tool_calls\"}]}\n\n"}) {
    const auto answer = read(text);
    EXPECT_EQ(code_of(answer), Errc::model_garbled) << text;
    EXPECT_FALSE(answer.error().detail.empty());
  }
}

TEST(Completion, HasItsLimits) {
  const auto text_of_size = [](std::size_t size) { return R"({"content":")" + std::string(size, 'x') + "\"}"; };
  EXPECT_EQ(read_deltas({text_of_size(kTextBytesMax)})->text.size(), kTextBytesMax);
  EXPECT_EQ(code_of(read_deltas({text_of_size(kTextBytesMax), text_of_size(1)})), Errc::model_garbled);

  const auto call = [](std::size_t index, std::size_t size) {
    return fmt::format(R"({{"tool_calls":[{{"index":{},"function":{{"name":"n","arguments":"{}"}}}}]}})", index,
                       std::string(size, '1'));
  };
  EXPECT_EQ(calls_of({call(0, kArgumentsBytesMax)}).size(), 1u);
  EXPECT_EQ(code_of(read_deltas({call(0, kArgumentsBytesMax), call(0, 1)})), Errc::model_garbled);
  std::vector<std::string> many;
  for (std::size_t i = 0; i < kCallsMax; ++i) many.push_back(call(i, 1));
  EXPECT_EQ(calls_of(many).size(), kCallsMax);
  many.push_back(call(kCallsMax, 1));
  EXPECT_EQ(code_of(read_deltas(many)), Errc::model_garbled);

  EXPECT_EQ(code_of(read("{\"x\":\"" + std::string(kWholeAnswerBytesMax, 'x'))), Errc::model_garbled);
  EXPECT_EQ(code_of(read("data: " + std::string(10u << 20, 'x'))), Errc::model_garbled);
}

TEST(Shortened, IsOneLineOfWholeLetters) {
  EXPECT_EQ(shortened("a\r\nb\x01\xFF", 10), "a  b  ");
  EXPECT_EQ(shortened("äöü", 4), "äö…");
  EXPECT_EQ(shortened("äöü", 5), "äö…");
  EXPECT_EQ(shortened("äöü", 6), "äöü");
}

RC_GTEST_PROP(Completion, AnySplitOfTheBytesGivesTheSameAnswer, ()) {
  const std::string stream = *rc::gen::element<std::string>(kTextStream, kCallStream);
  const auto pieces = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 60));
  const auto keep = *rc::gen::inRange<std::size_t>(0, stream.size() + 1);
  const bool clean = *rc::gen::arbitrary<bool>();

  const auto whole = read(stream.substr(0, keep), clean);
  const auto split = read(stream.substr(0, keep), clean, pieces);

  RC_ASSERT(whole.has_value() == split.has_value());
  if (!whole) RC_ASSERT(whole.error().detail == split.error().detail);
  if (!whole) return;
  RC_ASSERT(whole->text == split->text);
  RC_ASSERT(whole->calls == split->calls);
  RC_ASSERT(whole->finish_reason == split->finish_reason);
}

}  // namespace
}  // namespace belfry::llm
