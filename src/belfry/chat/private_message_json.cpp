#include "belfry/chat/private_message_json.h"

#include "belfry/bus/send_answer.h"

namespace belfry::chat {

Result<when::Reading> read_send_at(const bus::TimeReader& times, const std::string& text, const std::string& timezone) {
  auto reading = times.read_moment({.text = text, .timezone = timezone}, "send_at");
  if (!reading) return fail(Errc::invalid_time, reading.error().detail);
  return reading;
}

void write_scheduled(json::Writer& writer, const ScheduledMessage& message) {
  writer.object().field("task_id", message.id).field("session_id", message.session_id);
  writer.field("agent_id", message.agent).field("user_id", message.person);
  writer.field("message_text", message.text).field("send_at", to_iso(message.send_at));
  writer.field("status", word(message.status));
  if (!message.reason.empty()) writer.field("reason", message.reason);
  if (!message.last_error.empty()) writer.field("last_error", message.last_error);
  writer.field("replace_existing", message.replace_existing);
  writer.field("created_at", to_iso(message.created_at)).field("updated_at", to_iso(message.updated_at));
  if (!message.created_by_call.empty()) writer.field("created_by_tool_call_id", message.created_by_call);
  if (!message.cancelled_by_call.empty()) writer.field("cancelled_by_tool_call_id", message.cancelled_by_call);
  if (!message.sent_message_id.empty()) writer.field("sent_message_id", message.sent_message_id);
  if (message.sent_at) writer.field("sent_at", to_iso(*message.sent_at));
  if (message.max_late) writer.field("max_late_ms", message.max_late->count());
  if (const auto late = message.late()) writer.field("late_ms", late->count());
  writer.end();
}

std::string created(const PrivateMessages::Created& created, const when::Reading& reading, const std::string& send_at) {
  const ScheduledMessage& message = created.message;
  json::Writer writer;
  writer.object().field("task_id", message.id).field("session_id", message.session_id);
  writer.field("send_at", to_iso(message.send_at)).field("message_text", message.text);
  writer.field("replace_existing", message.replace_existing);
  if (message.replace_existing) {
    writer.key("cancelled_task_ids").array();
    for (const std::string& id : created.cancelled) writer.value(id);
    writer.end();
  }
  bus::write_understood(writer, bus::Understood{reading, send_at});
  return writer.end().take();
}

}  // namespace belfry::chat
