#include "tests/support/power_cut_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "belfry/base/assert.h"

namespace belfry::testing {
namespace {

constexpr std::size_t kSector = 512;
constexpr sqlite3_int64 kJulianNoon = 2'461'101LL * 86'400'000;  // 2026-03-01T12:00Z: the disk has no clock of its own

struct Change {
  Operation kind;  // write or truncate
  std::size_t at;  // where the bytes go, or the new size
  std::string bytes;
};

struct Handle;

// A file apart from its name: a name may come to mean another file before the directory is synced.
struct File {
  std::string seen;     // what readers see
  std::string durable;  // what the platter has
  std::vector<Change> unsynced;
  std::vector<Handle*> open;
};

struct Handle : sqlite3_file {
  void* disk = nullptr;
  std::shared_ptr<File> file;
  std::string name;  // empty: a temporary file without one
  int lock = SQLITE_LOCK_NONE;
  int life = 0;
  int persist_wal = 0;
  bool delete_on_close = false;
  bool directory_too = false;  // the next sync is also one of the directory
};

void put(std::string& bytes, std::size_t at, std::string_view piece) {
  if (bytes.size() < at + piece.size()) bytes.resize(at + piece.size());
  piece.copy(bytes.data() + at, piece.size());
}

void apply(std::string& bytes, const Change& change) {
  if (change.kind == Operation::truncate) {
    bytes.resize(std::min(bytes.size(), change.at));
  } else {
    put(bytes, change.at, change.bytes);
  }
}

enum class Fate { kept, dropped, torn };

class Lots {
 public:
  explicit Lots(Random& random) : random_(random) {}

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.next() % bound); }
  bool coin() { return below(2) == 0; }

  // Decides what the platter has of `file` when its unsynced changes were interrupted.
  void settle(File& file) {
    const std::vector<Fate> fates = draw(file.unsynced.size());
    for (std::size_t i = 0; i < fates.size(); ++i) {
      const Change& change = file.unsynced[i];
      if (fates[i] == Fate::kept) {
        apply(file.durable, change);
      } else if (change.kind == Operation::write && fates[i] == Fate::torn) {
        tear(file.durable, change);
      } else if (change.kind == Operation::write && below(8) == 0) {
        grow_without_data(file.durable, change);
      }
    }
    file.unsynced.clear();
  }

 private:
  // Whole-or-nothing and in-order outcomes are rare among independent lots, and bugs hide there too.
  std::vector<Fate> draw(std::size_t count) {
    std::vector<Fate> fates(count, Fate::dropped);
    if (count == 0) return fates;
    switch (below(5)) {
      case 0: break;
      case 1: std::fill(fates.begin(), fates.end(), Fate::kept); break;
      case 2: {
        const std::size_t last = below(count);
        std::fill_n(fates.begin(), last, Fate::kept);
        fates[last] = Fate::torn;
        break;
      }
      default:
        for (Fate& fate : fates) fate = static_cast<Fate>(below(3));
    }
    return fates;
  }

  void tear(std::string& bytes, const Change& change) {
    const std::string_view all = change.bytes;
    for (std::size_t used = 0; used < all.size();) {
      const std::size_t at = change.at + used;
      const std::size_t length = std::min(kSector - at % kSector, all.size() - used);
      if (coin()) put(bytes, at, all.substr(used, length));
      used += length;
    }
  }

  // The new size reached the disk, the data did not: zeros or whatever lay there.
  void grow_without_data(std::string& bytes, const Change& change) {
    const std::size_t size = change.at + change.bytes.size();
    const bool garbage = coin();
    while (bytes.size() < size) bytes += garbage ? static_cast<char>(random_.next()) : '\0';
  }

  Random& random_;
};

enum class Outcome { good, dead, io_error, no_space };

}  // namespace

struct Disk::Impl {
  explicit Impl(Random& random) : lots(random) {}

  Lots lots;
  std::string vfs_name;
  sqlite3_vfs vfs{};
  std::map<std::string, std::shared_ptr<File>, std::less<>> seen_names;
  std::map<std::string, std::shared_ptr<File>, std::less<>> durable_names;
  int open_handles = 0;
  int life = 0;  // counts reboots
  bool running = true;
  Counters counters;
  std::size_t capacity = kUnlimited;
  std::size_t aside = 0;
  std::int64_t changes_until_cut = 0;  // 0: none is planned
  // True for the change at which the power goes.
  bool counts_down_to_cut() {
    if (changes_until_cut == 0) return false;
    --changes_until_cut;
    return changes_until_cut == 0;
  }

