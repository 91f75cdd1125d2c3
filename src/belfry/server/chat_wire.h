// JSON of conversations to types and back: the part of wire for their routes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/fields.h"
#include "belfry/base/json.h"
#include "belfry/chat/chats.h"

namespace belfry::server::wire {

// --- requests ---

Result<chat::NewSession> read_session(std::string_view body);
Result<chat::Post> read_post(std::string_view body);
Result<std::optional<int>> read_quick_reply_index(const json::Fields& fields);
// Lines by their numbers, or, with `search`, by what they say.
struct LinesQuery {
  chat::LinesRequest lines;
  std::string search;
};
Result<LinesQuery> read_lines_query(std::string_view query);
// What is being written.
std::string drafts(const std::vector<chat::Draft>& drafts);
Result<chat::Draft> read_draft(std::string_view body);

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
std::string found(const chat::ChatTables::Found& found);
void write_line_fields(json::Writer& writer, const chat::Line& line);

}  // namespace belfry::server::wire
