// A language model, as whoever asks it sees it: a conversation and tools go in, a text or calls of tools come out.
//
// Of a failure the caller learns what to do about it: `model_unavailable` passes by itself (busy, unreachable, silent;
// every try that made sense was made), `model_refused` does not (a wrong key, an unknown model), `model_garbled` is an
// answer that makes no sense or never ends, and `cancelled` was wanted. An answer is whole or none: calls of which only a
// part has come are never given back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/cancel.h"
#include "belfry/base/result.h"

namespace belfry::llm {

enum class Role { system, user, assistant, tool };
std::string_view word(Role role);

// The model wants a tool to be called. What stands in `arguments` is its own text: nobody has checked it.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;

  bool operator==(const ToolCall&) const = default;
};

struct ChatMessage {
  Role role = Role::user;
  std::string content;
  std::vector<ToolCall> calls;  // of an assistant
  std::string call_id;          // of a tool's result: the call that it belongs to

  bool operator==(const ChatMessage&) const = default;
};

struct ChatRequest {
  std::string model;  // empty: the configured one
  std::vector<ChatMessage> messages;
  std::string tools;  // a JSON array in the form of chat completions; empty: none
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

struct ChatAnswer {
  std::string text;
  std::vector<ToolCall> calls;
  std::string finish_reason;
  Usage usage;  // what the server said, or an estimate
};

// Hears the answer as it comes.
class Progress {
 public:
  virtual ~Progress() = default;
  // All of the text so far. After a try that failed it begins anew.
  virtual void wrote(std::string_view text) = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  // `cancel` ends it early; `progress` must live until it returns.
  virtual Task<Result<ChatAnswer>> complete(ChatRequest request, Progress& progress,
                                            std::shared_ptr<Cancel> cancel) = 0;
};

}  // namespace belfry::llm
