#include "belfry/plugin/walls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/plugin/amount.h"
#include "belfry/plugin/refusal.h"
#include "tests/support/deep_folder.h"
#include "tests/support/scratch_folder.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

class AmountTest : public ::testing::Test {
 protected:
  Excess look() const { return excess(output_in(root.string(), most), most); }

  testing::ScratchFolder scratch;
  const fs::path& root = scratch.path();
  Amounts most{.entries = 10, .levels = 3, .output_mib = 1};
};

// G24, G18: at the bound and one over it.
TEST_F(AmountTest, EachBoundHolds) {
  EXPECT_EQ(look(), Excess::none);
  for (int i = 0; i < 10; ++i) std::ofstream(root / fmt::format("{}", i)) << "x";
  EXPECT_EQ(look(), Excess::none);
  std::ofstream(root / "one more") << "x";
  EXPECT_EQ(look(), Excess::entries);
  most.entries = 100;
  fs::create_directories(root / "a/b/c");
  EXPECT_EQ(look(), Excess::none);
  fs::create_directories(root / "a/b/c/d");
  EXPECT_EQ(look(), Excess::levels);
  most.levels = 4;
  std::ofstream(root / "large") << std::string(1 << 20, 'x');
  EXPECT_EQ(look(), Excess::bytes);
}

// G24, G15: nobody walks all of what a tool has left to find that it is too much.
TEST_F(AmountTest, ALookEndsWhereItIsTooMuch) {
  testing::make_deep_folder(root, "deep", 1'000);
  const Output output = output_in(root.string(), most);
  EXPECT_EQ(output.levels, 4);
  EXPECT_LE(output.entries, 6);
}

// G24: a file that is open and has no name takes room, too; a link leads nowhere.
TEST_F(AmountTest, WhatHasNoNameCountsAndLinksDoNot) {
  const std::string path = (root / "file").string();
  const Descriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const std::string text(1 << 16, 'x');
  ASSERT_EQ(::write(file.number(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  const auto before = nameless_bytes_of({::getpid()});
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_GE(nameless_bytes_of({::getpid()}) - before, 1 << 16);
  fs::create_directory_symlink("/usr", root / "link");
  EXPECT_EQ(output_in(root.string(), most).entries, 1);
  EXPECT_GT(memory_of({::getpid()}), 1 << 20);
}

// G24
TEST(Refusal, AWallIsNamedWhereAPluginSaysWhatItWasRefused) {
  const Plugin plugin{.name = "p", .folder = "/plugins/p", .reads = {"/srv/data"}, .no_network = false};
  const auto said = [&](std::string_view words) { return refusal_of_walls(words, plugin); };
  EXPECT_TRUE(said("PermissionError: [Errno 13] Permission denied: '/srv/ann/list'")
                  .contains("refused /srv/ann/list: it may read"));
  EXPECT_TRUE(said("/usr/bin/cat: /srv/other/x: Permission denied").contains("refused /srv/other/x:"));
  EXPECT_TRUE(said("OSError: [Errno 30] Read-only file system: '/plugins/p/cache'").contains("\"writes\""));
  const auto traceback =
      R"(Traceback: File "/plugins/p/handler", line 9, in <module> PermissionError: [Errno 13] Permission denied: '/home/b')";
  EXPECT_TRUE(said(traceback).contains("refused /home/b:")) << said(traceback);
  EXPECT_TRUE(said("/plugins/p/handler: 3: cannot create /tmp/x: Permission denied").contains("refused /tmp/x:"));
  EXPECT_TRUE(said("Error: EACCES: permission denied, open '/srv/secret'").contains("refused /srv/secret:"));
  EXPECT_TRUE(said("mount: Operation not permitted").contains("belfry plugin check"));
  EXPECT_EQ(said("no such printer"), "");
  EXPECT_EQ(said("connect: Network is unreachable"), "");
  Plugin hermit = plugin;
  hermit.no_network = true;
  EXPECT_TRUE(refusal_of_walls("connect: Network is unreachable", hermit).contains("\"network\": \"none\""));
}

// G24: what a kernel has is found out, and said in words.
TEST(Walls, TheirNamesAreSaid) {
  EXPECT_EQ(names_of_walls(kFilesWall | kCallsWall), "files (Landlock), system calls (seccomp)");
  EXPECT_EQ(names_of_walls(0), "");
  EXPECT_EQ((KernelWalls{.landlock_abi = 2, .namespaces = true, .seccomp = true}.walls() & kWallsAlways), kWallsAlways);
  EXPECT_EQ((KernelWalls{.landlock_abi = 0, .namespaces = false, .seccomp = true}.walls()), kCallsWall | kNetworkWall);
  const FileWall nothing;
  EXPECT_FALSE(Landlock(nothing, 0).open());
  EXPECT_LE(Landlock(nothing, 2).abi(), 2);
}

}  // namespace
}  // namespace belfry::plugin
