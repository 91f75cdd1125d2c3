#include "belfry/app/bench/in_process.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <boost/asio/executor_work_guard.hpp>
#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/store/sqlite/sqlite_connection.h"

namespace belfry::app::bench {
namespace {

std::string recipient_name(int i) { return fmt::format("r{}", i); }

}  // namespace

Bus::Bus(const std::filesystem::path& folder) : clock_(context_), tasks_(context_) {
  store::Options options;
  options.stopwatch = elapsed_now;
  store_.emplace(context_, store::sqlite::open({.path = (folder / "belfry.db").string()}), std::move(options));
  timekeeper_.emplace(clock_);
  bus_.emplace(context_, clock_, random_, *store_, *timekeeper_);
  store_->start();
  bus_->start();
  tasks_.spawn("timekeeper", timekeeper_->run());
}

Bus::~Bus() {
  run([](Bus& self) -> Task<void> {
    co_await self.bus_->note_clean_stop();
    self.timekeeper_->stop();
    co_await self.bus_->stop();
    co_await self.tasks_.join();
  }(*this));
  clock_.stop();
}

void Bus::run(Task<void> task) {
  bool ended = false;
  asio::co_spawn(context_, std::move(task), [&](std::exception_ptr failure) {
    ended = true;
    context_.stop();
    if (failure) std::rethrow_exception(failure);
  });
  context_.restart();
  const auto guard = asio::make_work_guard(context_);
  while (!ended) context_.run();
}

void add_recipients(Bus& bus, int count) {
  bus.run([](Bus& b, int n) -> Task<void> {
    for (int i = 0; i < n; ++i) co_await b->add_recipient(recipient_name(i), "external");
  }(bus, count));
}

namespace {

struct Progress {
  const Load& load;
  Bus& bus;
  Samples* latencies;
  SeededRandom random;
  Nanos start;
  std::int64_t begun = 0;
  std::int64_t done = 0;
  int running = 0;
  std::string payload;
};

Task<void> keep_sending(Progress& progress) {
  const Load& load = progress.load;
  while (progress.begun < load.count && elapsed_now() - progress.start < load.duration) {
    const std::int64_t number = ++progress.begun;
    bus::Outgoing message;
    message.to = recipient_name(static_cast<int>(progress.random.next() % static_cast<std::uint64_t>(load.recipients)));
    message.payload = progress.payload;
    if (load.delay_max > Millis{0}) {
      const auto span = static_cast<std::uint64_t>((load.delay_max - load.delay_min).count() + 1);
      message.delay = load.delay_min + Millis{static_cast<std::int64_t>(progress.random.next() % span)};
    }
    if (load.keyed) message.key = fmt::format("{}-{}", load.seed, number);
    const Nanos before = progress.latencies ? elapsed_now() : Nanos{0};
    const auto sent = co_await progress.bus->send(std::move(message));
    BELFRY_ASSERT(sent.has_value());
    if (progress.latencies) progress.latencies->add(elapsed_now() - before);
    ++progress.done;
  }
  --progress.running;
}

Task<void> send_all(Progress& progress) {
  TaskGroup senders(progress.bus.context());
  progress.running = progress.load.outstanding;
  for (int i = 0; i < progress.load.outstanding; ++i) senders.spawn("sender", keep_sending(progress));
  co_await senders.join();
}

}  // namespace

double send_load(Bus& bus, const Load& load, Samples* latencies) {
  Progress progress{.load = load,
                    .bus = bus,
                    .latencies = latencies,
                    .random = SeededRandom(load.seed),
                    .start = elapsed_now(),
                    .payload = fmt::format(R"({{"text":"{}"}})", std::string(load.payload_bytes - 11, 'x'))};
  bus.run(send_all(progress));
  return static_cast<double>(progress.done) / (static_cast<double>((elapsed_now() - progress.start).count()) / 1e9);
}

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

}  // namespace belfry::app::bench
