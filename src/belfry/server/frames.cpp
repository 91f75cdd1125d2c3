#include "belfry/server/frames.h"

#include <array>

#include <boost/asio/error.hpp>

namespace belfry::server {
namespace {

// Handed over in one call.
constexpr std::size_t kFramesAtOnce = 16;

}  // namespace

std::size_t Frames::waiting_behind_first() const {
  return queue_.empty() ? 0 : waiting_ - (queue_.front()->bytes.size() - written_);
}

void Frames::push(SharedFrame frame) {
  const std::size_t size = frame->bytes.size();
  waiting_ += size;
  const bool first = frame->queues++ == 0;
  queue_.push_back(std::move(frame));
  if (first) laggards_.hold_in_common(size);  // may end this client
}

void Frames::pop() {
  Frame& frame = *queue_.front();
  if (--frame.queues == 0) laggards_.drop_in_common(frame.bytes.size());
  queue_.pop_front();
  written_ = 0;
}

void Frames::drop() {
  while (!queue_.empty()) pop();
  waiting_ = 0;
}

std::size_t Frames::write_now(asio::ip::tcp::socket& socket, boost::system::error_code& ec) {
  std::size_t in_all = 0;
  ec = {};
  while (!queue_.empty()) {
    std::array<asio::const_buffer, kFramesAtOnce> pieces;
    std::size_t count = 0;
    for (const SharedFrame& frame : queue_) {
      pieces[count++] = asio::buffer(frame->bytes);
      if (count == pieces.size()) break;
    }
    pieces[0] += written_;
    std::size_t written = socket.write_some(pieces, ec);
    if (ec) break;
    in_all += written;
    waiting_ -= written;
    while (!queue_.empty() && written >= queue_.front()->bytes.size() - written_) {
      written -= queue_.front()->bytes.size() - written_;
      pop();
    }
    written_ += written;
  }
  return in_all;
}

}  // namespace belfry::server
