// Messages as the tables hold them: whole milliseconds and numbers, read and written only by message_tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "belfry/base/digest.h"
#include "belfry/bus/envelope.h"

namespace belfry::bus {

using RecipientNumber = std::int32_t;

// The place of a message that does not lie in the calendar but in its recipient's backlog.
inline constexpr std::int64_t kInBacklog = -1;

// Who comes first: the moment it became (or becomes) visible, then its own time, then the order of sending (D7, D12).
// For everything but forced messages `order_ms` is `due_ms`.
struct Order {
  std::int64_t order_ms = 0;
  std::int64_t due_ms = 0;
  std::int64_t sequence = 0;
  auto operator<=>(const Order&) const = default;
};

// A row of the calendar: enough to know when to ring, not what to say.
struct CalendarRow {
  std::int64_t bucket = 0;
  std::int64_t sequence = 0;
  std::int64_t due_ms = 0;
  RecipientNumber recipient = 0;
  std::optional<std::int64_t> boot_due_ns;  // when it is due on the elapsed clock of the life that sent it
  std::optional<std::int64_t> expires_ms;
};

// What a recipient is handed.
struct Body {
  std::string sender;
  std::string task;
  std::string session;
  std::string payload;
  std::int64_t created_ms = 0;
  std::int64_t due_ms = 0;
  std::optional<std::int64_t> expires_ms;
  int attempts = 0;

  std::size_t bytes() const { return sizeof(Body) + sender.size() + task.size() + session.size() + payload.size(); }
};

struct ClientKey {
  Digest name;
  std::int64_t body = 0;  // what was sent under it
};

struct MessageRow {
  std::int64_t sequence = 0;
  RecipientNumber recipient = 0;
  std::int64_t place = 0;               // calendar bucket, or kInBacklog
  std::optional<std::int64_t> look_ms;  // where the calendar has it, if not at its due time
  std::optional<std::int64_t> boot_due_ns;
  Body body;
  std::optional<ClientKey> key;
};

struct BacklogRow {
  Order order;
  std::optional<std::int64_t> late_ms;
  std::optional<std::int64_t> expires_ms;
  Body body;
};

// Where a live message lies.
struct Location {
  std::int64_t place = 0;
  Order order;
  std::optional<std::int64_t> boot_due_ns;
};

// How a message left: what `why` and the list of finished messages read.
struct EndedRow {
  std::int64_t sequence = 0;
  RecipientNumber recipient = 0;
  MessageState state = MessageState::acked;
  std::int64_t place = 0;
  Order order;
  bool forced = false;
  int attempts = 0;
  std::optional<std::int64_t> delivered_ms;
  std::optional<std::int64_t> late_ms;
  std::int64_t ended_ms = 0;
  std::string by;
  std::string reason;
};

// How a message died: what `why` reads, and what a retry starts from.
struct DeadRow {
  std::int64_t sequence = 0;
  std::int64_t place = 0;
  Order order;
  std::optional<std::int64_t> delivered_ms;
  std::optional<std::int64_t> late_ms;
  std::int64_t died_ms = 0;
  std::string_view reason;
};

// What a recipient's messages add up to, or by how much that changes: accepted = live + acked + cancelled + expired + dead
// (G14).
struct RecipientSums {
  std::int64_t accepted = 0;
  std::int64_t acked = 0;
  std::int64_t cancelled = 0;
  std::int64_t expired = 0;
  std::int64_t dead = 0;
  std::int64_t noted = 0;  // pending messages that lie in its backlog

  std::int64_t live() const { return accepted - acked - cancelled - expired - dead; }
  bool all_ended() const { return live() + dead == 0; }
  RecipientSums& operator+=(const RecipientSums& more) {
    accepted += more.accepted;
    acked += more.acked;
    cancelled += more.cancelled;
    expired += more.expired;
    dead += more.dead;
    noted += more.noted;
    return *this;
  }
  bool operator==(const RecipientSums&) const = default;
};

struct RecipientRow {
  RecipientNumber number = 0;
  std::string name;
  std::string kind;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> removed_ms;
  RecipientSums sums;
};

// A graceful stop made everything up to this sequence pending that was still delayed then (D12).
struct Forced {
  std::int64_t up_to = 0;
  std::int64_t at_ms = 0;
};

}  // namespace belfry::bus
