// What a sender asks for, as it is written: the same rules hold over HTTP, in a batch and in a tool's arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/fields.h"
#include "belfry/bus/envelope.h"
#include "belfry/bus/time_reader.h"

namespace belfry::bus {

struct SendRequest {
  std::vector<std::string> to;
  bool to_is_list = false;
  Outgoing message;  // `to` is empty here
  std::optional<TimeText> schedule;
  std::optional<when::Reading> understood;  // how the schedule was read
  std::vector<std::string> warnings;
};

// A name under which somebody speaks, where it is given: an id, and not the one under which Belfry itself does.
Result<> check_speaker(std::string_view field, std::string_view name);

// Reads what the fields know of: to, payload, from, taskId, sessionId, delayMs, deliverAt, schedule, expiresAt,
// quickReplies, key.
Result<SendRequest> read_send(const json::Fields& fields);
// "tomorrow at 9", or {"when":"明天9点","timezone":"Asia/Shanghai","language":"zh"}
Result<> read_schedule(const json::Fields& fields, std::optional<TimeText>& into);
// What the text of a schedule means now: from here on it is an instant like any other.
Result<> resolve_schedule(SendRequest& request, const TimeReader& times);
// The message for one of the recipients: with a list, the key counts for each of them alone.
Outgoing message_for(const SendRequest& request, const std::string& recipient);

}  // namespace belfry::bus
