// The bus under random operations, clock steps, crashes and power cuts, against a small model of what it promised.
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::testing {
namespace {

using bus::Delivery;
using bus::MessageId;
using bus::Outgoing;

struct Faults {
  bool power_cuts = false;
  bool clock_steps = true;
  bool crashes = true;
  bool stops = true;
};

// What we know of a message: `unknown` if its send failed in a way that leaves it open.
struct Known {
  bool accepted = false;
  bool ended = false;        // acked or cancelled for sure
  bool maybe_ended = false;  // an ack or a cancel whose outcome we never heard
  bool forced = false;       // delayed at a stop that delivers
  BootTime boot_due;
  WallTime deliver_at;
  bool elapsed = false;
  bool was_due = false;  // on the elapsed clock of its own life, whatever the wall clock says later
  int life = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Faults faults, World::Options options = {})
      : faults_(faults),
        dice_(seed),
        restarts_at_the_end_(seed % 3 == 0),
        world_(with_seed(std::move(options), seed)) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      peak_ = std::max(peak_, world_.now());
      if (world_.broken() || !world_.disk().running()) come_back();
    }
  }

  // Faults off: everything that was promised must reach its end.
  void finish() {
    faults_.power_cuts = false;
    world_.disk().cut_at(0);  // a cut that was planned does not come any more
    world_.advance(1ms);
    if (world_.broken() || !world_.disk().running()) come_back();
    // A restart heals what got stuck: most worlds have to do without.
    if (restarts_at_the_end_) restart();
    for (int i = 0; i < 3; ++i) {
      world_.clock().suspend(std::chrono::hours{24 * 3});
      world_.advance(5s);
      peak_ = std::max(peak_, world_.now());
      if (std::getenv("BELFRY_TRACE"))
        std::fprintf(stderr, "%s finish: pending %lld delayed %lld\n", to_iso(world_.now()).c_str(),
                     static_cast<long long>(world_.counts().pending), static_cast<long long>(world_.counts().delayed));
      receive(true);
    }
    for (const auto& [sequence, known] : known_) {
      if (known.accepted && !known.ended && !known.maybe_ended && !used_up(sequence))
        problem("message " + std::to_string(sequence) + " was accepted and never arrived" + where(sequence));
    }
    for (const std::string& what : world_.problems()) problem(what);
    if (world_.counts().pending != 0 || world_.counts().delayed != 0 || world_.counts().in_flight != 0)
      problem("something is left: pending " + std::to_string(world_.counts().pending) + ", delayed " +
              std::to_string(world_.counts().delayed) + ", in flight " + std::to_string(world_.counts().in_flight));
  }

  const std::vector<std::string>& problems() const { return problems_; }
  int cuts() const { return cuts_; }
  int accepted() const { return accepted_; }
  int lost() const { return lost_; }

 private:
  static World::Options with_seed(World::Options options, std::uint64_t seed) {
    options.seed = seed ^ 0x5eed;
    if (seed % 2 == 0) {  // half of the worlds keep next to nothing in memory
      options.bus.chunk_rows = 2 + static_cast<int>(seed % 5);
      options.bus.calendar_entries_max = static_cast<std::size_t>(options.bus.chunk_rows + 1) * bus::kLevels + seed % 7;
      options.bus.mailbox_max = 2 + seed % 5;
      options.bus.mailbox_max_when_crowded = 1 + seed % 2;
      options.bus.ready_max = 5;
      options.bus.refill_rows = 1 + static_cast<int>(seed % 4);
      options.bus.body_cache_bytes = 500;
      options.bus.tally_bytes = 1 + 100 * (seed % 7);
    }
    return options;
  }
  std::int64_t dice(std::int64_t sides) {
    return static_cast<std::int64_t>(dice_.next() % static_cast<std::uint64_t>(sides));
  }
  // A message that was handed out too often without an ack is a dead letter, and that is its end.
  bool used_up(std::int64_t sequence) {
    const auto info = world_.run(world_.bus().get(MessageId{sequence}));
    return info && info->state == bus::MessageState::dead && info->attempts >= kAttemptsMax;
  }
  // Where the bus has it, for whoever looks for the reason.
  std::string where(std::int64_t sequence) {
    const auto info = world_.run(world_.bus().get(MessageId{sequence}));
    if (!info) return ": " + info.error().detail;
    return ": it is " + std::string(bus::word(info->state)) + ", due " + to_iso(info->deliver_at) + ", attempts " +
           std::to_string(info->attempts) + (info->forced ? ", forced" : "");
  }
  void problem(std::string what) {
    if (what.find("never arrived") != std::string::npos) ++lost_;
    problems_.push_back(std::move(what));
  }

  void step() {
    const std::int64_t what = dice(24);
    if (std::getenv("BELFRY_TRACE"))
      std::fprintf(stderr, "%s life %d: step %lld\n", to_iso(world_.now()).c_str(), life_,
                   static_cast<long long>(what));
    switch (what) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: return send();
      case 6:
      case 7:
      case 8: return advance();
      case 9:
      case 10:
      case 11:
      case 12: return receive(false);
      case 13: return receive(true);
      case 14:
      case 15: return cancel();
      case 16:
      case 17: return move();
      case 18:
        if (faults_.crashes) restart();
        return;
      case 19:
        if (faults_.stops) stop();
        return;
      case 20:
        if (faults_.clock_steps) world_.clock().step_wall(Millis{dice(400'000) - 200'000}, dice(2) == 0);
        return;
      case 21:
        if (faults_.clock_steps) world_.clock().suspend(Millis{dice(100'000)});
        return;
      default:
        if (faults_.power_cuts) world_.disk().cut_at(1 + dice(40));
        return;
    }
  }

  Millis some_delay() {
    switch (dice(5)) {
      case 0: return Millis{0};
      case 1: return Millis{dice(50)};
      case 2: return Millis{dice(60'000)};
      case 3: return Millis{dice(3'600'000)};
      default: return Millis{dice(100'000'000)};
    }
  }

  void send() {
    // Several at once share a group; some repeat a key.
    struct One {
      Outgoing message;
      World::Pending<Result<bus::Sent>> pending;
      BootTime before;
    };
    std::vector<One> batch;
    for (std::int64_t i = dice(6); i >= 0; --i) {
      Outgoing message{.to = kWorker, .payload = std::to_string(++payloads_)};
      const Millis delay = some_delay();
      if (dice(4) == 0) {
        message.deliver_at = world_.now() + delay;
      } else {
        message.delay = delay;
      }
      if (dice(5) == 0) message.key = "k" + std::to_string(payloads_);
      const BootTime before = world_.clock().now().boot;
      Outgoing copy = message;
      batch.push_back({std::move(copy), world_.start_task(world_.bus().send(std::move(message))), before});
    }
    world_.clock().settle();
    for (One& one : batch) {
      const auto& result = one.pending.value();
      if (!result) continue;
      if (dice(3) == 0 && !one.message.key.empty()) {
        const auto again = world_.try_send(one.message);
        if (again && again->id != result->id) problem("a repeated key made a second message");
      }
      ++accepted_;
      Known& known = known_[result->id.sequence];
      known.accepted = true;
      known.elapsed = !one.message.deliver_at && result->scheduled_at;
      known.boot_due = one.before + one.message.delay;
      known.deliver_at = result->scheduled_at.value_or(world_.now());
      known.life = life_;
    }
  }

  void advance() {
    const Nanos durations[] = {Nanos{dice(5'000'000)}, Millis{dice(1'000)}, Millis{dice(60'000)},
                               Millis{dice(300'000)}};
    world_.advance(durations[dice(4)]);
  }

  void check(const Delivery& delivery) {
    peak_ = std::max(peak_, world_.now());
    const auto found = known_.find(delivery.id.sequence);
    if (found == known_.end()) return;  // its send's outcome was never heard
    const Known& known = found->second;
    if (known.ended) problem("a message came after it had ended");
    if (!known.accepted) return;  // nor was this one's: we know only what became of it since
    if (delivery.forced) {
      if (!known.forced) problem("a message is marked as forced and was not");
      return;
    }
    const bool by_boot = known.elapsed && known.life == life_;
    if (known.was_due) return;
    const bool early = by_boot ? world_.clock().now().boot < known.boot_due : peak_ < known.deliver_at;
    if (early)
      problem("message " + std::to_string(delivery.id.sequence) + " came early: due " + to_iso(known.deliver_at) +
              (by_boot ? " on the elapsed clock" : " on the wall clock") + ", now " + to_iso(world_.now()) +
              ", delivered " + to_iso(delivery.delivered_at) + ", attempt " + std::to_string(delivery.attempt));
  }

  void receive(bool ack_all) {
    while (true) {
      const auto got = world_.run(world_.bus().receive({.recipient = kWorker, .max = static_cast<int>(1 + dice(20))}));
      if (!got || got->empty()) return;
      for (std::size_t i = 0; i < got->size(); ++i) {
        check((*got)[i]);
        if (i > 0 && !((*got)[i - 1].forced || (*got)[i].forced)) {
          const Delivery& a = (*got)[i - 1];
          const Delivery& b = (*got)[i];
          if (std::pair(b.deliver_at, b.id) < std::pair(a.deliver_at, a.id)) problem("out of order");
        }
      }
      std::vector<std::string> leases;
      std::vector<std::int64_t> sequences;
      for (const Delivery& delivery : *got) {
        if (!ack_all && dice(4) == 0) {
          if (dice(2) == 0) give_back(delivery);
          continue;
        }
        leases.push_back(delivery.lease);
        sequences.push_back(delivery.id.sequence);
      }
      const auto acked = world_.run(world_.bus().ack_leases(kWorker, leases, "simulation"));
      for (const std::int64_t sequence : sequences) {
        Known& known = known_[sequence];
        (acked ? known.ended : known.maybe_ended) = true;
      }
      if (!ack_all && dice(2) == 0) return;
      if (!acked) return;
    }
  }

  // For now or for later, before its lease ends.
  void give_back(const Delivery& delivery) {
    const Millis delay = some_delay();
    const WallTime again_at = world_.now() + delay;
    const auto released = world_.run(world_.bus().release(kWorker, {delivery.lease}, delay));
    const auto found = known_.find(delivery.id.sequence);
    if (!released || found == known_.end() || delay == Millis{0}) return;
    Known& known = found->second;
    known.elapsed = false;
    if (world_.broken() || !world_.disk().running()) {  // nobody knows whether the disk has it
      known.deliver_at = std::min(known.deliver_at, again_at);
      return;
    }
    known.deliver_at = again_at;
    known.was_due = false;
    known.forced = false;
  }

  std::int64_t any_known() {
    auto it = known_.lower_bound(dice(known_.rbegin()->first) + 1);
    return it == known_.end() ? known_.begin()->first : it->first;
  }

  void cancel() {
    if (known_.empty()) return;
    const std::int64_t sequence = any_known();
    const auto cancelled = world_.run(world_.bus().cancel(MessageId{sequence}, "simulation"));
    if (cancelled) {
      if (known_[sequence].ended) problem("a message was cancelled after it had ended");
      known_[sequence].ended = true;
    } else if (cancelled.error().code == Errc::storage_failed) {
      known_[sequence].maybe_ended = true;
    }
  }

  void move() {
    if (known_.empty()) return;
    const std::int64_t sequence = any_known();
    Known& known = known_[sequence];
    const WallTime target = world_.now() + some_delay();
    const auto moved = world_.run(world_.bus().reschedule(MessageId{sequence}, target));
    if (moved) {
      known.deliver_at = target;
      known.elapsed = false;
    } else if (moved.error().code == Errc::storage_failed) {
      known.deliver_at = std::min(known.deliver_at, target);
      known.elapsed = false;
    }
  }

  void come_back() {
    ++cuts_;
    restart();
  }

  void end_life(BootTime now) {
    for (auto& [sequence, known] : known_)
      known.was_due = known.was_due || (known.elapsed && known.life == life_ && now >= known.boot_due);
    ++life_;
  }

  void restart() {
    end_life(world_.clock().now().boot);
    world_.crash();
    world_.pass(Millis{dice(100'000)});
    // The power may go again while the disk is being recovered.
    if (faults_.power_cuts && dice(3) == 0) world_.disk().cut_at(1 + dice(10));
    while (!try_start()) {
      ++cuts_;
      world_.disk().reboot();
    }
  }

  bool try_start() {
    try {
      world_.start();
      return true;
    } catch (const store::Fault&) {
      return false;
    }
  }

  void stop() {
    const bool deliver = dice(2) == 0;
    const BootTime now = world_.clock().now().boot;
    if (deliver)
      for (auto& [sequence, known] : known_) known.forced = true;
    if (!world_.try_stop(deliver)) return;
    end_life(now);
    while (!try_start()) world_.disk().reboot();
  }

  Faults faults_;
  SeededRandom dice_;
  bool restarts_at_the_end_;
  World world_;
  std::map<std::int64_t, Known> known_;
  std::vector<std::string> problems_;
  WallTime peak_;  // the latest that the wall clock ever showed: what was due then may come though it was set back
  int life_ = 0;
  int cuts_ = 0;
  int accepted_ = 0;
  int lost_ = 0;
  std::int64_t payloads_ = 0;
};

std::string all_of(const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& problem : problems) all += problem + "\n";
  return all;
}

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

// D1, D7, D8, D12, D16, D17, D18
TEST(BusSimulation, PromisesHoldUnderRandomOperationsCrashesStopsAndClockSteps) {
  const std::int64_t first = from_environment("BELFRY_SEED", 1);
  const std::int64_t runs = from_environment("BELFRY_SIMULATIONS", 150);
  for (std::int64_t seed = first; seed < first + runs; ++seed) {
    if (std::getenv("BELFRY_TRACE")) std::fprintf(stderr, "seed %lld\n", static_cast<long long>(seed));
    Simulation simulation(static_cast<std::uint64_t>(seed), {});
    simulation.run(120);
    simulation.finish();
    ASSERT_TRUE(simulation.problems().empty())
        << all_of(simulation.problems()) << "\nreplay: BELFRY_SEED=" << seed << " BELFRY_SIMULATIONS=1";
  }
}

struct CutResult {
  int cuts = 0;
  int accepted = 0;
  int lost = 0;
  std::string first_problem;
};

CutResult cut_power(int cuts_wanted, std::int64_t first_seed, const World::Options& options) {
  CutResult result;
  for (std::int64_t seed = first_seed; result.cuts < cuts_wanted; ++seed) {
    World::Options copy;
    copy.store.acknowledge_before_commit = options.store.acknowledge_before_commit;
    copy.synchronous = options.synchronous;
    Simulation simulation(static_cast<std::uint64_t>(seed), {.power_cuts = true, .clock_steps = false},
                          std::move(copy));
    simulation.run(80);
    simulation.finish();
    result.cuts += simulation.cuts();
    result.accepted += simulation.accepted();
    result.lost += simulation.lost();
    if (!simulation.problems().empty() && result.first_problem.empty())
      result.first_problem = simulation.problems().front() + " (BELFRY_SEED=" + std::to_string(seed) + ")";
  }
  return result;
}

// D1, D17, D18
TEST(BusSimulation, PowerCutsLoseNothingThatWasAcknowledged) {
  const auto cuts = static_cast<int>(from_environment("BELFRY_CUTS", 1'000));
  const CutResult result = cut_power(cuts, from_environment("BELFRY_SEED", 1), {});
  EXPECT_EQ(result.first_problem, "");
  EXPECT_EQ(result.lost, 0);
  std::printf("power cuts: %d, acknowledged: %d, lost: %d\n", result.cuts, result.accepted, result.lost);
}

// The controls: a harness that cannot see a loss proves nothing.
TEST(BusSimulation, PowerCutsWithoutFullSynchronisationDoLoseMessages) {
  World::Options options;
  options.synchronous = store::sqlite::Synchronous::normal;
  const CutResult result = cut_power(100, 1, options);
  EXPECT_GT(result.lost, 0);
  std::printf("synchronous=NORMAL: power cuts %d, acknowledged %d, lost %d\n", result.cuts, result.accepted,
              result.lost);
}

TEST(BusSimulation, PowerCutsWithTheAnswerBeforeTheCommitDoLoseMessages) {
  World::Options options;
  options.store.acknowledge_before_commit = true;
  const CutResult result = cut_power(100, 1, options);
  EXPECT_GT(result.lost, 0);
  std::printf("answer before commit: power cuts %d, acknowledged %d, lost %d\n", result.cuts, result.accepted,
              result.lost);
}

}  // namespace
}  // namespace belfry::testing
