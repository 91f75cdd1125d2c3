// A disk in memory whose power can be cut, as a SQLite VFS.
//
// What was written is seen by every reader at once but lies in a volatile cache until the file is synced. A power cut
// settles each unsynced write by lot: kept, dropped, or torn at 512-byte sectors, whatever became of the writes before
// it, so any order of reaching the platter is among the outcomes. Sizes, creations and deletions are drawn too. What was
// synced always survives.
//
// Each Disk is registered as a VFS of its own and is used by one thread at a time. It stands for one machine: after a cut
// every file opened before is dead, even when the power is back. All lots come from one Random, so a seed replays a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "belfry/base/random.h"

namespace belfry::testing {

enum class Operation { any, open, read, write, truncate, sync, remove };
enum class DiskError { io, no_space };  // EIO, ENOSPC
enum class Lasting { once, for_good };

class Disk {
 public:
  static constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

  explicit Disk(Random& random);  // `random` outlives the disk
  ~Disk();                        // all its files have been closed
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  std::string vfs_name() const;

  // The power goes now; every operation fails until reboot().
  void cut();
  // The power goes in the middle of the n-th change from now (write, truncate, sync or remove; counted from 1).
  void cut_at(std::int64_t n);
  // The process dies (kill -9): every operation fails until reboot(), but what was written stays, synced or not.
  void halt();
  void reboot();
  bool running() const;

  // The n-th such operation from now fails (counted from 1). A failed write may leave a part of itself behind. A failed
  // sync loses what it should have kept by lot, and no later sync brings it back, though readers still see it: that is
  // how Linux has it.
  void fail_at(Operation operation, std::int64_t n, DiskError error, Lasting lasting);
  void heal();
  bool failed() const;  // the error of fail_at() has struck

  // Files may grow until they hold so many bytes together; then writes fail as on a full disk.
  void set_capacity(std::size_t bytes);
  // Takes space away from the files, if there is as much: for a Reserve.
  bool set_aside(std::size_t bytes);
  void give_back();

  // What a reader finds in a file; nothing if there is no such file. And harm that comes from elsewhere: while nobody has it
  // open, a file is put there as somebody left it, or taken away.
  std::optional<std::string> contents(const std::string& name) const;
  void replace(const std::string& name, std::string contents);
  void take_away(const std::string& name);

  struct Counters {
    std::int64_t opens = 0;
    std::int64_t reads = 0;
    std::int64_t writes = 0;
    std::int64_t truncates = 0;
    std::int64_t syncs = 0;
    std::int64_t removes = 0;
    std::int64_t changes() const { return writes + truncates + syncs + removes; }
    std::int64_t all() const { return opens + reads + changes(); }
  };
  const Counters& counters() const;
  std::size_t bytes_used() const;
  std::size_t bytes_unsynced() const;

 private:
  struct Impl;
  struct Vfs;  // the functions that SQLite calls
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::testing
