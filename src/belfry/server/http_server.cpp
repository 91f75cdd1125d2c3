#include "belfry/server/http_server.h"

#include <algorithm>
#include <unordered_set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/net/endpoints.h"
#include "belfry/server/connection.h"
#include "belfry/server/hub.h"
#include "belfry/server/routes.h"

namespace belfry::server {
namespace {

using asio::ip::tcp;
using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// The longest time between two looks at the connections; they come when the second changes, which the Date header shows.
constexpr Nanos kWatchdogTick = std::chrono::seconds{1};
// When the process has no descriptor left, accepting again at once would only spin.
constexpr Nanos kAcceptPause = std::chrono::milliseconds{100};

std::string http_date(WallInstant now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch());
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(static_cast<std::time_t>(seconds.count())));
}

Result<tcp::endpoint> resolve(const std::string& host, int port) {
  if (const auto known = net::known_endpoints({host, port}); !known.empty()) return known.front();
  asio::io_context context;
  tcp::resolver resolver(context);
  error_code ec;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, ec);
  if (ec || found.empty())
    return fail(Errc::invalid_argument, fmt::format("cannot listen on {}: {}", host, ec.message()));
  return found.begin()->endpoint();
}

Result<> open_port(tcp::acceptor& acceptor, const std::string& host, int port) {
  BELFRY_TRY(const tcp::endpoint endpoint, resolve(host, port));
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(tcp::acceptor::max_listen_connections, ec);
  if (ec == asio::error::address_in_use)
    return fail(Errc::unavailable,
                fmt::format("port {} of {} is in use by another program; --listen takes another one", port, host));
  if (ec) return fail(Errc::unavailable, fmt::format("cannot listen on {} port {}: {}", host, port, ec.message()));
  return {};
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(asio::io_context& context, Clock& clock, Served served, ServerOptions options)
      : clock_(clock),
        options_(std::move(options)),
        acceptor_(context),
        guard_(guard_options()),
        tasks_(context),
        shared_{.guard = guard_,
                .router = router_,
                .tasks = tasks_,
                .now = clock.now().boot,
                .date = http_date(clock.now().wall)},
        messages_(served.bus, clock, served.times),
        when_(served.times),
        mailboxes_(served.bus, tasks_),
        agents_(served.bus, served.agents),
        sessions_(served.chats),
        scheduled_(served.scheduled, served.chats, served.times),
        webhooks_(served.webhooks),
        coming_(clock, served.bus, served.chats, served.scheduled, served.runs),
        panel_(std::move(options_.panel)),
        hub_(context, clock, served.bus, served.chats, served.runs, guard_, tasks_, options_.timezone),
        tools_(served.tools, served.chats),
        runs_(served.runs),
        status_(
            served.bus, served.store, !options_.token.empty(), [this] { return static_cast<int>(connections_.size()); },
            std::move(served.more_metrics)) {
    messages_.add_to(router_);
    when_.add_to(router_);
    mailboxes_.add_to(router_);
    agents_.add_to(router_);
    sessions_.add_to(router_);
    scheduled_.add_to(router_);
    webhooks_.add_to(router_);
    coming_.add_to(router_);
    panel_.add_to(router_);
    hub_.add_to(router_);
    if (served.agents.cancel)
      hub_.on_stop([this, cancel = served.agents.cancel](std::string session, std::string agent) {
        tasks_.spawn("stop an agent's turn", stop_turn(cancel(std::move(session), std::move(agent))));
      });
    tools_.add_to(router_);
    runs_.add_to(router_);
    status_.add_to(router_);
  }

  static Task<void> stop_turn(Task<Result<int>> cancel) { co_await std::move(cancel); }

  Result<> listen() {
    BELFRY_CHECK(open_port(acceptor_, options_.listen_host, options_.port));
    options_.port = acceptor_.local_endpoint().port();
    guard_ = Guard(guard_options());
    return {};
  }

  int port() const { return options_.port; }

  void start() {
    tasks_.spawn("accept", accept());
    tasks_.spawn("watchdog", watch());
  }

  Task<void> begin_stop(BootTime deadline) {
    status_.stopping();
    mailboxes_.stopping();
    hub_.stopping();
    co_await messages_.finish_sends(deadline);
  }

  Task<void> close(BootTime deadline) {
    shared_.closing = true;
    close_deadline_ = deadline;
    error_code ignored;
    acceptor_.close(ignored);
    accept_wake_.ring();
    for (Connection* connection : connections_) connection->end_if_idle();
    watchdog_wake_.ring();
    co_await tasks_.join();
  }

 private:
  Guard::Options guard_options() const {
    const bool ipv6 = options_.listen_host.find(':') != std::string::npos;
    return {.listen_host = ipv6 ? fmt::format("[{}]", options_.listen_host) : options_.listen_host,
            .port = options_.port,
            .allow_hosts = options_.allow_hosts,
            .token = options_.token};
  }

  Task<void> accept() {
    while (!shared_.closing) {
      auto accepted = co_await acceptor_.async_accept(kAwait);
      auto& [ec, socket] = accepted;
      if (shared_.closing) co_return;
      if (ec == asio::error::no_descriptors || ec == asio::error::no_buffer_space || ec == asio::error::no_memory) {
        if (shared_.strangers.let_one_go()) continue;
        log::warn("server.accept_paused", "no connection can be taken right now", {{"what", ec.message()}});
        co_await clock_.sleep_until(clock_.now().boot + kAcceptPause, accept_wake_);
        continue;
      }
      if (ec) continue;  // the client went away before we got to it
      if (static_cast<int>(connections_.size()) - shared_.leaving >= options_.connections_max &&
          !shared_.strangers.let_one_go()) {
        turn_away(socket);
        continue;
      }
      tasks_.spawn("connection", serve(std::make_unique<Connection>(shared_, std::move(socket))));
    }
  }

  void turn_away(tcp::socket& socket) const {
    const Response response = error_response(
        {Errc::overloaded, fmt::format("there are {} connections, and that is the limit", options_.connections_max)});
    const std::string text = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nRetry-After: 1\r\n{}Connection: close\r\n\r\n{}",
        response.status, reason_phrase(response.status), response.body.size(), kCrossOriginHeaders, response.body);
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(text), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  Task<void> serve(std::unique_ptr<Connection> connection) {
    struct Listed {
      std::unordered_set<Connection*>& all;
      Connection* one;
      Listed(std::unordered_set<Connection*>& list, Connection* connection) : all(list), one(connection) {
        all.insert(one);
      }
      ~Listed() { all.erase(one); }
    } listed(connections_, connection.get());
    co_await connection->run();
    if (shared_.closing) watchdog_wake_.ring();
  }

  // At most once a second, however many they were.
  void log_let_go() {
    const std::uint64_t in_all = shared_.strangers.let_go();
    if (const std::uint64_t more = in_all - std::exchange(let_go_logged_, in_all); more > 0)
      log::warn("server.strangers_let_go", "connections that had proved nothing made room for others",
                {{"count", more}, {"inAll", in_all}});
  }

  // Ends what takes too long, for all connections: a timer each would cost more than the requests.
  Task<void> watch() {
    while (!shared_.closing || !connections_.empty()) {
      const Now now = clock_.now();
      shared_.now = now.boot;
      shared_.date = http_date(now.wall);
      if (!shared_.closing) hub_.tick();
      log_let_go();
      const bool over = shared_.closing && now.boot >= close_deadline_;
      for (Connection* connection : connections_) {
        if (over) {
          connection->abort();
        } else {
          connection->check_deadline();
        }
      }
      const Nanos into_second = now.wall - std::chrono::floor<std::chrono::seconds>(now.wall);
      const BootTime next = now.boot + kWatchdogTick - into_second;
      co_await clock_.sleep_until(shared_.closing && !over ? std::min(next, close_deadline_) : next, watchdog_wake_);
    }
  }

  Clock& clock_;
  ServerOptions options_;
  tcp::acceptor acceptor_;
  Guard guard_;
  Router router_;
  TaskGroup tasks_;
  Shared shared_;
  std::unordered_set<Connection*> connections_;
  MessageRoutes messages_;
  WhenRoutes when_;
  MailboxRoutes mailboxes_;
  AgentRoutes agents_;
  SessionRoutes sessions_;
  ScheduledRoutes scheduled_;
  WebhookRoutes webhooks_;
  ComingRoutes coming_;
  PanelRoutes panel_;
  Hub hub_;
  ToolRoutes tools_;
  RunRoutes runs_;
  StatusRoutes status_;
  Wake accept_wake_;
  Wake watchdog_wake_;
  BootTime close_deadline_ = BootTime::max();
  std::uint64_t let_go_logged_ = 0;
};

HttpServer::HttpServer(asio::io_context& context, Clock& clock, Served served, ServerOptions options)
    : impl_(std::make_unique<Impl>(context, clock, std::move(served), std::move(options))) {}
HttpServer::~HttpServer() = default;

Result<> HttpServer::check_address(const std::string& host, bool has_token) {
  BELFRY_TRY(const tcp::endpoint endpoint, resolve(host, 0));
  if (endpoint.address().is_loopback() || has_token) return {};
  return fail(Errc::unauthorized,
              fmt::format("{} can be reached from other machines: --token-file is needed for that", host));
}

Result<> HttpServer::check_port(const std::string& host, int port) {
  asio::io_context context;
  tcp::acceptor acceptor(context);
  return open_port(acceptor, host, port);
}

Result<> HttpServer::listen() { return impl_->listen(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::start() { impl_->start(); }
Task<void> HttpServer::begin_stop(BootTime deadline) { return impl_->begin_stop(deadline); }
Task<void> HttpServer::close(BootTime deadline) { return impl_->close(deadline); }

}  // namespace belfry::server
