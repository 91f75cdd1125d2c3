// The WebClient of the running server: sockets, TLS with the system's certificates or those of a file, and the resolver.
#pragma once

#include <memory>

#include "belfry/clock/clock.h"
#include "belfry/net/web_client.h"

namespace belfry::net {

class SocketClient final : public WebClient {
 public:
  SocketClient(asio::io_context& context, Clock& clock);
  ~SocketClient() override;  // after its calls have ended

  Task<WebAnswer> call(WebRequest request) override;
  Task<WebAnswer> stream(WebRequest request, Patience patience, AnswerSink& sink,
                         std::shared_ptr<Cancel> cancel) override;
  void abandon() override;
  // Await it after the calls have ended: what watched their time ends with them.
  Task<void> stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::net
