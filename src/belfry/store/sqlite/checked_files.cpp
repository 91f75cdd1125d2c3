#include "belfry/store/sqlite/checked_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"

namespace belfry::store::sqlite {
namespace {

constexpr std::int64_t kDigestsAt = 4'096;  // the witness has a sector of its own, and then some
constexpr std::size_t kHarmedMax = 100;     // more of them say nothing new
constexpr std::size_t kDigestBytes = sizeof(std::uint64_t);

std::int64_t digest_at(std::int64_t page) { return kDigestsAt + (page - 1) * static_cast<std::int64_t>(kDigestBytes); }

// The half that vouches for the other: a harmed digest is told from a harmed page.
std::uint64_t vouched(std::uint32_t digest, std::int64_t page) {
  const std::string_view bytes(reinterpret_cast<const char*>(&digest), sizeof digest);
  const auto vouch = static_cast<std::uint32_t>(checksum_of(bytes, static_cast<std::uint64_t>(page)) | 1);
  return (std::uint64_t{vouch} << 32) | digest;
}

LogWalk walk_file(sqlite3_file* file, const std::optional<LogPlace>& wanted) {
  sqlite3_int64 size = 0;
  if (file->pMethods->xFileSize(file, &size) != SQLITE_OK) return {};
  const auto read = [file, size](std::int64_t at, std::size_t most) {
    std::string found(static_cast<std::size_t>(std::clamp<std::int64_t>(size - at, 0, static_cast<std::int64_t>(most))),
                      '\0');
    const int code = file->pMethods->xRead(file, found.data(), static_cast<int>(found.size()), at);
    return code == SQLITE_OK ? found : std::string();
  };
  return sqlite::walk_log(read, wanted);
}

}  // namespace

// What SQLite gets for a file: ours first, the one in front of which it stands behind it.
struct CheckedFiles::File : sqlite3_file {
  CheckedFiles* owner;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

struct CheckedFiles::Methods {
  static File& of(sqlite3_file* file) { return *static_cast<File*>(file); }
  static sqlite3_file* real(sqlite3_file* file) { return of(file).real(); }
  static CheckedFiles& owner(sqlite3_file* file) { return *of(file).owner; }
  static sqlite3_vfs* system(sqlite3_vfs* vfs) { return static_cast<CheckedFiles*>(vfs->pAppData)->system_; }

  // The number of the page that is read or written as a whole, if the file's are checked.
  static std::optional<std::int64_t> page(sqlite3_file* file, int amount, sqlite3_int64 offset) {
    const CheckedFiles& files = owner(file);
    if (&of(file) != files.database_ || amount != files.page_bytes_ || offset % amount != 0) return std::nullopt;
    return offset / amount + 1;
  }

  static int close(sqlite3_file* file) {
    File& ours = of(file);
    if (ours.owner->database_ == &ours) ours.owner->database_ = nullptr;
    if (ours.owner->log_ == &ours) ours.owner->log_ = nullptr;
    return ours.real()->pMethods->xClose(ours.real());
  }

  static int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
    const int code = real(file)->pMethods->xRead(real(file), into, amount, offset);
    // Behind the end of the file SQLite takes zeros for what was there.
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
    const auto number = page(file, amount, offset);
    const std::string_view bytes(static_cast<const char*>(into), static_cast<std::size_t>(amount));
    return number && !owner(file).check_page(*number, bytes) ? SQLITE_IOERR_DATA : code;
  }

  static int write(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
    errno = 0;
    const int code = real(file)->pMethods->xWrite(real(file), from, amount, offset);
    // A quota or a limit on a file's size: room may come again, and nothing was written that counts.
    if (code == SQLITE_IOERR_WRITE && (errno == EDQUOT || errno == EFBIG)) return SQLITE_FULL;
    if (code != SQLITE_OK) return code;
    if (const auto number = page(file, amount, offset)) {
      CheckedFiles& files = owner(file);
      files.unwritten_[*number] =
          files.digest_of(*number, {static_cast<const char*>(from), static_cast<std::size_t>(amount)});
    }
    return SQLITE_OK;
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    CheckedFiles& files = owner(file);
    if (&of(file) == files.database_ && files.page_bytes_ > 0) {
      const int code = files.cut_digests(size / files.page_bytes_);
      if (code != SQLITE_OK) return code;
    }
    return real(file)->pMethods->xTruncate(real(file), size);
  }

