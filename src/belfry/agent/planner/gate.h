// Whether an agent answers now, later or not at all (A2).
#pragma once

#include <string>

#include "belfry/agent/profile.h"
#include "belfry/base/time.h"

namespace belfry::agent {

// What is known of a message before anybody thinks about it.
struct Occasion {
  bool in_group = false;
  bool named = false;    // it calls the agent with @id
  bool replied = false;  // it answers something that the agent said
  bool by_person = false;
  WallTime now;
  WallTime written_at;
  WallTime last_said_at;  // the last line of the conversation
};

struct Decision {
  enum class What { now, wait, silent };
  What what = What::now;
  Millis wait{0};
  std::string why;  // for the record
};

Decision decide(const Profile& profile, const Occasion& occasion);

}  // namespace belfry::agent
