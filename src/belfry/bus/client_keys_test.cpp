#include "belfry/bus/client_keys.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "belfry/store/sqlite/sqlite_connection.h"
#include "tests/support/power_cut_vfs.h"

namespace belfry::bus {
namespace {

class ClientKeysTest : public ::testing::Test {
 protected:
  ClientKeysTest() : connection_(store::sqlite::open({.path = "keys.db", .vfs = disk_.vfs_name()})) {
    connection_->execute(ClientKeys::tables());
  }

  UsedKey key(std::int64_t number) const {
    return {.name = digest(std::to_string(number)), .body = number, .sequence = number, .created_ms = number};
  }
  void add(std::int64_t first, std::int64_t last, bool commit = true) {
    connection_->execute("BEGIN");
    for (std::int64_t i = first; i <= last; ++i) keys_->add(*connection_, key(i));
    end(commit);
  }
  void end(bool commit) {
    connection_->execute(commit ? "COMMIT" : "ROLLBACK");
    keys_->after_group(commit);
  }
  // Writes as many runs as there are keys for; every `fail_each`-th step is rolled back first.
  int write_runs(int fail_each = 0) {
    int steps = 0;
    while (keys_->wants_run()) {
      connection_->execute("BEGIN");
      keys_->write_run_step(*connection_);
      end(fail_each == 0 || ++steps % fail_each != 0);
    }
    return steps;
  }
  bool known(std::int64_t number, std::int64_t not_before_ms = 0) {
    const auto found = keys_->find(*connection_, digest(std::to_string(number)), not_before_ms);
    EXPECT_TRUE(!found || found->sequence == number);
    return found.has_value();
  }
  void reload() {
    keys_ = std::make_unique<ClientKeys>();
    keys_->load(*connection_);
  }

  SeededRandom random_{1};
  testing::Disk disk_{random_};
  std::unique_ptr<store::Connection> connection_;
  std::unique_ptr<ClientKeys> keys_ = std::make_unique<ClientKeys>();
};

constexpr std::int64_t kMany = 150'000;  // two runs and some

// D17
TEST_F(ClientKeysTest, EveryKeyIsKnownWhetherFreshOrInARunAlsoAfterARestart) {
  add(1, kMany / 2);
  write_runs();
  add(kMany / 2 + 1, kMany);
  write_runs();
  for (const bool again : {false, true}) {
    if (again) reload();
    for (std::int64_t i = 1; i <= kMany; i += 97) EXPECT_TRUE(known(i)) << i;
    for (std::int64_t i = kMany + 1; i <= kMany + 5'000; ++i) EXPECT_FALSE(known(i)) << i;
  }
}

// D17
TEST_F(ClientKeysTest, GroupsThatFailLeaveNoKeyAndLoseNone) {
  add(1, 70'000);
  add(70'001, 70'100, false);
  write_runs(3);
  EXPECT_FALSE(known(70'050));
  for (std::int64_t i = 1; i <= 70'000; i += 89) EXPECT_TRUE(known(i)) << i;
  reload();
  EXPECT_FALSE(known(70'050));
  for (std::int64_t i = 1; i <= 70'000; i += 89) EXPECT_TRUE(known(i)) << i;
}

// D17
TEST_F(ClientKeysTest, RestartInTheMiddleOfARunLosesNoKey) {
  add(1, 70'000);
  for (int step = 0; step < 10; ++step) {
    connection_->execute("BEGIN");
    keys_->write_run_step(*connection_);
    end(true);
  }
  reload();
  for (std::int64_t i = 1; i <= 70'000; i += 83) EXPECT_TRUE(known(i)) << i;
  write_runs();
  for (std::int64_t i = 1; i <= 70'000; i += 83) EXPECT_TRUE(known(i)) << i;
}

// D21
TEST_F(ClientKeysTest, OldKeysAreForgottenAndTheirRowsDropped) {
  add(1, kMany);
  write_runs();
  EXPECT_FALSE(known(10, 1'000));
  bool more = true;
  while (more) {
    connection_->execute("BEGIN");
    more = keys_->drop_old(*connection_, kMany + 1, 2'000);
    end(true);
  }
  auto rows = connection_->query("SELECT (SELECT count(*) FROM key_run) + (SELECT count(*) FROM fresh_key)");
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 0);
}

}  // namespace
}  // namespace belfry::bus
