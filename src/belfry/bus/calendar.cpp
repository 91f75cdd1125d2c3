#include "belfry/bus/calendar.h"

#include <algorithm>

#include "belfry/base/assert.h"
#include "belfry/base/limits.h"
#include "belfry/base/log.h"

namespace belfry::bus {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kSecondMs = 1'000;

// How far the window reaches when memory is full.
constexpr std::int64_t kShortLeadMs = 3'000;
constexpr std::int64_t kFullLeadMs = 15'000;
// A bucket of a second or less that has more pages than this is split finer instead of being taken whole.
constexpr std::int64_t kFineBucketPagesMax = 50;

// A row that was read although it is much farther away than its bucket is put back: somebody set a clock.
constexpr std::int64_t kTooEarlyMs = 600'000;

// How long before its start a bucket is read. Coarse ones early, since splitting them takes time; never earlier for a
// finer level than for a coarser one: a split puts rows only where nothing was read yet.
constexpr std::int64_t lead_ms(int level) {
  if (level == 0) return 2'000;
  if (level == 1) return 4'000;
  return std::max<std::int64_t>(kFullLeadMs, bucket_width(level) / 8);
}

}  // namespace

Calendar::Calendar(Clock& clock, store::Store& store, const Start& start)
    : clock_(clock),
      store_(store),
      timeline_(clock.now(), start.ahead),
      first_life_end_(start.last_sequence),
      last_done_(start.last_sequence),
      forced_(start.forced),
      chunk_rows_(start.chunk_rows),
      entries_max_(start.entries_max),
      elapsed_(kSecondNs),
      wall_(kSecondMs),
      recovered_(kSecondMs) {
  // A coarse bucket is taken whole when it fits into a page, and on each level one such bucket may reach past the moment
  // up to which everything was read. They must fit into memory beside what can be delivered, or nothing would go on.
  BELFRY_ASSERT(entries_max_ >= static_cast<std::size_t>(chunk_rows_ + 1) * kLevels);
  for (const CalendarRow& row : start.exempt) {
    exempt_.insert(row.sequence);
    aside_.emplace(row.sequence, row);
  }
}

Calendar::Place Calendar::place(WallTime deliver_at, const Now& now) const {
  const std::int64_t due_ms = to_ms(deliver_at);
  const std::int64_t look_ms = due_ms + timeline_.ahead().count();
  return {bucket_for(look_ms, timeline_.axis_ms(now)),
          look_ms == due_ms ? std::nullopt : std::optional<std::int64_t>(look_ms)};
}

Entry Calendar::entry_of(const CalendarRow& row) const {
  const bool elapsed = row.boot_due_ns && in_life(row);
  return {.key = elapsed ? *row.boot_due_ns : row.due_ms,
          .sequence = row.sequence,
          .due_ms = row.due_ms,
          .bucket = row.bucket,
          .recipient = row.recipient,
          .elapsed = elapsed,
          .expires_ms = row.expires_ms.value_or(0)};
}

CalendarRow Calendar::row_of(const Entry& entry) {
  return {.bucket = entry.bucket,
          .sequence = entry.sequence,
          .due_ms = entry.due_ms,
          .recipient = entry.recipient,
          .boot_due_ns = entry.elapsed ? std::optional(entry.key) : std::nullopt,
          .expires_ms = entry.expires_ms != 0 ? std::optional(entry.expires_ms) : std::nullopt};
}

Window& Calendar::lane_of(const Entry& entry) {
  if (entry.elapsed) return elapsed_;
  return entry.sequence > first_life_end_ ? wall_ : recovered_;
}

void Calendar::enter(const CalendarRow& row) {
  const Entry entry = entry_of(row);
  // Removed and put back to the same place: it still lies in its lane.
  if (gone_.erase({entry.sequence, entry.key, entry.bucket}) > 0) return;
  lane_of(entry).add(entry);
}

bool Calendar::was_read(Bucket bucket, std::int64_t sequence) const {
  if (bucket.start_ms < from_[bucket.level]) return true;
  return partial_ == bucket && sequence <= partial_after_;
}

