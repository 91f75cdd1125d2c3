// The files of one database, seen through a VFS of SQLite's: a digest for each page, a note of each commit (store/witness.h),
// and a disk that says "no" in any way is a full one where it is.
//
// Beside `belfry.db` lies `belfry.db-witness`: the witness, and behind it four bytes of digest for each page with four
// that vouch for them; zeros where a page is not covered yet. Pages are written to the database file only when the log is
// moved there, and the log begins anew only after the digests have been synced: a page that does not fit its digest is
// in the log, or harmed.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belfry/store/connection.h"
#include "belfry/store/sqlite/log_walk.h"
#include "belfry/store/witness.h"

namespace belfry::store::sqlite {

class CheckedFiles {
 public:
  // Stands in front of the VFS of that name, or of the system's, for the database at `path`.
  CheckedFiles(const std::string& vfs, std::string path);
  ~CheckedFiles();  // all files are closed
  CheckedFiles(const CheckedFiles&) = delete;
  CheckedFiles& operator=(const CheckedFiles&) = delete;

  const char* name() const { return vfs_.zName; }
  bool has_database() const;
  bool has_log() const;

  // The file beside the database. False if there is none, and for `make`, which wants a database to be there, if none can
  // be made.
  enum class Access { read, write, make };
  bool open_witness(Access access);
  std::optional<Witness> read_witness();
  // Without a sync. A note that cannot be written only lags.
  void write_witness(const Witness& witness);
  // Throws Fault: what lies behind the log's new beginning must not be older than it.
  void sync_witness();

  // Nothing in the log is newer than what the witness saw moved into the database. If it is whole, it is over; if it was
  // harmed, its beginning would hide what is newer in the database.
  enum class MovedLog { none, whole, harmed };
  MovedLog moved_log(const Witness& witness);
  // From here on it holds nothing; the file keeps its size.
  void empty_log();

  LogWalk walk_log(const std::optional<LogPlace>& wanted);
  // Where the commit stands that has just been made, as so many frames are in the log.
  std::optional<LogPlace> place_in_log(std::int64_t frames);

  // From here on pages are checked as they are read, and get a digest when they are written.
  void check_pages(std::int64_t page_bytes);
  void forget_digests();
  // They are not those of this database: none counts, and none is changed.
  void ignore_digests() { beside_.reset(); }
  // Reads every page but those that stand in the log.
  PageReport examine_pages(const LogWalk& log);
  // The pages that were found harmed since they are checked; a bounded number of them.
  const std::vector<std::int64_t>& harmed() const { return harmed_; }

 private:
  struct File;
  struct Methods;
  struct Close {
    void operator()(File* file) const;
  };
  using Opened = std::unique_ptr<File, Close>;

  Opened open_beside(const std::string& path, int access);
  bool exists(const std::string& path) const;

  std::uint64_t digest_of(std::int64_t page, std::string_view bytes) const;
  std::uint64_t stored_digest(std::int64_t page);
  bool is_whole(std::int64_t page, std::string_view bytes);
  bool check_page(std::int64_t page, std::string_view bytes);
  std::int64_t digests();
  int flush_digests();
  int cut_digests(std::int64_t pages);

  sqlite3_vfs* system_;  // whom we stand in front of
  std::string path_;
  std::string witness_path_;  // SQLite keeps the addresses of names
  std::string log_path_;
  std::string name_;
  sqlite3_vfs vfs_{};
  File* database_ = nullptr;  // as SQLite has them open
  File* log_ = nullptr;
  Opened beside_;
  std::int64_t page_bytes_ = 0;                      // 0: pages are not checked yet
  std::map<std::int64_t, std::uint64_t> unwritten_;  // digests of pages that were written since the last sync
  std::vector<std::int64_t> harmed_;
};

}  // namespace belfry::store::sqlite
