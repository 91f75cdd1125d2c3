// A disk that refuses for a while: whatever it refused is done when it works again.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "belfry/bus/message_bus.h"
#include "belfry/store/connection.h"
#include "tests/support/world.h"

namespace belfry::bus {
namespace {

using namespace std::chrono_literals;
using namespace belfry::testing;

constexpr int kQueued = 8;
constexpr int kForced = 3;
constexpr int kExpiring = 4;
constexpr int kForGone = 6;

// With little memory most of it lies in the backlog; with much, in the mailboxes.
World::Options memory(bool little) {
  World::Options options;
  if (!little) return options;
  options.bus.mailbox_max = 2;
  options.bus.refill_rows = 3;
  options.bus.body_cache_bytes = 1;
  options.bus.tally_bytes = 30;
  return options;
}

// A stopped bus with a deep queue, messages that the stop forced, some that will expire, and a recipient to remove.
void fill(World& w) {
  w.add("gone");
  for (int i = 0; i < kQueued; ++i) w.send({});
  for (int i = 0; i < kExpiring; ++i) w.send({.expires_at = kNoon + 5s});
  for (int i = 0; i < kForGone; ++i) w.send({.to = "gone"});
  for (int i = 0; i < kForced; ++i) w.send({.delay = 1h});
  w.stop(true);
}

void start_whatever_it_takes(World& w) {
  try {
    w.start();
  } catch (const store::Fault&) {
    w.disk().heal();
    w.start();
  }
}

// What the world must come to within seconds of a disk that works.
void expect_everything_done(World& w, const std::string& context) {
  w.disk().heal();
  const auto removed = w.run(w.bus().remove_recipient("gone"));
  EXPECT_TRUE(removed || removed.error().code == Errc::not_found) << context;
  w.advance(3s);
  std::set<std::int64_t> came;
  for (int round = 0; round < 40; ++round) {
    for (const Delivery& one : w.drain()) came.insert(one.id.sequence);
    w.advance(1s);
  }
  EXPECT_EQ(came.size(), static_cast<std::size_t>(kQueued + kForced)) << context;
  const Totals totals = w.bus().totals();
  EXPECT_EQ(totals.acked, kQueued + kForced) << context;
  EXPECT_EQ(totals.expired, kExpiring) << context;
  EXPECT_EQ(totals.dead, kForGone) << context;
  EXPECT_EQ(totals.live.pending, 0) << context;
  EXPECT_EQ(totals.live.delayed, 0) << context;
  EXPECT_EQ(totals.live.in_flight, 0) << context;
  EXPECT_TRUE(w.bus().caught_up()) << context;
  EXPECT_TRUE(w.problems().empty()) << context;
}

void live_through(World& w) {
  // The disk may refuse either; what counts is what it comes to.
  const auto removed = w.run(w.bus().remove_recipient("gone"));
  const auto held = w.run(w.bus().receive({.recipient = kWorker, .max = 2, .lease = kLeaseMin}));
  EXPECT_TRUE(removed || removed.error().code != Errc::invalid_argument);
  EXPECT_TRUE(held || held.error().code != Errc::invalid_argument);
  w.advance(10s);
}

// D12, D14, D18, D23: expiries, deaths, the sweep after a stop and the overflow of a mailbox are all writes that nobody
// waits for.
TEST(MessageBusDisk, WhicheverWriteAFullDiskRefusesIsMadeUpForWhenThereIsRoom) {
  for (const bool little : {true, false}) {
    bool struck = true;
    for (int n = 1; struck && n <= 1'200 && !HasFailure(); ++n) {
      World w(memory(little));
      fill(w);
      w.disk().fail_at(Operation::write, n, DiskError::no_space, Lasting::for_good);
      start_whatever_it_takes(w);
      live_through(w);
      struck = w.disk().failed();
      expect_everything_done(w, "write " + std::to_string(n));
    }
    EXPECT_FALSE(struck) << "the disk was to refuse each write once";
  }
}

// D7, D12, D18
TEST(MessageBusDisk, WhicheverReadFailsIsReadAgain) {
  for (const bool little : {true, false}) {
    bool struck = true;
    for (int n = 1; struck && n <= 400 && !HasFailure(); ++n) {
      World w(memory(little));
      fill(w);
      w.disk().fail_at(Operation::read, n, DiskError::io, Lasting::once);
      start_whatever_it_takes(w);
      live_through(w);
      struck = w.disk().failed();
      if (w.broken()) w.restart();
      expect_everything_done(w, "read " + std::to_string(n));
    }
    EXPECT_FALSE(struck) << "each read was to fail once";
  }
}

// D7: nothing else may come that would make the bus look again.
TEST(MessageBusDisk, AReadOfADeepQueueThatFailedOnceIsRepeated) {
  const std::string large = "\"" + std::string(3'000, 'x') + "\"";
  bool struck = true;
  for (int n = 1; struck && n <= 100 && !HasFailure(); ++n) {
    World w(memory(true));
    std::set<std::int64_t> sent;
    for (int i = 0; i < 40; ++i) sent.insert(w.send({.payload = large}).id.sequence);
    w.restart();
    w.advance(5s);
    w.disk().fail_at(Operation::read, n, DiskError::io, Lasting::once);
    std::set<std::int64_t> came;
    for (int round = 0; round < 80; ++round) {
      const auto some = w.run(w.bus().receive({.recipient = kWorker, .max = 2}));
      if (!some || some->empty()) {
        w.advance(1s);
        continue;
      }
      for (const Delivery& one : *some) came.insert(one.id.sequence);
      w.ack(*some);  // one that fails is redelivered when its lease ends
    }
    struck = w.disk().failed();
    EXPECT_EQ(came, sent) << n;
  }
  EXPECT_FALSE(struck);
}

}  // namespace
}  // namespace belfry::bus
