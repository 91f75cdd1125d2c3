// Chat completions in the form that OpenAI gave them and most servers speak: a request to JSON, an answer from it. Pure.
//
// The answer is read as real servers write it: content that is null or a list of parts, calls without an index or an id, an
// error in the middle of the stream, a whole answer where a stream was asked for. What it is strict about is its end: an
// answer that did not say why it ended, or ended in the middle of a call, is none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/llm/model.h"
#include "belfry/llm/sse.h"

namespace belfry::llm {

// A text of a million letters is no answer to anybody, and every message in a session is at most as long.
inline constexpr std::size_t kTextBytesMax = 1u << 20;
// Calls in one answer: more at once than any model makes on purpose.
inline constexpr std::size_t kCallsMax = 64;
// The arguments of one call: a document fits, and 64 of them fit in memory.
inline constexpr std::size_t kArgumentsBytesMax = 256u << 10;
// An answer that is not streamed: the text and one large call, escaped.
inline constexpr std::size_t kWholeAnswerBytesMax = 8u << 20;

// The body of the request, streamed and with usage. `invalid_argument` if `tools` is no JSON array.
Result<std::string> request_body(const ChatRequest& request, std::string_view model);

// The message in a server's JSON about an error, `{"error":{"message":…}}` and its relatives; empty if there is none.
std::string error_message(json::Value body);

// The beginning of what a server wrote, in one line and whole letters.
std::string shortened(std::string_view text, std::size_t bytes_max);

// Puts an answer together from its chunks.
class Completion {
 public:
  // Ids that a server leaves out are made from `seed`, so that no two answers have the same.
  explicit Completion(std::uint64_t seed) : seed_(seed) {}

  // One chunk, or "[DONE]". After an error nothing more is taken.
  Result<> eat(std::string_view chunk);
  // A whole `chat.completion`, as servers send it that do not stream.
  Result<> eat_whole(std::string_view body);

  bool done() const { return done_; }
  const std::string& text() const { return text_; }
  // What it all came to. Only if a reason for its end came, and with it [DONE] or a clean end of the bytes. Where the server
  // did not count, tokens are estimated: four bytes each.
  Result<ChatAnswer> finish(bool clean_end, std::size_t request_bytes) const;

 private:
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };

  Result<> take(json::Value body);
  Result<> take_choice(json::Value choice);
  Result<> take_delta(json::Value delta);
  Result<> take_content(json::Value content);
  Result<> add_text(std::string_view text);
  Result<> take_call(json::Value call);
  Result<> take_function(std::size_t position, json::Value function, bool repeated);
  Result<std::size_t> position_of(json::Value call, const std::string& id, bool named);
  Result<std::size_t> new_call();
  void take_usage(json::Value usage);
  Usage usage(std::size_t request_bytes) const;
  Result<std::vector<ToolCall>> calls() const;

  std::uint64_t seed_;
  std::string text_;
  std::vector<Call> calls_;
  std::map<std::int64_t, std::size_t> positions_;  // of the calls, by the server's index
  std::string finish_reason_;
  std::optional<Usage> usage_;
  bool done_ = false;
};

// The same from bytes as they come: a stream of events, or one JSON object.
class CompletionReader {
 public:
  explicit CompletionReader(std::uint64_t seed) : completion_(seed) {}

  Result<> feed(std::string_view bytes);
  // Nothing more is wanted.
  bool done() const { return completion_.done(); }
  const std::string& text() const { return completion_.text(); }
  // Once, when no more bytes come; `clean_end` says whether the server ended them on purpose.
  Result<ChatAnswer> finish(bool clean_end, std::size_t request_bytes);

 private:
  enum class Form { unknown, events, whole };

  Result<> refuse(Error error);
  Result<> feed_events(std::string_view bytes);
  Result<> end_bytes();

  Form form_ = Form::unknown;
  EventParser events_;
  std::string body_;
  Completion completion_;
  std::optional<Error> refused_;
};

}  // namespace belfry::llm
