#include "belfry/bus/message_id.h"

#include <array>

#include <fmt/format.h>

namespace belfry::bus {
namespace {

constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";  // no i, l, o, u: they are misread
constexpr std::size_t kLength = 13;                                         // 13 × 5 bits hold 64
constexpr std::int64_t kSequenceMax = (std::int64_t{1} << 48) - 1;
constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
constexpr std::uint64_t kInverse = 0xF1DE83E19937733Du;  // kMultiplier * kInverse == 1 modulo 2^64
static_assert(kMultiplier * kInverse == 1);

// A one-to-one mix of 64 bits, undone by unmix().
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= kMultiplier;
  x ^= x >> 32;
  x *= kMultiplier;
  return x ^ (x >> 32);
}

std::uint64_t unmix(std::uint64_t x) {
  x ^= x >> 32;
  x *= kInverse;
  x ^= x >> 32;
  x *= kInverse;
  return x ^ (x >> 32);
}

}  // namespace

std::string to_text(MessageId id) {
  std::uint64_t mixed = mix(static_cast<std::uint64_t>(id.sequence));
  std::array<char, kLength> text{};
  for (std::size_t i = kLength; i-- > 0; mixed >>= 5) text[i] = kAlphabet[mixed & 31];
  return {text.data(), text.size()};
}

Result<MessageId> parse_message_id(std::string_view text) {
  const auto bad = [text] {
    return fail(
        Errc::invalid_id,
        text.size() == kLength
            ? fmt::format("\"{}\" is not a message id: it has a typing mistake, or capitals", text)
            : fmt::format("\"{}\" is not a message id; those have 13 small letters and digits", text.substr(0, 64)));
  };
  if (text.size() != kLength) return bad();
  std::uint64_t mixed = 0;
  for (const char c : text) {
    const auto digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return bad();
    mixed = (mixed << 5) | digit;
  }
  const std::uint64_t value = unmix(mixed);
  if (value == 0 || value > static_cast<std::uint64_t>(kSequenceMax) ||
      to_text({static_cast<std::int64_t>(value)}) != text)
    return bad();
  return MessageId{static_cast<std::int64_t>(value)};
}

}  // namespace belfry::bus