void Calendar::add(const CalendarRow& row) {
  delivered_.erase(row.sequence);
  if (forced_ && row.sequence <= forced_->up_to) {
    exempt_.insert(row.sequence);
    if (looking_) changed_.insert(row.sequence);
    if (!looking_ && was_read(Bucket::from_key(row.bucket), row.sequence)) return enter(row);
    aside_.insert_or_assign(row.sequence, row);
    return;
  }
  if (looking_) {
    limbo_.push_back(row);
    changed_.insert(row.sequence);
  } else if (was_read(Bucket::from_key(row.bucket), row.sequence)) {
    enter(row);
  }
}

void Calendar::note_delivered(const CalendarRow& row) {
  const Bucket bucket = Bucket::from_key(row.bucket);
  immediate_ms_ = std::max(immediate_ms_, bucket.start_ms);
  // Just after a start, or after the clock was set ahead, the present has not been read yet.
  if (looking_ || !was_read(bucket, row.sequence)) delivered_.emplace(row.sequence, bucket);
}

void Calendar::remove(const CalendarRow& row) {
  if (belongs_to_sweep(row) || aside_.erase(row.sequence) > 0) return;
  if (looking_) {
    changed_.insert(row.sequence);
    std::erase_if(limbo_, [&](const CalendarRow& other) { return other.sequence == row.sequence; });
  }
  if (!was_read(Bucket::from_key(row.bucket), row.sequence)) return;
  const Entry entry = entry_of(row);
  gone_.emplace(entry.sequence, entry.key, entry.bucket);
}

std::int64_t Calendar::barrier_ms() const {
  // A bucket of one millisecond is in order by itself: what was read of it may be delivered before the rest is read.
  const std::int64_t finest = from_[0] + (partial_ && partial_->level == 0 ? 1 : 0);
  return std::min(finest, *std::min_element(std::begin(from_) + 1, std::end(from_))) - timeline_.ahead().count();
}

std::optional<Due> Calendar::next_due(const Now& now) const {
  std::optional<Due> next;
  const auto consider = [&](const Due& due) {
    if (!next || on_boot_clock(due, now) < on_boot_clock(*next, now)) next = due;
  };
  if (const auto key = elapsed_.next()) consider(BootTime{Nanos{*key}});
  if (const auto key = wall_.next()) consider(wall_from_ms(*key));
  if (const auto key = recovered_.next(); key && *key < barrier_ms()) consider(wall_from_ms(*key));
  return next;
}

void Calendar::take_due(const Now& now, int limit, std::vector<Entry>& due) {
  const std::size_t before = due.size();
  const auto room = [&] { return limit - static_cast<int>(due.size() - before); };
  const std::int64_t wall = to_ms(round_down(now.wall));
  recovered_.take_due(std::min(wall, barrier_ms() - 1), room(), due);
  wall_.take_due(wall, room(), due);
  elapsed_.take_due(now.boot.time_since_epoch().count(), room(), due);
  if (hungry_ && in_memory() < entries_max_ / 2) {
    hungry_ = false;
    wake_.ring();
  }
  if (gone_.empty()) return;
  std::erase_if(due, [&](const Entry& entry) { return gone_.erase({entry.sequence, entry.key, entry.bucket}) > 0; });
}

void Calendar::hand_over_to_sweep(Forced forced) {
  forced_ = forced;
  exempt_.clear();
  aside_.clear();
  const auto swept = [&](const Entry& entry) { return entry.sequence <= forced.up_to; };
  elapsed_.drop_if(swept);
  wall_.drop_if(swept);
  recovered_.drop_if(swept);
  std::erase_if(gone_, [&](const auto& gone) { return std::get<0>(gone) <= forced.up_to; });
}

void Calendar::sweep_finished() {
  forced_.reset();
  exempt_.clear();
  // The next page has what is still aside, for its bucket is unread; one that is on its way has not.
  for (const auto& [sequence, row] : std::exchange(aside_, {})) {
    if (!looking_) continue;
    limbo_.push_back(row);
    changed_.insert(sequence);
  }
}