  static int sync(sqlite3_file* file, int flags) {
    if (&of(file) == owner(file).database_) {
      // Before the database itself: when SQLite takes its pages for moved, their digests are there.
      const int code = owner(file).flush_digests();
      if (code != SQLITE_OK) return code;
    }
    return real(file)->pMethods->xSync(real(file), flags);
  }

  static int size(sqlite3_file* file, sqlite3_int64* bytes) {
    return real(file)->pMethods->xFileSize(real(file), bytes);
  }
  static int lock(sqlite3_file* file, int level) { return real(file)->pMethods->xLock(real(file), level); }
  static int unlock(sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
  static int check_reserved(sqlite3_file* file, int* answer) {
    return real(file)->pMethods->xCheckReservedLock(real(file), answer);
  }
  static int control(sqlite3_file* file, int what, void* argument) {
    return real(file)->pMethods->xFileControl(real(file), what, argument);
  }
  static int sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
  static int characteristics(sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }

  // Version 1, without shared memory: a database that is locked exclusively needs none for its log.
  static constexpr sqlite3_io_methods kMethods = {
      1,       close,          read,    write,       truncate,        sync,    size,    lock,
      unlock,  check_reserved, control, sector_size, characteristics, nullptr, nullptr, nullptr,
      nullptr, nullptr,        nullptr};

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* into, int flags, int* out_flags) {
    auto* const owner = static_cast<CheckedFiles*>(vfs->pAppData);
    auto* const file = static_cast<File*>(into);
    file->pMethods = nullptr;
    const int code = owner->system_->xOpen(owner->system_, path, file->real(), flags, out_flags);
    // A failed open may leave methods behind, and then wants to be closed; SQLite's own VFS leaves none.
    if (code != SQLITE_OK) return code;
    file->pMethods = &kMethods;
    file->owner = owner;
    if (flags & SQLITE_OPEN_MAIN_DB) owner->database_ = file;
    if (flags & SQLITE_OPEN_WAL) owner->log_ = file;
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_folder) {
    return system(vfs)->xDelete(system(vfs), path, sync_folder);
  }
  static int access(sqlite3_vfs* vfs, const char* path, int how, int* answer) {
    return system(vfs)->xAccess(system(vfs), path, how, answer);
  }
  static int full_path(sqlite3_vfs* vfs, const char* path, int room, char* out) {
    return system(vfs)->xFullPathname(system(vfs), path, room, out);
  }
  static int randomness(sqlite3_vfs* vfs, int bytes, char* out) {
    return system(vfs)->xRandomness(system(vfs), bytes, out);
  }
  static int sleep(sqlite3_vfs* vfs, int micros) { return system(vfs)->xSleep(system(vfs), micros); }
  static int julian_day(sqlite3_vfs* vfs, double* day) { return system(vfs)->xCurrentTime(system(vfs), day); }
  static int last_error(sqlite3_vfs* vfs, int room, char* out) {
    return system(vfs)->xGetLastError(system(vfs), room, out);
  }
  static int julian_millis(sqlite3_vfs* vfs, sqlite3_int64* millis) {
    return system(vfs)->xCurrentTimeInt64(system(vfs), millis);
  }
};

void CheckedFiles::Close::operator()(File* file) const {
  if (file->pMethods != nullptr) Methods::close(file);
  ::operator delete(static_cast<void*>(file));
}

CheckedFiles::CheckedFiles(const std::string& vfs, std::string path)
    : system_(sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str())),
      path_(std::move(path)),
      witness_path_(path_ + "-witness"),
      log_path_(path_ + "-wal") {
  BELFRY_ASSERT(system_ != nullptr && system_->iVersion >= 2);
  static std::atomic<int> made{0};
  name_ = fmt::format("belfry-{}", ++made);
  vfs_.iVersion = 2;
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + system_->szOsFile;
  vfs_.mxPathname = system_->mxPathname;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = Methods::open;
  vfs_.xDelete = Methods::remove;
  vfs_.xAccess = Methods::access;
  vfs_.xFullPathname = Methods::full_path;
  vfs_.xRandomness = Methods::randomness;
  vfs_.xSleep = Methods::sleep;
  vfs_.xCurrentTime = Methods::julian_day;
  vfs_.xGetLastError = Methods::last_error;
  vfs_.xCurrentTimeInt64 = Methods::julian_millis;
  BELFRY_ASSERT(sqlite3_vfs_register(&vfs_, 0) == SQLITE_OK);
}

CheckedFiles::~CheckedFiles() {
  beside_.reset();
  sqlite3_vfs_unregister(&vfs_);
}

