// WebSocket (RFC 6455) as bytes: the handshake's answer, frames out, messages in. No sockets here, so that it can be
// fuzzed and tested byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace belfry::net::websocket {

// What Sec-WebSocket-Accept says to this Sec-WebSocket-Key.
std::string accept_key(std::string_view client_key);
// Sixteen bytes in base64, as RFC 6455 wants them.
bool is_client_key(std::string_view text);

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

// Close codes that are used here.
inline constexpr int kGoingAway = 1001;
inline constexpr int kProtocolError = 1002;
inline constexpr int kUnsupported = 1003;
inline constexpr int kNotUtf8 = 1007;
inline constexpr int kTooLarge = 1009;
inline constexpr int kRestarting = 1012;
inline constexpr int kTryAgainLater = 1013;

// One whole frame. A server's are unmasked; a client gives the mask.
std::string frame(Opcode opcode, std::string_view payload, std::optional<std::uint32_t> mask = std::nullopt);
// The reason is cut to what a control frame can hold.
std::string close_frame(int code, std::string_view reason, std::optional<std::uint32_t> mask = std::nullopt);

struct Message {
  Opcode opcode = Opcode::text;  // text, close, ping or pong
  std::string payload;           // of a close: the reason
  int close_code = 0;            // of a close; 0: none was given
};

struct Violation {
  int close_code;
  std::string what;
};

enum class Side { server, client };

// Bytes to messages. A server takes masked frames only, a client unmasked ones; texts are put together from their
// fragments and are UTF-8; what is binary is refused.
class Reader {
 public:
  Reader(Side side, std::size_t message_bytes_max) : side_(side), message_bytes_max_(message_bytes_max) {}

  // The next message that is complete in `bytes`, with what was used of them taken off its front; nothing if more is
  // needed. After a violation nothing more can be read.
  std::expected<std::optional<Message>, Violation> next(std::string_view& bytes);
  // For what comes from now on.
  void set_message_bytes_max(std::size_t bytes) { message_bytes_max_ = bytes; }
  // Of a text that has begun and not ended.
  std::size_t held_bytes() const { return message_.capacity(); }

 private:
  struct Head {
    Opcode opcode = Opcode::text;
    bool last = false;
    std::size_t size = 0;  // of the head
    std::uint64_t payload = 0;
    std::uint32_t mask = 0;
  };
  std::expected<std::optional<Head>, Violation> read_head(std::string_view bytes) const;
  std::expected<void, Violation> check(const Head& head) const;
  std::expected<std::optional<Message>, Violation> control(const Head& head, std::string payload) const;
  std::expected<std::optional<Message>, Violation> data(const Head& head, std::string payload);

  Side side_;
  std::size_t message_bytes_max_;
  bool in_message_ = false;  // a text has begun and not ended
  std::string message_;
};

}  // namespace belfry::net::websocket
