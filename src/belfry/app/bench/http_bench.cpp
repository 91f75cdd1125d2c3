#include "belfry/app/bench/http_bench.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "belfry/app/bench/load_client.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"
#include "belfry/app/bench/server_process.h"
#include "belfry/base/random.h"
#include "belfry/clock/real_clock.h"

namespace belfry::app::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kOthers = 100;                 // recipients beside the one that is measured
constexpr std::int64_t kPerRequest = 5'000;  // lines of a batch

const std::string& payload() {
  static const std::string text = fmt::format(R"({{"text":"{}"}})", std::string(189, 'x'));
  return text;
}

std::string other(std::int64_t i) { return fmt::format("r{}", i % kOthers); }

void add_agent(HttpConnection& connection, const std::string& id) {
  const HttpAnswer answer =
      connection.call("POST", "/v1/agents", fmt::format(R"({{"id":"{}","kind":"external"}})", id));
  if (answer.status != 201) throw std::runtime_error("cannot add an agent: " + answer.body);
}

void add_agents(int port) {
  HttpConnection connection(port);
  add_agent(connection, "consumer");
  for (int i = 0; i < kOthers; ++i) add_agent(connection, other(i));
}

std::string delayed_line(const std::string& to, Millis delay) {
  return fmt::format(R"({{"to":"{}","payload":{},"delayMs":{}}})", to, payload(), delay.count());
}

// Messages that nobody waits for, due in an hour or two.
void load_pending(int port, std::int64_t count) {
  SeededRandom random(1);
  post_batches(port, count, kPerRequest, [&](std::int64_t i) {
    return delayed_line(other(i), Millis{3'600'000 + static_cast<std::int64_t>(random.next() % 3'600'000)});
  });
}

std::int64_t wall_ms() { return to_ms(round_down(read_real_clocks().wall)); }

// Durable senders in a process of their own, until this goes out of scope.
class Senders {
 public:
  Senders(int port, int connections) {
    pid_ = fork();
    if (pid_ != 0) return;
    try {
      std::vector<std::string> bodies;
      for (int i = 0; i < kOthers; ++i)
        bodies.push_back(fmt::format(R"({{"to":"{}","payload":{}}})", other(i), payload()));
      keep_posting(port, connections, 120s, "/v1/messages", bodies);
    } catch (const std::exception&) {
      _exit(1);  // the server ended first
    }
    _exit(0);
  }
  ~Senders() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Senders(const Senders&) = delete;
  Senders& operator=(const Senders&) = delete;

 private:
  pid_t pid_;
};

// What a consumer saw of the messages that were due at known instants on the wall clock.
struct Seen {
  Samples lateness;
  std::int64_t early = 0;
  std::int64_t out_of_order = 0;
  Nanos last_after_first_due{0};
};

// Receives and acks `count` messages for `consumer`.
Seen consume(int port, std::int64_t count) {
  HttpConnection receiver(port);
  HttpConnection acker(port);
  Seen seen;
  WallTime first_due = kLatestTime;
  std::string last_due;
  bool ack_outstanding = false;
  for (std::int64_t received = 0; received < count;) {
    const HttpAnswer answer = receiver.call("POST", "/v1/mailboxes/consumer:receive", R"({"max":1000,"waitMs":20000})");
    const WallInstant now = read_real_clocks().wall;
    const auto root = json::parse(answer.body);
    if (!root || answer.status != 200) throw std::runtime_error("receive failed: " + answer.body.substr(0, 200));
    std::string acks;
    for (const json::Value message : json::elements(*json::find(*root, "messages"))) {
      const std::string due_text = json::text(*json::find(message, "deliverAt"));
      const WallTime due = *parse_iso(due_text);
      first_due = std::min(first_due, due);
      seen.lateness.add(now - due);
      if (now < due) ++seen.early;
      if (due_text < last_due) ++seen.out_of_order;
      last_due = due_text;
      acks += fmt::format("{}{}", acks.empty() ? "" : ",", json::find(message, "lease")->raw);
      ++received;
    }
    seen.last_after_first_due = now - first_due;
    if (acks.empty()) throw std::runtime_error("messages are missing");
    if (ack_outstanding) {
      while (!acker.advance()) {
      }
      acker.take();
    }
    acker.send("POST", "/v1/mailboxes/consumer:ack", fmt::format(R"({{"leases":[{}]}})", acks));
    ack_outstanding = true;
  }
  return seen;
}

