// What a thinking agent is like: how it is told what it is, what it may use, and how far it may go.
//
//   {"prompt": "You are {{agent}}, …", "model": "small", "tools": ["send_message", "reply"], "groups": "addressed",
//    "settleMs": 0, "memory": false, "stepsMax": 20, "contextTokens": 16000}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/base/time.h"

namespace belfry::agent {

// The kind of a recipient that thinks with a language model.
inline constexpr const char* kModelKind = "model";

// When it answers in a group (A2).
enum class InGroups {
  addressed,  // called with @id, replied to, or the last one who spoke to that person
  named,      // called with @id or replied to
  never,
};
std::string_view word(InGroups when);

struct Profile {
  std::string prompt;                             // a template (prompt.h); empty: the one that Belfry brings along
  std::string model;                              // empty: the configured one
  std::optional<std::vector<std::string>> tools;  // none: all that there are
  InGroups in_groups = InGroups::addressed;
  Millis settle{0};  // how long nobody must have said anything before it thinks
  bool memory = false;
  int steps_max = 20;
  int context_tokens = 16'000;
  std::string owner;  // the agent that made it; empty: a person did
  int depth = 0;      // of owners above it

  bool may_use(std::string_view tool) const;
};

inline constexpr std::size_t kPromptBytesMax = 64u << 10;

// The members of the form above, and no others; what is not given is as in `profile`.
Result<Profile> read_profile(std::string_view body, Profile profile = {});
// As a request gives it and an answer shows it; with `owner` and `depth`, which no request sets.
void write_profile(json::Writer& writer, const Profile& profile);
std::string stored(const Profile& profile);
Result<Profile> read_stored(std::string_view text);

}  // namespace belfry::agent
