// Quick replies: a few texts, one of which a recipient can answer with at a press (Q1 to Q6).
//
// They travel inside the payload, as `payload.quickReplies`, in the order in which they were given. Whatever way a message
// comes in, these rules are checked before anything happens: a list of strings, at most ten, none of them blank; an empty
// list and null are as good as none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"

namespace belfry::bus {

// As many as fit under a message on a small screen; the tool's definition says so too.
inline constexpr std::size_t kQuickRepliesMax = 10;

Result<std::vector<std::string>> read_quick_replies(json::Value value);

// The payload as it is sent: `given` stands beside it, or in it, or in both and is the same.
Result<std::string> with_quick_replies(std::string payload, const std::vector<std::string>& given);

// Those of a payload that has been sent.
std::vector<std::string> quick_replies_of(std::string_view payload);

}  // namespace belfry::bus
