#include "belfry/app/bench/bus_bench.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

#include "belfry/app/bench/http_bench.h"
#include "belfry/app/bench/in_process.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"

namespace belfry::app::bench {
namespace {

using namespace std::chrono_literals;

constexpr Millis kHour{3'600'000};

// Acknowledged sends a second in process, beside the disk's own syncs.
void bench_sends(const Options& options) {
  const Scratch scratch(options.folder, "sends");
  const double syncs = probe_fdatasync(scratch.path());
  Line("fdatasync").number("perSecond", syncs);
  Samples timer = probe_timer();
  Line("timerfd").number("p50Ms", timer.quantile_ms(0.5)).number("p99Ms", timer.quantile_ms(0.99));
  const double bare = probe_store(scratch.path());
  Line("bareStore").number("perSecond", bare).number("timesFdatasync", bare / syncs);
  Bus bus(scratch.path());
  add_recipients(bus, 1'000);
  std::uint64_t seed = 1;
  for (const int outstanding : {1, 32, 1'024}) {
    for (const bool delayed : {false, true}) {
      Load load{.duration = 2s, .outstanding = outstanding, .seed = ++seed};
      if (delayed) load.delay_min = kHour, load.delay_max = 2 * kHour;
      Samples latencies;
      const double rate = send_load(bus, load, &latencies);
      Line("sends")
          .add("outstanding", outstanding)
          .add("delayed", delayed)
          .number("perSecond", rate)
          .number("timesFdatasync", rate / syncs)
          .number("timesBareStore", rate / bare)
          .number("p50Ms", latencies.quantile_ms(0.5))
          .number("p99Ms", latencies.quantile_ms(0.99));
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What a delayed send costs when many are pending, against few: five alternating rounds.
void bench_flat(const Options& options) {
  struct Spread {
    const char* name;
    Millis longest;
  };
  static constexpr std::array kSpreads{Spread{"hour", kHour}, Spread{"week", 168 * kHour},
                                       Spread{"year", 8'760 * kHour}};
  const std::int64_t many = options.full ? 10'000'000 : 500'000;
  for (const Spread& spread : kSpreads) {
    const Scratch few_scratch(options.folder, "few");
    const Scratch many_scratch(options.folder, "many");
    Bus few_bus(few_scratch.path());
    Bus many_bus(many_scratch.path());
    Load load{.delay_min = 20min, .delay_max = spread.longest + Millis{20min}};
    for (Bus* bus : {&few_bus, &many_bus}) {
      add_recipients(*bus, 1'000);
      load.count = bus == &few_bus ? 10'000 : many;
      send_load(*bus, load);
    }
    std::vector<double> few_rates;
    std::vector<double> many_rates;
    load.count = 20'000;
    for (int round = 0; round < 5; ++round) {
      load.seed = 100 + static_cast<std::uint64_t>(round);
      few_rates.push_back(send_load(few_bus, load));
      many_rates.push_back(send_load(many_bus, load));
    }
    Line("flat")
        .add("spread", spread.name)
        .add("pending", many)
        .number("perSecondAt10k", median(few_rates))
        .number("perSecondAtMany", median(many_rates))
        .number("timesSlower", median(few_rates) / median(many_rates))
        .number("residentMiB", static_cast<double>(resident_bytes()) / 1048576);
  }
}

// Keyed sends when many keys are known, against sends without a key: five alternating rounds.
void bench_keyed(const Options& options) {
  const Scratch scratch(options.folder, "keyed");
  Bus bus(scratch.path());
  add_recipients(bus, 1'000);
  Load load{.delay_min = kHour, .delay_max = 24 * kHour, .keyed = true};
  load.count = options.full ? 3'000'000 : 300'000;
  send_load(bus, load);
  std::array<std::vector<double>, 2> rates;
  const std::int64_t known = load.count;
  load.count = 20'000;
  for (int round = 0; round < 5; ++round) {
    for (const bool keyed : {false, true}) {
      load.keyed = keyed;
      load.seed = 200 + static_cast<std::uint64_t>(round);
      rates[keyed ? 1 : 0].push_back(send_load(bus, load));
    }
  }
  Line("keyed")
      .add("keys", known)
      .number("perSecondUnkeyed", median(rates[0]))
      .number("perSecondKeyed", median(rates[1]))
      .number("timesSlower", median(rates[0]) / median(rates[1]));
}

struct Part {
  const char* name;
  void (*run)(const Options&);
};
constexpr std::array kParts{
    Part{"sends", bench_sends}, Part{"http", bench_http}, Part{"punctual", bench_punctual},
    Part{"burst", bench_burst}, Part{"flat", bench_flat}, Part{"keyed", bench_keyed},
    Part{"fair", bench_fair},   Part{"year", bench_year}, Part{"tenMinutes", bench_ten_minutes}};

bool run_in_child(const Part& part, const Options& options) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    int code = 0;
    try {
      part.run(options);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "belfry bench: %s: %s\n", part.name, e.what());
      code = 1;
    }
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return false;
  Line("process").add("part", part.name).number("peakMiB", static_cast<double>(usage.ru_maxrss) / 1024);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (const Part& part : kParts) names.emplace_back(part.name);
  return names;
}

bool run_bus_bench(const Options& options) {
  bool ok = true;
  for (const Part& part : kParts) {
    const auto& wanted = options.parts;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), part.name) == wanted.end()) continue;
    ok = run_in_child(part, options) && ok;
  }
  return ok;
}

}  // namespace belfry::app::bench
