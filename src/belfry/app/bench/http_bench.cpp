#include "belfry/app/bench/http_bench.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "belfry/app/bench/load_client.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"
#include "belfry/app/bench/server_process.h"
#include "belfry/base/limits.h"
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
  bool still_at_it() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  Senders(const Senders&) = delete;
  Senders& operator=(const Senders&) = delete;

 private:
  pid_t pid_;
};

// What a consumer saw of the messages that were due at known instants on the wall clock.
struct Seen {
  Samples lateness;
  Samples calm;  // those of the moments in which the host stole nothing
  std::int64_t early = 0;
  std::int64_t out_of_order = 0;
  Nanos last_after_first_due{0};
};

// Acks on a connection of its own. What comes while an ack is on its way goes with the next: a receiver does not wait
// for the disk.
class Acker {
 public:
  // Then the receiver does wait: leases end after 30 s, and the disk may become slower meanwhile.
  static constexpr Nanos kBehindMax = 3s;

  Acker(int port, const std::string& recipient)
      : connection_(port), path_(fmt::format("/v1/mailboxes/{}:ack", recipient)) {}

  void add(std::string_view lease) { leases_.emplace_back(elapsed_now(), lease); }
  void send() {
    while (outstanding_ && (connection_.readable() || is_behind())) take_answer();
    if (!outstanding_ && !leases_.empty()) begin();
  }
  void finish() {
    while (outstanding_ || !leases_.empty()) {
      if (!outstanding_) begin();
      take_answer();
    }
  }

 private:
  bool is_behind() const { return !leases_.empty() && elapsed_now() - leases_.front().first > kBehindMax; }
  void begin() {
    const std::size_t count = std::min(leases_.size(), static_cast<std::size_t>(kReceiveMax));
    std::string body = R"({"leases":[)";
    for (std::size_t i = 0; i < count; ++i) body += fmt::format("{}{}", i == 0 ? "" : ",", leases_[i].second);
    leases_.erase(leases_.begin(), leases_.begin() + static_cast<std::ptrdiff_t>(count));
    connection_.send("POST", path_, body + "]}");
    outstanding_ = true;
  }
  void take_answer() {
    if (!connection_.advance()) return;
    const HttpAnswer answer = connection_.take();
    if (answer.status != 200 || answer.body.find("lease_lost") != std::string::npos)
      throw std::runtime_error("an ack was refused: " + answer.body.substr(0, 200));
    outstanding_ = false;
  }

  HttpConnection connection_;
  std::string path_;
  std::deque<std::pair<Nanos, std::string>> leases_;  // since when
  bool outstanding_ = false;
};

// Tells the moments in which this machine's host ran something else from the others. It looks every 50 ms, because
// the count of stolen time has steps of 10 ms; what came since the last look is calm if the count has stood still from
// the look before that one on, so that what a theft has held up does not count as calm either.
class Calm {
 public:
  void add(Nanos lateness) { since_look_.push_back(lateness); }
  void look(Samples& calm) {
    const Nanos now = elapsed_now();
    if (now - looked_ < 50ms) return;
    looked_ = now;
    const double stolen = stolen_ms();
    if (stolen == before_last_) {
      for (const Nanos lateness : since_look_) calm.add(lateness);
    }
    since_look_.clear();
    before_last_ = std::exchange(last_, stolen);
  }

 private:
  std::vector<Nanos> since_look_;
  Nanos looked_{0};
  double last_ = -1;
  double before_last_ = -1;
};

// Our own payloads do not have this in them.
std::int64_t count_messages(std::string_view body) {
  static constexpr std::string_view kMark = R"("lease":")";
  std::int64_t count = 0;
  for (auto at = body.find(kMark); at != std::string_view::npos; at = body.find(kMark, at + kMark.size())) ++count;
  return count;
}

