#include "belfry/net/socket_client.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <fmt/format.h>

#include "belfry/base/task_group.h"
#include "belfry/net/answer_parser.h"
#include "belfry/net/endpoints.h"

namespace belfry::net {
namespace {

namespace ssl = asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

constexpr std::size_t kReadBytes = 16u << 10;

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

// Takes an answer in one piece.
class Whole final : public AnswerSink {
 public:
  void began(int, std::optional<Millis>) override {}
  bool piece(std::string_view bytes) override {
    body += bytes;
    return true;
  }

  std::string body;
};

// Hands on what has come of an answer, and counts it.
class Handover {
 public:
  Handover(AnswerSink& sink, WebAnswer& answer, std::size_t bytes_max)
      : sink_(sink), answer_(answer), left_(bytes_max) {}

  // False when nothing more is wanted.
  bool take(AnswerParser& parser) {
    if (!parser.head()) return true;
    if (answer_.fate != Fate::answered) begin(*parser.head());
    std::string bytes = parser.take_body();
    const bool fits = bytes.size() <= left_;
    bytes.resize(std::min(bytes.size(), left_));
    left_ -= bytes.size();
    enough_ = !bytes.empty() && !pass(bytes);
    if (!fits) answer_.what = "the answer is too long";
    return !enough_ && fits;
  }
  bool enough() const { return enough_; }

 private:
  void begin(const AnswerParser::Head& head) {
    answer_.fate = Fate::answered;
    answer_.status = head.status;
    answer_.retry_after = head.retry_after;
    if (!is_good()) left_ = std::min(left_, kRefusalBytesMax);
    sink_.began(head.status, head.retry_after);
  }
  bool is_good() const { return answer_.status >= 200 && answer_.status < 300; }
  bool pass(const std::string& bytes) {
    if (is_good()) return sink_.piece(bytes);
    answer_.body += bytes;
    return true;
  }

  AnswerSink& sink_;
  WebAnswer& answer_;
  std::size_t left_;
  bool enough_ = false;
};

}  // namespace

class SocketClient::Impl {
 public:
  Impl(asio::io_context& context, Clock& clock) : context_(context), clock_(clock), tasks_(context) {}

  Task<WebAnswer> run(WebRequest request, Patience patience, AnswerSink& sink, std::shared_ptr<Cancel> cancel);
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
      if (!resolved) return;
      // Posted, not called: whoever ends it is in the middle of something.
      asio::post(socket.get_executor(), [resume = std::exchange(resolved, nullptr)]() mutable {
        resume(Found{asio::error::operation_aborted, {}});
      });
    }
    std::string problem(const error_code& ec) const { return over ? what : ec.message(); }
    // The next step has begun and has this much time, if all of it together has it.
    void allow(BootTime now, Millis duration, std::string_view missing) {
      const BootTime before = deadline;
      deadline = std::min(now + duration, last);
      step = duration;
      step_missing = missing;
      if (deadline < before) wake.ring();  // whoever watches would look too late
    }
    std::string late() const {
      if (deadline == last) return fmt::format("it took longer than {} ms", timeout.count());
      return fmt::format("{} within {} ms", step_missing, step.count());
    }

    tcp::socket socket;
    tcp::resolver resolver;
    Resume<Found> resolved;
    Wake wake;
    BootTime last;  // for all of it
    Millis timeout{0};
    BootTime deadline;  // for the step that it is at
    Millis step{0};
    std::string_view step_missing;  // what has not come when that has passed; a literal
    Patience patience;
    bool over = false;  // nothing more is done on its socket
    bool done = false;
    std::string what;  // why it is over
  };
  using Shared = std::shared_ptr<Call>;

  // On the list, watched and cancellable from its construction to its end.
  class UnderWay;

  Task<void> watch(Shared call);
  Task<Found> find(Shared call, HostPort server);
  Task<error_code> connect(Shared call, HostPort server);
  Task<WebAnswer> call_plain(Shared call, WebRequest request, AnswerSink& sink);
  Task<WebAnswer> call_tls(Shared call, WebRequest request, AnswerSink& sink);
  template <class Stream>
  Task<void> write(Stream& stream, std::string text);
  template <class Stream>
  Task<WebAnswer> exchange(Stream& stream, Shared call, WebRequest request, AnswerSink& sink);
  Result<ssl::context*> trust(const std::string& ca_file);

  asio::io_context& context_;
  Clock& clock_;
  std::map<std::string, std::unique_ptr<ssl::context>> trust_;  // by the file; read once
  std::unordered_set<Call*> calls_;
  TaskGroup tasks_;
};

