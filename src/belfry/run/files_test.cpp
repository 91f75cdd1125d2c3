#include "belfry/run/files.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace belfry::run {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    fs::create_directories(root / "files/r1/0");
    write("files/r1/0/picture.png", "png");
    write("secret", "secret");
  }
  void write(const std::string& path, const std::string& text) { std::ofstream(root / path) << text; }
  Result<std::string> read(const std::string& run, int step, const std::string& name) {
    return read_file(root / "files", run, step, name);
  }

  testing::ScratchFolder scratch;
  const fs::path& root = scratch.path();
};

// F8
TEST_F(FilesTest, WhatAToolLeftCanBeRead) { EXPECT_EQ(*read("r1", 0, "picture.png"), "png"); }

// F8
TEST_F(FilesTest, NothingElseCan) {
  fs::create_symlink(root / "secret", root / "files/r1/0/link");
  fs::create_directory_symlink(root, root / "files/r1/1");
  fs::create_directory_symlink(root, root / "files/r2");
  fs::create_directory(root / "files/r1/0/folder");
  fs::create_hard_link(root / "secret", root / "files/r1/0/hard");
  write("files/r1/0/.hidden", "x");
  for (const auto& [run, step, name] :
       {std::tuple("r1", 0, "link"), std::tuple("r1", 1, "secret"), std::tuple("r2", 0, "secret"),
        std::tuple("r1", 0, "folder"), std::tuple("r1", 0, "hard"), std::tuple("r1", 0, ".hidden"),
        std::tuple("r1", 0, "../../../secret"), std::tuple("..", 0, "secret"), std::tuple(".", 0, "x"),
        std::tuple("r1/0", 0, "picture.png"), std::tuple("r1", 0, ""), std::tuple("", 0, "picture.png"),
        std::tuple("r1", -1, "picture.png"), std::tuple("r1", 0, "nobody")})
    EXPECT_FALSE(read(run, step, name).has_value()) << run << " " << step << " " << name;
}

class SyncTest : public FilesTest {
 protected:
  Result<> sync_all(int fails = 0) {
    return sync_files(root / "files", "r1", 0, [this, fails](int descriptor) {
      synced.push_back(fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor)).lexically_relative(root));
      errno = fails;
      return fails == 0 ? 0 : -1;
    });
  }
  std::vector<std::string> synced;
};

// G2: a folder's entry counts as much as what is in the file.
TEST_F(SyncTest, FilesComeBeforeTheFoldersThatNameThem) {
  fs::create_directories(root / "files/r1/0/a/b");
  write("files/r1/0/a/b/c", "x");
  fs::create_symlink(root / "secret", root / "files/r1/0/a/link");
  ASSERT_TRUE(sync_all().has_value());
  const auto place = [&](const char* path) { return std::ranges::find(synced, path) - synced.begin(); };
  EXPECT_LT(place("files/r1/0/a/b/c"), place("files/r1/0/a/b"));
  EXPECT_LT(place("files/r1/0/a/b"), place("files/r1/0/a"));
  EXPECT_LT(place("files/r1/0/picture.png"), place("files/r1/0"));
  EXPECT_LT(place("files/r1/0"), place("files/r1"));
  EXPECT_EQ(synced.back(), "files");
  EXPECT_EQ(synced.size(), 7u);
}

// G2
TEST_F(SyncTest, WhatTheDiskDoesNotTakeIsSaid) {
  const auto failed = sync_all(ENOSPC);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::storage_failed);
  EXPECT_TRUE(failed.error().detail.contains("No space left")) << failed.error().detail;
}

// G2, G15: of very many each would take its time; the file system knows what it has not written.
TEST_F(SyncTest, VeryManyAreSyncedAtOnce) {
  for (int i = 0; i < 200; ++i) write(fmt::format("files/r1/0/{}", i), "x");
  EXPECT_TRUE(sync_all().has_value());
  EXPECT_LE(synced.size(), 110u);
}

// G2
TEST_F(SyncTest, WhereNothingWasLeftNothingIsSynced) {
  fs::remove(root / "files/r1/0/picture.png");
  EXPECT_TRUE(sync_all().has_value());
  fs::remove(root / "files/r1/0");
  EXPECT_TRUE(sync_all().has_value());
  EXPECT_TRUE(synced.empty());
}

}  // namespace
}  // namespace belfry::run
