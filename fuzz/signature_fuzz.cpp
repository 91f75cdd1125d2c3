// The header of a signed request. What is read is in range, and nobody is believed without the secret.
#include <cstdint>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/net/signature.h"
#include "refusal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto signature = net::parse_signature(text);
  fuzz::check(signature);
  if (!signature) return 0;
  BELFRY_ASSERT(signature->seconds >= 0 && signature->digest.size() == 64);
  const WallTime then{std::chrono::seconds{signature->seconds}};
  static const Secret secret("nobody outside of here knows it");
  BELFRY_ASSERT(!net::verify(secret, text, "body", then));
  BELFRY_ASSERT(!net::verify(Secret(), text, "body", then));
  return 0;
}
