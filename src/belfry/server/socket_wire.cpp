#include "belfry/server/socket_wire.h"

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"
#include "belfry/run/run_json.h"
#include "belfry/server/chat_wire.h"

namespace belfry::server::wire {
namespace {

using json::Fields;

// As many chats as a page lists.
constexpr std::size_t kSessionsMax = 500;

Result<Hello::Known> read_known(const Fields& fields, std::string_view session_name) {
  Hello::Known known;
  BELFRY_CHECK(fields.text(session_name, known.session));
  BELFRY_CHECK(fields.whole("after", known.after));
  if (known.session.empty()) return fail(Errc::invalid_argument, fmt::format("{} is missing", session_name));
  if (known.after < 0) return fail(Errc::invalid_argument, "after is negative; it is the last number that is known");
  return known;
}

Result<ClientFrame> read_hello(std::string_view text) {
  BELFRY_TRY(const Fields fields, Fields::read("hello", text, {"op", "token", "person", "sessions"}));
  Hello hello{.person = chat::kDefaultPerson};
  BELFRY_CHECK(fields.text("token", hello.token));
  BELFRY_CHECK(fields.text("person", hello.person));
  const auto sessions = fields.find("sessions");
  if (!sessions) return hello;
  if (sessions->kind != json::Kind::array) return fail(Errc::invalid_argument, "sessions is a list of {id, after}");
  for (const json::Value one : json::elements(*sessions)) {
    if (hello.sessions.size() == kSessionsMax)
      return fail(Errc::invalid_argument, fmt::format("sessions has more than {} entries", kSessionsMax));
    if (one.kind != json::Kind::object) return fail(Errc::invalid_argument, "sessions is a list of {id, after}");
    BELFRY_TRY(const Fields known, Fields::read("sessions", one.raw, {"id", "after"}));
    BELFRY_TRY(auto entry, read_known(known, "id"));
    hello.sessions.push_back(std::move(entry));
  }
  return hello;
}

Result<ClientFrame> read_send(std::string_view text) {
  BELFRY_TRY(const Fields fields,
             Fields::read("send", text, {"op", "session", "text", "key", "inReplyTo", "quickReplyIndex"}));
  SendLine send;
  chat::Post& post = send.post;
  BELFRY_CHECK(fields.text("session", post.session));
  BELFRY_CHECK(fields.text("text", post.text));
  BELFRY_CHECK(fields.text("key", post.key));
  BELFRY_CHECK(fields.text("inReplyTo", post.in_reply_to));
  BELFRY_TRY(post.quick_reply_index, read_quick_reply_index(fields));
  if (post.key.empty())
    return fail(Errc::invalid_argument,
                "key is missing: the client's name for what it sends, so that a repeat says"
                " nothing twice");
  return send;
}

json::Writer& begin(json::Writer& writer, std::string_view op) { return writer.object().field("op", op); }

std::string_view word(ComingItem::Kind kind) {
  switch (kind) {
    case ComingItem::Kind::message: return "message";
    case ComingItem::Kind::scheduled: return "scheduled";
    case ComingItem::Kind::question: return "question";
    case ComingItem::Kind::run: return "run";
  }
  return "message";
}

void write_item(json::Writer& writer, const ComingItem& item) {
  writer.object().field("kind", word(item.kind)).field("id", item.id).field("from", item.from);
  if (!item.to.empty()) writer.field("to", item.to);
  writer.field("at", to_iso(item.at)).field("text", item.text);
  if (item.kind != ComingItem::Kind::question) writer.field("createdAt", to_iso(item.created_at));
  if (item.kind == ComingItem::Kind::question) writer.field("seq", item.seq).field("onTimeout", item.on_timeout);
  if (!item.quick_replies.empty()) {
    writer.key("quickReplies").array();
    for (const std::string& reply : item.quick_replies) writer.value(reply);
    writer.end();
  }
  if (item.in_outbox) writer.field("inOutbox", true);
  if (item.kind == ComingItem::Kind::run)
    writer.field("runId", item.run).field("stepIndex", item.step).field("state", item.state);
  writer.end();
}

}  // namespace

Result<ClientFrame> read_client_frame(std::string_view text) {
  const auto whole = json::parse(text);
  if (!whole || whole->kind != json::Kind::object)
    return fail(Errc::invalid_json, "a frame is one JSON object with an op");
  const std::string op = json::text_in(*whole, "op");
  if (op == "hello") return read_hello(text);
  if (op == "send") return read_send(text);
  if (op == "subscribe") {
    BELFRY_TRY(const Fields fields, Fields::read("subscribe", text, {"op", "session", "after"}));
    BELFRY_TRY(auto known, read_known(fields, "session"));
    return Subscribe{std::move(known)};
  }
  if (op == "unsubscribe") {
    BELFRY_TRY(const Fields fields, Fields::read("unsubscribe", text, {"op", "session"}));
    Unsubscribe frame;
    BELFRY_CHECK(fields.text("session", frame.session));
    return frame;
  }
  if (op == "stop") {
    BELFRY_TRY(const Fields fields, Fields::read("stop", text, {"op", "session", "agent"}));
    Stop frame;
    BELFRY_CHECK(fields.text("session", frame.session));
    BELFRY_CHECK(fields.text("agent", frame.agent));
    return frame;
  }
  if (op == "watchRun") {
    BELFRY_TRY(const Fields fields, Fields::read("watchRun", text, {"op", "runId", "after"}));
    WatchRun frame;
    BELFRY_CHECK(fields.text("runId", frame.run));
    BELFRY_CHECK(fields.whole("after", frame.after));
    return frame;
  }
  if (op == "ping") {
    BELFRY_TRY(const Fields fields, Fields::read("ping", text, {"op"}));
    return Ping{};
  }
  return fail(Errc::invalid_argument,
              fmt::format("op \"{}\" is not known; there are hello, subscribe, unsubscribe, send,"
                          " stop, watchRun and ping",
                          op.substr(0, 40)));
}

std::string welcome(std::string_view version, WallTime now, const std::string& person, const std::string& timezone) {
  json::Writer writer;
  begin(writer, "welcome").field("version", version).field("now", to_iso(now)).field("person", person);
  return writer.field("timezone", timezone).end().take();
}

std::string pong(WallTime now) {
  json::Writer writer;
  return begin(writer, "pong").field("now", to_iso(now)).end().take();
}

std::string message(const std::string& session, const chat::Line& line) {
  json::Writer writer;
  begin(writer, "message").field("session", session);
  write_line_fields(writer, line);
  return writer.end().take();
}

std::string caught_up(const std::string& session, std::int64_t seq) {
  json::Writer writer;
  return begin(writer, "caughtUp").field("session", session).field("seq", seq).end().take();
}

std::string activity(const std::string& session, const chat::Line& line) {
  json::Writer writer;
  begin(writer, "activity").field("session", session).field("seq", line.seq).field("from", line.from);
  writer.field("source", chat::word(line.source));
  const std::string text = chat::text_of(line.payload);
  return writer.field("text", first_characters(text, chat::kPreviewCharactersMax)).end().take();
}

std::string sent(const chat::Post& post, const chat::Posted& posted) {
  json::Writer writer;
  begin(writer, "sent").field("key", post.key).field("session", post.session);
  writer.field("messageId", posted.id).field("seq", posted.seq);
  if (!posted.warnings.empty()) {
    writer.key("warnings").array();
    for (const std::string& warning : posted.warnings) writer.value(warning);
    writer.end();
  }
  return writer.end().take();
}

std::string socket_error(const Error& error, const std::string& session, const std::string& key) {
  json::Writer writer;
  begin(writer, "error");
  if (!session.empty()) writer.field("session", session);
  if (!key.empty()) writer.field("key", key);
  return writer.field("error", belfry::word(error.code)).field("message", error.detail).end().take();
}

std::string draft(const std::string& session, const chat::Draft& draft, bool ended) {
  json::Writer writer;
  begin(writer, "draft").field("session", session).field("draftId", draft.id).field("from", draft.from);
  if (ended) return writer.field("done", true).end().take();
  return writer.field("text", draft.text).end().take();
}

std::string coming_changed(const std::string& session) {
  json::Writer writer;
  return begin(writer, "coming").field("session", session).end().take();
}

std::string counts(const bus::Counts& all, std::int64_t delayed_for_person) {
  json::Writer writer;
  begin(writer, "counts").field("delayed", all.delayed).field("pending", all.pending);
  return writer.field("mine", delayed_for_person).end().take();
}

std::string stopping() {
  json::Writer writer;
  return begin(writer, "stopping").end().take();
}

std::string run_changed(const run::Run& run) {
  json::Writer writer;
  begin(writer, "run").field("session", run.owner.session).key("run").raw(run::run_json(run, false));
  return writer.end().take();
}

std::string run_progress(const run::Run& run, int step, const std::string& progress) {
  json::Writer writer;
  begin(writer, "runProgress").field("session", run.owner.session).field("runId", run.id).field("stepIndex", step);
  return writer.key("progress").raw(progress).end().take();
}

std::string run_event(const run::Event& event) {
  json::Writer writer;
  return begin(writer, "runEvent").field("runId", event.run_id).key("event").raw(event.json).end().take();
}

std::string coming(const std::vector<ComingItem>& items, bool more, WallTime now) {
  json::Writer writer;
  writer.object().field("now", to_iso(now)).key("items").array();
  for (const ComingItem& item : items) write_item(writer, item);
  writer.end();
  if (more) writer.field("more", true);
  return writer.end().take();
}

}  // namespace belfry::server::wire
