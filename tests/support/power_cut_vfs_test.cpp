#include "tests/support/power_cut_vfs.h"

#include <sqlite3.h>

#include <array>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "belfry/store/sqlite/sqlite_connection.h"

namespace belfry::testing {
namespace {

// A file on the disk, opened as SQLite would.
class OpenFile {
 public:
  OpenFile(Disk& disk, std::string name) : name_(std::move(name)) {
    sqlite3_vfs* const vfs = sqlite3_vfs_find(disk.vfs_name().c_str());
    memory_ =
        std::make_unique<std::max_align_t[]>(static_cast<std::size_t>(vfs->szOsFile) / sizeof(std::max_align_t) + 1);
    file_ = reinterpret_cast<sqlite3_file*>(memory_.get());
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MAIN_DB;
    EXPECT_EQ(vfs->xOpen(vfs, name_.c_str(), file_, flags, nullptr), SQLITE_OK);
  }
  ~OpenFile() { file_->pMethods->xClose(file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int write(sqlite3_int64 at, const std::string& bytes) {
    return file_->pMethods->xWrite(file_, bytes.data(), static_cast<int>(bytes.size()), at);
  }
  int truncate(sqlite3_int64 size) { return file_->pMethods->xTruncate(file_, size); }
  int sync() { return file_->pMethods->xSync(file_, SQLITE_SYNC_NORMAL); }
  int lock(int level) { return file_->pMethods->xLock(file_, level); }
  std::string all() {
    sqlite3_int64 size = 0;
    if (file_->pMethods->xFileSize(file_, &size) != SQLITE_OK) return "(dead)";
    std::string bytes(static_cast<std::size_t>(size), '?');
    EXPECT_EQ(file_->pMethods->xRead(file_, bytes.data(), static_cast<int>(size), 0), SQLITE_OK);
    return bytes;
  }

 private:
  std::string name_;
  std::unique_ptr<std::max_align_t[]> memory_;
  sqlite3_file* file_ = nullptr;
};

int remove(Disk& disk, const char* name, bool sync_directory) {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(disk.vfs_name().c_str());
  return vfs->xDelete(vfs, name, sync_directory);
}

bool exists(Disk& disk, const char* name) {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(disk.vfs_name().c_str());
  int answer = 0;
  vfs->xAccess(vfs, name, SQLITE_ACCESS_EXISTS, &answer);
  return answer != 0;
}

std::string after_cut(Disk& disk, const char* name) {
  disk.cut();
  disk.reboot();
  return exists(disk, name) ? OpenFile(disk, name).all() : "(none)";
}

// G1
TEST(Disk, SyncedDataSurvivesEveryCut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Disk disk(random);
    {
      OpenFile file(disk, "a");
      EXPECT_EQ(file.write(0, std::string(3000, 'x')), SQLITE_OK);
      EXPECT_EQ(file.truncate(2000), SQLITE_OK);
      EXPECT_EQ(file.sync(), SQLITE_OK);
      EXPECT_EQ(disk.bytes_unsynced(), 0u);
    }

    EXPECT_EQ(after_cut(disk, "a"), std::string(2000, 'x')) << seed;
  }
}

TEST(Disk, UnsyncedWritesAreKeptDroppedReorderedOrTornAtSectors) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SeededRandom random(seed);
    Disk disk(random);
    {
      OpenFile file(disk, "a");
      file.write(0, std::string(2048, '-'));
      file.sync();
      file.write(0, std::string(1024, '1'));
      file.write(1024, std::string(1024, '2'));
    }

    const std::string found = after_cut(disk, "a");

