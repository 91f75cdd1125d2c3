// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace belfry {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(long number) : number_(static_cast<int>(number)) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace belfry