void Calendar::stop() {
  stopping_ = true;
  wake_.ring();
}

Task<void> Calendar::run(std::function<void()> news) {
  news_ = std::move(news);
  while (!stopping_) {
    co_await pass();
    news_();
    if (!stopping_) co_await clock_.sleep_until(BootTime::max(), wake_);
  }
  ended_ = true;
}

CalendarLook Calendar::look(const Now& now) const {
  CalendarLook look;
  const std::int64_t axis = timeline_.axis_ms(now);
  for (int level = 0; level < kLevels; ++level) {
    look.from_ms[level] = from_[level];
    const std::int64_t lead = level <= kFinestLevel ? std::min(lead_limit_ms_, lead_ms(level)) : lead_ms(level);
    look.until_ms[level] = std::max(from_[level], axis + lead);
  }
  look.sequence_after = forced_ ? forced_->up_to : 0;
  look.sequence_up_to = last_done_;
  look.partial = partial_;
  look.partial_after = partial_after_;
  look.rows_max = chunk_rows_;
  return look;
}

// Reads everything that has come near since the last pass.
Task<void> Calendar::pass() {
  while (!stopping_) {
    const Now now = clock_.now();
    timeline_.observe(now);
    if (timeline_.take_unsaved()) {
      const std::int64_t ahead = timeline_.ahead().count();
      auto job = [ahead](store::Connection& connection) -> Result<> {
        MessageTables::set_ahead(connection, ahead);
        return {};
      };
      const auto stored = co_await store_.write<void>(std::move(job));
      if (!stored) co_return;
    }
    if (in_memory() > entries_max_) {
      evict(now);
      // Still too many: they are due within seconds. Go on when they have been delivered.
      hungry_ = in_memory() > entries_max_;
      if (hungry_) co_return;
    }
    looking_ = true;
    const CalendarLook next = look(now);
    auto job = [next](store::Connection& connection) -> Result<CalendarPage> {
      return MessageTables::read_calendar(connection, next);
    };
    auto page = co_await store_.read<CalendarPage>(std::move(job));
    if (!page) {
      looking_ = false;
      admit_limbo();
      news_();
      log::warn("calendar.read_failed", "the calendar could not be read; trying again",
                {{"what", page.error().detail}});
      co_return;
    }
    const bool finished = page->finished;
    const auto crowded = page->crowded;
    merge(std::move(*page));
    news_();
    if (!too_early_.empty()) co_await put_back(std::exchange(too_early_, {}));
    if (crowded) co_await split(*crowded, 0);
    if (partial_ && partial_->level > 0 && partial_rows_ > kFineBucketPagesMax * chunk_rows_) {
      const Bucket bucket = *partial_;
      co_await split(bucket, partial_after_);
    }
    if (finished) {
      caught_up_ = true;
      std::erase_if(delivered_, [&](const auto& item) { return was_read(item.second, item.first); });
      // There is room again: reach farther, a little at a time, so as not to read in vain what must be dropped again.
      if (in_memory() < entries_max_ / 4) lead_limit_ms_ = std::min(lead_limit_ms_ * 2, kFullLeadMs);
      co_return;
    }
  }
}

void Calendar::merge(CalendarPage page) {
  looking_ = false;
  std::copy(std::begin(page.from_ms), std::end(page.from_ms), from_);
  const auto partial_before = std::exchange(partial_, page.partial);
  if (partial_) {
    partial_rows_ = (partial_before == partial_ ? partial_rows_ : 0) + static_cast<std::int64_t>(page.rows.size());
    partial_after_ = page.rows.back().sequence;
  }
  const Now now = clock_.now();
  for (const CalendarRow& row : page.rows) {
    if (changed_.contains(row.sequence) || belongs_to_sweep(row) || delivered_.contains(row.sequence)) continue;
    const Millis left = remaining(row, now);
    if (left.count() > 2 * (bucket_width(Bucket::from_key(row.bucket).level) + kTooEarlyMs)) {
      too_early_.emplace_back(row, timeline_.axis_ms(now) + left.count());
      continue;
    }
    enter(row);
    const Entry entry = entry_of(row);
    if (left.count() > 0 && lane_of(entry).passed(entry.key)) read_late_.push_back(row.sequence);
  }
  admit_limbo();
}

