#include "belfry/server/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include <boost/asio/as_tuple.hpp>
#include <fmt/format.h>

#include "belfry/base/log.h"

namespace belfry::server {
namespace {

using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// Clients keep connections for their next request; one that says nothing for this long is not coming back.
constexpr Nanos kIdleMax = std::chrono::seconds{75};
// A head is one packet or two.
constexpr Nanos kHeadMax = std::chrono::seconds{10};
// A mebibyte over a slow line; for batches, the longest time between two pieces.
constexpr Nanos kBodyMax = std::chrono::seconds{30};
// A client that does not read its answer.
constexpr Nanos kWriteMax = std::chrono::seconds{30};
// After a refusal the rest of the body is read and dropped for this long, so that the client gets to see the answer.
constexpr Nanos kLingerMax = std::chrono::seconds{2};
constexpr std::size_t kLingerBytesMax = 64u << 20;

constexpr std::size_t kReadBytes = 4u << 10;
// The head of a usual request. What is kept ready for each of ten thousand strangers is that much.
constexpr std::size_t kStrangerReadBytes = 1u << 10;
constexpr std::size_t kBodyReadBytes = 64u << 10;
// What a waiting client may send ahead while we listen for its end.
constexpr std::size_t kAheadBytesMax = 64u << 10;
// A batch is read for as long as it takes. But it is waited for no longer than kBodyMax and this for each byte that came:
// sixteen that drip would leave no place for others.
constexpr Nanos kBatchPatienceAByte = Nanos{std::chrono::seconds{1}} / (4 << 10);
// Answers to a batch whose client sends on without reading; then it has to read.
constexpr std::size_t kBatchAnswerBytesMax = 8u << 20;
// Around a chunk: its length in front, and two ends of lines.
constexpr std::size_t kChunkFrameBytes = 20;
// Of a stream whose client has nothing more to send.
constexpr std::size_t kStreamBytesMax = 256u << 10;

bool may_have_body(Method method) { return method == Method::post || method == Method::patch || method == Method::put; }

bool is_json(std::string_view content_type, bool batch) {
  std::string type;
  for (const char c : content_type.substr(0, content_type.find(';')))
    if (c != ' ' && c != '\t') type += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (type.empty() || type == "application/json") return true;
  return batch && (type == "application/x-ndjson" || type == "application/ndjson" || type == "application/jsonl");
}

// A token of a header, whatever its case.
bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

}  // namespace

char* InputBuffer::prepare(std::size_t size) {
  if (begin_ > 0) {
    std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (capacity_ - end_ < size) {
    const std::size_t larger = std::max(end_ + size, capacity_ * 2);
    auto bytes = std::make_unique_for_overwrite<char[]>(larger);
    if (end_ > 0) std::memcpy(bytes.get(), bytes_.get(), end_);
    bytes_ = std::move(bytes);
    capacity_ = larger;
  }
  return bytes_.get() + end_;
}

void InputBuffer::consume(std::size_t size) {
  begin_ += size;
  if (begin_ == end_) begin_ = end_ = 0;
}

void InputBuffer::shrink() {
  if (!empty() || capacity_ <= 2 * kReadBytes) return;
  bytes_.reset();
  capacity_ = 0;
}

void InputBuffer::free() {
  bytes_.reset();
  capacity_ = begin_ = end_ = 0;
}

Connection::Connection(Shared& shared, asio::ip::tcp::socket socket)
    : shared_(shared), socket_(std::move(socket)), stranger_([this] { let_go(); }), laggard_([this] {
        abort();
        output_.fail();
      }) {
  shared_.strangers.enter(stranger_);
}

Connection::~Connection() {
  if (let_go_) --shared_.leaving;
}

Task<void> Connection::run() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  bool more = true;
  while (more && !shared_.closing) more = co_await serve_one();
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

// One request and its answer; false when the connection ends.
Task<bool> Connection::serve_one() {
  parser_ = std::make_unique<RequestParser>();
  stream_begun_ = false;
  patience_ = kBodyMax;
  stream_type_ = "application/x-ndjson";
  const bool head = co_await read_head();
  if (!head) co_return false;
  method_ = parser_->request().method;

  Response response;
  const auto route = admit(response);
  if (!route) {
    const bool keep = co_await finish(std::move(response));
    co_return keep;
  }
  if ((*route)->socket) {
    const bool keep = co_await become_socket(**route);
    co_return keep;
  }
  if (parser_->request().expects_continue && !parser_->done() && input_.empty()) {
    output_.bytes += "HTTP/1.1 100 Continue\r\n\r\n";
    const bool sent = co_await flush();
    if (!sent) co_return false;
  }
  parser_->set_body_limit((*route)->body_bytes_max);
  if (!(*route)->stream) {
    const bool body = co_await read_body((*route)->body_bytes_max);
    if (!body) co_return false;
  }
  deadline_ = BootTime::max();
  response = co_await handle(**route);
  if (stream_begun_) {
    const bool keep = co_await finish_stream();
    co_return keep;
  }
  const bool keep = co_await finish(std::move(response));
  input_.shrink();
  co_return keep;
}

Task<bool> Connection::read_head() {
  idle_ = input_.empty();
  note_held();
  wait_at_most(idle_ ? kIdleMax : kHeadMax);
  while (true) {
    // An empty line before a request is a habit of old clients.
    while (!parser_->started() && input_.data().starts_with("\r\n")) input_.consume(2);
    auto taken = parser_->feed(input_.data());
    if (!taken) {
      const bool keep = co_await refuse(std::move(taken).error());
      co_return keep;
    }
    input_.consume(*taken);
    if (parser_->head_done()) {
      idle_ = false;
      co_return true;
    }
    if (shared_.closing && input_.empty() && !parser_->started()) co_return false;
    const Input input = co_await read_input(stranger_.is_in() ? kStrangerReadBytes : kReadBytes);
    if (input == Input::ended) co_return false;
    if (input == Input::timed_out) {
      if (idle_) co_return false;
      co_await refuse({{Errc::timed_out, "the head of the request did not come in time"}, 408});
      co_return false;
    }
    if (std::exchange(idle_, false)) wait_at_most(kHeadMax);
  }
}

// Everything that can be said about a request before its body is read.
Result<const Router::Route*> Connection::admit(Response& refusal) {
  Request& request = parser_->request();
  const auto refuse_with = [&](const Error& error, int status) {
    refusal = error_response(error, status);
    return std::unexpected(error);
  };
  std::string allow;
  const auto route = shared_.router.find(request, allow);
  // What the router says is for those only who may ask.
  const bool open = route && !(*route)->needs_token;
  const auto allowed = open ? shared_.guard.check_place(request) : shared_.guard.check(request);
  note_who_asks(allowed && (!open || shared_.guard.has_token(request)));
  if (!allowed) return refuse_with(allowed.error(), status_of(allowed.error().code));
  if (!route) {
    refusal = error_response(route.error());
    if (!allow.empty()) refusal.headers.push_back({"Allow", std::move(allow)});
    return route;
  }
  if (may_have_body(request.method) && !is_json(request.content_type, (*route)->stream != nullptr))
    return refuse_with({Errc::unsupported,
                        fmt::format("Content-Type {} is not read here; send {}", request.content_type.substr(0, 100),
                                    (*route)->stream ? "application/x-ndjson" : "application/json")},
                       415);
  const std::size_t most = (*route)->body_bytes_max;
  if (parser_->announced_bytes().value_or(0) > most)
    return refuse_with({Errc::too_large, fmt::format("the body has {} bytes; at most {} are taken here",
                                                     *parser_->announced_bytes(), most)},
                       413);
  return route;
}

// Each request shows anew who asks: behind one connection there may be a proxy, and behind that everybody.
void Connection::note_who_asks(bool known) {
  if (known) {
    stranger_.leave();
  } else {
    shared_.strangers.enter(stranger_);
    note_held();
  }
}

// Its share of what strangers may hold together, or of what may wait for streams that nobody reads.
void Connection::note_held() {
  if (stream_begun_ && output_.waiting() > 0) {
    shared_.laggards.enter(laggard_);
    laggard_.hold(output_.bytes.capacity());
  }
  if (!stranger_.is_in()) return;
  const std::size_t input = std::max(input_.capacity(), kStrangerReadBytes) - kStrangerReadBytes;
  stranger_.hold(input + (parser_ ? parser_->held_bytes() : 0) + output_.bytes.capacity());
}

// There is no room for it any more. Whoever has asked for something and heard nothing yet is told, if that can be done
// without waiting.
void Connection::let_go() {
  if (std::exchange(let_go_, true)) return;
  ++shared_.leaving;
  const std::string why = "too many come at once who have not shown who they are";
  if (link_) {
    link_->close(net::websocket::kTryAgainLater, why);
  } else if (!idle_ && output_.bytes.empty() && !stream_begun_) {
    const Response response = error_response({Errc::overloaded, why});
    append_head(response, false, response.body.size());
    output_.bytes += "\r\n" + response.body;
    write_now();
  }
  abort();
}

Task<bool> Connection::read_body(std::size_t body_bytes_max) {
  wait_at_most(kBodyMax);
  const std::size_t announced = parser_->announced_bytes().value_or(body_bytes_max);
  const std::size_t piece = announced > kReadBytes && !stranger_.is_in() ? kBodyReadBytes : kReadBytes;
  while (!parser_->done()) {
    auto taken = parser_->feed(input_.data());
    if (!taken) {
      const bool keep = co_await refuse(std::move(taken).error());
      co_return keep;
    }
    input_.consume(*taken);
    if (parser_->done()) break;
    const Input input = co_await read_input(piece);
    if (input == Input::ended) co_return false;
    if (input == Input::timed_out) {
      co_await refuse({{Errc::timed_out, "the body of the request did not come in time"}, 408});
      co_return false;
    }
  }
  co_return true;
}

Task<Response> Connection::handle(const Router::Route& route) {
  Response response;
  try {
    response = co_await answer(route);
  } catch (const std::exception& e) {
    log::error("server.route_failed", "a route ended with an exception", {{"what", e.what()}});
    response = error_response({Errc::unavailable, "something went wrong inside the server; its log says what"}, 500);
  }
  co_await end_watch();
  co_return response;
}

Task<Response> Connection::answer(const Router::Route& route) {
  Request request = std::move(parser_->request());
  request.watch = this;
  if (route.proves_itself) request.proved = [this] { stranger_.leave(); };
  if (route.stream) {
    parser_->request().body.clear();
    return route.stream(std::move(request), *this);
  }
  return route.handler(std::move(request));
}

Task<Connection::Input> Connection::read_input(std::size_t size) {
  char* const room = input_.prepare(size);
  const auto read = co_await socket_.async_read_some(asio::buffer(room, input_.room()), kAwait);
  const auto& [ec, count] = read;
  if (std::exchange(timed_out_, false)) co_return Input::timed_out;
  if (ec || count == 0) co_return Input::ended;
  input_.commit(count);
  stranger_.heard(count);
  note_held();
  co_return let_go_ ? Input::ended : Input::some;
}

// --- answers ---

void Connection::append_head(const Response& response, bool keep, std::optional<std::size_t> length) {
  const auto out = std::back_inserter(output_.bytes);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status));
  if (response.status != 204) {  // which has no content to describe
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
    if (length) fmt::format_to(out, "Content-Length: {}\r\n", *length);
  }
  output_.bytes += kCrossOriginHeaders;
  output_.bytes += "X-Content-Type-Options: nosniff\r\nCache-Control: ";
  output_.bytes += response.cache_control;
  output_.bytes += "\r\nDate: ";
  output_.bytes += shared_.date;
  output_.bytes += "\r\n";
  for (const Header& header : response.headers) fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
  if (!keep) {
    output_.bytes += "Connection: close\r\n";
  } else if (parser_->http_1_0()) {
    output_.bytes += "Connection: keep-alive\r\n";
  }
}

