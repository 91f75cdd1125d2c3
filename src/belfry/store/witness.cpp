#include "belfry/store/witness.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "belfry/base/assert.h"

namespace belfry::store {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written as this machine has them");

constexpr std::uint64_t kMagic = 0x31737365'6e746957;  // "Witness1"
constexpr std::size_t kFields = kWitnessBytes / sizeof(std::uint64_t);

std::uint64_t as_word(std::int64_t value) { return std::bit_cast<std::uint64_t>(value); }
std::int64_t as_number(std::uint64_t value) { return std::bit_cast<std::int64_t>(value); }

constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;  // odd, so nothing is lost by it

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * kFactor;
  return sum ^ (sum >> 29);
}

}  // namespace

// Four sums side by side, for the processor's sake.
std::uint64_t checksum_of(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t sums[4] = {seed, seed + 1, seed + 2, seed + 3};
  std::size_t at = 0;
  for (std::uint64_t words[4]; at + sizeof words <= bytes.size(); at += sizeof words) {
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (int lane = 0; lane < 4; ++lane) sums[lane] = mix(sums[lane], words[lane]);
  }
  for (std::uint64_t word = 0; at < bytes.size(); at += sizeof word, word = 0) {
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    sums[0] = mix(sums[0], word);
  }
  return mix(mix(mix(mix(bytes.size(), sums[0]), sums[1]), sums[2]), sums[3]);
}

std::string encode(const Witness& witness) {
  const std::uint64_t fields[kFields] = {kMagic,
                                         as_word(witness.data),
                                         as_word(witness.epoch),
                                         as_word(witness.base),
                                         as_word(witness.commits),
                                         as_word(witness.given_out),
                                         as_word(witness.at_ms),
                                         witness.last.salts,
                                         as_word(witness.last.frames),
                                         witness.last.checksum,
                                         witness.moved ? 1u : 0u};
  std::string bytes(reinterpret_cast<const char*>(fields), sizeof fields);
  const std::uint64_t sum = checksum_of(std::string_view(bytes).substr(0, sizeof fields - sizeof sum), kMagic);
  std::memcpy(bytes.data() + sizeof fields - sizeof sum, &sum, sizeof sum);
  return bytes;
}

std::optional<Witness> decode(std::string_view bytes) {
  std::uint64_t fields[kFields];
  if (bytes.size() != sizeof fields) return std::nullopt;
  std::memcpy(fields, bytes.data(), sizeof fields);
  if (fields[0] != kMagic || fields[kFields - 1] != checksum_of(bytes.substr(0, sizeof fields - 8), kMagic))
    return std::nullopt;
  return Witness{.data = as_number(fields[1]),
                 .epoch = as_number(fields[2]),
                 .base = as_number(fields[3]),
                 .commits = as_number(fields[4]),
                 .given_out = as_number(fields[5]),
                 .at_ms = as_number(fields[6]),
                 .last = {.salts = fields[7], .frames = as_number(fields[8]), .checksum = fields[9]},
                 .moved = fields[10] != 0};
}

bool fits(const std::optional<Epoch>& in_file, const std::optional<Epoch>& with_log) {
  if (!with_log) return !in_file;
  if (!in_file) return with_log->base == 0;
  return in_file->data == with_log->data && (in_file->nonce == with_log->nonce || in_file->nonce == with_log->base);
}

bool describes(const Witness& witness, const Epoch& epoch) {
  // Where the log was moved, or was being moved, and the witness was not told in time, all that differs is in the log.
  return witness.data == epoch.data && (witness.base == epoch.nonce || witness.base == epoch.base);
}

bool is_moved_into(const Witness& witness, const std::optional<Epoch>& in_file) {
  return witness.moved && in_file && in_file->data == witness.data && in_file->number == witness.epoch &&
         in_file->nonce == witness.base;
}

std::optional<Loss> missing(const Witness& witness, const Recovered& recovered) {
  const auto loss = [&](bool other_data) {
    const std::int64_t commits = other_data ? witness.commits : witness.commits - recovered.commits;
    return Loss{.commits = std::max<std::int64_t>(commits, 1),
                .last_ms = witness.at_ms,
                .given_out = witness.given_out,
                .other_data = other_data};
  };
  if (!recovered.epoch || recovered.epoch->data != witness.data) return loss(true);
  if (recovered.epoch->number > witness.epoch) return std::nullopt;
  if (recovered.epoch->number < witness.epoch) return loss(false);
  if (recovered.reaches) return std::nullopt;
  return loss(false);
}

}  // namespace belfry::store
