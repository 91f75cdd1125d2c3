// JSON of scheduled private messages to types and back: the part of wire for their routes. snake_case, like their tools.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "belfry/bus/time_reader.h"
#include "belfry/chat/private_messages.h"

namespace belfry::server::wire {

struct ScheduleRequest {
  chat::NewScheduledMessage message;  // without its time
  std::string send_at;
};
Result<ScheduleRequest> read_scheduled(std::string_view body);

struct RescheduleRequest {
  std::optional<std::string> text;
  std::string send_at;  // empty: stays
};
Result<RescheduleRequest> read_scheduled_change(std::string_view body);
Result<chat::ScheduledQuery> read_scheduled_query(std::string_view query);

std::string scheduled(const chat::ScheduledMessage& message,
                      const std::optional<when::Reading>& understood = std::nullopt, std::string_view text = {});
std::string scheduled_page(const chat::ScheduledPage& page);

}  // namespace belfry::server::wire
