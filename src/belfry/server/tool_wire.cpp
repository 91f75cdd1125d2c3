#include "belfry/server/tool_wire.h"

#include "belfry/base/fields.h"
#include "belfry/bus/send_request.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"

namespace belfry::server::wire {
namespace {

using json::Fields;

void write_call(json::Writer& writer, const tool::CallRecord& record) {
  const tool::ToolContext& context = record.context;
  writer.object().field("number", record.number).field("tool", record.tool).field("state", tool::word(record.state));
  if (!context.agent_id.empty()) writer.field("agentId", context.agent_id);
  if (!context.session_id.empty()) writer.field("sessionId", context.session_id);
  if (!context.task_id.empty()) writer.field("taskId", context.task_id);
  if (!context.call_id.empty()) writer.field("callId", context.call_id);
  // What could not be read as JSON was recorded as it came.
  writer.key("arguments");
  if (json::parse(record.arguments)) {
    writer.raw(record.arguments);
  } else {
    writer.value(record.arguments);
  }
  if (!record.result.empty())
    writer.key(record.state == tool::CallState::failed ? "failure" : "result").raw(record.result);
  writer.field("startedAt", to_iso(record.started_at));
  if (record.ended_at) writer.field("endedAt", to_iso(*record.ended_at));
  writer.end();
}

}  // namespace

Result<tool::CallRequest> read_call(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a call", body, {"arguments", "context"}));
  tool::CallRequest request;
  // Models write their arguments as a text with JSON in it; both will do.
  if (const auto arguments = fields.find("arguments"))
    request.arguments = arguments->kind == json::Kind::string ? json::text(*arguments) : std::string(arguments->raw);
  const auto context = fields.find("context");
  if (!context) return request;
  BELFRY_TRY(const Fields inner, Fields::read("context", context->raw, {"agentId", "sessionId", "taskId", "callId"}));
  BELFRY_CHECK(inner.text("agentId", request.context.agent_id));
  BELFRY_CHECK(bus::check_speaker("agentId", request.context.agent_id));
  BELFRY_CHECK(inner.text("sessionId", request.context.session_id));
  BELFRY_CHECK(inner.text("taskId", request.context.task_id));
  BELFRY_CHECK(inner.text("callId", request.context.call_id));
  return request;
}

Result<std::string> read_tools_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  std::string session;
  for (const auto& [name, value] : pairs) {
    if (name != "session") return unknown_parameter(name, "session");
    session = value;
  }
  return session;
}

Result<tool::CallTables::Query> read_calls_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  tool::CallTables::Query wanted;
  for (const auto& [name, value] : pairs) {
    if (name == "session") {
      wanted.session = value;
    } else if (name == "agent") {
      wanted.agent = value;
    } else if (name == "after") {
      BELFRY_TRY(wanted.before, read_number(name, value));
    } else if (name == "limit") {
      BELFRY_TRY(wanted.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "session, agent, after, limit");
    }
  }
  return wanted;
}

std::string tools(const std::vector<const tool::Definition*>& definitions) {
  json::Writer writer;
  writer.object().key("tools").array();
  for (const tool::Definition* one : definitions) tool::write_definition(writer, *one);
  return writer.end().end().take();
}

std::string called(const tool::CallOutcome& outcome) {
  json::Writer writer;
  return writer.object().key("result").raw(outcome.result).end().take();
}

std::string calls(const tool::CallTables::Page& page) {
  json::Writer writer;
  writer.object().key("calls").array();
  for (const tool::CallRecord& one : page.records) write_call(writer, one);
  writer.end();
  if (page.next) writer.field("next", *page.next);
  return writer.end().take();
}

}  // namespace belfry::server::wire
