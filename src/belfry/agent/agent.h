// An agent that Belfry runs: it is handed one message at a time and does with it what it does.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "belfry/base/asio.h"
#include "belfry/base/cancel.h"
#include "belfry/base/result.h"
#include "belfry/bus/envelope.h"
#include "belfry/tool/executor.h"

namespace belfry::agent {

// A tool, as an agent uses it.
struct ToolUse {
  std::string tool;
  std::string arguments;
  std::string call_id;             // names the call: made again after a crash, it has no second effect
  std::string session;             // another conversation of the agent's; empty: this one
  std::string reply_to;            // whom a reply would go to
  std::string in_reply_to;         // what it answers, where no log says so
  std::optional<Error> refusal{};  // it may not: the call is recorded with this as its result
};

// What an agent can do while it handles a message: everything goes out in its name, and belongs to the message's task
// (D20) and conversation.
class Hands {
 public:
  virtual ~Hands() = default;
  virtual Task<Result<bus::Sent>> send(bus::Outgoing message) = 0;
  virtual Task<Result<tool::CallOutcome>> use(ToolUse use) = 0;
  Task<Result<tool::CallOutcome>> call(std::string tool, std::string arguments, std::string call_id) {
    return use({.tool = std::move(tool), .arguments = std::move(arguments), .call_id = std::move(call_id)});
  }
  // The task that this belongs to: the message's, or one of its own if it has none.
  virtual std::string task_id() const = 0;
  // From here on it waits for somebody outside: others need not wait for that.
  virtual void step_aside() = 0;
  // Cancelled when nobody waits for the end of this any more: the agent was removed, or the turn was given up. Whoever
  // finds it so does nothing more, and says nothing about it.
  virtual std::shared_ptr<Cancel> cancel() = 0;
  virtual bool abandoned() const = 0;
  // Whatever it returns, the message comes again after this, however often; that is no failure of the agent's.
  virtual void postpone(Millis delay) = 0;
};

class Agent {
 public:
  virtual ~Agent() = default;
  // Success acks the message; a refusal or an exception has it delivered again later, and at last to the dead letters.
  virtual Task<Result<>> handle(bus::Delivery message, Hands& hands) = 0;
};

// Which conversation a message belongs to: its session, or what its sender and the agent say to each other without one.
std::string conversation_of(const bus::Delivery& message);

// Says back what it is told: to try out a conversation, and for tests.
std::unique_ptr<Agent> make_echo();

}  // namespace belfry::agent