// Sends `count` messages that are due spread over `window` from `start_ms` on.
void send_due(int port, std::int64_t count, std::int64_t start_ms, Millis window) {
  post_batches(port, count, kPerRequest, [&](std::int64_t i) {
    const std::int64_t due = start_ms + (window.count() > 0 ? i * window.count() / count : 0);
    return fmt::format(R"({{"to":"consumer","payload":{},"deliverAt":{}}})", payload(), due);
  });
}

void report_lateness(Line& line, Seen& seen) {
  line.add("received", seen.lateness.size())
      .add("early", seen.early)
      .add("outOfOrder", seen.out_of_order)
      .number("p50Ms", seen.lateness.quantile_ms(0.5))
      .number("p99Ms", seen.lateness.quantile_ms(0.99))
      .number("maxMs", seen.lateness.quantile_ms(1.0));
}

}  // namespace

void bench_http(const Options& options) {
  const Scratch scratch(options.folder, "http");
  const double syncs = probe_fdatasync(scratch.path());
  Line("fdatasync").number("perSecond", syncs);
  ServerProcess server(scratch.path());
  add_agents(server.port());
  std::vector<std::string> bodies;
  for (int i = 0; i < kOthers; ++i) bodies.push_back(fmt::format(R"({{"to":"{}","payload":{}}})", other(i), payload()));
  Samples latencies;
  const double posts = keep_posting(server.port(), 32, 3s, "/v1/messages", bodies, &latencies);
  Line("http")
      .add("connections", 32)
      .number("perSecond", posts)
      .number("timesFdatasync", posts / syncs)
      .number("p50Ms", latencies.quantile_ms(0.5))
      .number("p99Ms", latencies.quantile_ms(0.99));
  const double batched = post_batches(server.port(), 300'000, kPerRequest, [](std::int64_t i) {
    return fmt::format(R"({{"to":"{}","payload":{}}})", other(i), payload());
  });
  Line("batch").number("perSecond", batched).number("timesFdatasync", batched / syncs);
}

void bench_punctual(const Options& options) {
  const Scratch scratch(options.folder, "punctual");
  ServerProcess server(scratch.path());
  add_agents(server.port());
  load_pending(server.port(), 1'000'000);
  Samples timer = probe_timer();
  Line("timerfd").number("p50Ms", timer.quantile_ms(0.5)).number("p99Ms", timer.quantile_ms(0.99));
  for (const int senders : {0, 32}) {
    static constexpr std::int64_t kCount = 100'000;
    send_due(server.port(), kCount, wall_ms() + 8'000, Millis{10'000});
    std::optional<Senders> load;
    if (senders > 0) load.emplace(server.port(), senders);
    Seen seen = consume(server.port(), kCount);
    Line line("punctual");
    line.add("pending", 1'000'000).add("senders", senders);
    report_lateness(line, seen);
  }
}

