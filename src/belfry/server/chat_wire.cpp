#include "belfry/server/chat_wire.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/bus/send_request.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"

namespace belfry::server::wire {
namespace {

using json::Fields;

// `user` for one, `users` for several; the same for agents.
Result<> read_names(const Fields& fields, std::string_view one, std::string_view several,
                    std::vector<std::string>& into) {
  if (fields.find(one) && fields.find(several))
    return fail(Errc::invalid_argument, fmt::format("{} stands beside {}; one of them is enough", one, several));
  BELFRY_CHECK(fields.texts(several, chat::kMembersMax, into));
  if (!fields.find(one)) return {};
  into.emplace_back();
  return fields.text(one, into.back());
}

void write_session(json::Writer& writer, const chat::Session& session) {
  writer.object().field("sessionId", session.id).field("kind", chat::word(session.kind));
  if (!session.title.empty()) writer.field("title", session.title);
  if (!session.timezone.empty()) writer.field("timezone", session.timezone);
  writer.key("users").array();
  for (const std::string& name : session.people()) writer.value(name);
  writer.end().key("agents").array();
  for (const std::string& name : session.agents()) writer.value(name);
  writer.end().field("createdAt", to_iso(session.created_at)).field("lastSeq", session.last_seq);
  writer.field("lastAt", to_iso(session.last_at));
  if (!session.last_from.empty()) writer.field("lastFrom", session.last_from).field("lastText", session.last_text);
  writer.end();
}

void write_question(json::Writer& writer, const chat::QuestionStatus& question) {
  writer.field("questionState", chat::word(question.state));
  if (question.answer_by) writer.field("answerBy", to_iso(*question.answer_by));
  writer.key("answer");
  if (!question.answer) {
    writer.null();
    return;
  }
  const chat::Answer& answer = *question.answer;
  writer.object().key("index");
  if (answer.index) {
    writer.value(*answer.index);
  } else {
    writer.null();
  }
  writer.field("text", answer.text).field("by", answer.by).field("at", to_iso(answer.at)).end();
}

void write_line(json::Writer& writer, const chat::Line& line) {
  write_line_fields(writer.object(), line);
  writer.end();
}

}  // namespace

void write_line_fields(json::Writer& writer, const chat::Line& line) {
  writer.field("seq", line.seq).field("messageId", line.id).field("from", line.from);
  if (!line.to.empty()) writer.field("to", line.to);
  writer.field("source", chat::word(line.source)).field("text", chat::text_of(line.payload));
  writer.key("payload").raw(line.payload);
  if (line.question) {
    writer.key("quickReplies").array();
    for (const std::string& reply : bus::quick_replies_of(line.payload)) writer.value(reply);
    writer.end();
    write_question(writer, *line.question);
  }
  if (!line.in_reply_to.empty()) writer.field("inReplyTo", line.in_reply_to);
  if (line.quick_reply_index) writer.field("quickReplyIndex", *line.quick_reply_index);
  if (!line.closes.empty()) {
    writer.key("closes").array();
    for (const std::string& id : line.closes) writer.value(id);
    writer.end();
  }
  if (!line.task_id.empty()) writer.field("taskId", line.task_id);
  writer.field("createdAt", to_iso(line.created_at)).field("saidAt", to_iso(line.said_at));
  if (line.due_at) writer.field("dueAt", to_iso(*line.due_at));
}

Result<chat::NewSession> read_session(std::string_view body) {
  BELFRY_TRY(const Fields fields,
             Fields::read("a session", body, {"kind", "user", "users", "agent", "agents", "timezone", "title", "key"}));
  chat::NewSession wanted;
  std::string kind = "private";
  BELFRY_CHECK(fields.text("kind", kind));
  const auto known = chat::parse_session_kind(kind);
  if (!known)
    return fail(Errc::invalid_argument,
                fmt::format("kind \"{}\" is not known; there are private and group", kind.substr(0, 40)));
  wanted.kind = *known;
  BELFRY_CHECK(read_names(fields, "user", "users", wanted.people));
  BELFRY_CHECK(read_names(fields, "agent", "agents", wanted.agents));
  if (wanted.people.empty() && !fields.find("users")) wanted.people.emplace_back(chat::kDefaultPerson);
  BELFRY_CHECK(fields.text("timezone", wanted.timezone));
  BELFRY_CHECK(fields.text("title", wanted.title));
  BELFRY_CHECK(fields.text("key", wanted.key));
  return wanted;
}

Result<std::optional<int>> read_quick_reply_index(const Fields& fields) {
  if (!fields.find("quickReplyIndex")) return std::nullopt;
  std::int64_t index = 0;
  BELFRY_CHECK(fields.whole("quickReplyIndex", index));
  return static_cast<int>(std::clamp<std::int64_t>(index, INT32_MIN, INT32_MAX));
}

Result<chat::Post> read_post(std::string_view body) {
  BELFRY_TRY(const Fields fields,
             Fields::read("a message", body, {"text", "from", "inReplyTo", "quickReplyIndex", "key"}));
  chat::Post post;
  BELFRY_CHECK(fields.text("text", post.text));
  BELFRY_CHECK(fields.text("from", post.from));
  BELFRY_CHECK(bus::check_speaker("from", post.from));
  BELFRY_CHECK(fields.text("inReplyTo", post.in_reply_to));
  BELFRY_CHECK(fields.text("key", post.key));
  BELFRY_TRY(post.quick_reply_index, read_quick_reply_index(fields));
  return post;
}

Result<LinesQuery> read_lines_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  LinesQuery wanted;
  chat::LinesRequest& request = wanted.lines;
  bool has_after = false;
  bool searches = false;
  for (const auto& [name, value] : pairs) {
    if (name == "after") {
      BELFRY_TRY(request.after, read_number(name, value));
    } else if (name == "before") {
      BELFRY_TRY(request.before, read_number(name, value));
    } else if (name == "limit") {
      BELFRY_TRY(request.limit, read_limit(value, chat::kLinesPageMax));
    } else if (name == "waitMs") {
      BELFRY_TRY(const std::int64_t wait, read_number(name, value));
      request.wait = Millis{wait};
    } else if (name == "search") {
      wanted.search = value;
      searches = true;
    } else {
      return unknown_parameter(name, "after, before, limit, waitMs, search");
    }
    has_after = has_after || name == "after";
  }
  if (searches && is_blank(wanted.search)) return fail(Errc::empty_text, "search is empty; it says what to look for");
  if (searches && (has_after || request.wait > Millis{0}))
    return fail(Errc::invalid_argument, "search looks back, from before or from the end; it takes no after or waitMs");
  if (has_after && request.before)
    return fail(Errc::invalid_argument, "after stands beside before; one of them is enough");
  return wanted;
}

