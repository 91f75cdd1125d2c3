#include "belfry/server/wire.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "belfry/base/limits.h"
#include "belfry/bus/delay.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"
#include "belfry/when/report.h"

namespace belfry::server::wire {
namespace {

using bus::TimeText;
using bus::write_understood;
using bus::write_warnings;
using json::Fields;
using json::wrong_type;

Result<> read_leases(const Fields& fields, std::vector<std::string>& leases) {
  BELFRY_CHECK(fields.texts("leases", kReceiveMax, leases));
  if (leases.empty())
    return fail(Errc::invalid_argument, "leases is missing: a list of the leases that :receive handed out");
  return {};
}

void write_time(json::Writer& writer, std::string_view name, std::optional<WallTime> time) {
  writer.key(name);
  if (time) {
    writer.value(to_iso(*time));
  } else {
    writer.null();
  }
}

void write_info(json::Writer& writer, const bus::MessageInfo& info, bool with_payload) {
  writer.field("messageId", bus::to_text(info.id)).field("state", bus::word(info.state));
  writer.field("to", info.to).field("from", info.from);
  if (!info.task_id.empty()) writer.field("taskId", info.task_id);
  if (!info.session_id.empty()) writer.field("sessionId", info.session_id);
  writer.field("createdAt", to_iso(info.created_at)).field("deliverAt", to_iso(info.deliver_at));
  if (!info.moves.empty()) {
    writer.key("moves").array();
    for (const bus::Move& move : info.moves)
      writer.object()
          .field("at", to_iso(move.at))
          .field("cause", move.cause)
          .field("from", to_iso(move.from))
          .field("to", to_iso(move.to))
          .end();
    writer.end();
  }
  write_time(writer, "deliveredAt", info.delivered_at);
  writer.key("latenessMs");
  if (info.lateness) {
    writer.value(info.lateness->count());
  } else {
    writer.null();
  }
  writer.field("attempts", info.attempts).field("forced", info.forced);
  if (info.leased_until) writer.field("leasedUntil", to_iso(*info.leased_until));
  if (info.expires_at) writer.field("expiresAt", to_iso(*info.expires_at));
  if (info.ended_at) writer.field("endedAt", to_iso(*info.ended_at));
  if (!info.ended_by.empty()) writer.field("endedBy", info.ended_by);
  if (!info.reason.empty()) writer.field("reason", info.reason);
  if (with_payload && !info.payload.empty()) writer.key("payload").raw(info.payload);
}

void write_counts(json::Writer& writer, const bus::Counts& counts) {
  writer.field("pending", counts.pending).field("delayed", counts.delayed).field("inFlight", counts.in_flight);
}

}  // namespace

// --- requests ---

Result<SendRequest> read_send(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a send", body,
                                               {"to", "payload", "from", "taskId", "sessionId", "delayMs", "deliverAt",
                                                "schedule", "expiresAt", "quickReplies", "key"}));
  return bus::read_send(fields);
}

Result<TimeText> read_when(std::string_view body) {
  BELFRY_TRY(const Fields fields,
             Fields::read("a time to read", body, {"text", "now", "timezone", "language", "strict"}));
  TimeText time;
  if (!fields.find("text"))
    return fail(Errc::invalid_argument, "text is missing: a time like \"tomorrow at 9\" or 明天9点");
  BELFRY_CHECK(fields.text("text", time.text));
  BELFRY_CHECK(fields.instant("now", time.now));
  BELFRY_CHECK(fields.text("timezone", time.timezone));
  BELFRY_CHECK(fields.text("language", time.language));
  BELFRY_CHECK(fields.flag("strict", time.strict));
  return time;
}

Result<MoveRequest> read_move(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a change of time", body, {"deliverAt", "delayMs", "schedule"}));
  MoveRequest request;
  BELFRY_CHECK(fields.instant("deliverAt", request.deliver_at));
  BELFRY_CHECK(bus::read_schedule(fields, request.schedule));
  const auto delay = fields.find("delayMs");
  if (int{request.deliver_at.has_value()} + int{delay.has_value()} + int{request.schedule.has_value()} != 1)
    return fail(Errc::invalid_argument, "one of deliverAt, delayMs and schedule is needed, and only one");
  if (delay) {
    bus::DelayReading reading = bus::read_delay(*delay);
    // Unlike a send, a change that makes no sense is better not made.
    if (!reading.warning.empty()) return wrong_type("delayMs", *delay, "a number of milliseconds");
    request.delay = reading.delay;
  }
  return request;
}

