// Group commit: one thread owns the disk.
//
// Whatever queued up while the last commit ran becomes the next transaction; it is committed once, and then all its
// callers are resumed. No caller hears "done" before its data is on the disk (G1).
//
// Submitting and resuming happen on the kernel's thread; `apply` runs on the store's. In a simulation the same code runs
// inline on the kernel's thread (Mode::inline_groups), so a group is still what was queued together.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/limits.h"
#include "belfry/base/result.h"
#include "belfry/store/connection.h"

namespace belfry::store {

// One thing to write. Several share a transaction, so `apply` must not fail for reasons of its own; what can be refused
// is written as a closure (Store::write), which gets a savepoint. When the disk is full, the group is rolled back and its
// changes run again without the sends: `apply` and closures may be called more than once, and only the last call counts.
class Work {
 public:
  virtual ~Work() = default;
  virtual void apply(Connection& connection) = 0;  // on the store's thread
  virtual void done(Result<> outcome) = 0;         // on the kernel's thread, after the commit or the refusal
  virtual int rows() const { return 1; }
  virtual std::size_t bytes() const { return 0; }
};

// Sends come first, for a sender waits for each; changes (acks, moves, closures) always get a share of the group.
enum class Lane { send, change };

// What the disk has left. Scarce: it belongs to acks (G17), so whoever can write less does.
enum class Room { enough, scarce };

// Sees the edges of each group, on the store's thread: for sums that are written once a group.
class GroupHook {
 public:
  virtual ~GroupHook() = default;
  virtual void before_commit(Connection& connection, Room room) = 0;
  virtual void after_group(bool committed) = 0;
};

// Space that is kept for acks when the disk is full (G17).
class Reserve {
 public:
  virtual ~Reserve() = default;
  virtual bool hold() = 0;  // true if the space is (now) set aside
  virtual void release() = 0;
};

enum class Mode { own_thread, inline_groups };

// What the groups looked like, for /metrics. Written by the store's thread, read by anyone.
struct Statistics {
  static constexpr int kBuckets = 24;  // powers of two: rows from 1, microseconds from 1
  std::int64_t groups = 0;
  std::int64_t rows = 0;
  std::int64_t busy_micros = 0;
  std::int64_t checkpoints = 0;
  std::int64_t disk_full = 0;
  std::int64_t rows_histogram[kBuckets] = {};
  std::int64_t micros_histogram[kBuckets] = {};
};

struct Options {
  Mode mode = Mode::own_thread;
  // Pages in the log at which it is moved into the database. More is rarer, but each time takes longer.
  int checkpoint_pages = 1'000;
  // What one closure may change, in pages.
  std::int64_t job_bytes_max = kJobBytesMax;
  // For the control of the crash tests only: callers hear "done" too soon, and the harness must notice.
  bool acknowledge_before_commit = false;
  // For tests of what is said while a read is under way: true if it took the answer, which it calls later on the kernel's
  // thread. None: answers arrive in the order in which the store was asked.
  std::function<bool(std::move_only_function<void()>& answer)> hold_answer;
  std::function<Nanos()> stopwatch;                        // elapsed time for the statistics; none: not measured
  std::function<void(const std::string& what)> on_broken;  // a commit's outcome is unknown: the process should end
};

class Store {
 public:
  Store(asio::io_context& kernel, std::unique_ptr<Connection> connection, Options options,
        std::unique_ptr<Reserve> reserve = nullptr);
  ~Store();  // commits what is queued, then closes
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void add_hook(GroupHook& hook);
  // Refused (done(overloaded)) when too much waits for the disk already; changes are taken for longer than sends.
  void submit(Lane lane, std::unique_ptr<Work> work);
  bool overloaded() const;

  // Runs `job(Connection&) -> Result<T>` in the next group under a savepoint: what it refuses leaves no trace.
  template <class T, class Job>
  Task<Result<T>> write(Job job, int rows = 16);
  // The same in the lane of the sends: for what brings `bytes` of something new, and is refused when the disk is full.
  template <class T, class Job>
  Task<Result<T>> write_as_send(Job job, std::size_t bytes);
  // Runs `job(Connection&) -> Result<T>` between two groups, on committed data only.
  template <class T, class Job>
  Task<Result<T>> read(Job job);
  // The same with a plain callback: for background steps that nobody waits for.
  void read_later(std::move_only_function<void(Connection&)> job, std::move_only_function<void(Result<>)> done);

  // Direct use before the kernel starts (opening, migrations) and after it ended.
  Connection& connection_before_start() { return *connection_; }
  void start();
  Statistics statistics() const;
  bool broken() const;
  // What was found to be damaged first, in words for people; nothing if all that was read was whole (G22).
  std::optional<std::string> damage() const;
  // Breaks down if the files are not where they were opened: called before each group is answered, and by whoever knows
  // the time now and then.
  void look_at_files();

