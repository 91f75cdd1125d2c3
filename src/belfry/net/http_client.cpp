#include "belfry/net/http_client.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "belfry/base/limits.h"
#include "belfry/net/endpoints.h"

namespace belfry::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr Millis kConnectMax{5'000};
// The largest answer is a receive of large messages, quoted once.
constexpr std::uint64_t kAnswerBytesMax = 64u << 20;

std::unexpected<Error> no_server(const Url& server, std::string_view why) {
  return fail(Errc::unavailable, fmt::format("no server answers at http://{} ({})", server.server.text(), why));
}

bool ready(int descriptor, short events, Millis wait) {
  pollfd poll{.fd = descriptor, .events = events, .revents = 0};
  int found = 0;
  do {
    found = ::poll(&poll, 1, static_cast<int>(wait.count()));
  } while (found < 0 && errno == EINTR);
  return found > 0;
}

class ClientConnection {
 public:
  explicit ClientConnection(const Url& server) : server_(server), socket_(context_) {}

  Result<> connect() {
    BELFRY_TRY(const std::vector<tcp::endpoint> endpoints, find());
    error_code first;
    for (const tcp::endpoint& endpoint : endpoints) {
      const error_code failed = connect_to(endpoint);
      if (!failed) return {};
      if (!first) first = failed;
    }
    return no_server(server_, first.message());
  }

  Result<> send(std::string_view bytes, Millis silence_max) {
    while (!bytes.empty()) {
      error_code ec;
      bytes.remove_prefix(socket_.write_some(asio::buffer(bytes), ec));
      if (ec == asio::error::would_block) {
        if (!ready(socket_.native_handle(), POLLOUT, silence_max))
          return fail(Errc::timed_out, "the server takes nothing");
      } else if (ec) {
        return {};  // it may have answered before it closed: read that
      }
    }
    return {};
  }

  Result<ClientResponse> receive(Millis silence_max) {
    http::response_parser<http::string_body> parser;
    parser.body_limit(kAnswerBytesMax);
    parser.eager(true);
    std::string pending;
    std::array<char, 16 << 10> piece;
    while (!parser.is_done()) {
      if (!ready(socket_.native_handle(), POLLIN, silence_max))
        return fail(Errc::timed_out, fmt::format("the server said nothing for {} seconds", silence_max.count() / 1000));
      error_code ec;
      const std::size_t count = socket_.read_some(asio::buffer(piece), ec);
      if (ec == asio::error::would_block) continue;
      if (ec) {
        error_code end;
        if (ec == asio::error::eof && parser.got_some()) parser.put_eof(end);
        if (parser.is_done()) break;
        return no_server(server_, "the connection ended before the answer did");
      }
      pending.append(piece.data(), count);
      while (!pending.empty() && !parser.is_done()) {
        const std::size_t taken = parser.put(asio::buffer(pending), ec);
        pending.erase(0, taken);
        if (ec == http::error::need_more) break;
        if (ec)
          return fail(Errc::unavailable,
                      fmt::format("what answers at {} speaks no HTTP: {}", server_.server.text(), ec.message()));
        if (taken == 0) break;
      }
    }
    return ClientResponse{static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
  }

 private:
  Result<std::vector<tcp::endpoint>> find() {
    auto endpoints = known_endpoints(server_.server);
    if (!endpoints.empty()) return endpoints;
    tcp::resolver resolver(context_);
    error_code ec;
    const auto found = resolver.resolve(server_.server.host, std::to_string(server_.server.port), ec);
    if (ec) return no_server(server_, ec.message());
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
    return endpoints;
  }

  error_code connect_to(const tcp::endpoint& endpoint) {
    error_code ec;
    error_code ignored;
    socket_.close(ignored);
    socket_.open(endpoint.protocol(), ec);
    if (ec) return ec;
    socket_.non_blocking(true, ec);
    socket_.set_option(tcp::no_delay(true), ignored);
    socket_.native_non_blocking(true, ec);
    if (::connect(socket_.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0) return {};
    if (errno != EINPROGRESS) return {errno, boost::system::system_category()};
    if (!ready(socket_.native_handle(), POLLOUT, kConnectMax)) return asio::error::timed_out;
    int failure = 0;
    socklen_t size = sizeof failure;
    ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &failure, &size);
    return {failure, boost::system::system_category()};
  }

  const Url& server_;
  asio::io_context context_;
  tcp::socket socket_;
};

}  // namespace

Result<ClientResponse> call(const Url& server, const ClientRequest& request) {
  ClientConnection connection(server);
  BELFRY_CHECK(connection.connect());
  std::string text =
      fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: belfry/" BELFRY_VERSION "\r\nConnection: close\r\n",
                  request.method, server.path, request.target, server.server.text());
  if (!request.token.empty()) text += fmt::format("Authorization: Bearer {}\r\n", request.token);
  if (!request.body.empty()) text += fmt::format("Content-Type: {}\r\n", request.content_type);
  if (!request.body.empty() || request.method == "POST" || request.method == "PATCH")
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  text += "\r\n";
  text += request.body;
  BELFRY_CHECK(connection.send(text, request.silence_max));
  return connection.receive(request.silence_max);
}

}  // namespace belfry::net
