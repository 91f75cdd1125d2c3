// Bytes on their way to a client.
#pragma once

#include <cstddef>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "belfry/base/asio.h"

namespace belfry::server {

struct Output {
  std::string bytes;
  std::size_t written = 0;
  bool failed = false;  // nothing more can be written

  std::size_t waiting() const { return bytes.size() - written; }

  // Nothing more will be written: what waits is let go at once.
  void fail() {
    failed = true;
    std::string().swap(bytes);
    written = 0;
  }

  // Room for so much more, and none for what was written already.
  void make_room(std::size_t more) {
    std::string left;
    left.reserve(waiting() + more);
    left.append(bytes, written);
    bytes = std::move(left);
    written = 0;
  }

  // Writes what the socket takes right now. False if some is left, or if the client is gone.
  bool write_now(asio::ip::tcp::socket& socket) {
    while (waiting() > 0 && !failed) {
      boost::system::error_code ec;
      written += socket.write_some(asio::buffer(bytes.data() + written, waiting()), ec);
      if (ec == asio::error::would_block || ec == asio::error::try_again) return false;
      if (ec) failed = true;
    }
    if (failed) return false;
    written = 0;
    bytes.clear();
    if (bytes.capacity() > kKeptBytes) bytes.shrink_to_fit();
    return true;
  }

 private:
  // A buffer that one large answer made large is not kept.
  static constexpr std::size_t kKeptBytes = 64u << 10;
};

}  // namespace belfry::server
