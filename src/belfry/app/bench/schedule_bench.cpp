#include "belfry/app/bench/schedule_bench.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "belfry/app/bench/in_process.h"
#include "belfry/app/bench/kernel.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"
#include "belfry/base/assert.h"
#include "belfry/chat/private_message_tables.h"

namespace belfry::app::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kSessions = 1'000;
constexpr int kTasksOfOne = 50;  // of the session that is listed
constexpr int kSamples = 2'000;
constexpr int kFired = 10'000;
constexpr int kAtOnce = 1'000;  // stored in one transaction, before anything is measured
constexpr Millis kYear = std::chrono::days{365};

class Counter final : public chat::Listener {
 public:
  void said(const std::string&, const chat::Line& line) override {
    if (line.source != chat::Source::scheduled_send || ++count < kFired) return;
    done.ring();
  }
  int count = 0;
  Wake done;
};

struct Bench {
  Kernel& kernel;
  int waiting;
  std::vector<std::string> sessions{};
  Samples create{};
  Samples list{};
  Nanos fire{0};

  Task<void> run();
  Task<void> open();
  Task<void> fill();
  Task<void> store(std::string_view name, int first, int count, std::optional<WallTime> due);
  Task<void> measure_create();
  Task<void> measure_list();
  Task<void> measure_fire();

  WallTime now() const { return round_down(kernel.clock.now().wall); }
  std::uint64_t dice(std::uint64_t sides) { return kernel.random.next() % sides; }
  const std::string& any_session() { return sessions[1 + dice(kSessions - 1)]; }
  WallTime some_time() { return now() + 1h + Millis{static_cast<std::int64_t>(dice(kYear.count()))}; }
};

Task<void> Bench::open() {
  const auto added = co_await kernel.bus.add_recipient("bot", "external");
  BELFRY_ASSERT(added.has_value());
  for (int i = 0; i < kSessions; ++i) {
    chat::NewSession wanted{.people = {fmt::format("p{}", i)}, .agents = {"bot"}};
    const auto opened = co_await kernel.chats.open(std::move(wanted));
    BELFRY_ASSERT(opened.has_value());
    sessions.push_back(opened->session.id);
  }
}

// Many in one transaction, past the front door.
Task<void> Bench::store(std::string_view name, int first, int count, std::optional<WallTime> due) {
  std::vector<chat::ScheduledMessage> some;
  for (int number = first; number < first + count; ++number) {
    const bool of_one = !due && number < kTasksOfOne;
    const auto person = static_cast<std::size_t>(of_one ? 0 : 1 + dice(kSessions - 1));
    some.push_back({.id = fmt::format("{}{}", name, number),
                    .session_id = sessions[person],
                    .agent = "bot",
                    .person = fmt::format("p{}", person),
                    .text = std::string(100, 'x'),
                    .send_at = due.value_or(some_time()),
                    .created_at = now(),
                    .updated_at = now()});
  }
  auto job = [some = std::move(some)](store::Connection& connection) -> Result<bool> {
    for (const chat::ScheduledMessage& one : some) chat::PrivateMessageTables::insert(connection, one, "");
    return true;
  };
  const auto written = co_await kernel.store.write<bool>(std::move(job));
  BELFRY_ASSERT(written.has_value());
}

Task<void> Bench::fill() {
  for (int stored = 0; stored < waiting; stored += kAtOnce)
    co_await store("fill", stored, std::min(kAtOnce, waiting - stored), std::nullopt);
}

Task<void> Bench::measure_create() {
  for (int i = 0; i < kSamples; ++i) {
    const Nanos begun = elapsed_now();
    chat::NewScheduledMessage wanted{.session = any_session(), .text = std::string(100, 'x'), .send_at = some_time()};
    const auto created = co_await kernel.scheduled.create(std::move(wanted));
    BELFRY_ASSERT(created.has_value());
    create.add(elapsed_now() - begun);
  }
}

Task<void> Bench::measure_list() {
  for (int i = 0; i < kSamples; ++i) {
    const Nanos begun = elapsed_now();
    const auto page =
        co_await kernel.scheduled.list({.session = sessions[0], .status = chat::ScheduledStatus::pending});
    BELFRY_ASSERT(page && page->messages.size() == kTasksOfOne);
    list.add(elapsed_now() - begun);
  }
}

// Ten thousand that are due in the same millisecond: until the last one is said.
Task<void> Bench::measure_fire() {
  Counter counter;
  kernel.chats.listen(counter);
  const WallTime due = now() + 5s;
  for (int stored = 0; stored < kFired; stored += kAtOnce) co_await store("fire", stored, kAtOnce, due);
  // One by the front door, so that the new times are known.
  chat::NewScheduledMessage last{.session = any_session(), .text = "last", .send_at = due};
  const auto created = co_await kernel.scheduled.create(std::move(last));
  BELFRY_ASSERT(created.has_value());
  while (counter.count < kFired) co_await kernel.clock.sleep_until(kernel.clock.now().boot + 1min, counter.done);
  fire = std::chrono::duration_cast<Nanos>(kernel.clock.now().wall - due);
  kernel.chats.unlisten(counter);
}

Task<void> Bench::run() {
  co_await open();
  co_await fill();
  co_await measure_create();
  co_await measure_list();
  co_await measure_fire();
}

}  // namespace

void run_schedule_bench(const std::filesystem::path& folder) {
  const Scratch probe(folder, "probe");
  const double syncs = probe_fdatasync(probe.path());
  Line("fdatasync").number("perSecond", syncs);
  for (const int waiting : {1'000, 1'000'000}) {
    const Scratch scratch(folder, "schedule");
    Kernel kernel(scratch.path(), 3);
    Bench bench{.kernel = kernel, .waiting = waiting};
    kernel.run(bench.run());
    Line("schedule")
        .add("waiting", waiting)
        .number("createMedianMs", bench.create.quantile_ms(0.5))
        .number("createP99Ms", bench.create.quantile_ms(0.99))
        .number("listMedianMs", bench.list.quantile_ms(0.5))
        .number("firedPerSecond", kFired / (static_cast<double>(bench.fire.count()) / 1e9))
        .number("residentMiB", static_cast<double>(resident_bytes()) / (1 << 20));
    kernel.stop();
  }
}

}  // namespace belfry::app::bench