// Writes an answer; false when the connection ends with it.
Task<bool> Connection::finish(Response response) {
  const bool keep = parser_->done() && parser_->keep_alive() && !shared_.closing;
  if (response.unsent && client_gone()) {
    response.unsent(false);
    co_return false;
  }
  append_head(response, keep, response.body.size());
  output_.bytes += "\r\n";
  if (method_ != Method::head) output_.bytes += response.body;
  std::string().swap(response.body);  // a client that does not read holds one of them, not two
  const bool sent = co_await flush();
  if (!sent && response.unsent) response.unsent(output_.written > 0);
  if (!sent) co_return false;
  if (!parser_->done()) co_await linger();
  co_return keep;
}

Task<bool> Connection::refuse(ParseProblem problem) {
  Response response = error_response(problem.error, problem.status);
  append_head(response, false, response.body.size());
  output_.bytes += "\r\n";
  output_.bytes += response.body;
  const bool sent = co_await flush();
  if (sent) co_await linger();
  co_return false;
}

// Closing with unread bytes would reset the connection, and the client might never see the answer.
Task<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  wait_at_most(kLingerMax);
  std::size_t dropped = 0;
  input_.free();
  while (dropped < kLingerBytesMax) {
    const auto read = co_await socket_.async_read_some(asio::buffer(shared_.thrown_away), kAwait);
    const auto& [ec, count] = read;
    if (std::exchange(timed_out_, false) || ec || count == 0) co_return;
    dropped += count;
    stranger_.heard(count);
  }
}

