#include "belfry/store/store.h"

#include <algorithm>
#include <bit>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"

namespace belfry::store {
namespace {

// Of a full group, what sends leave to acks and moves when both wait: else a flood of sends would starve them.
constexpr int kChangeShare = kGroupRowsMax / 4;

// Acks and moves make room, so they are still taken when sends are refused; but no queue is without a bound.
constexpr std::size_t kChangeQueueTimes = 2;

constexpr const char* kTakenAway =
    "the files of the data were moved, removed or replaced while the server was using them; what was sent last may not be in "
    "those that are there now";

// What is thrown and is no Fault is a mistake of ours in a job (or no memory): its group is refused like a faulty one.
FaultKind kind_of(const std::exception& thrown) {
  const auto* fault = dynamic_cast<const Fault*>(&thrown);
  return fault ? fault->kind() : FaultKind::other;
}

Error error_of(const std::exception& thrown) {
  switch (kind_of(thrown)) {
    case FaultKind::full: return {Errc::disk_full, "the disk is full; nothing was stored"};
    default: return {Errc::storage_failed, thrown.what()};
  }
}

int histogram_bucket(std::int64_t value) {
  const auto width = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0)));
  return std::min(static_cast<int>(width), Statistics::kBuckets - 1);
}

}  // namespace

Store::Store(asio::io_context& kernel, std::unique_ptr<Connection> connection, Options options,
             std::unique_ptr<Reserve> reserve)
    : kernel_(kernel), connection_(std::move(connection)), options_(std::move(options)), reserve_(std::move(reserve)) {
  reserve_held_ = !reserve_ || reserve_->hold();
}

Store::~Store() {
  *alive_ = false;
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wanted_.notify_one();
    thread_.join();
  } else if (started_) {
    while (cycle()) {
    }
  }
}

void Store::start() {
  started_ = true;
  if (options_.mode == Mode::own_thread) {
    thread_ = std::thread([this] { loop(); });
  } else {
    schedule_inline();
  }
}

void Store::add_hook(GroupHook& hook) { hooks_.push_back(&hook); }

bool Store::overloaded() const {
  const std::lock_guard lock(mutex_);
  return queue_exceeds(1);
}

// The caller holds the mutex.
bool Store::queue_exceeds(std::size_t times) const {
  return sends_.size() + changes_.size() >= times * kStoreQueueMax || queued_bytes_ >= times * kStoreQueueBytesMax;
}

bool Store::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

Statistics Store::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void Store::submit(Lane lane, std::unique_ptr<Work> work) {
  bool wake = false;
  Result<> taken;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) {
      taken = fail(Errc::storage_failed, "the store is closed after an I/O error");
    } else if (queue_exceeds(lane == Lane::send ? 1 : kChangeQueueTimes)) {
      taken = fail(Errc::overloaded, "too much waits for the disk; come back later");
    } else {
      queued_bytes_ += work->bytes();
      wake = sends_.empty() && changes_.empty() && reads_.empty();
      (lane == Lane::send ? sends_ : changes_).push_back(std::move(work));
    }
  }
  if (!taken) {
    std::vector<Finished> refused;
    refused.push_back({std::move(work), std::move(taken)});
    return finish(std::move(refused));
  }
  if (wake && thread_.joinable()) wanted_.notify_one();
  schedule_inline();
}

void Store::read_later(std::move_only_function<void(Connection&)> job, std::move_only_function<void(Result<>)> done) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake = sends_.empty() && changes_.empty() && reads_.empty();
    reads_.push_back({std::move(job), std::move(done)});
  }
  if (wake && thread_.joinable()) wanted_.notify_one();
  schedule_inline();
}

void Store::schedule_inline() {
  if (options_.mode != Mode::inline_groups || !started_ || std::exchange(scheduled_, true)) return;
  asio::post(kernel_, [this, alive = alive_] {
    if (!*alive) return;
    scheduled_ = false;
    if (cycle()) schedule_inline();
  });
}

void Store::loop() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock, [this] { return stopping_ || !sends_.empty() || !changes_.empty() || !reads_.empty(); });
    }
    if (!cycle()) return;  // nothing left: we were told to stop
  }
}

bool Store::cycle() {
  Group sends;
  Group changes;
  std::optional<Read> read;
  {
    const std::lock_guard lock(mutex_);
    take(sends, changes);
    if (!reads_.empty()) {
      read = std::move(reads_.front());
      reads_.pop_front();
    }
  }
  if (sends.empty() && changes.empty() && !read) return false;
  if (!sends.empty() || !changes.empty()) run_group(std::move(sends), std::move(changes));
  if (read) run_read(std::move(*read));
  maybe_checkpoint();
  return true;
}

