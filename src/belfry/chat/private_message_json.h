// Scheduled messages as programs and models see them: the same as a tool's result and over HTTP.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/private_messages.h"

namespace belfry::chat {

// When to send: an instant or a time expression, in the zone of the session. Whatever cannot be read is `invalid_time`
// (P3), and what comes again is refused with a hint (P1).
Result<when::Reading> read_send_at(const bus::TimeReader& times, const std::string& text, const std::string& timezone);

void write_scheduled(json::Writer& writer, const ScheduledMessage& message);
// What whoever made one is told (P4), with the sentence that says when.
std::string created(const PrivateMessages::Created& created, const when::Reading& reading, const std::string& send_at);

}  // namespace belfry::chat
