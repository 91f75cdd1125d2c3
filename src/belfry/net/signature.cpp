#include "belfry/net/signature.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <charconv>

#include <fmt/format.h>

#include "belfry/base/assert.h"

namespace belfry::net {
namespace {

constexpr std::size_t kDigestLetters = 64;
// A header of ours has 80 bytes.
constexpr std::size_t kHeaderBytesMax = 1'000;

std::string digest_of(const Secret& secret, std::int64_t seconds, std::string_view body) {
  const std::string text = fmt::format("{}.{}", seconds, body);
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const std::string& key = secret.reveal();
  const auto* const made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash, &size);
  BELFRY_ASSERT(made != nullptr && size * 2 == kDigestLetters);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", hash[i]);
  return hex;
}

std::unexpected<Error> bad(std::string detail) { return fail(Errc::bad_signature, std::move(detail)); }

bool is_digest(std::string_view text) {
  return text.size() == kDigestLetters && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string sign(const Secret& secret, WallTime now, std::string_view body) {
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  return fmt::format("t={},v1={}", seconds, digest_of(secret, seconds, body));
}

Result<Signature> parse_signature(std::string_view header) {
  if (header.empty()) return bad(fmt::format("the header {} is missing", kSignatureHeader));
  if (header.size() > kHeaderBytesMax) return bad(fmt::format("the header {} is too long", kSignatureHeader));
  Signature signature;
  bool has_time = false;
  while (!header.empty()) {
    const std::string_view part = header.substr(0, header.find(','));
    header.remove_prefix(std::min(header.size(), part.size() + 1));
    if (part.starts_with("t=") && !has_time) {
      const char* const end = part.data() + part.size();
      const auto read = std::from_chars(part.data() + 2, end, signature.seconds);
      has_time =
          read.ec == std::errc{} && read.ptr == end && signature.seconds >= 0 && signature.seconds <= 253'402'300'799;
      if (!has_time) return bad("t is no number of seconds since 1970");
    } else if (part.starts_with("v1=") && signature.digest.empty()) {
      if (!is_digest(part.substr(3))) return bad("v1 is not 64 hexadecimal digits in lower case");
      signature.digest = part.substr(3);
    } else if (part.starts_with("t=") || part.starts_with("v1=")) {
      return bad("t and v1 stand once each");
    }
  }
  if (!has_time || signature.digest.empty())
    return bad(fmt::format("the header {} is not t=SECONDS,v1=DIGEST", kSignatureHeader));
  return signature;
}

Result<> verify(const Secret& secret, std::string_view header, std::string_view body, WallTime now) {
  BELFRY_TRY(const Signature signature, parse_signature(header));
  const WallTime signed_at{std::chrono::seconds{signature.seconds}};
  if (signed_at < now - kSignatureAgeMax || signed_at > now + kSignatureAgeMax)
    return bad(fmt::format("it was signed at {}, and here it is {}: they may be {} seconds apart", to_iso(signed_at),
                           to_iso(now), kSignatureAgeMax.count() / 1'000));
  const std::string right = digest_of(secret, signature.seconds, body);
  // An empty secret is nobody's: it is what stands for somebody who has none.
  const bool same = CRYPTO_memcmp(right.data(), signature.digest.data(), kDigestLetters) == 0 && !secret.empty();
  if (!same) return bad("the signature is not that of this body, or there is nobody here who could have made it");
  return {};
}

}  // namespace belfry::net