void bench_burst(const Options& options) {
  const Scratch scratch(options.folder, "burst");
  ServerProcess server(scratch.path());
  add_agents(server.port());
  static constexpr std::int64_t kCount = 100'000;
  const std::int64_t due = wall_ms() + 8'000;
  send_due(server.port(), kCount, due, Millis{0});

  // Another process goes on sending; it tells the slowest answer that it got while the burst lasted.
  int result[2];
  if (pipe2(result, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t sender = fork();
  if (sender == 0) {
    Samples latencies;
    const std::vector<std::string> bodies{fmt::format(R"({{"to":"r1","payload":{}}})", payload())};
    while (wall_ms() < due - 20) usleep(1'000);
    keep_posting(server.port(), 4, 1'200ms, "/v1/messages", bodies, &latencies);
    const double slowest = latencies.quantile_ms(1.0);
    [[maybe_unused]] const auto written = write(result[1], &slowest, sizeof slowest);
    _exit(0);
  }
  Seen seen = consume(server.port(), kCount);
  double slowest = 0;
  [[maybe_unused]] const auto got = read(result[0], &slowest, sizeof slowest);
  waitpid(sender, nullptr, 0);
  Line line("burst");
  report_lateness(line, seen);
  line.number("allReceivedMs", static_cast<double>(seen.last_after_first_due.count()) / 1e6)
      .number("slowestOtherSendMs", slowest);
}

void bench_fair(const Options& options) {
  const std::int64_t overdue = options.full ? 10'000'000 : 300'000;
  const Scratch scratch(options.folder, "fair");
  ServerProcess server(scratch.path());
  add_agents(server.port());
  static constexpr std::int64_t kCount = 20'000;
  const auto measure = [&](std::int64_t behind) {
    send_due(server.port(), kCount, wall_ms() + 4'000, Millis{4'000});
    Seen seen = consume(server.port(), kCount);
    Line line("fair");
    line.add("overdueForAnother", behind);
    report_lateness(line, seen);
  };
  measure(0);
  post_batches(server.port(), overdue, kPerRequest,
               [](std::int64_t) { return fmt::format(R"({{"to":"r0","payload":{}}})", payload()); });
  measure(overdue);
  Line("fairMemory").number("peakMiB", static_cast<double>(server.peak_resident_bytes()) / 1048576);
}

void bench_memory(const Options& options) {
  if (!options.full) return;
  static constexpr std::int64_t kCount = 10'000'000;
  struct Shape {
    const char* name;
    Millis from;
    Millis to;
  };
  for (const Shape& shape : {Shape{"year", 20min, 8'760h}, Shape{"tenMinutes", 30min, 40min}}) {
    const Scratch scratch(options.folder, "memory");
    const auto peak = [](const ServerProcess& server) {
      return static_cast<double>(server.peak_resident_bytes()) / 1048576;
    };
    const auto start_again = [&](const char* after) {
      // As root the page cache can be emptied; else the figure is for a warm one, and says so.
      sync();
      const int caches = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
      const bool cold = caches >= 0 && write(caches, "3", 1) == 1;
      if (caches >= 0) close(caches);
      const Nanos start = elapsed_now();
      auto server = std::make_unique<ServerProcess>(scratch.path());
      HttpConnection connection(server->port());
      connection.call("GET", "/healthz");
      const Nanos first = elapsed_now() - start;
      const Nanos before_counts = elapsed_now();
      connection.call("GET", "/v1/mailboxes/r1");
      Line("start")
          .add("shape", shape.name)
          .add("after", after)
          .add("coldCache", cold)
          .number("firstAnswerMs", static_cast<double>(first.count()) / 1e6)
          .number("countsMs", static_cast<double>((elapsed_now() - before_counts).count()) / 1e6);
      return server;
    };
    auto server = std::make_unique<ServerProcess>(scratch.path());
    add_agents(server->port());
    SeededRandom random(1);
    const double rate = post_batches(server->port(), kCount, kPerRequest, [&](std::int64_t i) {
      const auto span = static_cast<std::uint64_t>((shape.to - shape.from).count());
      return delayed_line(other(i), shape.from + Millis{static_cast<std::int64_t>(random.next() % span)});
    });
    Line("load")
        .add("shape", shape.name)
        .add("messages", kCount)
        .number("perSecond", rate)
        .number("peakMiB", peak(*server));
    server->kill();
    server = start_again("kill");
    const auto stop = server->stop();
    Line("stop")
        .add("shape", shape.name)
        .number("seconds", static_cast<double>(stop.took.count()) / 1e9)
        .add("clean", stop.clean)
        .number("walMiB", static_cast<double>(std::filesystem::file_size(scratch.path() / "belfry.db-wal")) / 1048576);
    server = start_again("forced stop");
    HttpConnection connection(server->port());
    const Nanos start = elapsed_now();
    while (connection.call("GET", "/healthz").body.find("\"caughtUp\":true") == std::string::npos &&
           elapsed_now() - start < 600s)
      usleep(200'000);
    Line("drain")
        .add("shape", shape.name)
        .number("seconds", static_cast<double>((elapsed_now() - start).count()) / 1e9)
        .number("peakMiB", peak(*server));
  }
}

}  // namespace belfry::app::bench