  struct Fault {
    Operation operation;
    std::int64_t wait;
    DiskError error;
    Lasting lasting;
  };
  std::optional<Fault> fault;
  bool failed = false;

  std::int64_t& counter(Operation operation) {
    switch (operation) {
      case Operation::open: return counters.opens;
      case Operation::read: return counters.reads;
      case Operation::write: return counters.writes;
      case Operation::truncate: return counters.truncates;
      case Operation::sync: return counters.syncs;
      case Operation::remove: return counters.removes;
      case Operation::any: break;
    }
    assertion_failed("a single operation", __FILE__, __LINE__);
  }

  // Every operation passes here first. `dead` also when the power goes just now.
  Outcome enter(Operation operation) {
    if (!running) return Outcome::dead;
    ++counter(operation);
    const bool changes = operation != Operation::open && operation != Operation::read;
    if (changes && counts_down_to_cut()) {
      power_is_going = true;
      return Outcome::good;
    }
    if (!fault || (fault->operation != Operation::any && fault->operation != operation)) return Outcome::good;
    if (fault->wait > 1) {
      --fault->wait;
      return Outcome::good;
    }
    failed = true;
    const Outcome outcome = fault->error == DiskError::io ? Outcome::io_error : Outcome::no_space;
    if (fault->lasting == Lasting::once) fault.reset();
    return outcome;
  }

  // Set between enter() and leave() of the operation in whose middle the power goes.
  bool power_is_going = false;
  bool interrupted() {
    if (!std::exchange(power_is_going, false)) return false;
    cut();
    return true;
  }

  void cut() {
    std::set<std::string> names;
    for (const auto& [name, file] : seen_names) names.insert(name);
    for (const auto& [name, file] : durable_names) names.insert(name);
    for (const std::string& name : names) {
      const auto seen = seen_names.find(name);
      const auto durable = durable_names.find(name);
      const bool same = seen != seen_names.end() && durable != durable_names.end() && seen->second == durable->second;
      if (same || lots.coin()) continue;
      if (seen == seen_names.end()) {
        durable_names.erase(durable);
      } else {
        durable_names[name] = seen->second;
      }
    }
    for (auto& [name, file] : durable_names) {
      lots.settle(*file);
      file->seen = file->durable;
    }
    seen_names = durable_names;
    stop();
  }

  void stop() {
    running = false;
    changes_until_cut = 0;
  }

  std::size_t used() const {
    std::size_t sum = aside;
    for (const auto& [name, file] : seen_names) sum += file->seen.size();
    return sum;
  }

  void write(File& file, std::size_t at, std::string_view bytes) {
    put(file.seen, at, bytes);
    file.unsynced.push_back({Operation::write, at, std::string(bytes)});
  }

  void make_durable(Handle& handle) {
    File& file = *handle.file;
    for (const Change& change : file.unsynced) apply(file.durable, change);
    file.unsynced.clear();
    if (std::exchange(handle.directory_too, false)) {
      durable_names = seen_names;
    } else if (const auto named = seen_names.find(handle.name);
               named != seen_names.end() && named->second == handle.file) {
      durable_names[handle.name] = handle.file;
    }
  }
};

