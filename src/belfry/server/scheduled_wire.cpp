#include "belfry/server/scheduled_wire.h"

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/bus/send_answer.h"
#include "belfry/chat/private_message_json.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"

namespace belfry::server::wire {

using json::Fields;

Result<ScheduleRequest> read_scheduled(std::string_view body) {
  BELFRY_TRY(const Fields fields,
             Fields::read("a scheduled message", body,
                          {"session_id", "send_at", "message_text", "replace_existing", "max_late_ms", "call_id"}));
  ScheduleRequest request;
  BELFRY_CHECK(fields.text("session_id", request.message.session));
  BELFRY_CHECK(fields.text("send_at", request.send_at));
  BELFRY_CHECK(fields.text("message_text", request.message.text));
  BELFRY_CHECK(fields.flag("replace_existing", request.message.replace_existing));
  BELFRY_CHECK(fields.text("call_id", request.message.call));
  if (request.message.session.empty())
    return fail(Errc::not_private_chat, "session_id is missing: the private chat in which it is said");
  if (request.send_at.empty())
    return fail(Errc::invalid_time, "send_at is missing: an instant, or words like \"tomorrow at 9\"");
  if (request.message.call.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("call_id is longer than {} bytes", kKeyBytesMax));
  if (fields.find("max_late_ms")) {
    std::int64_t max_late = 0;
    BELFRY_CHECK(fields.whole("max_late_ms", max_late));
    request.message.max_late = Millis{max_late};
  }
  return request;
}

Result<RescheduleRequest> read_scheduled_change(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a change", body, {"send_at", "message_text"}));
  RescheduleRequest request;
  BELFRY_CHECK(fields.text("send_at", request.send_at));
  if (fields.find("message_text")) {
    request.text.emplace();
    BELFRY_CHECK(fields.text("message_text", *request.text));
  }
  if (request.send_at.empty() && !request.text)
    return fail(Errc::invalid_argument, "nothing is changed: send_at, message_text or both are needed");
  return request;
}

Result<chat::ScheduledQuery> read_scheduled_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  chat::ScheduledQuery wanted;
  for (const auto& [name, value] : pairs) {
    if (name == "session_id") {
      wanted.session = value;
    } else if (name == "status") {
      wanted.status = chat::parse_scheduled_status(value);
      if (!wanted.status)
        return fail(Errc::invalid_argument,
                    fmt::format("status \"{}\" is none of pending, sent, cancelled, failed", value.substr(0, 40)));
    } else if (name == "after") {
      wanted.after = value;
    } else if (name == "limit") {
      BELFRY_TRY(wanted.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "session_id, status, after, limit");
    }
  }
  return wanted;
}

std::string scheduled(const chat::ScheduledMessage& message, const std::optional<when::Reading>& understood,
                      std::string_view text) {
  json::Writer writer;
  writer.object().key("task");
  chat::write_scheduled(writer, message);
  if (understood) bus::write_understood(writer, bus::Understood{*understood, text});
  return writer.end().take();
}

std::string scheduled_page(const chat::ScheduledPage& page) {
  json::Writer writer;
  writer.object().key("tasks").array();
  for (const chat::ScheduledMessage& one : page.messages) chat::write_scheduled(writer, one);
  writer.end();
  if (!page.next.empty()) writer.field("next", page.next);
  return writer.end().take();
}

}  // namespace belfry::server::wire