// Receives and acks `count` messages for `recipient`. The next receive is on its way while an answer is read.
Seen consume(int port, const std::string& recipient, std::int64_t count) {
  HttpConnection receiver(port);
  Acker acker(port, recipient);
  const std::string path = fmt::format("/v1/mailboxes/{}:receive", recipient);
  Seen seen;
  Calm calm;
  WallTime first_due = kLatestTime;
  WallTime last_due{Millis{INT64_MIN}};
  const auto ask = [&] { receiver.send("POST", path, R"({"max":1000,"waitMs":20000})"); };
  ask();
  for (std::int64_t received = 0; received < count;) {
    while (!receiver.advance()) {
    }
    const WallInstant now = read_real_clocks().wall;
    const HttpAnswer answer = receiver.take();
    received += count_messages(answer.body);
    if (received < count) ask();
    const auto root = json::parse(answer.body);
    if (!root || answer.status != 200) throw std::runtime_error("receive failed: " + answer.body.substr(0, 200));
    const auto messages = json::elements(*json::find(*root, "messages"));
    if (messages.empty()) throw std::runtime_error("messages are missing");
    for (const json::Value message : messages) {
      const WallTime due = *parse_iso(json::text(*json::find(message, "deliverAt")));
      first_due = std::min(first_due, due);
      seen.lateness.add(now - due);
      calm.add(now - due);
      if (now < due) ++seen.early;
      if (due < last_due) ++seen.out_of_order;
      last_due = due;
      acker.add(json::find(message, "lease")->raw);
    }
    seen.last_after_first_due = now - first_due;
    calm.look(seen.calm);
    acker.send();
  }
  acker.finish();
  return seen;
}

// Sends `count` messages that are due spread over `window` from `start_ms` on.
void send_due(int port, std::int64_t count, std::int64_t start_ms, Millis window) {
  post_batches(port, count, kPerRequest, [&](std::int64_t i) {
    const std::int64_t due = start_ms + (window.count() > 0 ? i * window.count() / count : 0);
    return fmt::format(R"({{"to":"consumer","payload":{},"deliverAt":{}}})", payload(), due);
  });
}

double in_ms(Nanos span) { return static_cast<double>(span.count()) / 1e6; }

std::int64_t pending_for_others(int port) {
  HttpConnection connection(port);
  std::int64_t pending = 0;
  for (int i = 0; i < kOthers; ++i) {
    const HttpAnswer answer = connection.call("GET", fmt::format("/v1/mailboxes/{}", other(i)));
    const auto root = json::parse(answer.body);
    if (!root || answer.status != 200) throw std::runtime_error("counts failed: " + answer.body.substr(0, 200));
    pending += json::integer(*json::find(*root, "pending")).value_or(0);
  }
  return pending;
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
  const int runs = options.full ? 6 : 2;
  for (int run = 0; run < runs; ++run) {
    const int senders = run % 2 == 0 ? 0 : 32;
    static constexpr std::int64_t kCount = 100'000;
    send_due(server.port(), kCount, wall_ms() + 8'000, Millis{10'000});
    std::optional<Senders> load;
    if (senders > 0) load.emplace(server.port(), senders);
    const std::int64_t before = pending_for_others(server.port());
    const Nanos start = elapsed_now();
    const double stolen = stolen_ms();
    Seen seen = consume(server.port(), "consumer", kCount);
    if (load && !load->still_at_it()) throw std::runtime_error("the senders gave up");
    const double seconds = in_ms(elapsed_now() - start) / 1e3;
    const auto sent = static_cast<double>(pending_for_others(server.port()) - before);
    Line line("punctual");
    line.add("pending", 1'000'000).add("senders", senders).number("sendsPerSecond", sent / seconds);
    line.number("stolenMs", stolen_ms() - stolen);
    report_lateness(line, seen);
    line.add("calm", seen.calm.size())
        .number("calmP50Ms", seen.calm.quantile_ms(0.5))
        .number("calmP99Ms", seen.calm.quantile_ms(0.99));
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
  Seen seen = consume(server.port(), "consumer", kCount);
  double slowest = 0;
  [[maybe_unused]] const auto got = read(result[0], &slowest, sizeof slowest);
  waitpid(sender, nullptr, 0);
  Line line("burst");
  report_lateness(line, seen);
  line.number("allReceivedMs", in_ms(seen.last_after_first_due)).number("slowestOtherSendMs", slowest);
}

