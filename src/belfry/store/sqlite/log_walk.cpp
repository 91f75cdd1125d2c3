#include "belfry/store/sqlite/log_walk.h"

#include <bit>
#include <cstring>
#include <vector>

namespace belfry::store::sqlite {
namespace {

// https://www.sqlite.org/fileformat2.html#the_write_ahead_log: the header's words, each of four bytes, big end first.
constexpr std::uint32_t kMagic = 0x377f0682;  // the last bit: checksums are of big-endian words
constexpr std::size_t kPageSizeAt = 8;
constexpr std::size_t kSaltsAt = 16;
constexpr std::size_t kHeaderSumAt = 24;
// A frame's: page, size of the database after a commit (else 0), salts, checksum.
constexpr std::size_t kCommitAt = 4;
constexpr std::size_t kFrameSaltsAt = 8;
constexpr std::size_t kFrameSumAt = 16;
constexpr std::size_t kPageBytesMax = 65'536;

std::uint32_t word(std::string_view bytes, std::size_t at, bool big_end = true) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return big_end == (std::endian::native == std::endian::big) ? value : __builtin_bswap32(value);
}

std::uint64_t raw(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The running checksum of the format, over pairs of words.
struct Sum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  void add(std::string_view bytes, bool big_end) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first += word(bytes, at, big_end) + second;
      second += word(bytes, at + 4, big_end) + first;
    }
  }
  bool stands_at(std::string_view bytes, std::size_t at) const {
    return first == word(bytes, at) && second == word(bytes, at + 4);
  }
};

// One frame after the other, some of them read at once.
class Frames {
 public:
  Frames(const ReadAt& read, std::size_t frame_bytes) : read_(read), frame_bytes_(frame_bytes) {}

  // Nothing at the end of the file.
  std::string_view next() {
    if (used_ + frame_bytes_ > block_.size()) {
      block_ = read_(at_, kAtOnce * frame_bytes_);
      used_ = 0;
      if (block_.size() < frame_bytes_) return {};
    }
    const std::string_view frame = std::string_view(block_).substr(used_, frame_bytes_);
    used_ += frame_bytes_;
    at_ += static_cast<std::int64_t>(frame_bytes_);
    return frame;
  }

 private:
  static constexpr std::size_t kAtOnce = 32;

  const ReadAt& read_;
  std::size_t frame_bytes_;
  std::int64_t at_ = kLogHeaderBytes;  // of the next frame
  std::string block_;
  std::size_t used_ = 0;
};

bool is_page_size(std::size_t bytes) { return bytes >= 512 && bytes <= kPageBytesMax && std::has_single_bit(bytes); }

}  // namespace

LogPlace place_of(std::string_view frame_header, std::int64_t frames) {
  return {.salts = raw(frame_header, kFrameSaltsAt), .frames = frames, .checksum = raw(frame_header, kFrameSumAt)};
}

LogWalk walk_log(const ReadAt& read, const std::optional<LogPlace>& wanted) {
  LogWalk walk;
  const std::string header = read(0, kLogHeaderBytes);
  if (header.size() < kLogHeaderBytes || (word(header, 0) & ~1u) != kMagic) return walk;
  const bool big_end = (word(header, 0) & 1u) != 0;
  const std::size_t page_bytes = word(header, kPageSizeAt);
  Sum sum;
  sum.add(std::string_view(header).substr(0, kHeaderSumAt), big_end);
  if (!is_page_size(page_bytes) || !sum.stands_at(header, kHeaderSumAt)) return walk;

  const std::size_t frame_bytes = kFrameHeaderBytes + page_bytes;
  std::vector<std::uint32_t> pending;  // pages of a commit that has not ended yet
  std::int64_t frames = 0;
  Frames ahead(read, frame_bytes);
  while (true) {
    const std::string_view frame = ahead.next();
    if (frame.empty() || word(frame, 0) == 0 || raw(frame, kFrameSaltsAt) != raw(header, kSaltsAt)) return walk;
    sum.add(frame.substr(0, kFrameSaltsAt), big_end);
    sum.add(frame.substr(kFrameHeaderBytes), big_end);
    if (!sum.stands_at(frame, kFrameSumAt)) return walk;
    ++frames;
    pending.push_back(word(frame, 0));
    if (word(frame, kCommitAt) == 0) continue;
    ++walk.commits;
    walk.last = place_of(frame, frames);
    walk.pages.insert(pending.begin(), pending.end());
    pending.clear();
    if (wanted == walk.last) walk.reaches = true;
  }
}

}  // namespace belfry::store::sqlite
