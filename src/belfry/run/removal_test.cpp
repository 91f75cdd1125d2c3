#include "belfry/run/removal.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/deep_folder.h"
#include "tests/support/scratch_folder.h"

namespace belfry::run {
namespace {

namespace fs = std::filesystem;
using State = Removal::State;

constexpr int kSlice = 128;

class RemovalTest : public ::testing::Test {
 protected:
  State remove_all() {
    Removal removal(root, "r1");
    State state = State::more;
    while (state == State::more) {
      state = removal.go_on(kSlice);
      descriptors_max = std::max(descriptors_max, descriptors());
    }
    why = removal.why();
    return state;
  }
  static std::ptrdiff_t descriptors() { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); }
  static std::size_t resident() {
    std::size_t size = 0;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  void write(const std::string& path, const std::string& text = "x") const { std::ofstream(root / path) << text; }
  // Whether the machine lets us.
  bool make_immutable(const fs::path& path, bool immutable) const {
    const Descriptor file(::open((root / path).c_str(), O_RDONLY | O_CLOEXEC));
    int flags = 0;
    if (::ioctl(file.number(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
    return ::ioctl(file.number(), FS_IOC_SETFLAGS, &flags) == 0;
  }

  testing::ScratchFolder scratch{testing::memory_folder()};
  const fs::path& root = scratch.path();
  std::ptrdiff_t descriptors_max = 0;
  std::string why;
};

// G18, G15: the names make paths of 4 MB, which nothing here may ever build.
TEST_F(RemovalTest, TwentyThousandFoldersInEachOtherGoWithAFewDescriptorsAndFlatMemory) {
  testing::make_deep_folder(root, "r1", 20'000);
  const auto before = descriptors();
  const std::size_t memory = resident();
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_FALSE(fs::exists(root / "r1"));
  EXPECT_LE(descriptors_max, before + 4);
  EXPECT_LT(resident(), memory + (16u << 20));
}

// G18: what a crash in the middle leaves is gone on with, wherever it was.
TEST_F(RemovalTest, WhatIsHalfRemovedIsRemovedByTheNext) {
  testing::make_deep_folder(root, "r1", 2'000);
  for (int i = 0; i < 100; ++i) {
    fs::create_directories(root / fmt::format("r1/{}/a/b/c", i));
    write(fmt::format("r1/{}/a/b/c/file", i));
  }
  for (int slice = 1; slice < 200; slice += 7) {
    Removal removal(root, "r1");
    if (removal.go_on(slice) != State::more) break;
  }
  EXPECT_TRUE(fs::exists(root / "r1"));
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_TRUE(fs::is_empty(root));
}

// G18
TEST_F(RemovalTest, TwoAtOnceDoEachOtherNoHarm) {
  testing::make_deep_folder(root, "r1", 5'000);
  for (int i = 0; i < 1'000; ++i) write(fmt::format("r1/{}", i));
  const auto all = [&] {
    Removal removal(root, "r1");
    State state = State::more;
    while (state == State::more) state = removal.go_on(kSlice);
    return state;
  };
  State others = State::more;
  std::thread other([&] { others = all(); });
  const State ours = all();
  other.join();
  // One may have found nothing to do while the other was busy with the last of it.
  EXPECT_NE(ours, State::set_aside);
  EXPECT_NE(others, State::set_aside);
  EXPECT_TRUE(ours == State::gone || others == State::gone);
  EXPECT_TRUE(fs::is_empty(root));
}

// G18: a tool may have chosen the names that are used for what is moved up.
TEST_F(RemovalTest, NamesOfAToolAreInNobodysWay) {
  for (int i = 1; i < 20; ++i) {
    if (i % 3 == 0) write(fmt::format("r1.{}", i));
    fs::create_directories(root / fmt::format("r1/.{}/deep/.{}/x", i, i + 1));
  }
  for (int i = 20; i < 40; ++i) write(fmt::format("r1/.{}", i));
  fs::create_directories(root / "r1/.40");
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_FALSE(fs::exists(root / "r1"));
  EXPECT_TRUE(fs::exists(root / "r1.3"));
}

// G18
TEST_F(RemovalTest, LinksAreRemovedAndNotFollowed) {
  fs::create_directories(root / "r1/a/b");
  fs::create_directories(root / "kept/folder");
  write("kept/file");
  fs::create_directory_symlink(root / "kept", root / "r1/a/b/link");
  fs::create_directory_symlink(root / "kept", root / "r1/link");
  fs::create_hard_link(root / "kept/file", root / "r1/hard");
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_TRUE(fs::exists(root / "kept/folder"));
  EXPECT_TRUE(fs::exists(root / "kept/file"));
  fs::create_directory_symlink(root / "kept", root / "r1");
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_FALSE(fs::exists(fs::symlink_status(root / "r1")));
  EXPECT_TRUE(fs::exists(root / "kept/file"));
}

// G18
TEST_F(RemovalTest, FoldersWithoutAnyRightsGoToo) {
  fs::create_directories(root / "r1/a/b/c/d");
  write("r1/a/b/c/d/file");
  for (const char* const path : {"r1/a/b/c/d", "r1/a/b/c", "r1/a/b", "r1/a", "r1"})
    fs::permissions(root / path, fs::perms::none);
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_TRUE(fs::is_empty(root));
}

// G18: all that can go goes, and what is left is in nobody's way.
TEST_F(RemovalTest, WhatResistsIsSetAside) {
  fs::create_directories(root / "r1/a/b/stuck");
  write("r1/a/b/stuck/file");
  testing::make_deep_folder(root / "r1/a", "deep", 100);
  if (!make_immutable("r1/a/b/stuck", true)) GTEST_SKIP() << "nothing can be made immutable on this machine";
  EXPECT_EQ(remove_all(), State::set_aside);
  EXPECT_FALSE(why.empty());
  EXPECT_FALSE(fs::exists(root / "r1"));
  std::vector<fs::path> left;
  for (const auto& entry : fs::recursive_directory_iterator(root)) left.push_back(entry.path());
  EXPECT_EQ(left.size(), 4u);  // .set-aside-r1, .N (once b), stuck and file
  for (const auto& path : left)
    if (path.filename() == "stuck") EXPECT_TRUE(make_immutable(path.lexically_relative(root), false));
}

// G18
TEST_F(RemovalTest, WhatIsNotThereIsGone) {
  EXPECT_EQ(remove_all(), State::gone);
  Removal nowhere(root / "nowhere", "r1");
  EXPECT_EQ(nowhere.go_on(kSlice), State::gone);
  write("r1");
  EXPECT_EQ(remove_all(), State::gone);
  EXPECT_TRUE(fs::is_empty(root));
}

}  // namespace
}  // namespace belfry::run
