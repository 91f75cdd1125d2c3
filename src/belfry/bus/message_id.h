// A message's name for its whole life, whatever is rescheduled: partition and sequence in an opaque text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/result.h"

namespace belfry::bus {

struct MessageId {
  std::int64_t sequence = 0;  // order of sending; unique in its partition, and there is one partition today
  auto operator<=>(const MessageId&) const = default;
};

// Thirteen letters and digits. Neighbouring sequences look nothing alike, and a mistyped id names no message rather than
// another one: the sixteen bits of the partition work as a check.
std::string to_text(MessageId id);
Result<MessageId> parse_message_id(std::string_view text);

}  // namespace belfry::bus
