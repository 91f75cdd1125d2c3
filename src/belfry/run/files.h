// Files that tools have left: files/RUN/STEP/NAME in the data directory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "belfry/base/result.h"

namespace belfry::run {

// One file is one answer, read in one go: a picture, a document, not a film.
inline constexpr std::size_t kFileBytesMax = 16u << 20;

// A plugin can put links into its folder, or one in the place of it: none is followed, and nothing above `root` is reached.
// Nor is a file read that has a second name: that may be anybody's.
Result<std::string> read_file(const std::filesystem::path& root, const std::string& run, int step,
                              const std::string& name);

using Sync = std::function<int(int descriptor)>;  // as fsync
// From here on what a step has left is there after a power cut, too: its files, and the folders that name them. Takes as long
// as the disk does.
Result<> sync_files(const std::filesystem::path& root, const std::string& run, int step, const Sync& sync);

}  // namespace belfry::run
