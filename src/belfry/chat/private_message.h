// A scheduled private message: a text that an agent writes now and says later, without being asked again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/time.h"

namespace belfry::chat {

// What one person can be told at once.
inline constexpr std::size_t kScheduledTextBytesMax = 20'000;
// A time that has just passed while the agent was thinking still counts; one further back is a mistake.
inline constexpr Millis kPastTolerated{60'000};
// From here on a message counts as late.
inline constexpr Millis kLateFrom{1'000};

enum class ScheduledStatus { pending, sent, cancelled, failed };
std::string_view word(ScheduledStatus status);
std::optional<ScheduledStatus> parse_scheduled_status(std::string_view text);

struct ScheduledMessage {
  std::string id;
  std::string session_id;
  std::string agent;   // says it
  std::string person;  // hears it
  std::string text;
  WallTime send_at;
  ScheduledStatus status = ScheduledStatus::pending;
  std::string reason;  // why it is not pending any more, where the status does not say it: `replaced`, `expired`, …
  std::string last_error;
  WallTime created_at;
  WallTime updated_at;
  std::string created_by_call;    // the tool call that made it
  std::string cancelled_by_call;  // and the one that ended it
  std::string sent_message_id;
  std::optional<WallTime> sent_at;
  bool replace_existing = false;
  std::optional<Millis> max_late;  // later than this it is not said at all
  int attempts = 0;
  bool in_outbox = false;  // it was due, and is on its way to the person's webhook

  std::optional<Millis> late() const {
    if (!sent_at || *sent_at - send_at < kLateFrom) return std::nullopt;
    return std::chrono::duration_cast<Millis>(*sent_at - send_at);
  }
};

struct NewScheduledMessage {
  std::string session;
  std::string agent;  // empty: the one in the session
  std::string text;
  WallTime send_at;
  bool replace_existing = false;
  std::optional<Millis> max_late;
  std::string call;  // whose name makes a repeat find the first one; empty: none
  std::string once;  // the same for Belfry's own calls
};

// What becomes of one that is pending.
struct ScheduledChange {
  std::optional<std::string> text;
  std::optional<WallTime> send_at;
};

struct ScheduledQuery {
  std::string session;  // empty: of all
  std::optional<ScheduledStatus> status;
  std::string after;  // the id where the page before ended
  int limit = 100;
};

struct ScheduledPage {
  std::vector<ScheduledMessage> messages;  // the earliest first
  std::string next;
};

}  // namespace belfry::chat
