// Reads SQLite's write-ahead log as SQLite itself does when it recovers: up to the first frame that does not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "belfry/store/witness.h"

namespace belfry::store::sqlite {

inline constexpr std::size_t kLogHeaderBytes = 32;
inline constexpr std::size_t kFrameHeaderBytes = 24;

struct LogWalk {
  std::int64_t commits = 0;                 // whole ones
  LogPlace last;                            // the last of them; no frames: there is none
  std::unordered_set<std::uint32_t> pages;  // that these commits have changed
  bool reaches = false;                     // the place that was watched for is among them
};

// Reads so many bytes at an offset; fewer at the end of the file.
using ReadAt = std::function<std::string(std::int64_t at, std::size_t bytes)>;

LogWalk walk_log(const ReadAt& read, const std::optional<LogPlace>& wanted);

// The place of the commit whose last frame has this header, as `frames` frames stand in the log.
LogPlace place_of(std::string_view frame_header, std::int64_t frames);

}  // namespace belfry::store::sqlite
