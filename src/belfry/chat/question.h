// What a question's payload says about its deadline (Q9).
//
//   {"text": "…", "quickReplies": ["Yes", "No"], "answerBy": "2027-01-01T09:00:00Z",
//    "onTimeout": {"action": "default", "index": 1}
//               | {"action": "remind", "text": "…", "every": 600000, "times": 2}
//               | {"action": "expire"}}
#pragma once

#include <string_view>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/chat/conversation.h"

namespace belfry::chat {

struct Deadline {
  std::optional<WallTime> answer_by;
  OnTimeout on_timeout;
};

// Refuses what is not one of the forms above; `replies` is how many there are to choose a default from.
Result<OnTimeout> read_on_timeout(json::Value value, int replies);
void write_on_timeout(json::Writer& writer, const OnTimeout& late);

// What a payload with this many quick replies says. Asked at the send, which refuses what makes no sense, and again when
// the question is put.
Result<Deadline> read_deadline(std::string_view payload, int replies);

}  // namespace belfry::chat
