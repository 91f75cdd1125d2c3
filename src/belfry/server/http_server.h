// HTTP/1.1 on the kernel's thread: an accept loop, a coroutine a connection, one watchdog for all deadlines.
//
// Life of a connection: it waits for a request, reads its head, is checked by the guard, reads the body, has a route
// answer, writes, and waits again; requests that were sent ahead are answered in order. Beast's composed operations are
// not used: the own loop has twice their throughput.
#pragma once

#include <memory>
#include <string>

#include "belfry/bus/message_bus.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/clock.h"
#include "belfry/server/guard.h"
#include "belfry/server/routes.h"
#include "belfry/store/store.h"

namespace belfry::server {

// A connection costs about 8 KiB while it is idle.
inline constexpr int kConnectionsMax = 10'000;

struct ServerOptions {
  std::string listen_host;
  int port = 0;
  std::vector<std::string> allow_hosts;
  std::string token;
  std::string timezone;          // the user's, for panels
  std::vector<PanelFile> panel;  // what is served at /
  int connections_max = kConnectionsMax;
};

// What the server serves; outlives it.
struct Served {
  bus::MessageBus& bus;
  store::Store& store;
  chat::Chats& chats;
  chat::PrivateMessages& scheduled;
  chat::Webhooks& webhooks;
  tool::Executor& tools;
  run::Runs& runs;
  const bus::TimeReader& times;
  AgentControl agents;
  std::function<std::string()> more_metrics;
};

class HttpServer {
 public:
  HttpServer(asio::io_context& context, Clock& clock, Served served, ServerOptions options);
  ~HttpServer();

  // Refuses an address that cannot be listened on, or that others than this machine can reach without a token.
  static Result<> check_address(const std::string& host, bool has_token);
  // Whether `listen` would get the port, for before there is a server.
  static Result<> check_port(const std::string& host, int port);
  // Opens the port; nobody is answered before start(). Refuses when it is taken.
  Result<> listen();
  int port() const;  // the real one, also when 0 was asked for
  void start();

  // A stop in two steps. First: say so; connections go on, for acks. Resumes when the sends on their way are answered.
  Task<void> begin_stop(BootTime deadline);
  // Then: take no more connections and end those there are, at the latest at the deadline.
  Task<void> close(BootTime deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::server
