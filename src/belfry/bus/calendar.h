// What is due when: the near future in memory, the rest in the store.
//
// The store's calendar is a set of buckets that widen with distance (bucket.h). This part reads it ahead of time, in
// order of time and in small pages, and splits a bucket that is too crowded to be taken whole. Per level it knows up to
// where it has read (`from_`); a message that is sent into the part already read enters memory by itself, any other is
// found when its bucket is read. A page holds only sequences whose sends were completed before it was asked for, so
// nothing is taken twice or missed.
//
// Lives on the kernel's thread; its loop ends with stop().
#pragma once

#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/bus/message_tables.h"
#include "belfry/bus/timeline.h"
#include "belfry/bus/window.h"
#include "belfry/clock/clock.h"
#include "belfry/due/due_source.h"

namespace belfry::bus {

class Calendar {
 public:
  struct Start {
    std::int64_t last_sequence;  // what an earlier life sent is up to here, and waits on the wall clock
    Millis ahead;
    std::optional<Forced> forced;
    std::vector<CalendarRow> exempt;
    int chunk_rows;           // of one page or one split
    std::size_t entries_max;  // in memory
  };
  Calendar(Clock& clock, store::Store& store, const Start& start);

  Timeline& timeline() { return timeline_; }

  // Where a message with this time lies in the store.
  struct Place {
    Bucket bucket;
    std::optional<std::int64_t> look_ms;  // only if the axis differs from the wall clock
  };
  Place place(WallTime deliver_at, const Now& now) const;

  // A send was committed (in order of sequence), or a message was given another time.
  void note_sent(std::int64_t sequence) { last_done_ = std::max(last_done_, sequence); }
  std::int64_t last_done() const { return last_done_; }
  void add(const CalendarRow& row);
  // The message with this row is in its mailbox already: do not deliver it again when its bucket is read.
  void note_delivered(const CalendarRow& row);
  // The message with this row is gone or lies elsewhere now.
  void remove(const CalendarRow& row);

  // What comes due next, and what is due, in order. Never an entry whose time has not come.
  std::optional<Due> next_due(const Now& now) const;
  void take_due(const Now& now, int limit, std::vector<Entry>& due);
  // Calls `visit(sequence)`, once, for what has come within seconds of its time.
  template <class Visit>
  void each_soon(const Now& now, Visit visit);
  std::size_t in_memory() const { return elapsed_.size() + wall_.size() + recovered_.size(); }

  // Everything up to `forced.up_to` belongs to the sweep from here on: forget what is in memory of it.
  void hand_over_to_sweep(Forced forced);
  void sweep_finished();
  // True if the message got a new time while a sweep of old ones goes on: it waits for that time.
  bool exempt(std::int64_t sequence) const { return exempt_.contains(sequence); }
  // An entry that was taken out although it stays where it was.
  void put_again(const Entry& entry) { lane_of(entry).add(entry); }
  // Everything of earlier lives that is due before this is known.
  std::int64_t read_to_ms() const { return barrier_ms(); }

  // The loop that reads ahead. `news` is called when something became known that may be due.
  Task<void> run(std::function<void()> news);
  void read_ahead() { wake_.ring(); }
  void stop();
  // True when everything that is due by now has been read: after a start this takes as long as there is to read.
  bool caught_up() const { return caught_up_; }
  bool ended() const { return ended_; }

 private:
  Task<void> pass();
  CalendarLook look(const Now& now) const;
  void merge(CalendarPage page);
  Task<void> split(Bucket crowded, std::int64_t after);
  Task<void> put_back(std::vector<std::pair<CalendarRow, std::int64_t>> rows);
  Entry entry_of(const CalendarRow& row) const;
  static CalendarRow row_of(const Entry& entry);
  Window& lane_of(const Entry& entry);
  void enter(const CalendarRow& row);
  bool was_read(Bucket bucket, std::int64_t sequence) const;
  Millis remaining(const CalendarRow& row, const Now& now) const;
  void evict(const Now& now);
  void admit_aside();
  bool in_life(const CalendarRow& row) const { return row.sequence > first_life_end_; }
  bool belongs_to_sweep(const CalendarRow& row) const {
    return forced_ && row.sequence <= forced_->up_to && !exempt_.contains(row.sequence);
  }
  void admit_limbo();
  std::int64_t barrier_ms() const;

  Clock& clock_;
  store::Store& store_;
  Timeline timeline_;
  std::int64_t first_life_end_;  // the last sequence of earlier lives
  std::int64_t last_done_;
  std::optional<Forced> forced_;
  int chunk_rows_;
  std::size_t entries_max_;

  // Three lanes, for an entry is due by the clock that it waits on: this life's delays on the elapsed clock; instants on
  // the wall clock; what earlier lives left, on the wall clock too, but only as far as the calendar was read, so that a
  // long-stopped bus catches up in order.
  Window elapsed_;
  Window wall_;
  Window recovered_;
  // (sequence, key, bucket) of entries that were removed and still lie in a lane.
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> gone_;

  std::int64_t from_[kLevels] = {};
  std::int64_t lead_limit_ms_ = 15'000;  // shorter while memory is short
  std::optional<Bucket> partial_;
  std::int64_t partial_after_ = 0;
  std::int64_t partial_rows_ = 0;
  bool looking_ = false;
  std::vector<CalendarRow> limbo_;            // sent while a page was being read
  std::unordered_set<std::int64_t> changed_;  // removed or moved meanwhile: the page is wrong about them
  std::unordered_map<std::int64_t, Bucket>
      delivered_;  // by sequence: in a mailbox, though their bucket is still unread
  std::vector<std::pair<CalendarRow, std::int64_t>> too_early_;  // looked at before their time: to be put back

  // By sequence: got a new time while a sweep goes on, whose pages do not have them. They wait aside until their bucket has
  // been read by others' pages; then they enter memory, once.
  std::unordered_set<std::int64_t> exempt_;
  std::unordered_map<std::int64_t, CalendarRow> aside_;
  std::int64_t immediate_ms_ = 0;  // the latest start of a bucket into which something was sent at once
  std::function<void()> news_;
  std::vector<std::int64_t> read_late_;  // read when each_soon() had passed their second

  Wake wake_;
  bool stopping_ = false;
  bool caught_up_ = false;
  bool hungry_ = false;  // memory was full before everything was read: go on when there is room
  bool ended_ = false;
};

template <class Visit>
void Calendar::each_soon(const Now& now, Visit visit) {
  static constexpr Millis kSoon{3'000};
  for (const std::int64_t sequence : std::exchange(read_late_, {})) visit(sequence);
  const auto each = [&](const Entry& entry) { visit(entry.sequence); };
  elapsed_.each_new_before((now.boot + kSoon).time_since_epoch().count(), each);
  const std::int64_t wall_soon = to_ms(round_down(now.wall) + kSoon);
  wall_.each_new_before(wall_soon, each);
  recovered_.each_new_before(wall_soon, each);
}

}  // namespace belfry::bus
