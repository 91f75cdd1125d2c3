// Which request goes where. A pattern is a path with at most one {}: "/v1/messages/{}:deliver".
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/server/http_message.h"

namespace belfry::server {

using Handler = std::function<Task<Response>(Request)>;
// Answers through the exchange as it goes; what it returns is sent only if nothing was written before.
using StreamHandler = std::function<Task<Response>(Request, Exchange&)>;
// Talks until one of the two ends it.
using SocketHandler = std::function<Task<void>(Request, Socket&)>;

class Router {
 public:
  // A pattern may have one hole, {}, and a question mark at its end: then the route reads what stands behind that.
  void add(Method method, std::string_view pattern, Handler handler);
  // The request proves by its own signature who sent it, and its handler checks that: no token is asked for.
  void add_signed(Method method, std::string_view pattern, Handler handler, std::size_t body_bytes_max);
  // Says nothing that is anybody's secret: no token is asked for.
  void add_public(Method method, std::string_view pattern, Handler handler);
  // A WebSocket. Browsers cannot send a token with its request: the handler asks for it before anything else.
  void add_socket(std::string_view pattern, SocketHandler handler);
  void add_stream(Method method, std::string_view pattern, StreamHandler handler, std::size_t body_bytes_max);

  struct Route {
    Method method;
    std::string_view before;  // the pattern around its {}
    std::string_view after;
    bool has_parameter = false;
    bool reads_query = false;
    Handler handler;
    StreamHandler stream;
    SocketHandler socket;
    std::size_t body_bytes_max = kBodyBytesMax;
    bool needs_token = true;
    bool proves_itself = false;  // its handler finds out who asks, and says so (Request::proved, Socket::proved)
  };
  // The route of this request, with request.parameter set; not_found, or method_not_allowed with the others in `allow`.
  Result<const Route*> find(Request& request, std::string& allow) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace belfry::server