Result<bus::ReceiveRequest> read_receive(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a receive", body, {"max", "waitMs", "leaseMs"}));
  std::int64_t max = 1;
  std::int64_t wait = 0;
  std::int64_t lease = kLeaseDefault.count();
  BELFRY_CHECK(fields.whole("max", max));
  BELFRY_CHECK(fields.whole("waitMs", wait));
  BELFRY_CHECK(fields.whole("leaseMs", lease));
  // The bus knows the real bounds and words the refusal.
  max = std::clamp<std::int64_t>(max, -1, INT32_MAX);
  return bus::ReceiveRequest{
      .recipient = {}, .max = static_cast<int>(max), .wait = Millis{wait}, .lease = Millis{lease}};
}

Result<AckRequest> read_ack(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("an ack", body, {"leases", "messageIds"}));
  AckRequest request;
  BELFRY_CHECK(fields.texts("leases", kReceiveMax, request.leases));
  BELFRY_CHECK(fields.texts("messageIds", kReceiveMax, request.ids));
  if (fields.find("leases").has_value() == fields.find("messageIds").has_value())
    return fail(Errc::invalid_argument, "one of leases and messageIds is needed, and only one");
  return request;
}

Result<ExtendRequest> read_extend(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("an extension", body, {"leases", "leaseMs"}));
  ExtendRequest request;
  BELFRY_CHECK(read_leases(fields, request.leases));
  std::int64_t lease = request.lease.count();
  BELFRY_CHECK(fields.whole("leaseMs", lease));
  request.lease = Millis{lease};
  return request;
}

Result<ReleaseRequest> read_release(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a release", body, {"leases", "delayMs"}));
  ReleaseRequest request;
  BELFRY_CHECK(read_leases(fields, request.leases));
  if (const auto delay = fields.find("delayMs")) {
    const bus::DelayReading reading = bus::read_delay(*delay);
    if (!reading.warning.empty()) return wrong_type("delayMs", *delay, "a number of milliseconds");
    request.delay = reading.delay;
  }
  return request;
}

Result<AgentRequest> read_agent(std::string_view body, std::string_view thinking_kind) {
  BELFRY_TRY(const json::Value value, json::parse(body.empty() ? "{}" : body));
  std::string plain(body);
  AgentRequest request{.id = {}, .kind = "external", .profile = "{}"};
  if (value.kind == json::Kind::object && !thinking_kind.empty() && json::text_in(value, "kind") == thinking_kind) {
    json::Writer own;
    json::Writer rest;
    own.object();
    rest.object();
    for (const json::Member& member : json::every_member(value))
      (member.key == "id" || member.key == "kind" ? own : rest).key(member.key).raw(member.value.raw);
    plain = own.end().take();
    request.profile = rest.end().take();
  }
  BELFRY_TRY(const Fields fields, Fields::read("an agent", plain, {"id", "kind"}));
  BELFRY_CHECK(fields.text("id", request.id));
  BELFRY_CHECK(fields.text("kind", request.kind));
  if (!fields.find("id")) return fail(Errc::invalid_argument, "id is missing: 1 to 64 of a-z 0-9 _ . -");
  return request;
}

Result<std::string> read_cancel(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a cancel", body, {"agent"}));
  std::string agent;
  BELFRY_CHECK(fields.text("agent", agent));
  if (!agent.empty()) BELFRY_CHECK(bus::check_id("agent", agent));
  return agent;
}

Result<int> read_limit_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  int limit = 100;
  for (const auto& [name, value] : pairs) {
    if (name != "limit") return unknown_parameter(name, "limit");
    BELFRY_TRY(limit, read_limit(value));
  }
  return limit;
}

Result<std::optional<std::int64_t>> read_number_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  std::optional<std::int64_t> number;
  for (const auto& [name, value] : pairs) {
    if (name != "number") return unknown_parameter(name, "number");
    BELFRY_TRY(number, read_number(name, value));
  }
  return number;
}

Result<bus::ListRequest> read_list_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  bus::ListRequest request;
  for (const auto& [name, value] : pairs) {
    if (name == "to") {
      BELFRY_CHECK(bus::check_id("to", value));
      request.to = value;
    } else if (name == "from") {
      BELFRY_CHECK(bus::check_id("from", value));
      request.from = value;
    } else if (name == "after") {
      request.after = value;
    } else if (name == "state") {
      request.state = bus::parse_message_state(value);
      if (!request.state)
        return fail(
            Errc::invalid_argument,
            fmt::format("state \"{}\" is not known; there are delayed, pending, leased, acked, cancelled, expired, "
                        "dead",
                        value.substr(0, 40)));
    } else if (name == "limit") {
      BELFRY_TRY(request.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "to, from, state, limit, after");
    }
  }
  return request;
}