struct Disk::Vfs {
  static Handle& of(sqlite3_file* file) { return *static_cast<Handle*>(file); }
  static Impl& disk_of(const Handle& handle) { return *static_cast<Impl*>(handle.disk); }
  static Impl& disk_of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }

  static Outcome enter(Handle& handle, Operation operation) {
    Impl& disk = disk_of(handle);
    return handle.life == disk.life ? disk.enter(operation) : Outcome::dead;
  }
  static bool alive(const Handle& handle) {
    const Impl& disk = disk_of(handle);
    return disk.running && handle.life == disk.life;
  }

  static int read(sqlite3_file* file, void* into, int amount, sqlite3_int64 offset) {
    Handle& handle = of(file);
    if (enter(handle, Operation::read) != Outcome::good) return SQLITE_IOERR_READ;
    const std::string& bytes = handle.file->seen;
    const auto at = static_cast<std::size_t>(offset);
    const auto wanted = static_cast<std::size_t>(amount);
    const std::size_t there = at < bytes.size() ? std::min(wanted, bytes.size() - at) : 0;
    auto* const out = static_cast<char*>(into);
    if (there > 0) std::copy_n(bytes.data() + at, there, out);
    std::memset(out + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
  }

  static int write(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
    Handle& handle = of(file);
    Impl& disk = disk_of(handle);
    Outcome outcome = enter(handle, Operation::write);
    if (outcome == Outcome::dead) return SQLITE_IOERR_WRITE;
    const auto at = static_cast<std::size_t>(offset);
    std::string_view bytes(static_cast<const char*>(from), static_cast<std::size_t>(amount));
    const std::size_t size = handle.file->seen.size();
    const std::size_t end = at + bytes.size();
    const std::size_t used = disk.used();
    const std::size_t room = disk.capacity > used ? disk.capacity - used : 0;
    if (outcome == Outcome::good && end > size && end - size > room) {
      outcome = Outcome::no_space;
      const std::size_t fits = size + room;
      bytes = bytes.substr(0, fits > at ? fits - at : 0);
      if (!bytes.empty()) disk.write(*handle.file, at, bytes);
    } else if (outcome == Outcome::good) {
      disk.write(*handle.file, at, bytes);
    } else {
      bytes = bytes.substr(0, disk.lots.below(bytes.size() + 1));
      if (!bytes.empty()) disk.write(*handle.file, at, bytes);
    }
    if (disk.interrupted()) return SQLITE_IOERR_WRITE;
    switch (outcome) {
      case Outcome::good: return SQLITE_OK;
      case Outcome::no_space: return SQLITE_FULL;
      default: return SQLITE_IOERR_WRITE;
    }
  }

  static int truncate(sqlite3_file* file, sqlite3_int64 size) {
    Handle& handle = of(file);
    if (enter(handle, Operation::truncate) != Outcome::good) return SQLITE_IOERR_TRUNCATE;
    const Change change{Operation::truncate, static_cast<std::size_t>(size), {}};
    apply(handle.file->seen, change);
    handle.file->unsynced.push_back(change);
    return disk_of(handle).interrupted() ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
  }

  static int sync(sqlite3_file* file, int) {
    Handle& handle = of(file);
    Impl& disk = disk_of(handle);
    const Outcome outcome = enter(handle, Operation::sync);
    if (outcome == Outcome::dead || disk.interrupted()) return SQLITE_IOERR_FSYNC;
    if (outcome == Outcome::good) {
      disk.make_durable(handle);
      return SQLITE_OK;
    }
    disk.lots.settle(*handle.file);  // and it counts as clean from now on
    return SQLITE_IOERR_FSYNC;
  }

  static int file_size(sqlite3_file* file, sqlite3_int64* size) {
    if (!alive(of(file))) return SQLITE_IOERR_FSTAT;
    *size = static_cast<sqlite3_int64>(of(file).file->seen.size());
    return SQLITE_OK;
  }

  static int lock(sqlite3_file* file, int wanted) {
    Handle& handle = of(file);
    if (!alive(handle)) return SQLITE_IOERR_LOCK;
    if (handle.lock >= wanted) return SQLITE_OK;
    int others = SQLITE_LOCK_NONE;
    for (const Handle* other : handle.file->open)
      if (other != &handle) others = std::max(others, other->lock);
    const int conflict = wanted == SQLITE_LOCK_SHARED     ? SQLITE_LOCK_PENDING
                         : wanted == SQLITE_LOCK_RESERVED ? SQLITE_LOCK_RESERVED
                                                          : SQLITE_LOCK_SHARED;
    if (others >= conflict) {
      if (wanted == SQLITE_LOCK_EXCLUSIVE && others < SQLITE_LOCK_RESERVED) handle.lock = SQLITE_LOCK_PENDING;
      return SQLITE_BUSY;
    }
    handle.lock = wanted;
    return SQLITE_OK;
  }

  static int unlock(sqlite3_file* file, int level) {
    of(file).lock = std::min(of(file).lock, level);
    return SQLITE_OK;
  }

  static int check_reserved(sqlite3_file* file, int* reserved) {
    const auto& open = of(file).file->open;
    *reserved = std::any_of(open.begin(), open.end(), [](auto* h) { return h->lock >= SQLITE_LOCK_RESERVED; });
    return SQLITE_OK;
  }

  static int control(sqlite3_file* file, int what, void* argument) {
    if (what != SQLITE_FCNTL_PERSIST_WAL) return SQLITE_NOTFOUND;
    int& value = *static_cast<int*>(argument);
    if (value < 0) {
      value = of(file).persist_wal;
    } else {
      of(file).persist_wal = value != 0;
    }
    return SQLITE_OK;
  }

  // As SQLite's own VFS answers on Linux: a torn write harms nothing beyond its range.
  static int sector_size(sqlite3_file*) { return 4096; }
  static int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

  static int close(sqlite3_file* file) {
    Handle& handle = of(file);
    Impl& disk = disk_of(handle);
    std::erase(handle.file->open, &handle);
    if (handle.delete_on_close && alive(handle)) disk.seen_names.erase(handle.name);
    --disk.open_handles;
    std::destroy_at(&handle);
    return SQLITE_OK;
  }

  // Version 1, without shared memory: an exclusive lock before WAL mode needs none.
  static constexpr sqlite3_io_methods kMethods = {
      1,       close,          read,    write,       truncate,        sync,    file_size, lock,
      unlock,  check_reserved, control, sector_size, characteristics, nullptr, nullptr,   nullptr,
      nullptr, nullptr,        nullptr};

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* into, int flags, int* out_flags) {
    into->pMethods = nullptr;
    Impl& disk = disk_of(vfs);
    if (disk.enter(Operation::open) != Outcome::good) return SQLITE_CANTOPEN;
    const std::string name = path ? path : "";
    const auto found = path ? disk.seen_names.find(name) : disk.seen_names.end();
    std::shared_ptr<File> file = found != disk.seen_names.end() ? found->second : nullptr;
    if (!file) {
      if (!(flags & SQLITE_OPEN_CREATE)) return SQLITE_CANTOPEN;
      file = std::make_shared<File>();
      if (path) disk.seen_names[name] = file;
    }
    auto* const handle = new (into) Handle;
    handle->pMethods = &kMethods;
    handle->disk = &disk;
    handle->file = file;
    handle->name = name;
    handle->life = disk.life;
    handle->delete_on_close = path && (flags & SQLITE_OPEN_DELETEONCLOSE);
    // As SQLite's own VFS: the first sync of a journal or log that may be new is also one of the directory. Without it a
    // journal whose removal was lost would come back, and with it the database of the day before.
    constexpr int kJournals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    handle->directory_too = (flags & SQLITE_OPEN_CREATE) && (flags & kJournals);
    file->open.push_back(handle);
    ++disk.open_handles;
    if (out_flags) *out_flags = flags;
    return SQLITE_OK;
  }

  static int remove(sqlite3_vfs* vfs, const char* path, int sync_directory) {
    Impl& disk = disk_of(vfs);
    if (disk.enter(Operation::remove) != Outcome::good) return SQLITE_IOERR_DELETE;
    const bool there = disk.seen_names.erase(path) > 0;
    if (disk.interrupted()) return SQLITE_IOERR_DELETE;
    if (!there) return SQLITE_IOERR_DELETE_NOENT;
    if (sync_directory) disk.durable_names = disk.seen_names;
    return SQLITE_OK;
  }

  static int access(sqlite3_vfs* vfs, const char* path, int how, int* answer) {
    const Impl& disk = disk_of(vfs);
    if (!disk.running) return SQLITE_IOERR_ACCESS;
    const auto found = disk.seen_names.find(path);
    // An empty file counts as none where existence is asked, as in SQLite's own VFS.
    *answer = found != disk.seen_names.end() && (how != SQLITE_ACCESS_EXISTS || !found->second->seen.empty());
    return SQLITE_OK;
  }

  static int full_path(sqlite3_vfs*, const char* path, int size, char* out) {
    sqlite3_snprintf(size, out, "%s", path);
    return SQLITE_OK;
  }
  static int randomness(sqlite3_vfs* vfs, int size, char* out) {
    for (int i = 0; i < size; ++i) out[i] = static_cast<char>(disk_of(vfs).lots.below(256));
    return size;
  }
  static int sleep(sqlite3_vfs*, int micros) { return micros; }
  static int last_error(sqlite3_vfs*, int, char*) { return 0; }
  static int julian_day(sqlite3_vfs*, double* day) {
    *day = static_cast<double>(kJulianNoon) / 86'400'000.0;
    return SQLITE_OK;
  }
  static int julian_millis(sqlite3_vfs*, sqlite3_int64* millis) {
    *millis = kJulianNoon;
    return SQLITE_OK;
  }

  static void enlist(Impl& disk) {
    static std::atomic<int> disks{0};
    disk.vfs_name = "power-cut-" + std::to_string(++disks);
    disk.vfs.iVersion = 2;
    disk.vfs.szOsFile = sizeof(Handle);
    disk.vfs.mxPathname = 512;
    disk.vfs.zName = disk.vfs_name.c_str();
    disk.vfs.pAppData = &disk;
    disk.vfs.xOpen = open;
    disk.vfs.xDelete = remove;
    disk.vfs.xAccess = access;
    disk.vfs.xFullPathname = full_path;
    disk.vfs.xRandomness = randomness;
    disk.vfs.xSleep = sleep;
    disk.vfs.xCurrentTime = julian_day;
    disk.vfs.xGetLastError = last_error;
    disk.vfs.xCurrentTimeInt64 = julian_millis;
    BELFRY_ASSERT(sqlite3_vfs_register(&disk.vfs, 0) == SQLITE_OK);
  }
};