    ASSERT_EQ(found.size(), 2048u);
    std::string sectors;
    for (std::size_t at = 0; at < found.size(); at += 512) {
      sectors += found[at];
      EXPECT_EQ(found.substr(at, 512), std::string(512, found[at])) << "a sector is torn";
    }
    outcomes.insert(sectors);
  }
  EXPECT_TRUE(outcomes.contains("----"));
  EXPECT_TRUE(outcomes.contains("1122"));
  EXPECT_TRUE(outcomes.contains("11--"));
  EXPECT_TRUE(outcomes.contains("--22")) << "the later write alone";
  EXPECT_TRUE(outcomes.contains("1-2-"));
  EXPECT_EQ(outcomes.size(), 16u);
}

TEST(Disk, UnsyncedTruncationsCreationsAndDeletionsMayOrMayNotSurvive) {
  std::set<std::string> truncated;
  std::set<bool> created;
  std::set<bool> deleted;
  std::set<std::string> made_anew;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    Disk disk(random);
    for (const char* name : {"truncated", "deleted", "anew"}) {
      OpenFile file(disk, name);
      file.write(0, "old");
      file.sync();
    }
    OpenFile(disk, "truncated").truncate(1);
    OpenFile(disk, "created").write(0, "new");
    remove(disk, "deleted", false);
    remove(disk, "anew", false);
    OpenFile(disk, "anew").write(0, "new!");

    truncated.insert(after_cut(disk, "truncated"));
    created.insert(exists(disk, "created"));
    deleted.insert(!exists(disk, "deleted"));
    if (exists(disk, "anew")) made_anew.insert(OpenFile(disk, "anew").all());
  }
  EXPECT_EQ(truncated, (std::set<std::string>{"old", "o"}));
  EXPECT_EQ(created.size(), 2u);
  EXPECT_EQ(deleted.size(), 2u);
  EXPECT_TRUE(made_anew.contains("old"));
  EXPECT_TRUE(made_anew.contains("new!"));
}

TEST(Disk, DeletionWithItsDirectorySyncedIsFinal) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SeededRandom random(seed);
    Disk disk(random);
    {
      OpenFile file(disk, "a");
      file.write(0, "old");
      file.sync();
    }
    EXPECT_EQ(remove(disk, "a", true), SQLITE_OK);

    EXPECT_EQ(after_cut(disk, "a"), "(none)");
  }
}

TEST(Disk, PlannedCutFailsThatChangeAndAllLaterOperationsUntilReboot) {
  SeededRandom random(1);
  Disk disk(random);
  OpenFile file(disk, "a");
  disk.cut_at(3);

  EXPECT_EQ(file.write(0, "one"), SQLITE_OK);
  EXPECT_EQ(file.sync(), SQLITE_OK);
  EXPECT_EQ(file.write(3, "two"), SQLITE_IOERR_WRITE);
  EXPECT_FALSE(disk.running());
  EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
  EXPECT_EQ(file.all(), "(dead)");

  disk.reboot();
  EXPECT_EQ(file.write(0, "ghost"), SQLITE_IOERR_WRITE) << "a file opened before the cut stays dead";
  EXPECT_EQ(OpenFile(disk, "a").all().substr(0, 3), "one");
}

TEST(Disk, KilledProcessLosesNothingItWrote) {
  SeededRandom random(1);
  Disk disk(random);
  OpenFile file(disk, "a");
  file.write(0, "unsynced");

  disk.halt();
  EXPECT_EQ(file.write(0, "x"), SQLITE_IOERR_WRITE);
  disk.reboot();

  EXPECT_EQ(OpenFile(disk, "a").all(), "unsynced");
  EXPECT_EQ(disk.bytes_unsynced(), 8u) << "a power cut may still take it";
}

TEST(Disk, NthOperationFailsOnceOrForGood) {
  SeededRandom random(1);
  Disk disk(random);
  OpenFile file(disk, "a");

  disk.fail_at(Operation::write, 2, DiskError::no_space, Lasting::once);
  EXPECT_EQ(file.write(0, "a"), SQLITE_OK);
  EXPECT_FALSE(disk.failed());
  EXPECT_EQ(file.write(0, "b"), SQLITE_FULL);
  EXPECT_TRUE(disk.failed());
  EXPECT_EQ(file.write(0, "c"), SQLITE_OK);

  disk.fail_at(Operation::any, 1, DiskError::io, Lasting::for_good);
  EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
  EXPECT_EQ(file.truncate(0), SQLITE_IOERR_TRUNCATE);
  EXPECT_EQ(file.write(0, "d"), SQLITE_IOERR_WRITE);

  disk.heal();
  EXPECT_EQ(file.write(0, "e"), SQLITE_OK);
}

