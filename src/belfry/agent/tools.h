// The tools of agents that think: speaking (reply, stay_silent), finding tools (tool_search), and having agents of their own
// (spawn_agent, remove_agent).
#pragma once

#include <memory>
#include <vector>

#include "belfry/agent/roster.h"
#include "belfry/chat/chats.h"
#include "belfry/tool/executor.h"
#include "belfry/tool/tool.h"

namespace belfry::agent {

// Agents that one agent may have at a time, and how long a line of owners may be (A9).
inline constexpr std::size_t kOwnedMax = 10;
inline constexpr int kDepthMax = 3;

// What they work with; outlives them.
struct ToolParts {
  bus::MessageBus& bus;
  chat::Chats& chats;
  const tool::Executor& executor;
  Roster& roster;
};

std::vector<std::unique_ptr<tool::Tool>> make_agent_tools(ToolParts parts);

}  // namespace belfry::agent