// The caller holds the mutex.
void Store::take(Group& sends, Group& changes) {
  int rows = 0;
  std::size_t bytes = 0;
  const auto move_some = [&](std::deque<std::unique_ptr<Work>>& queue, Group& group, int rows_max) {
    while (!queue.empty() && (rows < rows_max || group.empty()) && (bytes < kGroupBytesMax || group.empty())) {
      rows += queue.front()->rows();
      bytes += queue.front()->bytes();
      queued_bytes_ -= queue.front()->bytes();
      group.push_back(std::move(queue.front()));
      queue.pop_front();
    }
  };
  move_some(sends_, sends, changes_.empty() ? kGroupRowsMax : kGroupRowsMax - kChangeShare);
  move_some(changes_, changes, kGroupRowsMax);
}

void Store::run_group(Group sends, Group changes) {
  const Nanos start = options_.stopwatch ? options_.stopwatch() : Nanos{0};
  int rows = 0;
  for (const auto& work : sends) rows += work->rows();
  for (const auto& work : changes) rows += work->rows();

  std::vector<Finished> finished;
  finished.reserve(sends.size() + changes.size());
  // With the reserve given up, space belongs to acks until it can be set aside again.
  const bool refuse_sends = !reserve_held_ && !sends.empty() && !(reserve_held_ = reserve_->hold());
  if (options_.acknowledge_before_commit) return acknowledge_too_soon(std::move(sends), std::move(changes));
  const Room room = reserve_held_ ? Room::enough : Room::scarce;
  const Result<> outcome = refuse_sends ? Result<>(fail(Errc::disk_full, "")) : commit(sends, changes, room);
  if (!outcome && outcome.error().code == Errc::disk_full) {
    survive_full_disk(sends, changes, finished);
  } else if (!outcome && !broken_ && sends.size() + changes.size() > 1) {
    // Something in it met damaged data, or a mistake of ours: whoever came along is not to pay for it.
    run_each_alone(sends, finished);
    run_each_alone(changes, finished);
  } else {
    for (auto& work : sends) finished.push_back({std::move(work), outcome});
    for (auto& work : changes) finished.push_back({std::move(work), outcome});
  }
  note(rows, options_.stopwatch ? options_.stopwatch() - start : Nanos{0});
  finish(std::move(finished));
}

Result<> Store::commit(const Group& sends, const Group& changes, Room room) {
  bool committing = false;
  bool begun = false;
  try {
    if (broken_) return fail(Errc::storage_failed, "the store is closed after an I/O error");
    connection_->run("BEGIN IMMEDIATE");
    begun = true;
    for (const auto& work : sends) work->apply(*connection_);
    for (const auto& work : changes) work->apply(*connection_);
    for (GroupHook* hook : hooks_) hook->before_commit(*connection_, room);
    connection_->prepare_commit();
    committing = true;
    connection_->run("COMMIT");
    if (!connection_->in_place()) throw Fault(FaultKind::io, kTakenAway);
    for (GroupHook* hook : hooks_) hook->after_group(true);
    return {};
  } catch (const std::exception& thrown) {
    for (GroupHook* hook : hooks_) hook->after_group(false);
    note_damage(thrown);
    if (committing && kind_of(thrown) != FaultKind::full) {
      // Whether the group is on the disk cannot be known, and an fsync that failed is never retried.
      break_down(thrown.what());
      return fail(Errc::storage_failed, thrown.what());
    }
    try {
      if (begun) connection_->run("ROLLBACK");
    } catch (const Fault& fault) {
      // SQLite has rolled back by itself already.
      log::debug("store.rollback_failed", "there was nothing to roll back", {{"what", fault.what()}});
    }
    if (kind_of(thrown) != FaultKind::full)
      log::error("store.group_failed", "a group of writes was refused by the store", {{"what", thrown.what()}});
    return std::unexpected(error_of(thrown));
  }
}

