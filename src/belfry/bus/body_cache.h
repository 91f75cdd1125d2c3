// Bodies of messages that are received soon, so that a receive need not wait for the disk. A bounded number of bytes: the
// oldest make room for new ones, and what is no longer here is read when it is wanted.
//
// A body that is being read has a place that is kept for it. Whoever takes or drops the message meanwhile takes the place
// away, so that no body comes in for a message that is gone.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "belfry/bus/rows.h"

namespace belfry::bus {

class BodyCache {
 public:
  explicit BodyCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::size_t bytes() const { return bytes_; }
  // True for one that is on its way, too.
  bool contains(std::int64_t sequence) const { return bodies_.contains(sequence); }
  const Body* find(std::int64_t sequence) const {
    const auto found = bodies_.find(sequence);
    return found == bodies_.end() || !found->second ? nullptr : &*found->second;
  }
  void put(std::int64_t sequence, Body body) {
    std::optional<Body>& place = bodies_[sequence];
    if (!place) settle(sequence, place, std::move(body));
  }
  // Keeps a place for one that is read now; fill() must follow.
  void expect(std::int64_t sequence) { bodies_.try_emplace(sequence); }
  void fill(std::int64_t sequence, std::optional<Body> body) {
    const auto found = bodies_.find(sequence);
    if (found == bodies_.end() || found->second) return;
    if (body) {
      settle(sequence, found->second, std::move(*body));
    } else {
      bodies_.erase(found);
    }
  }
  std::optional<Body> take(std::int64_t sequence) {
    const auto found = bodies_.find(sequence);
    if (found == bodies_.end()) return std::nullopt;
    std::optional<Body> body = std::move(found->second);
    if (body) bytes_ -= body->bytes();
    bodies_.erase(found);
    return body;
  }
  void drop(std::int64_t sequence) { take(sequence); }

 private:
  void settle(std::int64_t sequence, std::optional<Body>& place, Body body) {
    bytes_ += body.bytes();
    place = std::move(body);
    by_age_.push_back(sequence);
    while (bytes_ > bytes_max_) {
      drop(by_age_.front());
      by_age_.pop_front();
    }
    if (by_age_.size() > 2 * bodies_.size() + 1'000)
      std::erase_if(by_age_, [&](std::int64_t one) { return !find(one); });
  }

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::int64_t, std::optional<Body>> bodies_;
  std::deque<std::int64_t> by_age_;  // with some that were taken since
};

}  // namespace belfry::bus
