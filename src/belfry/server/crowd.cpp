#include "belfry/server/crowd.h"

#include "belfry/base/assert.h"

namespace belfry::server {
namespace {

// What counts as a word. Whoever drips single bytes to keep a place is as silent as one that sends nothing.
constexpr std::size_t kWordBytes = 4u << 10;

}  // namespace

void Crowd::Member::leave() {
  if (!crowd_) return;
  crowd_->bytes_ -= held_;
  crowd_->members_.erase(place_);
  crowd_ = nullptr;
  held_ = 0;
  unheard_ = 0;
}

void Crowd::Member::heard(std::size_t bytes) {
  if (!crowd_) return;
  unheard_ += bytes;
  if (unheard_ < kWordBytes) return;
  unheard_ = 0;
  crowd_->members_.splice(crowd_->members_.end(), crowd_->members_, place_);
}

void Crowd::Member::hold(std::size_t bytes) {
  if (!crowd_) return;
  Crowd& crowd = *crowd_;
  crowd.bytes_ = crowd.bytes_ - held_ + bytes;
  held_ = bytes;
  crowd.make_room();
}

void Crowd::hold_in_common(std::size_t bytes) {
  bytes_ += bytes;
  make_room();
}

void Crowd::make_room() {
  while (bytes_ > bytes_max_ && let_one_go()) {
  }
}

void Crowd::enter(Member& member) {
  if (member.crowd_ == this) return;
  BELFRY_ASSERT(!member.crowd_);
  member.crowd_ = this;
  member.place_ = members_.insert(members_.end(), &member);
}

bool Crowd::let_one_go() {
  if (members_.empty()) return false;
  Member& member = *members_.front();
  member.leave();
  ++let_go_;
  member.let_go_();
  return true;
}

}  // namespace belfry::server
