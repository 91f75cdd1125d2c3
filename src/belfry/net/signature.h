// Who sent a request: HMAC-SHA256 over its time and its body, with a secret that both sides know.
//
//   Belfry-Signature: t=1772366400,v1=5257a869e7…        v1 = hex(HMAC-SHA256(secret, "1772366400." + body))
//
// The time makes an old request useless to whoever copied it; what is not known beside t and v1 is skipped, so that another
// kind of signature can stand there one day.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/result.h"
#include "belfry/base/secret.h"
#include "belfry/base/time.h"

namespace belfry::net {

inline constexpr const char* kSignatureHeader = "Belfry-Signature";
// How far the clocks of the two may be apart, the way of the request included.
inline constexpr Millis kSignatureAgeMax{300'000};

struct Signature {
  std::int64_t seconds = 0;  // since 1970
  std::string digest;        // 64 hexadecimal digits
};

std::string sign(const Secret& secret, WallTime now, std::string_view body);
Result<Signature> parse_signature(std::string_view header);
// `bad_signature`, with what is wrong; how long it takes does not tell how much of a digest was right.
Result<> verify(const Secret& secret, std::string_view header, std::string_view body, WallTime now);

}  // namespace belfry::net
