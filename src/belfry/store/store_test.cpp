#include "belfry/store/store.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <gtest/gtest.h>

#include "tests/support/simulated_store.h"

namespace belfry::store {
namespace {

using ::belfry::testing::Disk;
using ::belfry::testing::DiskError;
using ::belfry::testing::DiskReserve;
using ::belfry::testing::Lasting;
using ::belfry::testing::Operation;
using ::belfry::testing::SimulatedStore;

void insert(Connection& connection, std::int64_t id, const std::string& body = "tea") {
  connection.run("INSERT INTO row(id, body) VALUES(?1, ?2)", id, body);
}

std::int64_t count_rows(Connection& connection) {
  auto rows = connection.query("SELECT count(*) FROM row");
  return rows.next() ? rows.integer(0) : -1;
}

// Inserts one row; its outcome is written to a slot of the test's, if that asks for it.
class Insert final : public Work {
 public:
  struct Size {
    int rows = 1;
    std::size_t bytes = 0;
  };
  Insert(std::int64_t id, std::function<void(Result<>)> done, Size size)
      : id_(id), done_(std::move(done)), size_(size) {}

  void apply(Connection& connection) override { insert(connection, id_); }
  void done(Result<> outcome) override {
    if (done_) done_(std::move(outcome));
  }
  int rows() const override { return size_.rows; }
  std::size_t bytes() const override { return size_.bytes; }

 private:
  std::int64_t id_;
  std::function<void(Result<>)> done_;
  Size size_;
};

class StoreTest : public ::testing::Test {
 protected:
  void open(SimulatedStore::Options options = {}) { store_.emplace(disk_, std::move(options)); }

  void open_with_reserve(std::size_t bytes) {
    SimulatedStore::Options options;
    options.reserve = std::make_unique<DiskReserve>(disk_, bytes);
    open(std::move(options));
  }

  // Queues one insert; what becomes of it is appended to `outcomes`.
  void submit(Lane lane, std::int64_t id, Insert::Size size = {}) {
    (*store_)->submit(lane, std::make_unique<Insert>(id, [this, id](Result<> r) { note(id, std::move(r)); }, size));
  }

  Result<> put(Lane lane, std::int64_t id) {
    outcomes_.clear();
    submit(lane, id);
    store_->settle();
    return outcomes_.at(0).second;
  }

  std::int64_t rows() {
    const auto count = store_->wait(
        (*store_)->read<std::int64_t>([](Connection& c) -> Result<std::int64_t> { return count_rows(c); }));
    return count.value_or(-1);
  }

  // What a process finds that opens the disk after this one has died.
  std::int64_t rows_after_reboot() {
    disk_.cut();
    store_.reset();
    disk_.reboot();
    disk_.heal();
    open();
    return rows();
  }

  // What a process finds that opens the disk after this one has ended in peace.
  std::int64_t rows_after_close() {
    store_.reset();
    open();
    return rows();
  }

  void note(std::int64_t id, Result<> outcome) { outcomes_.emplace_back(id, std::move(outcome)); }

