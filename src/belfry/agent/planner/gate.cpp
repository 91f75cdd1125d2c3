#include "belfry/agent/planner/gate.h"

#include <algorithm>

namespace belfry::agent {
namespace {

// Whoever goes on talking is answered all the same, after this many quiet times that were none.
constexpr int kSettlesMax = 5;

}  // namespace

Decision decide(const Profile& profile, const Occasion& occasion) {
  using What = Decision::What;
  if (occasion.in_group && occasion.by_person) {
    const bool addressed = occasion.named || occasion.replied;
    if (profile.in_groups == InGroups::never) return {What::silent, {}, "it does not speak in groups"};
    if (profile.in_groups == InGroups::named && !addressed) return {What::silent, {}, "it was not called"};
  }
  if (occasion.by_person && profile.settle > Millis{0}) {
    const WallTime quiet_at =
        std::min(occasion.last_said_at + profile.settle, occasion.written_at + profile.settle * kSettlesMax);
    if (quiet_at > occasion.now) return {What::wait, quiet_at - occasion.now, "somebody may still be writing"};
  }
  if (!occasion.in_group) return {What::now, {}, "a private conversation"};
  if (occasion.named) return {What::now, {}, "it was called"};
  if (occasion.replied) return {What::now, {}, "it was answered"};
  return {What::now, {}, occasion.by_person ? "it spoke last to that person" : "another agent wrote to it"};
}

}  // namespace belfry::agent