namespace {

double peak_mib(const ServerProcess& server) { return static_cast<double>(server.peak_resident_bytes()) / 1048576; }

// Starts a server on what lies in `folder`, with an empty page cache where that is allowed (as root).
std::unique_ptr<ServerProcess> start_cold(const std::filesystem::path& folder, const char* shape, const char* after) {
  sync();
  const int caches = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
  const bool cold = caches >= 0 && write(caches, "3", 1) == 1;
  if (caches >= 0) close(caches);
  const Nanos start = elapsed_now();
  auto server = std::make_unique<ServerProcess>(folder);
  HttpConnection connection(server->port());
  connection.call("GET", "/healthz");
  const Nanos first = elapsed_now() - start;
  const Nanos before_counts = elapsed_now();
  connection.call("GET", "/v1/mailboxes/r1");
  Line("start")
      .add("shape", shape)
      .add("after", after)
      .add("coldCache", cold)
      .number("firstAnswerMs", in_ms(first))
      .number("countsMs", in_ms(elapsed_now() - before_counts));
  return server;
}

void stop_gracefully(ServerProcess& server, const std::filesystem::path& folder, const char* shape) {
  const double peak = peak_mib(server);
  const auto stop = server.stop();
  std::error_code gone;
  const auto wal = std::filesystem::file_size(folder / "belfry.db-wal", gone);
  Line("stop")
      .add("shape", shape)
      .number("seconds", static_cast<double>(stop.took.count()) / 1e9)
      .add("clean", stop.clean)
      .number("walMiB", gone ? 0 : static_cast<double>(wal) / 1048576)
      .number("peakMiB", peak);
}

// Receives and acks everything for all the others, in turn, until `count` have come.
Nanos drain_others(int port, std::int64_t count) {
  const Nanos start = elapsed_now();
  HttpConnection receiver(port);
  std::deque<Acker> ackers;
  for (int i = 0; i < kOthers; ++i) ackers.emplace_back(port, other(i));
  std::int64_t received = 0;
  Nanos last_news = start;
  for (int i = 0; received < count; i = (i + 1) % kOthers) {
    const HttpAnswer answer =
        receiver.call("POST", fmt::format("/v1/mailboxes/{}:receive", other(i)), R"({"max":1000,"waitMs":0})");
    const auto root = json::parse(answer.body);
    if (!root || answer.status != 200) throw std::runtime_error("receive failed: " + answer.body.substr(0, 200));
    Acker& acker = ackers[static_cast<std::size_t>(i)];
    for (const json::Value message : json::elements(*json::find(*root, "messages"))) {
      acker.add(json::find(message, "lease")->raw);
      ++received;
      last_news = elapsed_now();
    }
    acker.send();
    if (elapsed_now() - last_news > 60s)
      throw std::runtime_error(fmt::format("messages are missing: {} of {} came", received, count));
  }
  for (Acker& acker : ackers) acker.finish();
  return elapsed_now() - start;
}

void report_drain(const char* shape, std::int64_t messages, Nanos took, double peak) {
  Line("drain")
      .add("shape", shape)
      .add("messages", messages)
      .number("seconds", static_cast<double>(took.count()) / 1e9)
      .number("peakMiB", peak);
}

constexpr std::int64_t kTenMillion = 10'000'000;

// Due over a year, for a hundred recipients; a graceful stop forces them all, and then they are all received.
void memory_over_a_year(const Options& options) {
  static constexpr const char* kShape = "year";
  const Scratch scratch(options.folder, "memory");
  auto server = std::make_unique<ServerProcess>(scratch.path());
  add_agents(server->port());
  SeededRandom random(1);
  const double rate = post_batches(server->port(), kTenMillion, kPerRequest, [&](std::int64_t i) {
    return delayed_line(other(i), 20min + Millis{static_cast<std::int64_t>(random.next() % Millis{8'760h}.count())});
  });
  Line("load").add("shape", kShape).number("perSecond", rate).number("peakMiB", peak_mib(*server));
  server->kill();
  server = start_cold(scratch.path(), kShape, "kill");
  stop_gracefully(*server, scratch.path(), kShape);
  server = start_cold(scratch.path(), kShape, "forced stop");
  const Nanos took = drain_others(server->port(), kTenMillion);
  report_drain(kShape, kTenMillion, took, peak_mib(*server));
}

// Due in the same ten minutes, for one recipient that receives them as they come due.
void memory_in_ten_minutes(const Options& options) {
  static constexpr const char* kShape = "tenMinutes";
  const Scratch scratch(options.folder, "memory");
  auto server = std::make_unique<ServerProcess>(scratch.path());
  add_agents(server->port());
  const std::int64_t start_ms = wall_ms() + Millis{5min}.count();
  SeededRandom random(1);
  const double rate = post_batches(server->port(), kTenMillion, kPerRequest, [&](std::int64_t) {
    return fmt::format(R"({{"to":"consumer","payload":{},"deliverAt":{}}})", payload(),
                       start_ms + static_cast<std::int64_t>(random.next() % 600'000));
  });
  Line("load").add("shape", kShape).number("perSecond", rate).number("peakMiB", peak_mib(*server));
  if (wall_ms() > start_ms - 20'000) throw std::runtime_error("this machine loads too slowly for the ten minutes");
  server->kill();
  server = start_cold(scratch.path(), kShape, "kill");
  while (wall_ms() < start_ms - 10'000) usleep(100'000);
  const Nanos start = elapsed_now();
  Seen seen = consume(server->port(), "consumer", kTenMillion);
  Line line("tenMinutes");
  report_lateness(line, seen);
  report_drain(kShape, kTenMillion, elapsed_now() - start, peak_mib(*server));
}

}  // namespace

void bench_fair(const Options& options) {
  const std::int64_t overdue = options.full ? kTenMillion : 300'000;
  const Scratch scratch(options.folder, "fair");
  auto server = std::make_unique<ServerProcess>(scratch.path());
  add_agents(server->port());
  static constexpr std::int64_t kCount = 20'000;
  const auto measure = [&](std::int64_t behind, bool just_started = false) {
    send_due(server->port(), kCount, wall_ms() + 4'000, Millis{4'000});
    Seen seen = consume(server->port(), "consumer", kCount);
    Line line("fair");
    line.add("overdueForAnother", behind);
    if (just_started) line.add("justStarted", true);
    report_lateness(line, seen);
    // What a receive costs: as many that lie ready, taken one request after the other.
    send_due(server->port(), kCount, wall_ms(), Millis{0});
    const Nanos start = elapsed_now();
    consume(server->port(), "consumer", kCount);
    line.number("receiveMicros", in_ms(elapsed_now() - start) * 1e3 / static_cast<double>(kCount));
  };
  // Alternating would need two servers at once; three rounds each show how far they scatter.
  for (int round = 0; round < 3; ++round) measure(0);
  post_batches(server->port(), overdue, kPerRequest,
               [](std::int64_t) { return fmt::format(R"({{"to":"r0","payload":{}}})", payload()); });
  for (int round = 0; round < 3; ++round) measure(overdue);
  Line("load").add("shape", "neverReceived").add("messages", overdue).number("peakMiB", peak_mib(*server));
  server->kill();
  server = start_cold(scratch.path(), "neverReceived", "kill");
  stop_gracefully(*server, scratch.path(), "neverReceived");
  server = start_cold(scratch.path(), "neverReceived", "stop");
  measure(overdue, true);
  Line("end").add("shape", "neverReceived").number("peakMiB", peak_mib(*server));
}

void bench_year(const Options& options) {
  if (options.full) memory_over_a_year(options);
}

void bench_ten_minutes(const Options& options) {
  if (options.full) memory_in_ten_minutes(options);
}

}  // namespace belfry::app::bench
