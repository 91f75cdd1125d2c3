// A 128-bit digest of some bytes: enough that two different client keys never meet.
#pragma once

#include <cstdint>
#include <string_view>

namespace belfry {

struct Digest {
  std::int64_t high = 0;
  std::int64_t low = 0;
  auto operator<=>(const Digest&) const = default;
};

Digest digest(std::string_view bytes);

}  // namespace belfry
