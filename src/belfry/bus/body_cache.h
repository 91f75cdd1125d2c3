// Bodies of messages that are received soon, so that a receive need not wait for the disk. A bounded number of bytes;
// what does not fit is read when it is wanted.
#pragma once

#include <optional>
#include <unordered_map>

#include "belfry/bus/rows.h"

namespace belfry::bus {

class BodyCache {
 public:
  explicit BodyCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  bool has_room() const { return bytes_ < bytes_max_; }
  bool contains(std::int64_t sequence) const { return bodies_.contains(sequence); }
  const Body* find(std::int64_t sequence) const {
    const auto found = bodies_.find(sequence);
    return found == bodies_.end() ? nullptr : &found->second;
  }
  void put(std::int64_t sequence, Body body) {
    if (!has_room()) return;
    const std::size_t size = body.bytes();
    if (bodies_.try_emplace(sequence, std::move(body)).second) bytes_ += size;
  }
  std::optional<Body> take(std::int64_t sequence) {
    const auto found = bodies_.find(sequence);
    if (found == bodies_.end()) return std::nullopt;
    Body body = std::move(found->second);
    bytes_ -= body.bytes();
    bodies_.erase(found);
    return body;
  }
  void drop(std::int64_t sequence) { take(sequence); }

 private:
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::int64_t, Body> bodies_;
};

}  // namespace belfry::bus