 private:
  struct Read {
    std::move_only_function<void(Connection&)> job;
    std::move_only_function<void(Result<>)> done;
  };
  struct Finished {
    std::unique_ptr<Work> work;
    Result<> outcome;
  };
  using Group = std::vector<std::unique_ptr<Work>>;

  void loop();
  bool cycle();  // one group, one read; false if there was nothing to do
  void schedule_inline();
  bool queue_exceeds(std::size_t times) const;
  void take(Group& sends, Group& changes);
  void run_group(Group sends, Group changes);
  Result<> commit(const Group& sends, const Group& changes, Room room);
  void acknowledge_too_soon(Group sends, Group changes);
  void survive_full_disk(Group& sends, Group& changes, std::vector<Finished>& finished);
  void finish(std::vector<Finished> finished);
  void run_each_alone(Group& group, std::vector<Finished>& finished);
  void note_damage(const std::exception& thrown);
  void run_read(Read read);
  void maybe_checkpoint();
  void note(int rows, Nanos took);
  void break_down(const std::string& what);

  asio::io_context& kernel_;
  std::unique_ptr<Connection> connection_;
  Options options_;
  std::unique_ptr<Reserve> reserve_;
  bool reserve_held_ = false;
  std::vector<GroupHook*> hooks_;

  mutable std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable wanted_;
  std::deque<std::unique_ptr<Work>> sends_;
  std::deque<std::unique_ptr<Work>> changes_;
  std::deque<Read> reads_;
  std::size_t queued_bytes_ = 0;
  bool stopping_ = false;
  bool broken_ = false;
  bool checkpoint_failing_ = false;  // and that was said
  bool scheduled_ = false;
  bool started_ = false;
  std::optional<std::string> damage_;
  Statistics statistics_;

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // posted completions outlive us only to find this false
  std::thread thread_;
};

namespace detail {

// Runs `job` and undoes its traces if it refuses, or if it changed more than fits into memory beside others' changes.
template <class T, class Job>
Result<T> under_savepoint(Connection& connection, Job& job, std::int64_t bytes_max = kJobBytesMax) {
  connection.run("SAVEPOINT job");
  const std::int64_t before = connection.page_bytes();
  Result<T> result = job(connection);
  if (result && connection.page_bytes() - before > bytes_max)
    result = fail(Errc::too_large, "one change would rewrite more than the store takes at once; nothing was stored");
  if (!result) connection.run("ROLLBACK TO job");
  connection.run("RELEASE job");
  return result;
}

template <class T, class Job>
class Closure final : public Work {
 public:
  Closure(Job job, int rows, std::size_t bytes, std::int64_t job_bytes_max, Resume<Result<T>> resume)
      : job_(std::move(job)), rows_(rows), bytes_(bytes), job_bytes_max_(job_bytes_max), resume_(std::move(resume)) {}

  void apply(Connection& connection) override { result_ = under_savepoint<T>(connection, job_, job_bytes_max_); }
  void done(Result<> outcome) override {
    if (!outcome) return resume_(std::unexpected(std::move(outcome).error()));
    resume_(std::move(result_));
  }
  int rows() const override { return rows_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  Job job_;
  int rows_;
  std::size_t bytes_;
  std::int64_t job_bytes_max_;
  Resume<Result<T>> resume_;
  Result<T> result_ = fail(Errc::storage_failed, "the job did not run");
};

}  // namespace detail

template <class T, class Job>
Task<Result<T>> Store::write(Job job, int rows) {
  co_return co_await suspend<Result<T>>([this, &job, rows](Resume<Result<T>> resume) {
    submit(Lane::change, std::make_unique<detail::Closure<T, Job>>(std::move(job), rows, 0, options_.job_bytes_max,
                                                                   std::move(resume)));
  });
}

template <class T, class Job>
Task<Result<T>> Store::write_as_send(Job job, std::size_t bytes) {
  co_return co_await suspend<Result<T>>([this, &job, bytes](Resume<Result<T>> resume) {
    submit(Lane::send, std::make_unique<detail::Closure<T, Job>>(std::move(job), 1, bytes, options_.job_bytes_max,
                                                                 std::move(resume)));
  });
}

template <class T, class Job>
Task<Result<T>> Store::read(Job job) {
  auto result = std::make_shared<Result<T>>(fail(Errc::storage_failed, "the read did not run"));
  const Result<> ran = co_await suspend<Result<>>([this, &job, result](Resume<Result<>> resume) {
    read_later([job = std::move(job), result](Connection& connection) mutable { *result = job(connection); },
               std::move(resume));
  });
  if (!ran) co_return std::unexpected(ran.error());
  co_return std::move(*result);
}

}  // namespace belfry::store