void Calendar::admit_aside() {
  std::erase_if(aside_, [&](const auto& item) {
    const CalendarRow& row = item.second;
    if (!was_read(Bucket::from_key(row.bucket), row.sequence)) return false;
    enter(row);
    return true;
  });
}

void Calendar::admit_limbo() {
  admit_aside();
  for (const CalendarRow& row : std::exchange(limbo_, {})) {
    if (was_read(Bucket::from_key(row.bucket), row.sequence) && !belongs_to_sweep(row)) enter(row);
  }
  changed_.clear();
}

Millis Calendar::remaining(const CalendarRow& row, const Now& now) const {
  if (row.boot_due_ns && in_life(row)) return std::chrono::ceil<Millis>(BootTime{Nanos{*row.boot_due_ns}} - now.boot);
  return wall_from_ms(row.due_ms) - round_down(now.wall);
}

Task<void> Calendar::split(Bucket crowded, std::int64_t after) {
  while (!stopping_) {
    const std::int64_t axis = timeline_.axis_ms(clock_.now());
    // What somebody may have in hand stays where it is, for its end looks for it there: what is sent meanwhile, what was
    // sent at once in this life, and what a sweep has.
    const std::int64_t from = std::max(after, forced_ ? forced_->up_to : 0);
    const bool has_immediate = crowded.level <= kFinestLevel && crowded.start_ms <= std::max(axis, immediate_ms_);
    const std::int64_t up_to = has_immediate ? first_life_end_ : last_done_;
    if (from >= up_to) co_return;
    auto job = [crowded, from, up_to, axis, rows = chunk_rows_](store::Connection& connection) -> Result<int> {
      return MessageTables::split_bucket(connection, crowded, from, up_to, axis, rows);
    };
    const auto moved = co_await store_.write<int>(std::move(job), chunk_rows_);
    if (!moved || *moved < chunk_rows_) co_return;
  }
}

// The clocks were set: these rows lie too early on the axis. Without this they would all have to wait in memory.
Task<void> Calendar::put_back(std::vector<std::pair<CalendarRow, std::int64_t>> rows) {
  const std::int64_t axis = timeline_.axis_ms(clock_.now());
  std::erase_if(rows, [&](const auto& item) {
    if (!was_read(bucket_for(item.second, axis), item.first.sequence)) return false;
    enter(item.first);  // where it belongs was read already: it stays in memory
    return true;
  });
  auto job = [rows, axis](store::Connection& connection) -> Result<> {
    for (const auto& [row, look_ms] : rows) MessageTables::replace(connection, row, look_ms, bucket_for(look_ms, axis));
    return {};
  };
  const auto stored = co_await store_.write<void>(std::move(job), static_cast<int>(rows.size()));
  if (stored) co_return;
  for (const auto& [row, look_ms] : rows) enter(row);  // memory is the safe side
}

void Calendar::evict(const Now& now) {
  lead_limit_ms_ = kShortLeadMs;
  const std::int64_t keep_before = timeline_.axis_ms(now) + kShortLeadMs;
  const auto far = [&](const Entry& entry) {
    if (Bucket::from_key(entry.bucket).start_ms < keep_before) return false;
    const bool gone = gone_.erase({entry.sequence, entry.key, entry.bucket}) > 0;
    if (!gone && exempt_.contains(entry.sequence)) aside_.emplace(entry.sequence, row_of(entry));
    return true;
  };
  elapsed_.drop_if(far);
  wall_.drop_if(far);
  recovered_.drop_if(far);
  for (std::int64_t& from : from_) from = std::min(from, keep_before);
  if (partial_ && partial_->start_ms >= keep_before) partial_.reset();
}

}  // namespace belfry::bus
