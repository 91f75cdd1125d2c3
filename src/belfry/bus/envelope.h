// What goes in and what comes out of the bus: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belfry/base/time.h"
#include "belfry/bus/message_id.h"

namespace belfry::bus {

enum class MessageState { delayed, pending, leased, acked, cancelled, expired, dead };

std::string_view word(MessageState state);
std::optional<MessageState> parse_message_state(std::string_view text);

// A message as its sender hands it over.
struct Outgoing {
  std::string to;
  std::string from = "user";
  std::string payload;                     // checked JSON, forwarded as these bytes
  std::vector<std::string> quick_replies;  // travel in the payload (quick_replies.h)
  std::string task_id;
  std::string session_id;              // the conversation that it belongs to, if any
  Millis delay{0};                     // elapsed time; negative is none (D3)
  std::optional<WallTime> deliver_at;  // an instant on the wall clock instead of a delay
  std::string schedule;                // the words that its time was given in, if any: a repeat has the same words
  std::optional<WallTime> expires_at;  // past it, the message ends `expired` instead of being delivered (D23)
  std::string key;                     // the client's name for this send: a repeat makes no second message (D17)
  // Belfry's own name for it, which no client can use: a repeat makes no second message, whatever stands in it.
  std::string once;
};

struct Sent {
  MessageId id;
  std::optional<WallTime> scheduled_at;  // only for a message that is delayed (D2)
  bool repeated = false;                 // the key was known: this is the first send's answer
  std::vector<std::string> warnings;
};

// A message as its recipient gets it, with the lease that it must ack.
struct Delivery {
  MessageId id;
  std::string to;
  std::string from;
  std::string payload;
  std::string task_id;
  std::string session_id;
  WallTime created_at;
  WallTime deliver_at;
  WallTime delivered_at;
  int attempt = 1;
  bool forced = false;
  std::string lease;
};

// A message got another time.
struct Move {
  WallTime at;             // when that happened
  std::string_view cause;  // "moved", "delivered_now", "released", "retried"
  WallTime from;           // the time it had before
  WallTime to;
};

// The life of one message, as far as it has come.
struct MessageInfo {
  MessageId id;
  MessageState state = MessageState::delayed;
  std::string to;
  std::string from;
  std::string task_id;
  std::string session_id;  // empty once the message has ended, too
  std::string payload;     // empty once the message has ended
  WallTime created_at;
  WallTime deliver_at;
  std::vector<Move> moves;  // the latest ones
  std::optional<WallTime> delivered_at;
  std::optional<Millis> lateness;
  std::optional<WallTime> leased_until;
  std::optional<WallTime> expires_at;
  std::optional<WallTime> ended_at;
  std::string ended_by;
  std::string reason;
  int attempts = 0;
  bool forced = false;
};

struct Counts {
  std::int64_t pending = 0;
  std::int64_t delayed = 0;
  std::int64_t in_flight = 0;
};

// Everything that was ever accepted, by where it is now (G14).
struct Totals {
  std::int64_t accepted = 0;
  std::int64_t acked = 0;
  std::int64_t cancelled = 0;
  std::int64_t expired = 0;
  std::int64_t dead = 0;
  Counts live;
};

}  // namespace belfry::bus