bool CheckedFiles::exists(const std::string& path) const {
  int answer = 0;
  return system_->xAccess(system_, path.c_str(), SQLITE_ACCESS_EXISTS, &answer) == SQLITE_OK && answer != 0;
}

bool CheckedFiles::has_database() const { return exists(path_); }
bool CheckedFiles::has_log() const { return exists(log_path_); }

// As a journal, so that it gets the permissions of the database, and its first sync is one of the folder, too.
CheckedFiles::Opened CheckedFiles::open_beside(const std::string& path, int access) {
  Opened file(static_cast<File*>(::operator new(static_cast<std::size_t>(vfs_.szOsFile))));
  std::memset(static_cast<void*>(file.get()), 0, static_cast<std::size_t>(vfs_.szOsFile));
  const int code = Methods::open(&vfs_, path.c_str(), file.get(), access | SQLITE_OPEN_MAIN_JOURNAL, nullptr);
  return code == SQLITE_OK ? std::move(file) : nullptr;
}

bool CheckedFiles::open_witness(Access access) {
  const int flags = access == Access::read    ? SQLITE_OPEN_READONLY
                    : access == Access::write ? SQLITE_OPEN_READWRITE
                                              : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  beside_ = open_beside(witness_path_, flags);
  return beside_ != nullptr;
}

std::optional<Witness> CheckedFiles::read_witness() {
  std::string bytes(kWitnessBytes, '\0');
  if (!beside_) return std::nullopt;
  auto* const real = beside_->real();
  if (real->pMethods->xRead(real, bytes.data(), static_cast<int>(bytes.size()), 0) != SQLITE_OK) return std::nullopt;
  return decode(bytes);
}

void CheckedFiles::write_witness(const Witness& witness) {
  if (!beside_) return;
  const std::string bytes = encode(witness);
  auto* const real = beside_->real();
  real->pMethods->xWrite(real, bytes.data(), static_cast<int>(bytes.size()), 0);
}

void CheckedFiles::sync_witness() {
  if (!beside_) return;
  auto* const real = beside_->real();
  if (real->pMethods->xSync(real, SQLITE_SYNC_NORMAL) != SQLITE_OK)
    throw Fault(FaultKind::io, "the file beside the database could not be synced");
}

CheckedFiles::MovedLog CheckedFiles::moved_log(const Witness& witness) {
  const Opened file = witness.moved ? open_beside(log_path_, SQLITE_OPEN_READONLY) : nullptr;
  if (!file) return MovedLog::none;
  const LogWalk walk = walk_file(file->real(), witness.last);
  if (walk.last == witness.last) return MovedLog::whole;
  return walk.last.salts == witness.last.salts && !walk.reaches ? MovedLog::harmed : MovedLog::none;
}

void CheckedFiles::empty_log() {
  const Opened file = open_beside(log_path_, SQLITE_OPEN_READWRITE);
  const std::string nothing(kLogHeaderBytes, '\0');
  auto* const real = file ? file->real() : nullptr;
  const bool done = real != nullptr &&
                    real->pMethods->xWrite(real, nothing.data(), static_cast<int>(nothing.size()), 0) == SQLITE_OK &&
                    real->pMethods->xSync(real, SQLITE_SYNC_NORMAL) == SQLITE_OK;
  if (!done) throw Fault(FaultKind::io, "a log that is over could not be emptied");
}

LogWalk CheckedFiles::walk_log(const std::optional<LogPlace>& wanted) {
  return log_ == nullptr ? LogWalk{} : walk_file(log_->real(), wanted);
}

std::optional<LogPlace> CheckedFiles::place_in_log(std::int64_t frames) {
  if (log_ == nullptr || page_bytes_ == 0) return std::nullopt;
  char header[kFrameHeaderBytes];
  auto* const real = log_->real();
  const std::int64_t at = static_cast<std::int64_t>(kLogHeaderBytes) +
                          (frames - 1) * (static_cast<std::int64_t>(kFrameHeaderBytes) + page_bytes_);
  if (real->pMethods->xRead(real, header, sizeof header, at) != SQLITE_OK) return std::nullopt;
  return place_of({header, sizeof header}, frames);
}

void CheckedFiles::check_pages(std::int64_t page_bytes) { page_bytes_ = page_bytes; }

void CheckedFiles::forget_digests() {
  unwritten_.clear();
  if (beside_) beside_->real()->pMethods->xTruncate(beside_->real(), kDigestsAt);
}

