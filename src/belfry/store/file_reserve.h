// Space set aside in a file: given up when the disk is full, so that acks can still be written (G17).
#pragma once

#include <cstdint>
#include <string>

#include "belfry/store/store.h"

namespace belfry::store {

// Some thousand acks; and small beside any disk that is worth the name.
inline constexpr std::int64_t kReserveBytes = 8 << 20;

class FileReserve final : public Reserve {
 public:
  explicit FileReserve(std::string path, std::int64_t bytes = kReserveBytes) : path_(std::move(path)), bytes_(bytes) {}

  bool hold() override;
  void release() override;

 private:
  std::string path_;
  std::int64_t bytes_;
};

}  // namespace belfry::store
