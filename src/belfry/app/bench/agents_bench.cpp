#include "belfry/app/bench/agents_bench.h"

#include <fmt/format.h>

#include "belfry/app/bench/kernel.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"
#include "belfry/base/assert.h"

namespace belfry::app::bench {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kDuration = 3s;

std::string name_of(int number) { return fmt::format("a{}", number); }

struct Score {
  std::int64_t handled = 0;
  bool over = false;
};

// Passes what it gets on to another agent.
class Relay final : public agent::Agent {
 public:
  Relay(Score& score, Random& random, int agents) : score_(score), random_(random), agents_(agents) {}

  Task<Result<>> handle(bus::Delivery message, agent::Hands& hands) override {
    if (score_.over) co_return Result<>{};
    ++score_.handled;
    const auto next = static_cast<int>(random_.next() % static_cast<std::uint64_t>(agents_));
    bus::Outgoing passed{.to = name_of(next), .payload = std::move(message.payload)};
    const auto sent = co_await hands.send(std::move(passed));
    co_return sent ? Result<>{} : std::unexpected(sent.error());
  }

 private:
  Score& score_;
  Random& random_;
  int agents_;
};

Task<void> exchange(Kernel& kernel, Score& score, int agents) {
  for (int i = 0; i < agents; ++i) {
    const auto added = co_await kernel.bus.add_recipient(name_of(i), "relay");
    BELFRY_ASSERT(added.has_value());
  }
  const std::string payload = fmt::format(R"({{"text":"{}"}})", std::string(189, 'x'));
  std::vector<bus::Outgoing> first;
  for (int i = 0; i < agents; ++i) first.push_back({.to = name_of(i), .payload = payload});
  co_await kernel.bus.send_many(std::move(first));
  score.handled = 0;
  Wake never;
  co_await kernel.clock.sleep_until(kernel.clock.now().boot + kDuration, never);
  score.over = true;
}

double rate(const std::filesystem::path& folder, int agents, int at_once) {
  const Scratch scratch(folder, "agents");
  Kernel kernel(scratch.path(), at_once);
  Score score;
  kernel.agents.host("relay", [&] { return std::make_unique<Relay>(score, kernel.random, agents); });
  kernel.run(exchange(kernel, score, agents));
  const double handled = static_cast<double>(score.handled);
  kernel.stop();
  return handled / (static_cast<double>(kDuration.count()) / 1e9);
}

}  // namespace

void run_agents_bench(const std::filesystem::path& folder) {
  const Scratch scratch(folder, "probe");
  const double syncs = probe_fdatasync(scratch.path());
  Line("fdatasync").number("perSecond", syncs);
  for (const int at_once : {3, 64}) {
    for (const int agents : {10, 100, 1'000}) {
      const double perSecond = rate(folder, agents, at_once);
      Line("agents")
          .add("agents", agents)
          .add("atOnce", at_once)
          .number("messagesPerSecond", perSecond)
          .number("timesFdatasync", perSecond / syncs);
    }
  }
}

}  // namespace belfry::app::bench
