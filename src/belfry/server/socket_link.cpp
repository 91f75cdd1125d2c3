#include "belfry/server/socket_link.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include <boost/asio/as_tuple.hpp>

#include "belfry/base/limits.h"
#include "belfry/base/log.h"

namespace belfry::server {
namespace {

namespace websocket = net::websocket;
using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

// What is said in a chat fits twice over.
constexpr std::size_t kMessageBytesMax = 1u << 20;
// A hello with a token of 4,096 letters and the names of 500 chats.
constexpr std::size_t kHelloBytesMax = 32u << 10;
constexpr std::size_t kReadBytes = 16u << 10;
// What may wait for a client that does not read, beside the frame that is being written. Then it is cut off.
constexpr std::size_t kQueueBytesMax = 256u << 10;
// Of that, what may be lines and the like. They are on the disk: a client that does not read makes nobody read them.
constexpr std::size_t kLinesBytesMax = 192u << 10;
// And pongs, which only who reads can want.
constexpr std::size_t kPongsBytesMax = 16u << 10;
// What the kernel keeps beyond what is on the wire. More would only delay what is more urgent.
constexpr int kUnsentBytes = 128 << 10;
// A proxy that closes silent connections does so after a minute at the earliest.
constexpr Nanos kPingEvery = std::chrono::seconds{25};
// For the other side to answer a close.
constexpr Nanos kCloseMax = std::chrono::seconds{2};

}  // namespace

SocketLink::SocketLink(asio::ip::tcp::socket& socket, std::string already_read, TaskGroup& tasks,
                       Crowd::Member& stranger, Crowd& laggards, BootTime now)
    : socket_(socket),
      input_(std::move(already_read)),
      reader_(websocket::Side::server, kHelloBytesMax),
      laggards_(laggards),
      frames_(laggards),
      laggard_([this] { cut_off(); }),
      tasks_(tasks),
      stranger_(stranger),
      ping_at_(now + kPingEvery) {
  ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
}

void SocketLink::note_held() { stranger_.hold(input_.capacity() + reader_.held_bytes() + frames_.waiting()); }

void SocketLink::proved() {
  stranger_.leave();
  reader_.set_message_bytes_max(kMessageBytesMax);
}

Task<std::optional<std::string>> SocketLink::receive() {
  note_held();
  while (!ended_) {
    std::string_view left = input_;
    auto read = reader_.next(left);
    input_.erase(0, input_.size() - left.size());
    if (!read) {
      close(read.error().close_code, read.error().what);
      co_return std::nullopt;
    }
    if (*read) {
      auto text = take(std::move(**read));
      if (text) co_return text;
      continue;
    }
    // Of pings that come together only the last one is answered (RFC 6455, 5.5.3): thousands are no work for long.
    if (ping_ && frames_.waiting() < kPongsBytesMax) say(websocket::Opcode::pong, *ping_);
    ping_.reset();
    // Nothing is kept ready for a client that says nothing.
    if (input_.empty()) input_.shrink_to_fit();
    const auto waited = co_await socket_.async_wait(asio::ip::tcp::socket::wait_read, kAwait);
    const auto& [ec] = waited;
    if (ec) ended_ = true;
    if (!ended_) read_now();
  }
  co_return std::nullopt;
}

void SocketLink::read_now() {
  std::array<char, kReadBytes> piece;
  error_code ec;
  const std::size_t count = socket_.read_some(asio::buffer(piece), ec);
  if (ec == asio::error::would_block || ec == asio::error::try_again || ec == asio::error::interrupted) return;
  if (ec || count == 0) {
    ended_ = true;
    return;
  }
  ping_unanswered_ = false;
  input_.append(piece.data(), count);
  stranger_.heard(count);
  note_held();
}

// The text if it is one; what else comes is answered here.
std::optional<std::string> SocketLink::take(websocket::Message message) {
  switch (message.opcode) {
    case websocket::Opcode::text:
      if (closing_) return std::nullopt;
      return std::move(message.payload);
    case websocket::Opcode::ping: ping_ = std::move(message.payload); break;
    case websocket::Opcode::close:
      close(message.close_code == 0 ? 1000 : message.close_code, "");
      ended_ = true;
      break;
    default: break;
  }
  return std::nullopt;
}

// While much waits for all of them together, one frame at a time is enough for each.
bool SocketLink::has_room(std::size_t bytes) const {
  return frames_.empty() || (laggards_.is_roomy() && frames_.waiting() + bytes <= kLinesBytesMax);
}

void SocketLink::say(websocket::Opcode opcode, std::string_view payload) {
  send(std::make_shared<Frame>(websocket::frame(opcode, payload)));
}

void SocketLink::send(SharedFrame frame) {
  if (ended_ || closing_ || failed_) return;
  if (!frames_.empty() && frames_.waiting_behind_first() + frame->bytes.size() > kQueueBytesMax) return cut_off();
  frames_.push(std::move(frame));
  if (pumping_ || failed_) return;
  write_now();
  if (failed_) return left();
  if (frames_.empty()) return;
  note_held();  // may end it
  if (failed_) return;
  pumping_ = true;
  laggards_.enter(laggard_);
  tasks_.spawn("socket", pump());
}

void SocketLink::write_now() {
  error_code ec;
  const std::size_t written = frames_.write_now(socket_, ec);
  laggard_.heard(written);
  if (written > 0) ping_unanswered_ = false;  // somebody takes it
  if (!ec || ec == asio::error::would_block || ec == asio::error::try_again) return;
  failed_ = true;
  frames_.drop();
}

Task<void> SocketLink::pump() {
  while (!frames_.empty() && !failed_) {
    const auto ready = co_await socket_.async_wait(asio::ip::tcp::socket::wait_write, kAwait);
    const auto& [ec] = ready;
    if (ec) failed_ = true;
    if (!failed_) write_now();
  }
  pumping_ = false;
  laggard_.leave();
  left();
}

void SocketLink::cut_off() {
  log::warn("socket.cut_off", "a client does not read what it is sent", {{"bytes", frames_.waiting()}});
  abort();
}

void SocketLink::left() {
  for (Resume<int>& resume : std::exchange(waiting_, {})) resume(0);
}

Task<void> SocketLink::drained() {
  if (!pumping_) co_return;
  co_await suspend<int>([this](Resume<int> resume) { waiting_.push_back(std::move(resume)); });
}

void SocketLink::close(int code, std::string_view reason) {
  if (closing_) return;
  send(std::make_shared<Frame>(websocket::close_frame(code, reason)));
  closing_ = true;
}

void SocketLink::tick(BootTime now) {
  if (closing_ && end_by_ == BootTime::max()) end_by_ = now + kCloseMax;
  if (now >= end_by_) return abort();
  if (now < ping_at_) return;
  ping_at_ = now + kPingEvery;
  if (std::exchange(ping_unanswered_, true)) return abort();
  say(websocket::Opcode::ping, "");
}

void SocketLink::abort() {
  error_code ignored;
  ended_ = true;
  failed_ = true;
  frames_.drop();
  socket_.close(ignored);
  if (!pumping_) left();
}

// What was said last leaves first, the close among it; a client that does not take it is not waited for (tick).
Task<void> SocketLink::finish() {
  closing_ = true;
  co_await drained();
  ended_ = true;
  left();
}

}  // namespace belfry::server
