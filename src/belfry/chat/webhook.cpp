#include "belfry/chat/webhook.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/net/url.h"

namespace belfry::chat {

Result<> check(const Webhook& webhook) {
  if (webhook.url.empty()) return fail(Errc::invalid_argument, "url is missing: where the messages are sent");
  if (webhook.url.size() > kWebhookUrlBytesMax)
    return fail(Errc::invalid_argument,
                fmt::format("url has {} bytes; at most {} are taken", webhook.url.size(), kWebhookUrlBytesMax));
  if (const auto url = net::parse_web_url(webhook.url); !url)
    return fail(Errc::invalid_argument, "url: " + url.error().detail);
  if (webhook.timeout < kWebhookTimeoutMin || webhook.timeout > kWebhookTimeoutMax)
    return fail(Errc::invalid_argument, fmt::format("timeout_ms is {}; {} to {} are possible", webhook.timeout.count(),
                                                    kWebhookTimeoutMin.count(), kWebhookTimeoutMax.count()));
  const std::size_t size = webhook.secret.reveal().size();
  if (size > 0 && (size < kWebhookSecretBytesMin || size > kWebhookSecretBytesMax))
    return fail(Errc::invalid_argument, fmt::format("secret has {} bytes; {} to {} are possible", size,
                                                    kWebhookSecretBytesMin, kWebhookSecretBytesMax));
  return {};
}

std::string_view word(OutboxState state) {
  switch (state) {
    case OutboxState::waiting: return "waiting";
    case OutboxState::sending: return "sending";
    case OutboxState::sent: return "sent";
    case OutboxState::failed: return "failed";
  }
  assertion_failed("a known state", __FILE__, __LINE__);
}

OutboxState parse_outbox_state(std::string_view text) {
  for (const OutboxState state : {OutboxState::waiting, OutboxState::sending, OutboxState::sent})
    if (word(state) == text) return state;
  return OutboxState::failed;
}

std::string webhook_body(const std::string& session, const Line& line) {
  json::Writer writer;
  writer.object().field("id", line.id).field("session_id", session);
  writer.field("agent", line.from).field("user", line.to);
  writer.field("source", word(line.source)).field("text", text_of(line.payload));
  const auto replies = bus::quick_replies_of(line.payload);
  if (!replies.empty()) {
    writer.key("quick_replies").array();
    for (const std::string& reply : replies) writer.value(reply);
    writer.end();
  }
  if (!line.in_reply_to.empty()) writer.field("in_reply_to", line.in_reply_to);
  writer.key("payload").raw(line.payload);
  writer.field("sent_at", to_iso(line.said_at));
  return writer.end().take();
}

}  // namespace belfry::chat
