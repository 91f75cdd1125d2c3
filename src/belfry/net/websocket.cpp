#include "belfry/net/websocket.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "belfry/base/utf8.h"

namespace belfry::net::websocket {
namespace {

constexpr std::string_view kMagic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr std::size_t kControlBytesMax = 125;
constexpr std::size_t kClientKeyLetters = 24;

std::unexpected<Violation> violation(int code, std::string what) {
  return std::unexpected(Violation{code, std::move(what)});
}

bool is_control(Opcode opcode) { return static_cast<int>(opcode) >= 8; }

std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

void append_number(std::string& out, std::uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

// Masking and unmasking are the same.
void apply_mask(std::string& payload, std::size_t from, std::uint32_t mask) {
  const std::array<char, 4> bytes{static_cast<char>(mask >> 24), static_cast<char>(mask >> 16),
                                  static_cast<char>(mask >> 8), static_cast<char>(mask)};
  for (std::size_t i = from; i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ bytes[(i - from) & 3]);
}

// Those that a peer may send (RFC 6455, 7.4).
bool is_close_code(int code) {
  const bool defined = code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
  return defined || (code >= 3000 && code <= 4999);
}

}  // namespace

std::string accept_key(std::string_view client_key) {
  std::string text(client_key);
  text += kMagic;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA_DIGEST_LENGTH + 2) / 3) + 1> letters{};
  const int size = ::EVP_EncodeBlock(letters.data(), digest.data(), SHA_DIGEST_LENGTH);
  return {reinterpret_cast<const char*>(letters.data()), static_cast<std::size_t>(size)};
}

bool is_client_key(std::string_view text) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  };
  return text.size() == kClientKeyLetters && text.ends_with("==") &&
         std::all_of(text.begin(), text.end() - 2, is_letter);
}

std::string frame(Opcode opcode, std::string_view payload, std::optional<std::uint32_t> mask) {
  std::string out;
  out.reserve(payload.size() + 14);
  out += static_cast<char>(0x80 | static_cast<int>(opcode));
  const int masked = mask ? 0x80 : 0;
  if (payload.size() <= kControlBytesMax) {
    out += static_cast<char>(masked | static_cast<int>(payload.size()));
  } else if (payload.size() <= 0xFFFF) {
    out += static_cast<char>(masked | 126);
    append_number(out, payload.size(), 2);
  } else {
    out += static_cast<char>(masked | 127);
    append_number(out, payload.size(), 8);
  }
  if (mask) append_number(out, *mask, 4);
  const std::size_t begin = out.size();
  out += payload;
  if (mask) apply_mask(out, begin, *mask);
  return out;
}

std::string close_frame(int code, std::string_view reason, std::optional<std::uint32_t> mask) {
  std::string payload;
  append_number(payload, static_cast<std::uint64_t>(code), 2);
  while (!reason.empty()) {
    const auto size = static_cast<std::size_t>(utf8_sequence(reason));
    if (size == 0 || payload.size() + size > kControlBytesMax) break;
    payload += reason.substr(0, size);
    reason.remove_prefix(size);
  }
  return frame(Opcode::close, payload, mask);
}

std::expected<std::optional<Reader::Head>, Violation> Reader::read_head(std::string_view bytes) const {
  if (bytes.size() < 2) return std::nullopt;
  const auto first = static_cast<unsigned char>(bytes[0]);
  const auto second = static_cast<unsigned char>(bytes[1]);
  Head head{.opcode = static_cast<Opcode>(first & 0x0F), .last = (first & 0x80) != 0};
  if ((first & 0x70) != 0) return violation(kProtocolError, "a reserved bit is set, and no extension was agreed on");
  const bool masked = (second & 0x80) != 0;
  if (masked != (side_ == Side::server))
    return violation(kProtocolError, masked ? "a server's frames are not masked" : "a client's frames are masked");
  const int length = second & 0x7F;
  const std::size_t length_bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
  head.size = 2 + length_bytes + (masked ? 4 : 0);
  if (bytes.size() < head.size) return std::nullopt;
  head.payload = length_bytes == 0 ? static_cast<std::uint64_t>(length) : read_number(bytes.substr(2, length_bytes));
  const bool shortest =
      length_bytes == 0 || (length_bytes == 2 ? head.payload > kControlBytesMax : head.payload > 0xFFFF);
  if (!shortest) return violation(kProtocolError, "a length is not written in its shortest form");
  if (masked) head.mask = static_cast<std::uint32_t>(read_number(bytes.substr(2 + length_bytes, 4)));
  return head;
}

std::expected<void, Violation> Reader::check(const Head& head) const {
  switch (head.opcode) {
    case Opcode::continuation:
      if (!in_message_) return violation(kProtocolError, "a fragment continues nothing");
      break;
    case Opcode::text:
      if (in_message_) return violation(kProtocolError, "a text begins before the one before has ended");
      break;
    case Opcode::binary: return violation(kUnsupported, "texts are read here, not binary messages");
    case Opcode::close:
    case Opcode::ping:
    case Opcode::pong:
      if (!head.last || head.payload > kControlBytesMax)
        return violation(kProtocolError, "a control frame is one frame of at most 125 bytes");
      return {};
    default: return violation(kProtocolError, "a kind of frame that is not known");
  }
  if (head.payload > message_bytes_max_ - message_.size())
    return violation(kTooLarge, "a message is larger than is taken here");
  return {};
}

std::expected<std::optional<Message>, Violation> Reader::next(std::string_view& bytes) {
  while (true) {
    const auto head = read_head(bytes);
    if (!head) return std::unexpected(head.error());
    if (!*head) return std::nullopt;
    if (const auto sound = check(**head); !sound) return std::unexpected(sound.error());
    if (bytes.size() - (*head)->size < (*head)->payload) return std::nullopt;
    std::string payload(bytes.substr((*head)->size, (*head)->payload));
    if (side_ == Side::server) apply_mask(payload, 0, (*head)->mask);
    bytes.remove_prefix((*head)->size + (*head)->payload);
    auto message = is_control((*head)->opcode) ? control(**head, std::move(payload)) : data(**head, std::move(payload));
    if (!message || *message) return message;
  }
}

std::expected<std::optional<Message>, Violation> Reader::control(const Head& head, std::string payload) const {
  Message message{.opcode = head.opcode, .payload = std::move(payload)};
  if (head.opcode != Opcode::close || message.payload.empty()) return message;
  if (message.payload.size() == 1) return violation(kProtocolError, "a close code has two bytes");
  message.close_code = static_cast<int>(read_number(std::string_view(message.payload).substr(0, 2)));
  message.payload.erase(0, 2);
  if (!is_close_code(message.close_code)) return violation(kProtocolError, "a close code that nobody may send");
  if (!is_utf8(message.payload)) return violation(kNotUtf8, "the reason of a close is not UTF-8");
  return message;
}

std::expected<std::optional<Message>, Violation> Reader::data(const Head& head, std::string payload) {
  in_message_ = !head.last;
  if (message_.empty()) {
    message_ = std::move(payload);
  } else {
    message_ += payload;
  }
  if (in_message_) return std::nullopt;
  Message message{.opcode = Opcode::text, .payload = std::move(message_)};
  message_.clear();
  if (!is_utf8(message.payload)) return violation(kNotUtf8, "a text is not UTF-8");
  return message;
}

}  // namespace belfry::net::websocket
