#include "belfry/server/metrics.h"

#include <unistd.h>

#include <cstdio>
#include <span>

#include <fmt/format.h>

namespace belfry::server {
namespace {

std::int64_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  long long total = 0;
  long long resident = 0;
  const int read =
      std::fscanf(file, "%lld %lld", &total, &resident);  // NOLINT(bugprone-unchecked-string-to-number-conversion)
  std::fclose(file);
  return read == 2 ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

class Text {
 public:
  void head(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class T>
  void sample(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(out_), "{} {}\n", name, value);
  }
  template <class T>
  void one(std::string_view name, std::string_view type, std::string_view help, const T& value) {
    head(name, type, help);
    sample(name, value);
  }
  // Buckets whose upper ends are powers of two of `unit`; the last one has no upper end.
  void histogram(std::string_view name, std::string_view help, std::span<const std::int64_t> counts, double unit,
                 bool whole, double sum) {
    head(name, "histogram", help);
    std::int64_t below = 0;
    for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
      below += counts[i];
      const double end = static_cast<double>((std::int64_t{1} << i) - (whole ? 1 : 0)) * unit;
      fmt::format_to(std::back_inserter(out_), "{}_bucket{{le=\"{}\"}} {}\n", name, end, below);
    }
    below += counts.back();
    fmt::format_to(std::back_inserter(out_), "{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, below, name,
                   sum, name, below);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

constexpr double kMicro = 1e-6;

}  // namespace

std::string metrics_text(const bus::Totals& totals, const bus::LatenessHistogram& lateness,
                         const store::Statistics& store, int recipients, int connections, bool caught_up) {
  Text text;
  text.head("belfry_build_info", "gauge", "The version that is running.");
  text.sample("belfry_build_info{version=\"" BELFRY_VERSION "\"}", 1);

  text.head("belfry_messages", "gauge", "Messages by the state they are in.");
  text.sample("belfry_messages{state=\"delayed\"}", totals.live.delayed);
  text.sample("belfry_messages{state=\"pending\"}", totals.live.pending);
  text.sample("belfry_messages{state=\"leased\"}", totals.live.in_flight);
  text.sample("belfry_messages{state=\"dead\"}", totals.dead);
  text.one("belfry_messages_accepted_total", "counter", "Messages that were ever accepted.", totals.accepted);
  text.one("belfry_messages_acked_total", "counter", "Messages that ended with an ack.", totals.acked);
  text.one("belfry_messages_cancelled_total", "counter", "Messages that were cancelled or dropped.", totals.cancelled);
  text.one("belfry_messages_expired_total", "counter", "Messages that expired before they were received.",
           totals.expired);
  text.one("belfry_recipients", "gauge", "Registered recipients.", recipients);
  text.one("belfry_connections", "gauge", "Open HTTP connections.", connections);
  text.one("belfry_caught_up", "gauge", "1 when what a stop left behind has been sorted in.", caught_up ? 1 : 0);

  text.histogram("belfry_lateness_seconds",
                 "From the time a delayed message was due to the moment it could be received.", lateness.counts, kMicro,
                 false, static_cast<double>(lateness.sum_micros) * kMicro);
  text.histogram("belfry_store_group_rows", "Rows that share one commit.", store.rows_histogram, 1, true,
                 static_cast<double>(store.rows));
  text.histogram("belfry_store_commit_seconds", "Time that one group took, its flush to the disk included.",
                 store.micros_histogram, kMicro, false, static_cast<double>(store.busy_micros) * kMicro);
  text.one("belfry_store_checkpoints_total", "counter", "Times the log was moved into the database.",
           store.checkpoints);
  text.one("belfry_store_disk_full_total", "counter", "Groups that found no space left.", store.disk_full);
  text.one("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident_bytes());
  return text.take();
}

}  // namespace belfry::server
