#include "belfry/bus/window.h"

#include <algorithm>

namespace belfry::bus {

void Window::add(const Entry& entry) {
  ++size_;
  const std::int64_t number = entry.key / slot_;
  if (number <= current_slot_) {
    late_.push_back(entry);
    std::push_heap(late_.begin(), late_.end(), later);
    return;
  }
  Slot& slot = future_[number];
  slot.entries.push_back(entry);
  slot.first = std::min(slot.first, entry.key);
}

std::optional<std::int64_t> Window::next() const {
  std::int64_t earliest = INT64_MAX;
  if (!current_.empty()) earliest = current_.back().key;
  if (!late_.empty()) earliest = std::min(earliest, late_.front().key);
  if (earliest == INT64_MAX && !future_.empty()) earliest = future_.begin()->second.first;
  if (earliest == INT64_MAX) return std::nullopt;
  return earliest;
}

void Window::make_current(std::map<std::int64_t, Slot>::iterator slot) {
  current_slot_ = slot->first;
  current_ = std::move(slot->second.entries);
  std::sort(current_.begin(), current_.end(), later);
  future_.erase(slot);
}

void Window::take_due(std::int64_t now, int limit, std::vector<Entry>& due) {
  for (int taken = 0; taken < limit; ++taken) {
    if (current_.empty() && late_.empty()) {
      if (future_.empty() || future_.begin()->second.first > now) return;
      make_current(future_.begin());
    }
    const bool from_late = current_.empty() || (!late_.empty() && later(current_.back(), late_.front()));
    const Entry& first = from_late ? late_.front() : current_.back();
    if (first.key > now) return;
    due.push_back(first);
    --size_;
    if (from_late) {
      std::pop_heap(late_.begin(), late_.end(), later);
      late_.pop_back();
    } else {
      current_.pop_back();
    }
  }
}

void Window::clear() {
  current_.clear();
  late_.clear();
  future_.clear();
  size_ = 0;
}

}  // namespace belfry::bus
