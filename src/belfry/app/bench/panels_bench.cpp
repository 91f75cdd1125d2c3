#include "belfry/app/bench/panels_bench.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "belfry/app/bench/load_client.h"
#include "belfry/app/bench/probes.h"
#include "belfry/app/bench/report.h"
#include "belfry/app/bench/scratch.h"
#include "belfry/app/bench/server_process.h"
#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/net/websocket.h"

namespace belfry::app::bench {
namespace {

namespace websocket = net::websocket;

constexpr int kRounds = 200;
constexpr std::size_t kTextBytes = 200;

// Many connections, of which each gets the same thing in every round; when it came, for all of them.
class Watchers {
 public:
  Watchers() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Watchers() { close(epoll_); }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  void add(int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) throw std::runtime_error("epoll refuses a socket");
    ++count_;
  }

  // Until every one has got something whose end `is_whole` finds.
  template <class IsWhole>
  void await_all(Nanos begun, IsWhole is_whole, Samples* samples) {
    char buffer[65536];
    epoll_event events[256];
    for (int left = count_; left > 0;) {
      const int ready = epoll_wait(epoll_, events, 256, 10'000);
      if (ready <= 0) throw std::runtime_error("a panel heard nothing for ten seconds");
      for (int i = 0; i < ready; ++i) {
        const ssize_t size = recv(events[i].data.fd, buffer, sizeof buffer, 0);
        if (size <= 0) throw std::runtime_error("a connection ended");
        if (!is_whole(events[i].data.fd, std::string_view(buffer, static_cast<std::size_t>(size)))) continue;
        if (samples) samples->add(elapsed_now() - begun);
        --left;
      }
    }
  }

 private:
  int epoll_;
  int count_ = 0;
};

void report(std::string_view name, int panels, Samples& samples) {
  Line(name)
      .add("panels", panels)
      .number("p50Ms", samples.quantile_ms(0.5))
      .number("p99Ms", samples.quantile_ms(0.99))
      .number("maxMs", samples.quantile_ms(1.0));
}

// --- the loopback itself: another process writes as many bytes to as many sockets, one after the other ---

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Hears a byte on the first connection and writes to all others, until the first one ends.
[[noreturn]] void fan_out(int listener, int panels, std::size_t bytes) {
  std::vector<int> sockets;
  while (static_cast<int>(sockets.size()) < panels + 1) sockets.push_back(accept(listener, nullptr, nullptr));
  const int on = 1;
  for (const int one : sockets) setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::string text(bytes, 'x');
  char byte = 0;
  while (recv(sockets[0], &byte, 1, 0) == 1)
    for (std::size_t i = 1; i < sockets.size(); ++i) write_all(sockets[i], text);
  _exit(0);
}

class FanOutProcess {
 public:
  FanOutProcess(int panels, std::size_t bytes) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("the probe cannot listen");
    port_ = ntohs(address.sin_port);
    pid_ = fork();
    if (pid_ == 0) fan_out(listener, panels, bytes);
    close(listener);
  }
  ~FanOutProcess() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  FanOutProcess(const FanOutProcess&) = delete;
  FanOutProcess& operator=(const FanOutProcess&) = delete;
  int port() const { return port_; }

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

double probe_fan_out(int panels, std::size_t bytes) {
  const FanOutProcess process(panels, bytes);
  const HttpConnection control(process.port());
  std::vector<HttpConnection> connections;
  Watchers watchers;
  for (int i = 0; i < panels; ++i) {
    connections.emplace_back(process.port());
    watchers.add(connections.back().descriptor());
  }
  Samples samples;
  std::vector<std::size_t> got(65'536);
  for (int round = 0; round < kRounds; ++round) {
    std::fill(got.begin(), got.end(), 0);
    const Nanos begun = elapsed_now();
    write_all(control.descriptor(), "!");
    const auto is_whole = [&](int descriptor, std::string_view some) {
      return (got.at(static_cast<std::size_t>(descriptor)) += some.size()) == bytes;
    };
    watchers.await_all(begun, is_whole, &samples);
  }
  report("loopback", panels, samples);
  return samples.quantile_ms(0.99);
}

// --- panels ---

// One panel's end: what has come, as messages.
class Panel {
 public:
  Panel(int port, const std::string& session) : connection_(port) {
    const std::string request = fmt::format(
        "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        port);
    write_all(descriptor(), request);
    while (input_.find("\r\n\r\n") == std::string::npos) read_some();
    if (!input_.starts_with("HTTP/1.1 101")) throw std::runtime_error("the server takes no WebSocket");
    input_.erase(0, input_.find("\r\n\r\n") + 4);
    const std::string hello = fmt::format(R"({{"op":"hello","sessions":[{{"id":"{}"}}]}})", session);
    write_all(descriptor(), websocket::frame(websocket::Opcode::text, hello, 1));
    while (!has_come("caughtUp", "")) read_some();
  }

  int descriptor() const { return connection_.descriptor(); }
  // Whether a frame of this kind is among what has come, `more` included.
  bool has_come(std::string_view op, std::string_view more) {
    input_ += more;
    std::string_view left = input_;
    bool found = false;
    while (true) {
      const auto message = reader_.next(left);
      if (!message) throw std::runtime_error("the server breaks the protocol: " + message.error().what);
      if (!*message) break;
      found = found || (*message)->payload.starts_with(fmt::format(R"({{"op":"{}")", op));
    }
    input_.erase(0, input_.size() - left.size());
    return found;
  }

 private:
  void read_some() {
    char buffer[4096];
    const ssize_t size = recv(descriptor(), buffer, sizeof buffer, 0);
    if (size <= 0) throw std::runtime_error("the server closed the connection");
    input_.append(buffer, static_cast<std::size_t>(size));
  }

  HttpConnection connection_;
  std::string input_;
  websocket::Reader reader_{websocket::Side::client, 1u << 20};
};

std::string open_session(HttpConnection& connection) {
  const HttpAnswer answer = connection.call("POST", "/v1/sessions", R"({"agent":"quiet"})");
  const auto whole = json::parse(answer.body);
  if (answer.status != 201 || !whole) throw std::runtime_error("no session: " + answer.body);
  return json::text_in(*whole, "sessionId");
}

double measure_panels(const std::filesystem::path& folder, int count) {
  const Scratch scratch(folder, "panels");
  const ServerProcess server(scratch.path());
  HttpConnection poster(server.port());
  poster.call("POST", "/v1/agents", R"({"id":"quiet","kind":"external"})");
  const std::string session = open_session(poster);
  std::vector<std::unique_ptr<Panel>> panels(65'536);
  Watchers watchers;
  for (int i = 0; i < count; ++i) {
    auto panel = std::make_unique<Panel>(server.port(), session);
    watchers.add(panel->descriptor());
    panels.at(static_cast<std::size_t>(panel->descriptor())) = std::move(panel);
  }
  Samples samples;
  const std::string path = fmt::format("/v1/sessions/{}/messages", session);
  const std::string body = fmt::format(R"({{"text":"{}"}})", std::string(kTextBytes, 'x'));
  for (int round = 0; round < kRounds; ++round) {
    const Nanos begun = elapsed_now();
    poster.send("POST", path, body);
    const auto is_whole = [&](int descriptor, std::string_view some) {
      return panels[static_cast<std::size_t>(descriptor)]->has_come("message", some);
    };
    watchers.await_all(begun, is_whole, &samples);
    while (!poster.advance()) continue;
    if (poster.take().status != 201) throw std::runtime_error("a line was refused");
  }
  report("panels", count, samples);
  Line("server").add("panels", count).number("peakMiB", static_cast<double>(server.peak_resident_bytes()) / (1 << 20));
  return samples.quantile_ms(0.99);
}

}  // namespace

void run_panels_bench(const std::filesystem::path& folder) {
  {
    const Scratch probe(folder, "probe");
    Line("fdatasync").number("perSecond", probe_fdatasync(probe.path()));
  }
  // What a line of this length is on the wire, and as many bytes from a process that does nothing else.
  constexpr std::size_t kFrameBytes = 2 * kTextBytes + 270;
  for (const int count : {1, 100, 1'000}) {
    const double loopback = probe_fan_out(count, kFrameBytes);
    const double panels = measure_panels(folder, count);
    Line("ratio").add("panels", count).number("p99", panels / loopback);
  }
}

}  // namespace belfry::app::bench