void Store::acknowledge_too_soon(Group sends, Group changes) {
  std::vector<Finished> finished;
  try {
    connection_->run("BEGIN IMMEDIATE");
    for (auto* group : {&sends, &changes}) {
      for (auto& work : *group) {
        work->apply(*connection_);
        finished.push_back({std::move(work), {}});
      }
    }
    for (GroupHook* hook : hooks_) hook->before_commit(*connection_, Room::enough);
    finish(std::move(finished));
    finished.clear();
    connection_->prepare_commit();
    connection_->run("COMMIT");
    for (GroupHook* hook : hooks_) hook->after_group(true);
  } catch (const Fault& fault) {
    break_down(fault.what());
    for (auto* group : {&sends, &changes})
      for (auto& work : *group)
        if (work) finished.push_back({std::move(work), fail(Errc::storage_failed, fault.what())});
    finish(std::move(finished));
  }
}

void Store::survive_full_disk(Group& sends, Group& changes, std::vector<Finished>& finished) {
  const Result<> refused =
      fail(Errc::disk_full, "the disk is full; nothing was stored. Free some space and send again");
  for (auto& work : sends) finished.push_back({std::move(work), refused});
  sends.clear();
  {
    const std::lock_guard lock(mutex_);
    ++statistics_.disk_full;
  }
  if (changes.empty()) return;
  Result<> outcome = commit({}, changes, Room::scarce);
  if (!outcome && outcome.error().code == Errc::disk_full && reserve_held_ && reserve_) {
    reserve_->release();
    reserve_held_ = false;
    log::warn("store.reserve_released", "the disk is full: sends are refused, the reserve is used for acks");
    outcome = commit({}, changes, Room::scarce);
  }
  for (auto& work : changes) finished.push_back({std::move(work), outcome});
}

void Store::run_each_alone(Group& group, std::vector<Finished>& finished) {
  for (auto& work : group) {
    Group one;
    one.push_back(std::move(work));
    Result<> outcome = commit(one, {}, reserve_held_ ? Room::enough : Room::scarce);
    finished.push_back({std::move(one.front()), std::move(outcome)});
  }
}

void Store::note_damage(const std::exception& thrown) {
  if (kind_of(thrown) != FaultKind::corrupt) return;
  const std::lock_guard lock(mutex_);
  if (damage_) return;
  damage_ = "a part of the data is damaged and cannot be read; `belfry doctor` says which, once the server is stopped";
  log::error("store.damaged", *damage_, {{"what", thrown.what()}});
}

std::optional<std::string> Store::damage() const {
  const std::lock_guard lock(mutex_);
  return damage_;
}

void Store::look_at_files() {
  const auto look = [this](Connection& connection) {
    if (!broken_ && !connection.in_place()) break_down(kTakenAway);
  };
  read_later(look, [](Result<>) {});
}

void Store::finish(std::vector<Finished> finished) {
  asio::post(kernel_, [alive = alive_, finished = std::move(finished)]() mutable {
    for (Finished& item : finished) {
      if (!*alive) return;
      item.work->done(std::move(item.outcome));
    }
  });
}

void Store::run_read(Read read) {
  Result<> outcome;
  try {
    read.job(*connection_);
  } catch (const std::exception& thrown) {
    note_damage(thrown);
    outcome = std::unexpected(error_of(thrown));
  }
  std::move_only_function<void()> answer = [alive = alive_, done = std::move(read.done),
                                            outcome = std::move(outcome)]() mutable {
    if (*alive) done(std::move(outcome));
  };
  if (options_.hold_answer && options_.hold_answer(answer)) return;
  asio::post(kernel_, std::move(answer));
}

void Store::maybe_checkpoint() {
  if (broken_ || connection_->log_pages() < options_.checkpoint_pages) return;
  try {
    connection_->checkpoint();
    checkpoint_failing_ = false;
    // Sends try it, too; but space may be freed while nobody sends.
    if (!reserve_held_) reserve_held_ = reserve_->hold();
    const std::lock_guard lock(mutex_);
    ++statistics_.checkpoints;
  } catch (const Fault& fault) {
    // The log keeps everything; the next group tries again. Said once: on a full disk it fails with every write.
    if (std::exchange(checkpoint_failing_, true)) return;
    log::warn("store.checkpoint_failed",
              "the log could not be moved into the database; it is tried again with each write",
              {{"what", fault.what()}});
  }
}

void Store::note(int rows, Nanos took) {
  const std::int64_t micros = took.count() / 1000;
  const std::lock_guard lock(mutex_);
  ++statistics_.groups;
  statistics_.rows += rows;
  statistics_.busy_micros += micros;
  ++statistics_.rows_histogram[histogram_bucket(rows)];
  ++statistics_.micros_histogram[histogram_bucket(micros)];
}

void Store::break_down(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  connection_->abandon();
  if (options_.on_broken) options_.on_broken(what);
}

}  // namespace belfry::store
