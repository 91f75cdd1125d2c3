#include "belfry/server/socket_link.h"

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
// What may wait for a client that does not read: some pages of history. Then it is cut off.
constexpr std::size_t kQueueBytesMax = 16u << 20;
// A proxy that closes silent connections does so after a minute at the earliest.
constexpr Nanos kPingEvery = std::chrono::seconds{25};
// For the other side to answer a close.
constexpr Nanos kCloseMax = std::chrono::seconds{2};

}  // namespace

SocketLink::SocketLink(asio::ip::tcp::socket& socket, std::string already_read, TaskGroup& tasks,
                       Crowd::Member& stranger, BootTime now)
    : socket_(socket),
      input_(std::move(already_read)),
      reader_(websocket::Side::server, kHelloBytesMax),
      tasks_(tasks),
      stranger_(stranger),
      ping_at_(now + kPingEvery) {}

void SocketLink::note_held() { stranger_.hold(input_.capacity() + reader_.held_bytes() + output_.bytes.capacity()); }

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
    case websocket::Opcode::ping: send(websocket::frame(websocket::Opcode::pong, message.payload)); break;
    case websocket::Opcode::close:
      close(message.close_code == 0 ? 1000 : message.close_code, "");
      ended_ = true;
      break;
    default: break;
  }
  return std::nullopt;
}

void SocketLink::send(std::string_view frame) {
  if (ended_ || closing_ || output_.failed) return;
  if (output_.waiting() + frame.size() > kQueueBytesMax) {
    log::warn("socket.cut_off", "a client does not read what it is sent", {{"bytes", output_.waiting()}});
    abort();
    return;
  }
  output_.bytes += frame;
  if (pumping_ || output_.write_now(socket_)) return;
  if (output_.failed) return left();
  pumping_ = true;
  note_held();
  tasks_.spawn("socket", pump());
}

Task<void> SocketLink::pump() {
  while (!output_.write_now(socket_) && !output_.failed) {
    const auto ready = co_await socket_.async_wait(asio::ip::tcp::socket::wait_write, kAwait);
    const auto& [ec] = ready;
    if (ec) output_.failed = true;
  }
  pumping_ = false;
  left();
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
  send(websocket::close_frame(code, reason));
  closing_ = true;
}

void SocketLink::tick(BootTime now) {
  if (closing_ && end_by_ == BootTime::max()) end_by_ = now + kCloseMax;
  if (now >= end_by_) return abort();
  if (now < ping_at_) return;
  ping_at_ = now + kPingEvery;
  if (std::exchange(ping_unanswered_, true)) return abort();
  send(websocket::frame(websocket::Opcode::ping, ""));
}

void SocketLink::abort() {
  error_code ignored;
  ended_ = true;
  output_.failed = true;
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
