#include "belfry/app/examination.h"

#include <gtest/gtest.h>

#include "belfry/store/fault_words.h"
#include "tests/support/world.h"

namespace belfry::app {
namespace {

using testing::World;

// G14: what a start had not come to make yet is not missing.
TEST(Examination, FindsNothingWrongWhereverTheFirstStartWasCut) {
  int with_tables = 0;
  for (std::int64_t cut = 1;; ++cut) {
    World world({}, World::NotStarted{});
    world.disk().cut_at(cut);
    bool started = false;
    try {
      world.start();
      started = true;
    } catch (const store::Fault&) {
      started = false;  // the power is gone; so is the process
    }
    if (started && world.disk().running()) break;
    if (world.alive()) world.crash();
    if (!world.disk().running()) world.disk().reboot();

    const auto connection = store::sqlite::open({.path = "belfry.db", .vfs = world.disk().vfs_name()});
    if (!has_our_tables(*connection)) continue;
    with_tables += 1;
    EXPECT_EQ(find_problems(*connection), std::vector<std::string>{}) << "cut at change " << cut;
  }
  EXPECT_GT(with_tables, 10);
}

// G14
TEST(Examination, TakesWhatAStartMakesAndRefusesEveryPartOfANewerOrOlderOne) {
  World world({}, World::NotStarted{});
  world.start();
  world.crash();
  const auto connection = store::sqlite::open({.path = "belfry.db", .vfs = world.disk().vfs_name()});
  EXPECT_NO_THROW(check_versions(*connection));

  std::vector<std::string> parts;
  auto rows = connection->query("SELECT part FROM schema_version ORDER BY part");
  while (rows.next()) parts.emplace_back(rows.text(0));
  EXPECT_EQ(parts.size(), 11u);
  int with_older = 0;
  for (const std::string& part : parts) {
    connection->run("UPDATE schema_version SET version = version + 1 WHERE part = ?1", part);
    EXPECT_THROW(check_versions(*connection), store::NotOurs) << part;
    connection->run("UPDATE schema_version SET version = version - 2 WHERE part = ?1", part);
    if (store::version_of(*connection, part) > 0) {
      EXPECT_THROW(check_versions(*connection), store::NotOurs) << part;
      ++with_older;
    } else {
      EXPECT_NO_THROW(check_versions(*connection)) << part;  // a first start that was cut has not come to it
    }
    connection->run("UPDATE schema_version SET version = version + 1 WHERE part = ?1", part);
  }
  EXPECT_GE(with_older, 5);
}

}  // namespace
}  // namespace belfry::app
