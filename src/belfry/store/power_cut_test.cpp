// Random writes, a power cut in the middle of any disk operation, recovery; again and again on the same disk.
//
// BELFRY_CUTS sets how many cuts (1000), BELFRY_SEED where the seeds start. A failure names the seed of its disk.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/simulated_store.h"

namespace belfry::store {
namespace {

using ::belfry::testing::Disk;
using ::belfry::testing::SimulatedStore;

constexpr int kCutsPerDisk = 5;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Tally {
  std::int64_t cuts = 0;
  std::int64_t cuts_with_losses = 0;
  std::int64_t cuts_while_opening = 0;
  std::int64_t acknowledged = 0;
  std::int64_t lost = 0;
};

struct Control {
  sqlite::Synchronous synchronous = sqlite::Synchronous::full;
  bool acknowledge_before_commit = false;
};

// What a body must be follows from its id, so a reader can tell a wrong one. A few fill pages of their own.
std::string body_of(std::int64_t id) {
  const auto size = static_cast<std::size_t>(id % 17 == 0 ? 6'000 : id % 200);
  return std::string(size, static_cast<char>('a' + id % 26)) + std::to_string(id);
}

// One machine's disk through several lives of the store.
class Machine {
 public:
  Machine(std::uint64_t seed, Control control, Tally& tally)
      : seed_(seed), control_(control), tally_(tally), random_(seed), disk_(random_) {}

  void live_and_lose_power() {
    // From the first operation of opening to somewhere in the third hundred, often early.
    disk_.cut_at(1 + below(below(2) ? 40 : 300));
    try {
      write_until_dark();
    } catch (const LostCommits& lost) {
      ADD_FAILURE() << lost.what() << ", seed " << seed_;
    } catch (const Fault&) {
      ++tally_.cuts_while_opening;
    }
    disk_.cut();
    ++tally_.cuts;
    disk_.reboot();
    check();
  }

 private:
  class Put final : public Work {
   public:
    Put(Machine& machine, std::int64_t id) : machine_(machine), id_(id) {}
    void apply(Connection& connection) override {
      connection.run("INSERT INTO row(id, body) VALUES(?1, ?2)", id_, body_of(id_));
    }
    void done(Result<> outcome) override {
      if (!outcome) return;
      machine_.safe_.insert(id_);
      ++machine_.tally_.acknowledged;
    }

   private:
    Machine& machine_;
    std::int64_t id_;
  };

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(bound));
  }

  SimulatedStore open() {
    SimulatedStore::Options options;
    options.synchronous = control_.synchronous;
    options.store.acknowledge_before_commit = control_.acknowledge_before_commit;
    options.store.checkpoint_pages = 24;
    return SimulatedStore(disk_, std::move(options));
  }

  void write_until_dark() {
    SimulatedStore store = open();
    while (disk_.running()) {
      for (std::int64_t n = 1 + below(6); n > 0; --n)
        store->submit(below(3) == 0 ? Lane::change : Lane::send, std::make_unique<Put>(*this, ++last_id_));
      store.settle();
    }
  }

  void check() {
    SimulatedStore store = open();
    auto read = [](Connection& c) -> Result<std::map<std::int64_t, std::string>> {
      std::map<std::int64_t, std::string> found;
      auto rows = c.query("SELECT id, body FROM row");
      while (rows.next()) found.emplace(rows.integer(0), rows.text(1));
      return found;
    };
    auto found = store.wait(store->read<std::map<std::int64_t, std::string>>(read)).value();
    for (const auto& [id, body] : found) {
      EXPECT_LE(id, last_id_) << "a row nobody wrote, seed " << seed_;
      EXPECT_EQ(body, body_of(id)) << "seed " << seed_;
    }
    if (tally_.cuts % 16 == 0) {
      EXPECT_EQ(store->connection_before_start().integrity_problem(), "") << "seed " << seed_;
    }
    EXPECT_EQ(store->connection_before_start().examine_pages().harmed, 0) << "seed " << seed_;
    std::int64_t lost = 0;
    for (const std::int64_t id : safe_) lost += found.contains(id) ? 0 : 1;
    tally_.lost += lost;
    tally_.cuts_with_losses += lost > 0 ? 1 : 0;
    // What one recovery found has to survive the next cut as well; what was lost is not counted twice.
    safe_.clear();
    for (const auto& [id, body] : found) safe_.insert(id);
  }

  std::uint64_t seed_;
  Control control_;
  Tally& tally_;
  SeededRandom random_;
  Disk disk_;
  std::int64_t last_id_ = 0;
  std::set<std::int64_t> safe_;  // acknowledged, or seen by a reader
};

Tally cut_power(std::uint64_t cuts, Control control) {
  Tally tally;
  for (std::uint64_t seed = from_environment("BELFRY_SEED", 1); tally.cuts < static_cast<std::int64_t>(cuts); ++seed) {
    Machine machine(seed, control, tally);
    for (int i = 0; i < kCutsPerDisk; ++i) {
      const std::int64_t before = tally.lost;
      machine.live_and_lose_power();
      const bool honest = control.synchronous == sqlite::Synchronous::full && !control.acknowledge_before_commit;
      if (honest && tally.lost > before) ADD_FAILURE() << "BELFRY_SEED=" << seed << " BELFRY_CUTS=" << kCutsPerDisk;
    }
  }
  ::testing::Test::RecordProperty("cuts", std::to_string(tally.cuts));
  ::testing::Test::RecordProperty("acknowledged", std::to_string(tally.acknowledged));
  ::testing::Test::RecordProperty("lost", std::to_string(tally.lost));
  ::testing::Test::RecordProperty("cuts_with_losses", std::to_string(tally.cuts_with_losses));
  ::testing::Test::RecordProperty("cuts_while_opening", std::to_string(tally.cuts_while_opening));
  return tally;
}

// The controls need enough cuts to be sure of a loss, also where a failure is replayed with a few.
std::uint64_t cuts_for_control() { return std::max<std::uint64_t>(from_environment("BELFRY_CUTS", 1'000) / 5, 100); }

std::uint64_t cuts_wanted() { return from_environment("BELFRY_CUTS", 1'000); }

// G1
TEST(PowerCut, NeverTakesAnAcknowledgedRow) {
  const Tally tally = cut_power(cuts_wanted(), {});

  EXPECT_EQ(tally.lost, 0);
  EXPECT_GT(tally.acknowledged, 0);
  if (tally.cuts >= 500) EXPECT_GT(tally.cuts_while_opening, 0) << "recovery itself must be interrupted too";
}

// The controls: the same harness must see the losses where they are.
TEST(PowerCut, TakesAcknowledgedRowsWhenTheLogIsNotSynced) {
  const Tally tally = cut_power(cuts_for_control(), {.synchronous = sqlite::Synchronous::normal});

  EXPECT_GT(tally.lost, 0);
  EXPECT_GT(tally.cuts_with_losses * 10, tally.cuts);
}

TEST(PowerCut, TakesAcknowledgedRowsWhenTheyAreAcknowledgedTooSoon) {
  const Tally tally = cut_power(cuts_for_control(), {.acknowledge_before_commit = true});

  EXPECT_GT(tally.lost, 0);
  EXPECT_GT(tally.cuts_with_losses * 10, tally.cuts);
}

}  // namespace
}  // namespace belfry::store