Result<chat::Draft> read_draft(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a draft", body, {"from", "draftId", "text", "done"}));
  chat::Draft draft;
  bool done = false;
  BELFRY_CHECK(fields.text("from", draft.from));
  BELFRY_CHECK(bus::check_speaker("from", draft.from));
  BELFRY_CHECK(fields.text("draftId", draft.id));
  BELFRY_CHECK(fields.text("text", draft.text));
  BELFRY_CHECK(fields.flag("done", done));
  if (done) draft.text.clear();
  return draft;
}

Result<SessionsQuery> read_sessions_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  SessionsQuery wanted;
  for (const auto& [name, value] : pairs) {
    if (name == "member") {
      wanted.member = value;
    } else if (name == "after") {
      wanted.after = value;
    } else if (name == "limit") {
      BELFRY_TRY(wanted.limit, read_limit(value, chat::kLinesPageMax));
    } else {
      return unknown_parameter(name, "member, after, limit");
    }
  }
  return wanted;
}

std::string session(const chat::Session& session) {
  json::Writer writer;
  write_session(writer, session);
  return writer.take();
}

std::string sessions(const chat::ChatTables::SessionPage& page) {
  json::Writer writer;
  writer.object().key("sessions").array();
  for (const chat::Session& one : page.sessions) write_session(writer, one);
  writer.end();
  if (!page.next.empty()) writer.field("next", page.next);
  return writer.end().take();
}

std::string people(const std::vector<std::string>& names) {
  json::Writer writer;
  writer.object().key("people").array();
  for (const std::string& name : names) writer.object().field("id", name).end();
  return writer.end().end().take();
}

std::string posted(const chat::Posted& posted) {
  json::Writer writer;
  writer.object().field("messageId", posted.id).field("seq", posted.seq);
  if (!posted.warnings.empty()) {
    writer.key("warnings").array();
    for (const std::string& warning : posted.warnings) writer.value(warning);
    writer.end();
  }
  return writer.end().take();
}

std::string lines(const std::vector<chat::Line>& lines) {
  json::Writer writer;
  writer.object().key("messages").array();
  for (const chat::Line& line : lines) write_line(writer, line);
  return writer.end().end().take();
}

std::string found(const chat::ChatTables::Found& found) {
  json::Writer writer;
  writer.object().key("messages").array();
  for (const chat::Line& line : found.lines) write_line(writer, line);
  writer.end();
  if (found.more) writer.field("next", found.examined_to);
  return writer.end().take();
}

std::string drafts(const std::vector<chat::Draft>& drafts) {
  json::Writer writer;
  writer.object().key("drafts").array();
  for (const chat::Draft& draft : drafts)
    writer.object().field("draftId", draft.id).field("from", draft.from).field("text", draft.text).end();
  return writer.end().end().take();
}

}  // namespace belfry::server::wire
