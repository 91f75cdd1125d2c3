#include "belfry/server/run_wire.h"

#include <gtest/gtest.h>

namespace belfry::server::wire {
namespace {

// F8: a browser that comes back has `after` in its address still.
TEST(RunWire, OfTwoNumbersToReadFromTheLargerCounts) {
  EXPECT_EQ(read_events_query("after=2", "7")->after, 7);
  EXPECT_EQ(read_events_query("after=7", "2")->after, 7);
  EXPECT_EQ(read_events_query("after=3", "")->after, 3);
  EXPECT_EQ(read_events_query("", "3")->after, 3);
  EXPECT_EQ(read_events_query("after=x", "3").error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace belfry::server::wire
