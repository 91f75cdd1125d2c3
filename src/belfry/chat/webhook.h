// The webhook of a person: where what is said to them is sent, and what is on its way there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/base/result.h"
#include "belfry/base/secret.h"
#include "belfry/chat/conversation.h"

namespace belfry::chat {

inline constexpr std::size_t kWebhookUrlBytesMax = 2'000;
// Shorter ones can be guessed.
inline constexpr std::size_t kWebhookSecretBytesMin = 16;
inline constexpr std::size_t kWebhookSecretBytesMax = 256;
// Somebody waits behind every request, and five of them have to fit into ten minutes.
inline constexpr Millis kWebhookTimeoutMin{100};
inline constexpr Millis kWebhookTimeoutMax{30'000};
inline constexpr Millis kWebhookTimeoutDefault{10'000};
// What a person's own system calls one of its messages.
inline constexpr std::size_t kInboxIdBytesMax = 128;

struct Webhook {
  std::string person;
  std::string url;
  Secret secret;  // empty when it is set: stays as it is
  // Whether the receiver knows a request again by its Idempotency-Key: then one without an answer is made again.
  bool idempotent = false;
  Millis timeout = kWebhookTimeoutDefault;
  WallTime updated_at;
};
Result<> check(const Webhook& webhook);

// waiting -> sending -> sent | failed, or back to waiting. What is taken back while it waits is gone.
enum class OutboxState { waiting, sending, sent, failed };
std::string_view word(OutboxState state);
OutboxState parse_outbox_state(std::string_view text);

// Something that goes to a person's webhook.
struct OutboxRow {
  std::int64_t number = 0;
  std::string id;  // of the line, and the Idempotency-Key
  std::string person;
  std::string task;  // the scheduled message that is said when it has arrived; empty: it is in the log already
  std::string body;  // the same bytes in every attempt; gone when it has ended
  OutboxState state = OutboxState::waiting;
  bool unclear = false;  // an attempt had no answer: it may have arrived
  int attempts = 0;
  std::optional<std::int64_t> first_ms;    // when the first attempt began
  std::optional<std::int64_t> next_ms;     // when the next one is due; none while another goes before it
  std::optional<std::int64_t> expires_ms;  // after that it is not wanted any more
  std::string reason;
  std::string last_error;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> ended_ms;
};

struct OutboxQuery {
  std::string person;
  std::string after;  // the id where the page before ended
  int limit = 100;
};

struct OutboxPage {
  std::vector<OutboxRow> rows;  // the newest first, without bodies
  std::string next;
};

// What is sent about a line of a session.
std::string webhook_body(const std::string& session, const Line& line);

}  // namespace belfry::chat