Disk::Disk(Random& random) : impl_(std::make_unique<Impl>(random)) { Vfs::enlist(*impl_); }

Disk::~Disk() {
  BELFRY_ASSERT(impl_->open_handles == 0);
  sqlite3_vfs_unregister(&impl_->vfs);
}

std::string Disk::vfs_name() const { return impl_->vfs_name; }

void Disk::cut() {
  if (impl_->running) impl_->cut();
}

void Disk::cut_at(std::int64_t n) { impl_->changes_until_cut = n; }

void Disk::halt() { impl_->stop(); }

void Disk::reboot() {
  if (impl_->running) return;
  ++impl_->life;
  impl_->running = true;
  for (auto& [name, file] : impl_->seen_names) file->open.clear();  // the dead hold no locks
}

bool Disk::running() const { return impl_->running; }

void Disk::fail_at(Operation operation, std::int64_t n, DiskError error, Lasting lasting) {
  impl_->fault = Impl::Fault{operation, n, error, lasting};
  impl_->failed = false;
}

void Disk::heal() { impl_->fault.reset(); }

bool Disk::failed() const { return impl_->failed; }

void Disk::set_capacity(std::size_t bytes) { impl_->capacity = bytes; }

bool Disk::set_aside(std::size_t bytes) {
  const std::size_t used = impl_->used();
  if (impl_->capacity < used || impl_->capacity - used < bytes) return false;
  impl_->aside += bytes;
  return true;
}

void Disk::give_back() { impl_->aside = 0; }

std::optional<std::string> Disk::contents(const std::string& name) const {
  const auto found = impl_->seen_names.find(name);
  return found == impl_->seen_names.end() ? std::nullopt : std::optional(found->second->seen);
}

void Disk::replace(const std::string& name, std::string contents) {
  auto file = std::make_shared<File>();
  file->seen = file->durable = std::move(contents);
  impl_->seen_names[name] = impl_->durable_names[name] = std::move(file);
}

void Disk::take_away(const std::string& name) {
  impl_->seen_names.erase(name);
  impl_->durable_names.erase(name);
}

const Disk::Counters& Disk::counters() const { return impl_->counters; }

std::size_t Disk::bytes_used() const { return impl_->used(); }

std::size_t Disk::bytes_unsynced() const {
  std::size_t sum = 0;
  for (const auto& [name, file] : impl_->seen_names)
    for (const Change& change : file->unsynced) sum += change.bytes.size();
  return sum;
}

}  // namespace belfry::testing