std::uint64_t CheckedFiles::digest_of(std::int64_t page, std::string_view bytes) const {
  return vouched(static_cast<std::uint32_t>(checksum_of(bytes, static_cast<std::uint64_t>(page))), page);
}

// 0: none.
std::uint64_t CheckedFiles::stored_digest(std::int64_t page) {
  const auto found = unwritten_.find(page);
  if (found != unwritten_.end()) return found->second;
  std::uint64_t stored = 0;
  if (!beside_) return 0;
  auto* const real = beside_->real();
  if (real->pMethods->xRead(real, &stored, kDigestBytes, digest_at(page)) != SQLITE_OK) return 0;
  return stored == vouched(static_cast<std::uint32_t>(stored), page) ? stored : 0;
}

bool CheckedFiles::is_whole(std::int64_t page, std::string_view bytes) {
  const std::uint64_t stored = stored_digest(page);
  return stored == 0 || stored == digest_of(page, bytes);
}

bool CheckedFiles::check_page(std::int64_t page, std::string_view bytes) {
  if (is_whole(page, bytes)) return true;
  const bool known = std::find(harmed_.begin(), harmed_.end(), page) != harmed_.end();
  if (!known && harmed_.size() < kHarmedMax) {
    harmed_.push_back(page);
    log::error("store.page_harmed", "a page of the database is not as it was written; what it holds cannot be read",
               {{"page", page}});
  }
  return false;
}

// Neighbours go together: a checkpoint writes its pages in their order.
int CheckedFiles::flush_digests() {
  if (!beside_) unwritten_.clear();
  auto next = unwritten_.begin();
  while (next != unwritten_.end()) {
    const std::int64_t first = next->first;
    std::vector<std::uint64_t> run;
    for (; next != unwritten_.end() && next->first == first + static_cast<std::int64_t>(run.size()); ++next)
      run.push_back(next->second);
    auto* const real = beside_->real();
    const int code =
        real->pMethods->xWrite(real, run.data(), static_cast<int>(run.size() * kDigestBytes), digest_at(first));
    if (code != SQLITE_OK) return code;
  }
  unwritten_.clear();
  return beside_ ? beside_->real()->pMethods->xSync(beside_->real(), SQLITE_SYNC_NORMAL) : SQLITE_OK;
}

int CheckedFiles::cut_digests(std::int64_t pages) {
  unwritten_.erase(unwritten_.upper_bound(pages), unwritten_.end());
  if (!beside_) return SQLITE_OK;
  auto* const real = beside_->real();
  sqlite3_int64 bytes = 0;
  const std::int64_t wanted = digest_at(pages + 1);
  if (real->pMethods->xFileSize(real, &bytes) != SQLITE_OK) return SQLITE_IOERR_TRUNCATE;
  return bytes > wanted ? real->pMethods->xTruncate(real, wanted) : SQLITE_OK;
}

// For so many pages there is room; a page behind the last one was never written.
std::int64_t CheckedFiles::digests() {
  sqlite3_int64 bytes = 0;
  if (!beside_ || beside_->real()->pMethods->xFileSize(beside_->real(), &bytes) != SQLITE_OK) return 0;
  return std::max<std::int64_t>(bytes - kDigestsAt, 0) / static_cast<std::int64_t>(kDigestBytes);
}

PageReport CheckedFiles::examine_pages(const LogWalk& log) {
  PageReport report;
  sqlite3_int64 bytes = 0;
  if (database_ == nullptr || page_bytes_ == 0) return report;
  auto* const real = database_->real();
  if (real->pMethods->xFileSize(real, &bytes) != SQLITE_OK) return report;
  std::string page(static_cast<std::size_t>(page_bytes_), '\0');
  report.pages = std::max<std::int64_t>(bytes / page_bytes_, digests());
  for (std::int64_t number = 1; number <= report.pages; ++number) {
    if (log.pages.contains(static_cast<std::uint32_t>(number))) {
      ++report.covered;  // by the log
      continue;
    }
    if (stored_digest(number) == 0) continue;
    ++report.covered;
    const int code =
        real->pMethods->xRead(real, page.data(), static_cast<int>(page_bytes_), (number - 1) * page_bytes_);
    if (code == SQLITE_OK && is_whole(number, page)) continue;
    ++report.harmed;
    if (report.examples.size() < kHarmedMax) report.examples.push_back(number);
  }
  return report;
}

}  // namespace belfry::store::sqlite
