#include "belfry/server/webhook_wire.h"

#include <algorithm>

#include "belfry/base/fields.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"

namespace belfry::server::wire {

using json::Fields;

Result<chat::Webhook> read_webhook(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a webhook", body, {"url", "secret", "idempotent", "timeout_ms"}));
  chat::Webhook webhook;
  std::string secret;
  std::int64_t timeout = webhook.timeout.count();
  BELFRY_CHECK(fields.text("url", webhook.url));
  BELFRY_CHECK(fields.text("secret", secret));
  BELFRY_CHECK(fields.flag("idempotent", webhook.idempotent));
  BELFRY_CHECK(fields.whole("timeout_ms", timeout));
  if (fields.find("secret") && secret.empty())
    return fail(Errc::invalid_argument, "secret is empty; leave it out to keep the one that is there");
  webhook.secret = Secret(std::move(secret));
  webhook.timeout = Millis{timeout};
  return webhook;
}

Result<chat::Incoming> read_incoming(std::string_view body) {
  BELFRY_TRY(
      const Fields fields,
      Fields::read("a message", body, {"id", "text", "agent", "session_id", "in_reply_to", "quick_reply_index"}));
  chat::Incoming incoming;
  BELFRY_CHECK(fields.text("id", incoming.id));
  BELFRY_CHECK(fields.text("text", incoming.text));
  BELFRY_CHECK(fields.text("agent", incoming.agent));
  BELFRY_CHECK(fields.text("session_id", incoming.session));
  BELFRY_CHECK(fields.text("in_reply_to", incoming.in_reply_to));
  if (fields.find("quick_reply_index")) {
    std::int64_t index = 0;
    BELFRY_CHECK(fields.whole("quick_reply_index", index));
    incoming.quick_reply_index = static_cast<int>(std::clamp<std::int64_t>(index, INT32_MIN, INT32_MAX));
  }
  return incoming;
}

Result<chat::OutboxQuery> read_outbox_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  chat::OutboxQuery wanted;
  for (const auto& [name, value] : pairs) {
    if (name == "after") {
      wanted.after = value;
    } else if (name == "limit") {
      BELFRY_TRY(wanted.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "after, limit");
    }
  }
  return wanted;
}

std::string webhook(const chat::Webhook& webhook) {
  json::Writer writer;
  writer.object().field("user", webhook.person).field("url", webhook.url).field("idempotent", webhook.idempotent);
  writer.field("timeout_ms", webhook.timeout.count()).field("updated_at", to_iso(webhook.updated_at));
  return writer.end().take();
}

std::string webhook_removed(const std::string& person) {
  json::Writer writer;
  return writer.object().field("user", person).field("result", "done").end().take();
}

std::string outbox(const chat::OutboxPage& page) {
  json::Writer writer;
  writer.object().key("messages").array();
  for (const chat::OutboxRow& row : page.rows) {
    writer.object().field("id", row.id).field("state", chat::word(row.state)).field("attempts", row.attempts);
    if (!row.task.empty()) writer.field("task_id", row.task);
    if (row.next_ms) writer.field("next_at", to_iso(wall_from_ms(*row.next_ms)));
    if (!row.reason.empty()) writer.field("reason", row.reason);
    if (!row.last_error.empty()) writer.field("last_error", row.last_error);
    writer.field("created_at", to_iso(wall_from_ms(row.created_ms)));
    if (row.ended_ms) writer.field("ended_at", to_iso(wall_from_ms(*row.ended_ms)));
    writer.end();
  }
  writer.end();
  if (!page.next.empty()) writer.field("next", page.next);
  return writer.end().take();
}

}  // namespace belfry::server::wire
