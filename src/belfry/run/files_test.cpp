#include "belfry/run/files.h"

#include <fstream>

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
  write("files/r1/0/.hidden", "x");
  for (const auto& [run, step, name] :
       {std::tuple("r1", 0, "link"), std::tuple("r1", 1, "secret"), std::tuple("r2", 0, "secret"),
        std::tuple("r1", 0, "folder"), std::tuple("r1", 0, ".hidden"), std::tuple("r1", 0, "../../../secret"),
        std::tuple("..", 0, "secret"), std::tuple(".", 0, "x"), std::tuple("r1/0", 0, "picture.png"),
        std::tuple("r1", 0, ""), std::tuple("", 0, "picture.png"), std::tuple("r1", -1, "picture.png"),
        std::tuple("r1", 0, "nobody")})
    EXPECT_FALSE(read(run, step, name).has_value()) << run << " " << step << " " << name;
}

}  // namespace
}  // namespace belfry::run
