#include "belfry/bus/message_bus.h"

#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::bus {
namespace {

using namespace std::chrono_literals;
using testing::kNoon;
using testing::kWorker;
using testing::World;

// D1, D6
TEST(MessageBus, DelayedMessageAppearsExactlyAtItsDueTime) {
  World w;
  const Sent sent = w.send({.delay = 5min});
  EXPECT_EQ(sent.scheduled_at, kNoon + 5min);
  EXPECT_EQ(w.counts().delayed, 1);

  w.advance(5min - 1ns);
  EXPECT_TRUE(w.receive().empty());

  w.advance(1ns);
  EXPECT_EQ(w.counts().pending, 1);
  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].id, sent.id);
  EXPECT_EQ(got[0].delivered_at, kNoon + 5min);
}

// D2
TEST(MessageBus, MessageWithoutDelayIsThereAtOnceAndHasNoScheduledTime) {
  World w;
  const Sent sent = w.send({.payload = R"({"text":"hello"})"});
  EXPECT_FALSE(sent.scheduled_at);

  const auto got = w.receive();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].payload, R"({"text":"hello"})");
  EXPECT_EQ(w.ack(got), 1);
  EXPECT_EQ(w.get(sent.id).state, MessageState::acked);
  EXPECT_TRUE(w.problems().empty());
}

}  // namespace
}  // namespace belfry::bus
