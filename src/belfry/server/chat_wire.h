// JSON of conversations and tools to types and back: the part of wire for those routes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/chat/chats.h"
#include "belfry/tool/executor.h"

namespace belfry::server::wire {

// --- requests ---

Result<chat::NewSession> read_session(std::string_view body);
Result<chat::Post> read_post(std::string_view body);
Result<chat::LinesRequest> read_lines_query(std::string_view query);

struct SessionsQuery {
  std::string member;
  std::string after;
  int limit = 100;
};
Result<SessionsQuery> read_sessions_query(std::string_view query);

// The tool's name is not part of the body.
Result<tool::CallRequest> read_call(std::string_view body);
Result<tool::CallTables::Query> read_calls_query(std::string_view query);

// --- answers ---

std::string session(const chat::Session& session);
std::string sessions(const chat::ChatTables::SessionPage& page);
std::string people(const std::vector<std::string>& names);
std::string posted(const chat::Posted& posted);
std::string lines(const std::vector<chat::Line>& lines);
std::string tools(const std::vector<const tool::Definition*>& definitions);
std::string called(const tool::CallOutcome& outcome);
std::string calls(const tool::CallTables::Page& page);

}  // namespace belfry::server::wire