SocketClient::SocketClient(asio::io_context& context, Clock& clock) : impl_(std::make_unique<Impl>(context, clock)) {}
SocketClient::~SocketClient() = default;
void SocketClient::abandon() { impl_->abandon(); }
Task<void> SocketClient::stop() { return impl_->stop(); }

Task<WebAnswer> SocketClient::call(WebRequest request) {
  Whole whole;
  const Patience patience{request.timeout, request.timeout, request.timeout};
  auto answer = co_await impl_->run(std::move(request), patience, whole, nullptr);
  if (!whole.body.empty()) answer.body = std::move(whole.body);
  co_return answer;
}

Task<WebAnswer> SocketClient::stream(WebRequest request, Patience patience, AnswerSink& sink,
                                     std::shared_ptr<Cancel> cancel) {
  return impl_->run(std::move(request), patience, sink, std::move(cancel));
}

class SocketClient::Impl::UnderWay {
 public:
  UnderWay(Impl& client, Shared call, std::shared_ptr<Cancel> cancel)
      : client_(client), call_(std::move(call)), cancel_(std::move(cancel)) {
    client_.calls_.insert(call_.get());
    client_.tasks_.spawn("deadlines of a request", client_.watch(call_));
    if (cancel_) cancel_->on_cancel([call = call_] { call->end("it was cancelled"); });
  }
  ~UnderWay() {
    if (cancel_) cancel_->on_cancel(nullptr);
    client_.calls_.erase(call_.get());
    call_->done = true;
    call_->end("the call has ended");
    call_->wake.ring();
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

 private:
  Impl& client_;
  Shared call_;
  std::shared_ptr<Cancel> cancel_;
};

Task<WebAnswer> SocketClient::Impl::run(WebRequest request, Patience patience, AnswerSink& sink,
                                        std::shared_ptr<Cancel> cancel) {
  const auto call = std::make_shared<Call>(context_);
  call->timeout = request.timeout;
  call->last = call->deadline = clock_.now().boot + request.timeout;
  call->patience = patience;
  call->allow(clock_.now().boot, patience.connect, "no connection");
  const UnderWay under_way(*this, call, std::move(cancel));
  const error_code ec = co_await connect(call, request.url.server);
  if (ec || call->over)
    co_return WebAnswer{.what = fmt::format("{} cannot be reached: {}", request.url.host(), call->problem(ec))};
  WebAnswer answer;
  if (request.url.tls) {
    answer = co_await call_tls(call, std::move(request), sink);
  } else {
    answer = co_await call_plain(call, std::move(request), sink);
  }
  co_return answer;
}

void SocketClient::Impl::abandon() {
  for (Call* const call : calls_) call->end("the server is stopping");
}

Task<void> SocketClient::Impl::watch(Shared call) {
  while (!call->done && clock_.now().boot < call->deadline) {
    const BootTime deadline = call->deadline;
    co_await clock_.sleep_until(deadline, call->wake);
  }
  if (!call->done) call->end(call->late());
}

// The resolver asks on a thread of its own and cannot be interrupted; whoever is over does not wait for it.
Task<Found> SocketClient::Impl::find(Shared call, HostPort server) {
  if (auto known = known_endpoints(server); !known.empty()) co_return Found{{}, std::move(known)};
  if (call->over) co_return Found{asio::error::operation_aborted, {}};
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
  if (found.ec) co_return found.ec;
  if (found.endpoints.empty()) co_return asio::error::host_not_found;
  error_code first;
  for (const tcp::endpoint& endpoint : found.endpoints) {
    if (call->over) co_return asio::error::operation_aborted;
    error_code ignored;
    call->socket.close(ignored);
    const auto connected = co_await call->socket.async_connect(endpoint, kAwait);
    const error_code failed = std::get<0>(connected);
    if (!failed) co_return failed;
    if (!first) first = failed;
  }
  co_return first;
}

Task<WebAnswer> SocketClient::Impl::call_plain(Shared call, WebRequest request, AnswerSink& sink) {
  error_code ignored;
  call->socket.set_option(tcp::no_delay(true), ignored);
  auto answer = co_await exchange(call->socket, call, std::move(request), sink);
  co_return answer;
}

Result<ssl::context*> SocketClient::Impl::trust(const std::string& ca_file) {
  auto& known = trust_[ca_file];
  if (known) return known.get();
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_verify_mode(ssl::verify_peer);
  error_code ec;
  if (ca_file.empty()) {
    context->set_default_verify_paths(ec);
  } else {
    context->load_verify_file(ca_file, ec);
  }
  if (ec) return fail(Errc::invalid_argument, fmt::format("no certificates in {}: {}", ca_file, ec.message()));
  known = std::move(context);
  return known.get();
}

Task<WebAnswer> SocketClient::Impl::call_tls(Shared call, WebRequest request, AnswerSink& sink) {
  const std::string host = request.url.server.host;
  const auto trusted = trust(request.ca_file);
  if (!trusted) co_return WebAnswer{.what = trusted.error().detail};
  ssl::stream<tcp::socket&> stream(call->socket, **trusted);
  error_code ec;
  stream.set_verify_callback(ssl::host_name_verification(host), ec);
  asio::ip::make_address(host, ec);
  const bool is_name = static_cast<bool>(ec);  // an address is not announced to the other side
  if (is_name) SSL_set_tlsext_host_name(stream.native_handle(), host.c_str());
  const auto shaken = co_await stream.async_handshake(ssl::stream_base::client, kAwait);
  const auto& [failed] = shaken;
  if (failed || call->over)
    co_return WebAnswer{.what = fmt::format("no TLS with {}: {}", request.url.host(), call->problem(failed))};
  auto answer = co_await exchange(stream, call, std::move(request), sink);
  co_return answer;
}

template <class Stream>
Task<void> SocketClient::Impl::write(Stream& stream, std::string text) {
  for (std::size_t written = 0; written < text.size();) {
    const auto wrote =
        co_await stream.async_write_some(asio::buffer(text.data() + written, text.size() - written), kAwait);
    const auto& [failed, count] = wrote;
    if (failed) co_return;  // it may have answered before it closed: read that
    written += count;
  }
}

// From the first byte on, whatever happens, the other side may have heard us.
template <class Stream>
Task<WebAnswer> SocketClient::Impl::exchange(Stream& stream, Shared call, WebRequest request, AnswerSink& sink) {
  WebAnswer answer{.fate = Fate::unanswered};
  call->allow(clock_.now().boot, call->patience.first_byte, "no answer");
  std::string text = request_text(request);
  co_await write(stream, std::move(text));
  AnswerParser parser;
  Handover handover(sink, answer, request.answer_bytes_max);
  std::string piece(kReadBytes, '\0');
  error_code ec;
  for (bool more = true; more && !call->over;) {
    const auto read = co_await stream.async_read_some(asio::buffer(piece), kAwait);
    const auto& [failed, count] = read;
    ec = failed;
    if (count > 0) call->allow(clock_.now().boot, call->patience.silence, "nothing more");
    parser.feed(std::string_view(piece.data(), count));
    if (failed == asio::error::eof) parser.end();
    more = handover.take(parser) && !failed && !parser.over();
  }
  answer.complete = parser.complete() && answer.what.empty();
  const std::string why = parser.problem().empty() || call->over ? call->problem(ec) : parser.problem();
  if (answer.fate != Fate::answered) {
    answer.what = fmt::format("{} did not answer: {}", request.url.host(), why);
  } else if (!answer.complete && !handover.enough() && answer.what.empty()) {
    answer.what = fmt::format("the answer of {} breaks off: {}", request.url.host(), why);
  }
  co_return answer;
}

}  // namespace belfry::net