Task<bool> Connection::flush() {
  std::size_t left = output_.waiting();
  while (!write_now() && !output_.failed) {
    laggard_.heard(left - output_.waiting());
    left = output_.waiting();
    wait_at_most(kWriteMax);
    note_held();
    if (output_.failed) break;
    const auto ready = co_await socket_.async_wait(asio::ip::tcp::socket::wait_write, kAwait);
    const auto& [ec] = ready;
    if (ec || timed_out_) output_.failed = true;
  }
  laggard_.leave();
  co_return !output_.failed;
}

bool Connection::client_gone() {
  if (gone_ || output_.failed) return true;
  char byte = 0;
  return ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// --- WebSockets ---

// Talks until one of the two ends it; then the connection ends, too, unless it never became one.
Task<bool> Connection::become_socket(const Router::Route& route) {
  Request request = std::move(parser_->request());
  const bool wanted = is_word(request.upgrade, "websocket") && request.websocket_version == "13" &&
                      net::websocket::is_client_key(request.websocket_key);
  if (!wanted) {
    Response response = error_response(
        {Errc::unsupported, "this is a WebSocket: Upgrade: websocket, Sec-WebSocket-Version: 13 and a key are needed"},
        426);
    response.headers.push_back({"Upgrade", "websocket"});
    response.headers.push_back({"Sec-WebSocket-Version", "13"});
    const bool keep = co_await finish(std::move(response));
    co_return keep;
  }
  fmt::format_to(std::back_inserter(output_.bytes),
                 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Accept: {}\r\n{}\r\n",
                 net::websocket::accept_key(request.websocket_key), kCrossOriginHeaders);
  const bool agreed = co_await flush();
  if (!agreed) co_return false;
  deadline_ = BootTime::max();
  link_ = std::make_unique<SocketLink>(socket_, std::string(input_.data()), shared_.tasks, stranger_, shared_.laggards,
                                       shared_.now);
  input_.free();
  parser_.reset();
  try {
    co_await route.socket(std::move(request), *link_);
  } catch (const std::exception& e) {
    log::error("server.socket_failed", "a WebSocket ended with an exception", {{"what", e.what()}});
  }
  co_await link_->finish();
  co_return false;
}

// --- batches ---

Task<Result<std::string>> Connection::read_some() {
  std::string& body = parser_->request().body;
  while (body.empty() && !parser_->done()) {
    auto taken = parser_->feed(input_.data());
    if (!taken) {
      read_failed_ = true;
      co_return std::unexpected(std::move(taken).error().error);
    }
    input_.consume(*taken);
    if (!body.empty() || parser_->done()) break;
    wait_at_most(patience_);
    const BootTime began = shared_.now;
    const std::size_t before = input_.data().size();
    const Input input = co_await read_input(kBodyReadBytes);
    const std::size_t came = input_.data().size() - before;
    patience_ -= shared_.now - began;
    patience_ = std::min<Nanos>(kBodyMax, patience_ + static_cast<std::int64_t>(came) * kBatchPatienceAByte);
    if (input == Input::some) continue;
    read_failed_ = true;
    if (input == Input::timed_out)
      co_return fail(Errc::timed_out, fmt::format("the body did not come in time: {} bytes a second are the least",
                                                  std::chrono::seconds{1} / kBatchPatienceAByte));
    co_return fail(Errc::cancelled, "the connection ended in the middle of the body");
  }
  co_return std::exchange(body, {});
}

Task<Result<>> Connection::write(std::string piece) {
  if (!std::exchange(stream_begun_, true)) {
    Response head;
    head.content_type = stream_type_;
    const bool keep = parser_->keep_alive() && !parser_->http_1_0();
    append_head(head, keep, std::nullopt);
    output_.bytes += parser_->http_1_0() ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n";
  }
  if (!piece.empty()) {
    if (output_.written > 0 || piece.size() > kReadBytes) output_.make_room(piece.size() + kChunkFrameBytes);
    if (!parser_->http_1_0()) fmt::format_to(std::back_inserter(output_.bytes), "{:x}\r\n", piece.size());
    output_.bytes += piece;
    if (!parser_->http_1_0()) output_.bytes += "\r\n";
    std::string().swap(piece);  // what waits is there once
  }
  // A client that sends all before it reads must not be waited for: both sides would wait.
  const std::size_t most = parser_->done() ? kStreamBytesMax : kBatchAnswerBytesMax;
  if (write_now() || (!output_.failed && output_.waiting() < most)) co_return Result<>{};
  co_return co_await drain();
}

Task<Result<>> Connection::drain() {
  const bool sent = co_await flush();
  if (!sent) co_return fail(Errc::cancelled, "the client is gone");
  deadline_ = BootTime::max();  // who has read all of it may wait for more as long as it takes
  co_return Result<>{};
}

Task<bool> Connection::finish_stream() {
  const bool keep =
      parser_->done() && !read_failed_ && parser_->keep_alive() && !parser_->http_1_0() && !shared_.closing;
  if (!parser_->http_1_0()) output_.bytes += "0\r\n\r\n";
  const bool sent = co_await flush();
  if (sent && !parser_->done()) co_await linger();
  input_.shrink();
  co_return sent&& keep;
}

// --- watching a client that waits ---

void Connection::begin(std::shared_ptr<bus::Departure> departure) {
  departure_ = std::move(departure);
  watching_ = true;
  watch_ending_ = false;
  shared_.tasks.spawn("client watch", watch());
}

Task<void> Connection::watch() {
  while (!watch_ending_ && input_.data().size() < kAheadBytesMax) {
    const Input input = co_await read_input(kReadBytes);
    if (input == Input::some) continue;
    if (!watch_ending_) {
      gone_ = true;
      departure_->leave();
    }
    break;
  }
  watching_ = false;
  if (watch_ended_) std::exchange(watch_ended_, nullptr)(0);
}

Task<void> Connection::end_watch() {
  departure_.reset();
  if (!watching_) co_return;
  watch_ending_ = true;
  error_code ignored;
  socket_.cancel(ignored);
  co_await suspend<int>([this](Resume<int> resume) { watch_ended_ = std::move(resume); });
}

// --- deadlines ---

void Connection::check_deadline() {
  if (link_) return link_->tick(shared_.now);
  if (shared_.now < deadline_) return;
  deadline_ = BootTime::max();
  timed_out_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::end_if_idle() {
  error_code ignored;
  if (link_) return link_->close(net::websocket::kRestarting, "the server stops");
  if (idle_) socket_.cancel(ignored);
}

void Connection::abort() {
  if (link_) return link_->abort();
  error_code ignored;
  output_.failed = true;
  socket_.close(ignored);
}

}  // namespace belfry::server