  SeededRandom random_{7};
  Disk disk_{random_};
  std::vector<std::pair<std::int64_t, Result<>>> outcomes_;
  std::optional<SimulatedStore> store_;
};

Errc code(const Result<>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Errc::unavailable : result.error().code;
}

TEST_F(StoreTest, WhatQueuedTogetherIsCommittedWithOneSync) {
  open();
  ASSERT_TRUE(put(Lane::send, 1));  // the first group also writes the header of the log
  const auto before = disk_.counters();
  outcomes_.clear();

  for (int id = 2; id <= 101; ++id) submit(id % 3 ? Lane::send : Lane::change, id);
  EXPECT_TRUE(outcomes_.empty()) << "nobody is answered before the commit";
  store_->settle();

  EXPECT_EQ(disk_.counters().syncs - before.syncs, 1);
  EXPECT_EQ((*store_)->statistics().groups, 2);
  EXPECT_EQ((*store_)->statistics().rows, 101);
  ASSERT_EQ(outcomes_.size(), 100u);
  for (const auto& [id, outcome] : outcomes_) EXPECT_TRUE(outcome.has_value()) << id;
  EXPECT_EQ(rows(), 101);
}

// G1
TEST_F(StoreTest, AnsweredWritesSurvivePowerLoss) {
  open();

  for (int id = 1; id <= 10; ++id) ASSERT_TRUE(put(Lane::send, id));

  EXPECT_EQ(rows_after_reboot(), 10);
}

TEST_F(StoreTest, GroupIsBoundedByRowsAndByBytes) {
  open();

  for (int id = 1; id <= 3; ++id) submit(Lane::send, id, {.rows = kGroupRowsMax});
  store_->settle();
  EXPECT_EQ((*store_)->statistics().groups, 3);

  for (int id = 4; id <= 6; ++id) submit(Lane::send, id, {.rows = 1, .bytes = kGroupBytesMax});
  store_->settle();
  EXPECT_EQ((*store_)->statistics().groups, 6);
}

TEST_F(StoreTest, RefusedClosureLeavesNoTraceAndHurtsNobody) {
  open();
  std::optional<Result<int>> refused;
  std::optional<Result<int>> accepted;
  const auto refuse = [](Connection& c) -> Result<int> {
    insert(c, 1);
    return fail(Errc::wrong_state, "no");
  };
  const auto accept = [](Connection& c) -> Result<int> {
    insert(c, 2);
    return 42;
  };

  asio::co_spawn(store_->context(), (*store_)->write<int>(refuse), [&](auto, auto r) { refused = std::move(r); });
  asio::co_spawn(store_->context(), (*store_)->write<int>(accept), [&](auto, auto r) { accepted = std::move(r); });
  asio::post(store_->context(), [this] { submit(Lane::send, 3); });
  store_->settle();

  ASSERT_TRUE(refused && accepted);
  EXPECT_EQ(refused->error().code, Errc::wrong_state);
  EXPECT_EQ(accepted->value(), 42);
  EXPECT_TRUE(outcomes_.at(0).second.has_value());
  EXPECT_EQ((*store_)->statistics().groups, 1);
  EXPECT_EQ(rows(), 2);
}

// G22
TEST_F(StoreTest, AClosureThatMeetsAFaultIsRefusedAloneAndWithoutEffect) {
  open();
  const auto faulty = [](Connection& c) -> Result<int> {
    insert(c, 1);
    insert(c, 1);
    return 0;
  };

  std::optional<Result<int>> outcome;
  asio::co_spawn(store_->context(), (*store_)->write<int>(faulty), [&](auto, auto r) { outcome = std::move(r); });
  asio::post(store_->context(), [this] { submit(Lane::send, 2); });
  store_->settle();

  EXPECT_EQ(outcome->error().code, Errc::storage_failed);
  EXPECT_TRUE(outcomes_.at(0).second.has_value()) << "whoever was in the same group";
  EXPECT_FALSE((*store_)->broken());
  EXPECT_EQ(rows(), 1);
  EXPECT_TRUE(put(Lane::send, 3));
}

TEST_F(StoreTest, ClosureThatThrowsSomethingElseDoesNotLeaveItsTransactionOpen) {
  open();
  const auto faulty = [](Connection& c) -> Result<int> {
    insert(c, 1);
    throw std::runtime_error("a mistake of ours");
  };

  const auto outcome = store_->wait((*store_)->write<int>(faulty));

  EXPECT_EQ(outcome.error().code, Errc::storage_failed);
  EXPECT_TRUE(put(Lane::send, 2));
  EXPECT_EQ(rows(), 1);
}

TEST_F(StoreTest, ReadsSeeWhatIsCommittedAndNothingElse) {
  open();
  std::vector<std::int64_t> seen;
  const auto look = [&seen](Connection& c) { seen.push_back(count_rows(c)); };
  const auto ignore = [](Result<>) {};

  (*store_)->read_later(look, ignore);
  submit(Lane::send, 1);
  store_->settle();
  EXPECT_EQ(seen, std::vector<std::int64_t>{1}) << "the read ran after the group it was queued with";

  disk_.fail_at(Operation::write, 1, DiskError::no_space, Lasting::once);
  submit(Lane::send, 2);
  (*store_)->read_later(look, ignore);
  store_->settle();
  EXPECT_EQ(code(outcomes_.at(1).second), Errc::disk_full);
  EXPECT_EQ(seen.back(), 1);
}

TEST_F(StoreTest, FaultyReadIsAnsweredWithAnError) {
  open();
  const auto job = [](Connection& c) -> Result<int> {
    c.execute("SELECT nonsense FROM nowhere");
    return 0;
  };

  const auto outcome = store_->wait((*store_)->read<int>(job));

  EXPECT_EQ(outcome.error().code, Errc::storage_failed);
}

// G2
TEST_F(StoreTest, IoErrorAtCommitBreaksTheStoreForGood) {
  std::string what;
  SimulatedStore::Options options;
  options.store.on_broken = [&what](const std::string& text) { what = text; };
  open(std::move(options));
  ASSERT_TRUE(put(Lane::send, 1));
  outcomes_.clear();

  disk_.fail_at(Operation::sync, 1, DiskError::io, Lasting::once);
  submit(Lane::send, 2);
  submit(Lane::change, 3);
  store_->settle();

  EXPECT_TRUE((*store_)->broken());
  EXPECT_NE(what, "");
  EXPECT_EQ(code(outcomes_.at(0).second), Errc::storage_failed);
  EXPECT_EQ(code(outcomes_.at(1).second), Errc::storage_failed);
  EXPECT_EQ(code(put(Lane::send, 4)), Errc::storage_failed) << "an fsync is never tried again";
  EXPECT_GE(rows_after_reboot(), 1);
}

// G2
TEST_F(StoreTest, BrokenStoreDoesNotWriteToTheDiskAnyMore) {
  std::optional<std::int64_t> changes_when_broken;
  SimulatedStore::Options options;
  options.store.checkpoint_pages = 1;
  options.store.on_broken = [&](const std::string&) { changes_when_broken = disk_.counters().changes(); };
  open(std::move(options));
  disk_.fail_at(Operation::sync, 2, DiskError::io, Lasting::once);
  ASSERT_TRUE(put(Lane::send, 1));
  ASSERT_TRUE(disk_.failed()) << "the checkpoint failed, so the log still holds the row";

  disk_.fail_at(Operation::sync, 1, DiskError::io, Lasting::once);
  submit(Lane::send, 2);
  (*store_)->read_later([](Connection&) {}, [](Result<>) {});
  store_->settle();
  ASSERT_TRUE(changes_when_broken);
  EXPECT_EQ(disk_.counters().changes(), *changes_when_broken) << "no checkpoint";
  store_.reset();

  EXPECT_EQ(disk_.counters().changes(), *changes_when_broken) << "none on closing either";
}

// G2
TEST_F(StoreTest, EveryCommitSyncInTurnMayFailAndNoAnsweredRowIsLost) {
  for (int n = 1; n <= 12; ++n) {
    SeededRandom random(static_cast<std::uint64_t>(n));
    Disk disk(random);
    std::vector<std::int64_t> answered;
    {
      SimulatedStore::Options options;
      options.store.checkpoint_pages = 3;
      SimulatedStore store(disk, std::move(options));
      disk.fail_at(Operation::sync, n, DiskError::io, Lasting::once);
      for (std::int64_t id = 1; id <= 12; ++id) {
        const auto job = [id](Connection& c) -> Result<std::int64_t> {
          insert(c, id);
          return id;
        };
        if (const auto outcome = store.wait(store->write<std::int64_t>(job))) answered.push_back(*outcome);
      }
      disk.cut();
    }
    disk.reboot();
    disk.heal();

    SimulatedStore store(disk);
    const auto job = [&answered](Connection& c) -> Result<int> {
      int lost = 0;
      for (const std::int64_t id : answered) {
        auto found = c.query("SELECT 1 FROM row WHERE id = ?1", id);
        lost += found.next() ? 0 : 1;
      }
      return lost;
    };
    EXPECT_EQ(store.wait(store->read<int>(job)).value(), 0) << "sync " << n;
  }
}

// G17
TEST_F(StoreTest, FullDiskRefusesSendsWithoutEffect) {
  open();
  ASSERT_TRUE(put(Lane::send, 1));
  disk_.set_capacity(disk_.bytes_used());

  EXPECT_EQ(code(put(Lane::send, 2)), Errc::disk_full);
  EXPECT_EQ((*store_)->statistics().disk_full, 1);
  EXPECT_FALSE((*store_)->broken());
  EXPECT_EQ(rows(), 1);

  disk_.set_capacity(Disk::kUnlimited);
  EXPECT_TRUE(put(Lane::send, 2)) << "back to normal by itself";
  EXPECT_EQ(rows_after_reboot(), 2);
}

// G17
TEST_F(StoreTest, FullDiskLetsChangesGoOnFromTheReserve) {
  constexpr std::size_t kReserve = 64 * 1024;
  open_with_reserve(kReserve);
  ASSERT_TRUE(put(Lane::send, 1));
  disk_.set_capacity(disk_.bytes_used());

  EXPECT_TRUE(put(Lane::change, 2));
  EXPECT_EQ(code(put(Lane::send, 3)), Errc::disk_full) << "what is left belongs to changes";
  outcomes_.clear();
  submit(Lane::send, 4);
  submit(Lane::change, 5);
  store_->settle();
  ASSERT_EQ(outcomes_.size(), 2u);
  EXPECT_EQ(code(outcomes_[0].second), Errc::disk_full);
  EXPECT_TRUE(outcomes_[1].second.has_value());

  disk_.set_capacity(disk_.bytes_used() + kReserve / 2);
  EXPECT_EQ(code(put(Lane::send, 6)), Errc::disk_full) << "not enough to set the reserve aside again";
  disk_.set_capacity(disk_.bytes_used() + 2 * kReserve);
  EXPECT_TRUE(put(Lane::send, 7));
  EXPECT_EQ(rows(), 4);
  EXPECT_EQ(rows_after_reboot(), 4);
}

// G17
TEST_F(StoreTest, ChangesAreRefusedOnlyWhenTheReserveIsUsedUp) {
  open_with_reserve(32 * 1024);
  disk_.set_capacity(disk_.bytes_used());

  int taken = 0;
  while (taken < 100 && put(Lane::change, taken + 1)) ++taken;

  EXPECT_GT(taken, 1);
  EXPECT_LT(taken, 100);
  EXPECT_EQ(code(put(Lane::change, 999)), Errc::disk_full);
  EXPECT_FALSE((*store_)->broken());
  EXPECT_EQ(rows_after_reboot(), taken);
}

// G17: ENOSPC on the n-th write, for every n.
TEST_F(StoreTest, NoSpaceAtAnyWriteIsARefusalWithoutEffect) {
  for (int n = 1; n < 60; ++n) {
    SeededRandom random(static_cast<std::uint64_t>(n));
    Disk disk(random);
    int answered = 0;
    {
      SimulatedStore::Options options;
      options.store.checkpoint_pages = 4;
      SimulatedStore store(disk, std::move(options));
      disk.fail_at(Operation::write, n, DiskError::no_space, Lasting::once);
      for (std::int64_t id = 1; id <= 12; ++id) {
        const auto job = [id](Connection& c) -> Result<int> {
          insert(c, id);
          return 0;
        };
        const auto outcome = store.wait(store->write<int>(job));
        if (!outcome) ASSERT_EQ(outcome.error().code, Errc::disk_full) << n;
        answered += outcome ? 1 : 0;
      }
      EXPECT_FALSE(store->broken());
      disk.cut();
    }
    disk.reboot();
    disk.heal();
    SimulatedStore store(disk);
    const auto count = [](Connection& c) -> Result<std::int64_t> { return count_rows(c); };
    EXPECT_EQ(store.wait(store->read<std::int64_t>(count)).value(), answered) << "write " << n;
  }
}

TEST_F(StoreTest, SendsDoNotStarveChanges) {
  open();
  for (int id = 1; id <= 3 * kGroupRowsMax; ++id) submit(Lane::send, id);
  submit(Lane::change, 100'001);
  std::optional<std::size_t> changed_after;
  for (int id = 100'002; id <= 100'002 + 600; ++id) submit(Lane::change, id);

  while (outcomes_.empty()) store_->context().poll_one();
  for (std::size_t i = 0; i < outcomes_.size() && !changed_after; ++i)
    if (outcomes_[i].first == 100'001) changed_after = i;

  ASSERT_TRUE(changed_after) << "not in the first group";
  EXPECT_EQ(outcomes_.size(), static_cast<std::size_t>(kGroupRowsMax));
  store_->settle();
  EXPECT_EQ(outcomes_.size(), 3u * kGroupRowsMax + 602);
}

TEST_F(StoreTest, LargeSendsDoNotStarveChangesEither) {
  open();
  for (int id = 1; id <= 3; ++id) submit(Lane::send, id, {.rows = 1, .bytes = kGroupBytesMax});
  submit(Lane::change, 10);

  while (outcomes_.empty()) store_->context().poll_one();

  EXPECT_EQ(outcomes_.back().first, 10);
}

// G16
TEST_F(StoreTest, TooLongAQueueRefusesSendsAsOverloadedButTakesChanges) {
  open();
  for (int id = 1; id <= kStoreQueueMax; ++id) submit(Lane::send, id);
  EXPECT_TRUE((*store_)->overloaded());

  submit(Lane::send, 1'000'001);
  submit(Lane::change, 1'000'002);
  store_->settle();

  ASSERT_EQ(outcomes_.size(), kStoreQueueMax + 2u);
  for (const auto& [id, outcome] : outcomes_) {
    if (id == 1'000'001) {
      EXPECT_EQ(code(outcome), Errc::overloaded);
    } else {
      ASSERT_TRUE(outcome.has_value()) << id;
    }
  }
  EXPECT_FALSE((*store_)->overloaded());
}

// G16
TEST_F(StoreTest, TooManyBytesInTheQueueAreOverloadToo) {
  open();
  submit(Lane::send, 1, {.rows = 1, .bytes = kStoreQueueBytesMax});

  EXPECT_TRUE((*store_)->overloaded());
  EXPECT_EQ(code(put(Lane::send, 2)), Errc::overloaded);
  store_->settle();
  EXPECT_FALSE((*store_)->overloaded());
  EXPECT_TRUE(put(Lane::send, 3));
}

class CountingHook final : public GroupHook {
 public:
  void before_commit(Connection& connection, Room now) override {
    room = now;
    ++before;
    insert(connection, 1'000 + before);
  }
  void after_group(bool committed) override { ++(committed ? good : bad); }
  int before = 0;
  int good = 0;
  int bad = 0;
  Room room = Room::enough;
};

// G17
TEST_F(StoreTest, HooksAreToldWhenWhatIsLeftBelongsToAcks) {
  constexpr std::size_t kReserve = 64 * 1024;
  open_with_reserve(kReserve);
  CountingHook hook;
  (*store_)->add_hook(hook);
  ASSERT_TRUE(put(Lane::send, 1));
  EXPECT_EQ(hook.room, Room::enough);
  disk_.set_capacity(disk_.bytes_used());
  while (put(Lane::change, 100 + hook.before) && hook.room == Room::enough) {
  }
  EXPECT_EQ(hook.room, Room::scarce);
  EXPECT_TRUE(put(Lane::change, 100 + hook.before)) << "from the reserve";
  EXPECT_EQ(hook.room, Room::scarce);
  const int before = hook.before;
  submit(Lane::send, 2);
  submit(Lane::change, 100 + hook.before);
  store_->settle();
  EXPECT_EQ(hook.before, before + 1);
  EXPECT_EQ(hook.room, Room::scarce);
  disk_.set_capacity(disk_.bytes_used() + 4 * kReserve);
  ASSERT_TRUE(put(Lane::send, 3));
  EXPECT_EQ(hook.room, Room::enough);
}

// G17
TEST_F(StoreTest, RoomIsEnoughAgainWhenSpaceIsFreedThoughNobodySends) {
  constexpr std::size_t kReserve = 64 * 1024;
  SimulatedStore::Options options;
  options.store.checkpoint_pages = 10;
  options.reserve = std::make_unique<DiskReserve>(disk_, kReserve);
  open(std::move(options));
  CountingHook hook;
  (*store_)->add_hook(hook);
  disk_.set_capacity(disk_.bytes_used());
  while (put(Lane::change, 100 + hook.before) && hook.room == Room::enough) {
  }
  ASSERT_EQ(hook.room, Room::scarce);

  disk_.set_capacity(disk_.bytes_used() + 16 * kReserve);
  for (int i = 0; i < 50 && hook.room == Room::scarce; ++i) ASSERT_TRUE(put(Lane::change, 100 + hook.before));

  EXPECT_EQ(hook.room, Room::enough);
}

TEST_F(StoreTest, HooksSeeTheEdgesOfEachGroup) {
  open();
  CountingHook hook;
  (*store_)->add_hook(hook);

  submit(Lane::send, 1);
  submit(Lane::send, 2);
  store_->settle();
  disk_.fail_at(Operation::write, 1, DiskError::no_space, Lasting::once);
  EXPECT_EQ(code(put(Lane::send, 3)), Errc::disk_full);

  EXPECT_EQ(hook.good, 1);
  EXPECT_EQ(hook.bad, 1);
  EXPECT_EQ(rows(), 3) << "two rows and what the hook wrote with them";
}

TEST_F(StoreTest, LogIsMovedIntoTheDatabaseOnceItIsLong) {
  SimulatedStore::Options options;
  options.store.checkpoint_pages = 10;
  open(std::move(options));

  for (int id = 1; id <= 50; ++id) ASSERT_TRUE(put(Lane::send, id));

  EXPECT_GE((*store_)->statistics().checkpoints, 3);
  EXPECT_LE((*store_)->statistics().checkpoints, 10);
  EXPECT_LT(disk_.bytes_used(), 200'000u) << "the log is used again, not grown";
}

TEST_F(StoreTest, FailedCheckpointHarmsNobodyAndIsMadeUpLater) {
  SimulatedStore::Options options;
  options.store.checkpoint_pages = 10;
  open(std::move(options));
  std::int64_t id = 0;
  while ((*store_)->connection_before_start().log_pages() < 9) ASSERT_TRUE(put(Lane::send, ++id));

  disk_.fail_at(Operation::sync, 2, DiskError::io, Lasting::once);  // the first sync is the commit's
  ASSERT_TRUE(put(Lane::send, ++id));
  EXPECT_TRUE(disk_.failed());
  EXPECT_EQ((*store_)->statistics().checkpoints, 0);
  ASSERT_TRUE(put(Lane::send, ++id));
  EXPECT_EQ((*store_)->statistics().checkpoints, 1);

  EXPECT_EQ(rows_after_reboot(), id);
}

TEST_F(StoreTest, DestructionCommitsWhatIsQueued) {
  open();
  submit(Lane::send, 1);
  submit(Lane::change, 2);

  EXPECT_EQ(rows_after_close(), 2);
  EXPECT_TRUE(outcomes_.empty()) << "there is nobody left to answer";
}

TEST_F(StoreTest, CallerThatWaitsWhenTheStoreGoesAwayIsEnded) {
  open();
  auto witness = std::make_shared<int>(0);
  const auto job = [witness](Connection& c) -> Result<int> {
    insert(c, 1);
    return 0;
  };
  asio::co_spawn(store_->context(), (*store_)->write<int>(job), [](auto, auto) { FAIL() << "resumed after the end"; });
  while (witness.use_count() < 3) ASSERT_EQ(store_->context().poll_one(), 1u);

  store_.reset();

  // The job holds one more, of course: the lambda above.
  EXPECT_EQ(witness.use_count(), 2);
}

// Changes more pages than the cache holds, twice, and then thinks better of it.
Result<int> fill_the_cache_and_refuse(Connection& connection) {
  connection.run("UPDATE row SET body = body || 'x' WHERE id < 600");
  for (int i = 0; i < 2; ++i) connection.run("UPDATE row SET body = body || 'y' WHERE id BETWEEN 1000 AND 1600");
  return fail(Errc::wrong_state, "not now");
}

// G1: changed pages that went to the log before their commit, and were rolled back, left frames there without checksums,
// at which recovery ended.
TEST_F(StoreTest, ARefusedJobThatIsLargerThanTheCacheEndsNoLog) {
  SimulatedStore::Options options;
  options.cache_kib = 200;
  open(std::move(options));
  const auto fill = [](Connection& c) -> Result<int> {
    for (std::int64_t id = 1; id <= 2'000; ++id) insert(c, id, std::string(1'000, 'r'));
    return 0;
  };
  ASSERT_TRUE(store_->wait((*store_)->write<int>(fill)));
  std::optional<Result<int>> refused;
  asio::co_spawn(store_->context(), (*store_)->write<int>(fill_the_cache_and_refuse),
                 [&refused](std::exception_ptr, Result<int> outcome) { refused = std::move(outcome); });
  submit(Lane::change, 10'001);
  store_->settle();
  ASSERT_TRUE(refused && !*refused);
  ASSERT_TRUE(put(Lane::send, 10'002));

  EXPECT_EQ(rows_after_reboot(), 2'002);
}

// G15
TEST_F(StoreTest, AJobMayNotChangeMoreThanFitsIntoMemory) {
  SimulatedStore::Options options;
  options.store.job_bytes_max = 1 << 20;
  open(std::move(options));
  const auto insert_so_many = [](std::int64_t first, std::int64_t count) {
    return [first, count](Connection& c) -> Result<int> {
      for (std::int64_t id = first; id < first + count; ++id) insert(c, id, std::string(4'000, 'r'));
      return 0;
    };
  };

  EXPECT_TRUE(store_->wait((*store_)->write<int>(insert_so_many(1, 200))));
  const auto refused = store_->wait((*store_)->write<int>(insert_so_many(1'000, 300)));

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_EQ(rows(), 200);
}

// The same code on a thread of its own; ThreadSanitizer is the judge.
TEST(StoreThread, CommitsAndAnswersOnTheKernelsThread) {
  SeededRandom random(1);
  Disk disk(random);
  asio::io_context kernel;
  const auto kernel_thread = std::this_thread::get_id();
  const auto answered = std::make_shared<int>(0);
  {
    auto connection = sqlite::open({.path = "belfry.db", .vfs = disk.vfs_name()});
    connection->execute("CREATE TABLE row(id INTEGER PRIMARY KEY, body TEXT NOT NULL)");
    Store store(kernel, std::move(connection), {});
    store.start();
    const auto one = [](Store& into, std::thread::id kernel_id, std::shared_ptr<int> count,
                        std::int64_t id) -> Task<void> {
      const auto job = [id](Connection& c) -> Result<std::thread::id> {
        insert(c, id);
        return std::this_thread::get_id();
      };
      const auto done = co_await into.write<std::thread::id>(job);
      EXPECT_TRUE(done && *done != kernel_id);
      EXPECT_EQ(std::this_thread::get_id(), kernel_id);
      ++*count;
    };
    for (std::int64_t id = 1; id <= 500; ++id)
      asio::co_spawn(kernel, one(store, kernel_thread, answered, id), asio::detached);
    const auto guard = asio::make_work_guard(kernel);
    while (*answered < 500) kernel.run_one();
    EXPECT_EQ(store.statistics().rows, 500 * 16);

    for (std::int64_t id = 501; id <= 600; ++id)
      store.submit(Lane::send, std::make_unique<Insert>(id, nullptr, Insert::Size{}));
  }

  const auto connection = sqlite::open({.path = "belfry.db", .vfs = disk.vfs_name()});
  EXPECT_EQ(count_rows(*connection), 600) << "destruction commits what is queued";
}

}  // namespace
}  // namespace belfry::store