Result<PageQuery> read_page_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  PageQuery page;
  for (const auto& [name, value] : pairs) {
    if (name == "after") {
      page.after = value;
    } else if (name == "limit") {
      BELFRY_TRY(page.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "limit, after");
    }
  }
  return page;
}

Result<> read_nothing(std::string_view body) {
  const auto fields = Fields::read("this route", body, {});
  if (!fields) return std::unexpected(fields.error());
  return {};
}

// --- answers ---

std::string reading(const when::Reading& reading, std::string_view text) {
  json::Writer writer;
  writer.object().field("ok", true);
  when::write_reading(writer, reading, text);
  return writer.end().take();
}

std::string info(const bus::MessageInfo& info, const std::vector<std::string>& warnings,
                 std::optional<Understood> understood) {
  json::Writer writer;
  writer.object();
  write_info(writer, info, true);
  write_understood(writer, understood);
  write_warnings(writer, warnings, {});
  return writer.end().take();
}

std::string list(const bus::ListResult& result) {
  json::Writer writer;
  writer.object().key("messages").array();
  for (const bus::MessageInfo& one : result.messages) {
    writer.object();
    write_info(writer, one, false);  // a page of payloads could be a gigabyte
    writer.end();
  }
  writer.end();
  if (!result.next.empty()) writer.field("next", result.next);
  return writer.end().take();
}

std::string deliveries(const std::vector<bus::Delivery>& deliveries, bool stopping) {
  json::Writer writer;
  writer.object().key("messages").array();
  for (const bus::Delivery& one : deliveries) {
    writer.object();
    writer.field("messageId", bus::to_text(one.id)).field("to", one.to).field("from", one.from);
    writer.key("payload").raw(one.payload);
    if (!one.task_id.empty()) writer.field("taskId", one.task_id);
    if (!one.session_id.empty()) writer.field("sessionId", one.session_id);
    writer.field("createdAt", to_iso(one.created_at)).field("deliverAt", to_iso(one.deliver_at));
    writer.field("deliveredAt", to_iso(one.delivered_at)).field("attempt", one.attempt);
    writer.field("forced", one.forced).field("lease", one.lease);
    writer.end();
  }
  writer.end();
  if (stopping) writer.field("stopping", true);
  return writer.end().take();
}

std::string outcome(std::string_view counted, const bus::AckOutcome& outcome) {
  json::Writer writer;
  writer.object().field(counted, outcome.acked);
  if (!outcome.refused.empty()) {
    writer.key("refused").array();
    for (const auto& refused : outcome.refused) {
      writer.object().field("messageId", refused.name).field("error", word(refused.error.code));
      writer.field("message", refused.error.detail).end();
    }
    writer.end();
  }
  return writer.end().take();
}

std::string counts(const std::string& recipient, const bus::Counts& counts, bool caught_up) {
  json::Writer writer;
  writer.object().field("recipient", recipient);
  write_counts(writer, counts);
  if (!caught_up) writer.field("caughtUp", false);
  return writer.end().take();
}

std::string agent(const bus::RecipientRow& row, const bus::Counts& counts, bool stopped, const std::string& profile) {
  json::Writer writer;
  writer.object().field("id", row.name).field("kind", row.kind);
  writer.field("createdAt", to_iso(wall_from_ms(row.created_ms)));
  if (stopped) writer.field("stopped", true);
  write_counts(writer, counts);
  if (!profile.empty()) writer.key("profile").raw(profile);
  return writer.end().take();
}

std::string agents(std::string_view written, std::string_view next) {
  json::Writer writer;
  writer.object().key("agents").array();
  if (!written.empty()) writer.raw(written);
  writer.end();
  if (!next.empty()) writer.field("next", next);
  return writer.end().take();
}

std::string removed_agent(const std::string& id, const std::vector<std::string>& all) {
  json::Writer writer;
  writer.object().field("id", id).field("result", "done");
  if (all.size() > 1) {
    writer.key("owned").array();
    for (const std::string& one : all)
      if (one != id) writer.value(one);
    writer.end();
  }
  return writer.end().take();
}

std::string counted(std::string_view what, std::int64_t number) {
  json::Writer writer;
  return writer.object().field(what, number).end().take();
}

std::string changed(bus::MessageId id) {
  json::Writer writer;
  return writer.object().field("messageId", bus::to_text(id)).field("result", "done").end().take();
}

}  // namespace belfry::server::wire