// G2: an fsync that failed must never be tried again and believed.
TEST(Disk, FailedSyncLosesDataThatLaterSyncsDoNotBringBack) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    Disk disk(random);
    {
      OpenFile file(disk, "a");
      file.write(0, "old");
      file.sync();
      file.write(0, "new");
      disk.fail_at(Operation::sync, 1, DiskError::io, Lasting::once);
      EXPECT_EQ(file.sync(), SQLITE_IOERR_FSYNC);
      EXPECT_EQ(file.all(), "new");
      EXPECT_EQ(file.sync(), SQLITE_OK);
    }
    found.insert(after_cut(disk, "a"));
  }
  EXPECT_EQ(found, (std::set<std::string>{"new", "old"}));
}

// G17
TEST(Disk, FullDiskTakesOverwritesButNoGrowth) {
  SeededRandom random(1);
  Disk disk(random);
  OpenFile file(disk, "a");
  disk.set_capacity(1000);

  EXPECT_TRUE(disk.set_aside(400));
  EXPECT_EQ(file.write(0, std::string(600, 'a')), SQLITE_OK);
  EXPECT_EQ(file.write(100, std::string(500, 'b')), SQLITE_OK);
  EXPECT_EQ(file.write(600, "c"), SQLITE_FULL);
  EXPECT_FALSE(disk.set_aside(1));

  disk.give_back();
  EXPECT_EQ(file.write(600, std::string(400, 'c')), SQLITE_OK);
  EXPECT_EQ(disk.bytes_used(), 1000u);
}

TEST(Disk, SameSeedGivesTheSameDisk) {
  std::set<std::string> found;
  for (int run = 0; run < 3; ++run) {
    SeededRandom random(42);
    Disk disk(random);
    {
      OpenFile file(disk, "a");
      for (int i = 0; i < 20; ++i) file.write(i * 700, std::string(1500, static_cast<char>('a' + i)));
    }
    found.insert(after_cut(disk, "a"));
  }
  EXPECT_EQ(found.size(), 1u);
}

// G21
TEST(Disk, ExclusiveLockKeepsOthersOut) {
  SeededRandom random(1);
  Disk disk(random);
  const store::sqlite::Options options{.path = "belfry.db", .vfs = disk.vfs_name()};
  const auto first = store::sqlite::open(options);

  try {
    store::sqlite::open(options);
    FAIL() << "a second owner came in";
  } catch (const store::Fault& fault) {
    EXPECT_EQ(fault.kind(), store::FaultKind::in_use);
  }

  disk.halt();
  disk.reboot();
  EXPECT_NO_THROW(store::sqlite::open(options)) << "the dead hold no locks";
}

TEST(Disk, RunsSqliteInWalModeWithoutSharedMemory) {
  SeededRandom random(1);
  Disk disk(random);
  Disk other(random);
  {
    const auto connection = store::sqlite::open({.path = "belfry.db", .vfs = disk.vfs_name()});
    connection->execute("CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    EXPECT_TRUE(exists(disk, "belfry.db-wal"));
    EXPECT_GT(connection->checkpoint(), 0);
    connection->execute("INSERT INTO t VALUES(2)");
  }
  EXPECT_EQ(other.counters().all(), 0) << "disks are independent";

  const auto connection = store::sqlite::open({.path = "belfry.db", .vfs = disk.vfs_name()});
  auto rows = connection->query("SELECT sum(x) FROM t");
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 3);
  EXPECT_EQ(connection->integrity_problem(), "");
}

}  // namespace
}  // namespace belfry::testing
