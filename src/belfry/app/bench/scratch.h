// A folder of its own for a part's data, gone afterwards.
#pragma once

#include <filesystem>

namespace belfry::app::bench {

class Scratch {
 public:
  Scratch(const std::filesystem::path& folder, const char* name) : path_(folder / name) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace belfry::app::bench
