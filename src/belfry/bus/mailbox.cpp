#include "belfry/bus/mailbox.h"

#include <algorithm>

namespace belfry::bus {

void Mailbox::push(const Ready& ready) {
  if (in_order_.empty() || in_order_.back().ready.order < ready.order) {
    in_order_.push_back({ready});
  } else {
    strays_.emplace(ready.order, ready);
  }
}

void Mailbox::drop_gone_front() {
  while (!in_order_.empty() && in_order_.front().gone) {
    in_order_.pop_front();
    --gone_;
  }
}

std::optional<Ready> Mailbox::pop() {
  drop_gone_front();
  const bool stray = !strays_.empty() && (in_order_.empty() || strays_.begin()->first < in_order_.front().ready.order);
  if (stray) {
    const Ready first = strays_.begin()->second;
    strays_.erase(strays_.begin());
    return first;
  }
  if (in_order_.empty()) return std::nullopt;
  const Ready first = in_order_.front().ready;
  in_order_.pop_front();
  return first;
}

std::deque<Mailbox::Slot>::const_iterator Mailbox::locate(const Order& order) const {
  const auto at = std::lower_bound(in_order_.begin(), in_order_.end(), order,
                                   [](const Slot& slot, const Order& wanted) { return slot.ready.order < wanted; });
  return at != in_order_.end() && at->ready.order == order && !at->gone ? at : in_order_.end();
}

const Ready* Mailbox::find(const Order& order) const {
  if (const auto at = locate(order); at != in_order_.end()) return &at->ready;
  const auto stray = strays_.find(order);
  return stray == strays_.end() ? nullptr : &stray->second;
}

std::optional<Order> Mailbox::last() const {
  std::optional<Order> last;
  if (!in_order_.empty()) last = in_order_.back().ready.order;
  if (!strays_.empty()) last = std::max(last.value_or(strays_.rbegin()->first), strays_.rbegin()->first);
  return last;
}

std::optional<Ready> Mailbox::remove(const Order& order) {
  if (const auto at = locate(order); at != in_order_.end()) {
    Slot& slot = in_order_[static_cast<std::size_t>(at - in_order_.begin())];
    slot.gone = true;
    ++gone_;
    const Ready removed = slot.ready;
    drop_gone_front();
    return removed;
  }
  const auto stray = strays_.find(order);
  if (stray == strays_.end()) return std::nullopt;
  const Ready removed = stray->second;
  strays_.erase(stray);
  return removed;
}

void Mailbox::wake_one() {
  if (waiters.empty()) return;
  Wake* const first = waiters.front();
  waiters.pop_front();
  first->ring();
}

void Mailbox::wake_all() {
  while (!waiters.empty()) wake_one();
}

}  // namespace belfry::bus
