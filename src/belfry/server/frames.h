// Frames on their way to a client. One that goes to many is there once, and counts once.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "belfry/base/asio.h"
#include "belfry/net/websocket.h"
#include "belfry/server/crowd.h"

namespace belfry::server {

struct Frame {
  explicit Frame(std::string whole) : bytes(std::move(whole)) {}
  const std::string bytes;
  int queues = 0;  // in which it waits
};
using SharedFrame = std::shared_ptr<Frame>;

inline SharedFrame text_frame(std::string_view text) {
  return std::make_shared<Frame>(net::websocket::frame(net::websocket::Opcode::text, text));
}

// What one client has not taken yet.
class Frames {
 public:
  // `laggards` bounds what all queues hold.
  explicit Frames(Crowd& laggards) : laggards_(laggards) {}
  ~Frames() { drop(); }
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  bool empty() const { return queue_.empty(); }
  std::size_t waiting() const { return waiting_; }
  // Without the frame that is being written: however large it is, it has to end.
  std::size_t waiting_behind_first() const;
  void push(SharedFrame frame);
  // Writes what the socket takes right now, and returns how much that was.
  std::size_t write_now(asio::ip::tcp::socket& socket, boost::system::error_code& ec);
  void drop();

 private:
  void pop();

  Crowd& laggards_;
  std::list<SharedFrame> queue_;
  std::size_t waiting_ = 0;
  std::size_t written_ = 0;  // of the first
};

}  // namespace belfry::server
