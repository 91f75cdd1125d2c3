// A folder of a test's own, gone after it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "belfry/base/assert.h"

namespace belfry::testing {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "belfry-test-XXXXXX").string();
    BELFRY_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace belfry::testing
