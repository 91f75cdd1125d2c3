#include "belfry/net/socket_client.h"

#include <charconv>
#include <unordered_set>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "belfry/base/task_group.h"

namespace belfry::net {
namespace {

namespace http = boost::beast::http;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using Parser = http::response_parser<http::string_body>;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t kReadBytes = 16u << 10;
constexpr std::uint32_t kHeadBytesMax = 32u << 10;
// 100 Continue and 103 Early Hints come before the answer; more than a few of them are a mistake of the other side.
constexpr int kInterimAnswersMax = 10;

struct Found {
  error_code ec;
  std::vector<tcp::endpoint> endpoints;
};

std::string request_text(const WebRequest& request) {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: belfry/" BELFRY_VERSION "\r\nConnection: close\r\n",
                  request.method, request.url.target, request.url.host());
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty() || request.method != "GET")
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  return text + "\r\n" + request.body;
}

// Seconds; a date is as good as none, for nobody says whose clock it is on.
std::optional<Millis> retry_after(std::string_view text) {
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  const bool whole = !text.empty() && read.ec == std::errc{} && read.ptr == end;
  if (!whole || seconds < 0 || seconds > 86'400 * 365) return std::nullopt;
  return Millis{seconds * 1'000};
}

}  // namespace

class SocketClient::Impl {
 public:
  Impl(asio::io_context& context, Clock& clock) : context_(context), clock_(clock), tasks_(context) {}

  Task<WebAnswer> call(WebRequest request);
  void abandon();
  Task<void> stop() { return tasks_.join(); }

 private:
  // One request on its way. Shared with the resolver, which may still hold it when the call has been given up.
  struct Call {
    explicit Call(asio::io_context& context) : socket(context), resolver(context) {}

    void end(std::string why) {
      if (over) return;
      over = true;
      what = std::move(why);
      error_code ignored;
      socket.close(ignored);
      if (resolved) std::exchange(resolved, nullptr)(Found{asio::error::operation_aborted, {}});
    }
    std::string problem(const error_code& ec) const { return over ? what : ec.message(); }

    tcp::socket socket;
    tcp::resolver resolver;
    Resume<Found> resolved;
    Wake wake;
    bool over = false;  // nothing more is done on its socket
    bool done = false;
    std::string what;  // why it is over
  };
  using Shared = std::shared_ptr<Call>;

  Task<void> watch(Shared call, BootTime deadline, Millis timeout);
  Task<Found> find(Shared call, HostPort server);
  Task<error_code> connect(Shared call, HostPort server);
  Task<WebAnswer> call_plain(Shared call, WebRequest request);
  Task<WebAnswer> call_tls(Shared call, WebRequest request);
  template <class Stream>
  Task<WebAnswer> exchange(Stream& stream, Shared call, WebRequest request);
  ssl::context& trust();

  asio::io_context& context_;
  Clock& clock_;
  std::unique_ptr<ssl::context> trust_;
  std::unordered_set<Call*> calls_;
  TaskGroup tasks_;
};

SocketClient::SocketClient(asio::io_context& context, Clock& clock) : impl_(std::make_unique<Impl>(context, clock)) {}
SocketClient::~SocketClient() = default;
Task<WebAnswer> SocketClient::call(WebRequest request) { return impl_->call(std::move(request)); }
void SocketClient::abandon() { impl_->abandon(); }
Task<void> SocketClient::stop() { return impl_->stop(); }

Task<WebAnswer> SocketClient::Impl::call(WebRequest request) {
  const auto call = std::make_shared<Call>(context_);
  struct Listed {
    Impl& impl;
    Call& call;
    Listed(Impl& client, Call& one) : impl(client), call(one) { impl.calls_.insert(&call); }
    ~Listed() {
      impl.calls_.erase(&call);
      call.done = true;
      call.end("the call has ended");
      call.wake.ring();
    }
  } listed(*this, *call);
  tasks_.spawn("deadline of a request", watch(call, clock_.now().boot + request.timeout, request.timeout));
  const error_code ec = co_await connect(call, request.url.server);
  if (ec || call->over)
    co_return WebAnswer{.what = fmt::format("{} cannot be reached: {}", request.url.host(), call->problem(ec))};
  WebAnswer answer;
  if (request.url.tls) {
    answer = co_await call_tls(call, std::move(request));
  } else {
    answer = co_await call_plain(call, std::move(request));
  }
  co_return answer;
}

void SocketClient::Impl::abandon() {
  // Ending one may resume its coroutine, which takes itself off the list.
  const std::vector<Call*> calls(calls_.begin(), calls_.end());
  for (Call* const call : calls)
    if (calls_.contains(call)) call->end("the server is stopping");
}

Task<void> SocketClient::Impl::watch(Shared call, BootTime deadline, Millis timeout) {
  while (!call->done && clock_.now().boot < deadline) co_await clock_.sleep_until(deadline, call->wake);
  if (!call->done) call->end(fmt::format("it took longer than {} ms", timeout.count()));
}

// The resolver asks on a thread of its own and cannot be interrupted; whoever is over does not wait for it.
Task<Found> SocketClient::Impl::find(Shared call, HostPort server) {
  error_code ec;
  const auto port = static_cast<unsigned short>(server.port);
  const auto address = asio::ip::make_address(server.host, ec);
  if (!ec) co_return Found{{}, {tcp::endpoint(address, port)}};
  auto found = co_await suspend<Found>([call, server](Resume<Found> resume) {
    call->resolved = std::move(resume);
    call->resolver.async_resolve(server.host, std::to_string(server.port),
                                 [call](const error_code& failed, const tcp::resolver::results_type& results) {
                                   if (!call->resolved) return;
                                   Found all{failed, {}};
                                   for (const auto& entry : results) all.endpoints.push_back(entry.endpoint());
                                   std::exchange(call->resolved, nullptr)(std::move(all));
                                 });
  });
  co_return found;
}

Task<error_code> SocketClient::Impl::connect(Shared call, HostPort server) {
  const Found found = co_await find(call, std::move(server));
  error_code ec = found.ec;
  if (!ec && found.endpoints.empty()) ec = asio::error::host_not_found;
  for (const tcp::endpoint& endpoint : found.endpoints) {
    if (call->over) co_return asio::error::operation_aborted;
    error_code ignored;
    call->socket.close(ignored);
    const auto connected = co_await call->socket.async_connect(endpoint, kAwait);
    ec = std::get<0>(connected);
    if (!ec) break;
  }
  co_return ec;
}

Task<WebAnswer> SocketClient::Impl::call_plain(Shared call, WebRequest request) {
  error_code ignored;
  call->socket.set_option(tcp::no_delay(true), ignored);
  auto answer = co_await exchange(call->socket, call, std::move(request));
  co_return answer;
}

ssl::context& SocketClient::Impl::trust() {
  if (!trust_) {
    trust_ = std::make_unique<ssl::context>(ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(trust_->native_handle(), TLS1_2_VERSION);
    trust_->set_default_verify_paths();
    trust_->set_verify_mode(ssl::verify_peer);
  }
  return *trust_;
}

Task<WebAnswer> SocketClient::Impl::call_tls(Shared call, WebRequest request) {
  const std::string host = request.url.server.host;
  ssl::stream<tcp::socket&> stream(call->socket, trust());
  error_code ec;
  stream.set_verify_callback(ssl::host_name_verification(host), ec);
  asio::ip::make_address(host, ec);
  const bool is_name = static_cast<bool>(ec);  // an address is not announced to the other side
  if (is_name) SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
  const auto shaken = co_await stream.async_handshake(ssl::stream_base::client, kAwait);
  const auto& [failed] = shaken;
  if (failed) co_return WebAnswer{.what = fmt::format("no TLS with {}: {}", request.url.host(), call->problem(failed))};
  auto answer = co_await exchange(stream, call, std::move(request));
  co_return answer;
}

namespace {

// Feeds what has come. False when nothing more is wanted: the answer is complete, too long, or none.
bool feed(Parser& parser, std::string& pending, error_code& ec) {
  while (!pending.empty() && !parser.is_done()) {
    const std::size_t taken = parser.put(asio::buffer(pending), ec);
    pending.erase(0, taken);
    if (ec == http::error::need_more) {
      ec = {};
      return true;
    }
    if (ec) return false;
    if (taken == 0) return true;
  }
  return !parser.is_done();
}

std::unique_ptr<Parser> make_parser(const WebRequest& request) {
  auto parser = std::make_unique<Parser>();
  parser->header_limit(kHeadBytesMax);
  parser->body_limit(request.answer_bytes_max);
  parser->eager(true);
  return parser;
}

}  // namespace

// From the first byte on, whatever happens, the other side may have heard us.
template <class Stream>
Task<WebAnswer> SocketClient::Impl::exchange(Stream& stream, Shared call, WebRequest request) {
  WebAnswer answer{.fate = Fate::unanswered};
  const std::string text = request_text(request);
  for (std::size_t written = 0; written < text.size();) {
    const auto wrote =
        co_await stream.async_write_some(asio::buffer(text.data() + written, text.size() - written), kAwait);
    const auto& [failed, count] = wrote;
    if (failed) break;  // it may have answered before it closed: read that
    written += count;
  }
  auto parser = make_parser(request);
  std::string pending;
  std::string piece(kReadBytes, '\0');
  error_code ec;
  int interim = 0;
  for (bool more = true; more && !call->over;) {
    const auto read = co_await stream.async_read_some(asio::buffer(piece), kAwait);
    const auto& [failed, count] = read;
    pending.append(piece.data(), count);
    more = feed(*parser, pending, ec) && !failed;
    while (parser->is_done() && parser->get().result_int() < 200 && ++interim <= kInterimAnswersMax) {
      parser = make_parser(request);
      more = feed(*parser, pending, ec) && !failed;
    }
    if (failed) ec = failed;
  }
  const unsigned status = parser->is_header_done() ? parser->get().result_int() : 0;
  if (status < 200) {
    answer.what = fmt::format("{} did not answer: {}", request.url.host(), call->problem(ec));
    co_return answer;
  }
  answer.fate = Fate::answered;
  answer.status = static_cast<int>(status);
  const auto wait = parser->get()[http::field::retry_after];
  answer.retry_after = retry_after({wait.data(), wait.size()});
  answer.body = std::move(parser->get().body());
  co_return answer;
}

}  // namespace belfry::net
