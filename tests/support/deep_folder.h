// Folders in each other, deeper than any path can be written.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "belfry/base/assert.h"
#include "belfry/base/descriptor.h"

namespace belfry::testing {

// `name` in `root`, and below it so many folders whose names have 200 letters.
inline void make_deep_folder(const std::filesystem::path& root, const std::string& name, int levels) {
  Descriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string deep(200, 'd');
  for (int level = 0; level <= levels; ++level) {
    const std::string& next = level == 0 ? name : deep;
    const bool made = ::mkdirat(folder.number(), next.c_str(), 0700) == 0 || errno == EEXIST;
    BELFRY_ASSERT(made);
    folder = Descriptor(::openat(folder.number(), next.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    BELFRY_ASSERT(folder.open());
  }
}

}  // namespace belfry::testing
