// What was committed, noted outside the log, so that a log which ends too early is noticed (G22).
//
// SQLite ends its log at the first frame that does not fit: a bit that flipped there takes everything away that was
// committed after it, in silence. So each commit is noted in a file of its own once it is durable, without a sync: the
// note never leads what the disk has, and survives the process. It may lag, be torn or be missing after a power cut, and
// then it says nothing. docs/adr/0018 has the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "belfry/store/file_report.h"

namespace belfry::store {

// A commit's place in the log: the checksum depends on every frame before it.
struct LogPlace {
  std::uint64_t salts = 0;  // of this life of the log; SQLite draws them anew whenever it begins at its start
  std::int64_t frames = 0;
  std::uint64_t checksum = 0;
  bool operator==(const LogPlace&) const = default;
};

struct Witness {
  std::int64_t data = 0;       // whose it is; as in Epoch
  std::int64_t epoch = 0;      // Epoch::number at that commit
  std::int64_t base = 0;       // Epoch::nonce in the database file when the log was last moved there
  std::int64_t commits = 0;    // since the data was made
  std::int64_t given_out = 0;  // no id above this one was given to anybody
  std::int64_t at_ms = 0;
  LogPlace last;
  bool moved = false;  // the database file has it all: what becomes of the log harms nobody
  bool operator==(const Witness&) const = default;
};

inline constexpr std::size_t kWitnessBytes = 96;
std::string encode(const Witness& witness);
// Nothing if it is torn, harmed, or of a program that writes another kind.
std::optional<Witness> decode(std::string_view bytes);

// One row of the database, changed by the first commit of each life of the log: so the database file and a log tell by
// themselves whether they belong together.
struct Epoch {
  std::int64_t data = 0;  // drawn when the data was made
  std::int64_t number = 0;
  std::int64_t nonce = 0;
  std::int64_t base = 0;     // the nonce that the database file had then; 0: none
  std::int64_t commits = 0;  // up to then
  bool operator==(const Epoch&) const = default;
};

// Whether a database file with this epoch is the one below a log that leads to that.
bool fits(const std::optional<Epoch>& in_file, const std::optional<Epoch>& with_log);
// Whether the digests of pages beside a witness are those of the database file below a log that leads to this epoch.
bool describes(const Witness& witness, const Epoch& epoch);

// The very database file into which the witness saw the log moved to its end.
bool is_moved_into(const Witness& witness, const std::optional<Epoch>& in_file);

// What an opened database turned out to hold.
struct Recovered {
  std::optional<Epoch> epoch;  // none: made by a Belfry that knew none, or new
  std::int64_t commits = 0;    // as Witness::commits
  bool reaches = false;        // the log has the witness's last commit, or the file had it before
};

// What a witness knows of that is not there.
std::optional<Loss> missing(const Witness& witness, const Recovered& recovered);

// A 64-bit checksum for harm by chance, not by design; one that differs in a single word differs for sure.
std::uint64_t checksum_of(std::string_view bytes, std::uint64_t seed);

}  // namespace belfry::store
