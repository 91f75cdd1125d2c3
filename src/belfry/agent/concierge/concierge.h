// The agent that is there when no model is: it reminds, tells others later, lists, cancels and moves, in Chinese and
// English, through the same tools that models call.
//
// It remembers nothing by itself. What it has asked stands in its own line of the conversation (the field `concierge` of
// the payload), so an answer is understood after a restart as well as before.
#pragma once

#include <memory>

#include "belfry/agent/agent.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/chats.h"

namespace belfry::agent {

inline constexpr const char* kConcierge = "concierge";  // its kind, and its name where nobody gave it another

// What it borrows outlives it.
std::unique_ptr<Agent> make_concierge(chat::Chats& chats, const bus::TimeReader& times);

}  // namespace belfry::agent
