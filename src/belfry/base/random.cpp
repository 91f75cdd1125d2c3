#include "belfry/base/random.h"

#include <sys/random.h>

#include "belfry/base/assert.h"

namespace belfry {

std::uint64_t SystemRandom::next() {
  std::uint64_t value = 0;
  BELFRY_ASSERT(getrandom(&value, sizeof value, 0) == sizeof value);
  return value;
}

std::uint64_t SeededRandom::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace belfry
