// Randomness as a parameter: the real one reads the operating system, the one of a simulation its seed.
#pragma once

#include <cstdint>

namespace belfry {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
};

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;
};

// splitmix64: small, good enough for choosing faults, the same on every machine.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;

 private:
  std::uint64_t state_;
};

}  // namespace belfry
