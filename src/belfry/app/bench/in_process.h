// The bus inside this process: what the design allows without a network.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "belfry/app/bench/report.h"
#include "belfry/base/random.h"
#include "belfry/bus/message_bus.h"
#include "belfry/clock/real_clock.h"

namespace belfry::app::bench {

// A real bus on a real disk, on this thread.
class Bus {
 public:
  explicit Bus(const std::filesystem::path& folder);
  ~Bus();

  bus::MessageBus& operator*() { return *bus_; }
  bus::MessageBus* operator->() { return &*bus_; }
  // Runs the kernel until `task` has ended.
  void run(Task<void> task);
  asio::io_context& context() { return context_; }
  RealClock& clock() { return clock_; }
  store::Store& store() { return *store_; }

 private:
  asio::io_context context_;
  RealClock clock_;
  SystemRandom random_;
  std::optional<store::Store> store_;
  std::optional<Timekeeper> timekeeper_;
  std::optional<bus::MessageBus> bus_;
  TaskGroup tasks_;
};

// How a load of sends looks.
struct Load {
  std::int64_t count = INT64_MAX;  // ends at this many sends, or
  Nanos duration = Nanos::max();   // after this time
  int outstanding = 1'024;
  int recipients = 1'000;
  std::size_t payload_bytes = 200;
  Millis delay_min{0};
  Millis delay_max{0};
  bool keyed = false;
  std::uint64_t seed = 1;
};

// Sends a second. `latencies` gets the time of each send if it is given.
double send_load(Bus& bus, const Load& load, Samples* latencies = nullptr);
void add_recipients(Bus& bus, int count);

std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();

}  // namespace belfry::app::bench
