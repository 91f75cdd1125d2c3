#include "belfry/app/examination.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace belfry::app
