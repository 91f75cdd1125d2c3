// An agent that Belfry runs: it is handed one message at a time and does with it what it does.
#pragma once

#include <memory>
#include <string>

#include "belfry/base/asio.h"
#include "belfry/base/result.h"
#include "belfry/bus/envelope.h"
#include "belfry/tool/executor.h"

namespace belfry::agent {

// What an agent can do while it handles a message: everything goes out in its name, and belongs to the message's task
// (D20) and conversation.
class Hands {
 public:
  virtual ~Hands() = default;
  virtual Task<Result<bus::Sent>> send(bus::Outgoing message) = 0;
  // `call_id` names the call: made again after a crash, it has no second effect.
  Task<Result<tool::CallOutcome>> call(std::string tool, std::string arguments, std::string call_id) {
    return call_in("", std::move(tool), std::move(arguments), std::move(call_id));
  }
  // In another conversation of the agent's; empty: in this one.
  virtual Task<Result<tool::CallOutcome>> call_in(std::string session, std::string tool, std::string arguments,
                                                  std::string call_id) = 0;
};

class Agent {
 public:
  virtual ~Agent() = default;
  // Success acks the message; a refusal or an exception has it delivered again later, and at last to the dead letters.
  virtual Task<Result<>> handle(bus::Delivery message, Hands& hands) = 0;
};

// Says back what it is told: to try out a conversation, and for tests.
std::unique_ptr<Agent> make_echo();

}  // namespace belfry::agent
