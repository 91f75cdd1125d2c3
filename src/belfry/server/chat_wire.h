// JSON of conversations to types and back: the part of wire for their routes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/chat/chats.h"

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

// --- answers ---

std::string session(const chat::Session& session);
std::string sessions(const chat::ChatTables::SessionPage& page);
std::string people(const std::vector<std::string>& names);
std::string posted(const chat::Posted& posted);
std::string lines(const std::vector<chat::Line>& lines);

}  // namespace belfry::server::wire
