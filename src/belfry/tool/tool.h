// A tool: something with a name, a description and typed arguments that a model or a program can call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/json.h"
#include "belfry/base/result.h"

namespace belfry::tool {

struct Definition {
  std::string name;
  std::string description;
  std::string parameters;  // a JSON Schema
};

// {"type":"function","function":{"name":…,"description":…,"parameters":…}}, as chat completions take it.
void write_definition(json::Writer& writer, const Definition& definition);

// On whose behalf, and in which conversation.
struct ToolContext {
  std::string agent_id;
  std::string session_id;
  std::string task_id;
  std::string call_id;      // the caller's name for this call: a repeat has the first one's result and no other effect
  std::string reply_to;     // who is answered, if this is the turn of an agent; empty: whoever is there
  std::string in_reply_to;  // the message that is answered, where no log says so
  bool in_turn = false;     // an agent calls while it handles a message: that one's session need not be its own
  // Set by the executor:
  bool is_private = false;  // the session is a private chat
  std::string timezone;     // the session's; empty: the server's
  std::string once;         // effects under this name happen once, whatever crashes in between
  bool again = false;       // an earlier try of this call was cut off, perhaps after its effect
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual const Definition& definition() const = 0;
  // Arguments that the tool judges by rules of its own, which know better than the schema (D4, Q2 to Q5, D15).
  virtual std::vector<std::string_view> judged_by_itself() const { return {}; }
  // Takes its time outside of Belfry: others need not wait for it.
  virtual bool is_slow() const { return false; }
  // Not offered by itself, but found by those who search for it (A4).
  virtual bool is_deferred() const { return false; }
  // Can be a step of a plan.
  virtual bool in_plans() const { return false; }
  // Not offered to agents in a group.
  virtual bool in_private_chats_only() const { return false; }
  // `arguments` is an object that fits the schema; the result is a JSON object, too.
  virtual Task<Result<std::string>> call(ToolContext context, std::string arguments) = 0;
};

}  // namespace belfry::tool
