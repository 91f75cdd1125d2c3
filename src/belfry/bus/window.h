// The near future in memory: what comes due within seconds, in the order in which it does.
//
// Entries lie in one-second slots that are sorted when they become current; what arrives for the current second goes to a
// small heap. Nothing here knows a clock: keys are whatever the owner counts in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "belfry/bus/rows.h"

namespace belfry::bus {

struct Entry {
  std::int64_t key = 0;  // when it is due, on the clock that it waits on
  std::int64_t sequence = 0;
  std::int64_t due_ms = 0;
  std::int64_t bucket = 0;
  RecipientNumber recipient = 0;
  bool elapsed = false;
  std::int64_t expires_ms = 0;  // 0: never
};

class Window {
 public:
  // `slot` is how much of the key makes a second.
  explicit Window(std::int64_t slot) : slot_(slot) {}

  void add(const Entry& entry);
  std::size_t size() const { return size_; }
  std::optional<std::int64_t> next() const;
  // Appends to `due`, in (key, sequence) order, at most `limit` entries with a key up to `now`.
  void take_due(std::int64_t now, int limit, std::vector<Entry>& due);
  // Calls `visit(entry)` for what lies in slots that begin before `key`, except those of an earlier call.
  template <class Visit>
  void each_new_before(std::int64_t key, Visit visit);
  // True if each_new_before() has passed the slot of `key`: what is added there now is not visited any more.
  bool passed(std::int64_t key) const { return key / slot_ < visited_to_; }
  template <class Test>
  void drop_if(Test test);
  void clear();

 private:
  struct Slot {
    std::vector<Entry> entries;
    std::int64_t first = INT64_MAX;
  };
  static bool later(const Entry& a, const Entry& b) { return a.key != b.key ? a.key > b.key : a.sequence > b.sequence; }
  void make_current(std::map<std::int64_t, Slot>::iterator slot);

  std::int64_t slot_;
  std::size_t size_ = 0;
  std::int64_t current_slot_ = INT64_MIN;
  std::int64_t visited_to_ = INT64_MIN;
  std::vector<Entry> current_;  // sorted, the next one last
  std::vector<Entry> late_;     // a heap, the next one on top
  std::map<std::int64_t, Slot> future_;
};

template <class Visit>
void Window::each_new_before(std::int64_t key, Visit visit) {
  const std::int64_t end = key / slot_ + (key % slot_ != 0 ? 1 : 0);
  if (end <= visited_to_) return;
  for (auto slot = future_.lower_bound(visited_to_); slot != future_.end() && slot->first < end; ++slot)
    for (const Entry& entry : slot->second.entries) visit(entry);
  visited_to_ = end;
}

template <class Test>
void Window::drop_if(Test test) {
  const auto prune = [&](std::vector<Entry>& entries) { size_ -= std::erase_if(entries, test); };
  prune(current_);
  prune(late_);
  std::make_heap(late_.begin(), late_.end(), later);
  for (auto slot = future_.begin(); slot != future_.end();) {
    prune(slot->second.entries);
    slot->second.entries.shrink_to_fit();
    slot->second.first = INT64_MAX;
    for (const Entry& entry : slot->second.entries) slot->second.first = std::min(slot->second.first, entry.key);
    slot = slot->second.entries.empty() ? future_.erase(slot) : std::next(slot);
  }
}

}  // namespace belfry::bus
