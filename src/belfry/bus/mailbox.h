// What one recipient can receive now: the oldest part in memory, the rest of a long queue in the backlog on disk.
//
// Invariant: whatever is in memory comes before everything that lies unread in the backlog, so that taking from memory is
// taking in order. Who arrives in front of the unread part goes to memory, who arrives behind it to the backlog.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "belfry/bus/rows.h"
#include "belfry/clock/sleep_queue.h"

namespace belfry::bus {

// A message that can be received.
struct Ready {
  Order order;
  std::int64_t place = 0;
  std::int64_t delivered_ms = 0;
  std::int64_t expires_ms = 0;  // 0: never
  std::int32_t late_ms = 0;
  std::int16_t attempts = 0;  // that ended without an ack
  bool forced = false;
};

class Mailbox {
 public:
  void push(const Ready& ready);
  std::optional<Ready> pop();
  // Takes one out of the middle: it was cancelled.
  std::optional<Ready> remove(const Order& order);
  const Ready* find(const Order& order) const;
  std::size_t size() const { return in_order_.size() - gone_ + strays_.size(); }

  // The backlog on disk: how many rows were not read, and behind which one they lie.
  std::int64_t unread = 0;
  Order read_up_to{INT64_MIN, 0, 0};
  bool reading = false;      // a page of it is on its way
  int writing = 0;           // rows on their way into it
  bool read_to_end = false;  // the last page brought less than it could: wait for news
  // Arrived while a page was being read: their side of it is not known yet. Sorted, for a sweep after a stop asks for
  // thousands of them.
  std::map<Order, Ready> waiting;

  // True if `order` must queue up behind the unread part.
  bool behind_backlog(const Order& order) const { return unread + writing > 0 && order > read_up_to; }
  // The last one in memory: where the unread part begins when memory overflows.
  std::optional<Order> last() const;

  // Who waits for a message, in order of arrival.
  std::deque<Wake*> waiters;
  void wake_one();
  void wake_all();

 private:
  struct Slot {
    Ready ready;
    bool gone = false;
  };
  std::deque<Slot>::const_iterator locate(const Order& order) const;
  void drop_gone_front();

  std::deque<Slot> in_order_;
  std::size_t gone_ = 0;
  std::map<Order, Ready> strays_;  // came out of order: redeliveries, late arrivals
};

}  // namespace belfry::bus
