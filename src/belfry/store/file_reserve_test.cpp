#include "belfry/store/file_reserve.h"

#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

namespace belfry::store {
namespace {

// G17
TEST(FileReserve, SetsBlocksAsideAndGivesThemBack) {
  const auto folder = std::filesystem::temp_directory_path() / ("belfry-reserve-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "reserve";
  FileReserve reserve(path, 1 << 20);

  EXPECT_TRUE(reserve.hold());
  EXPECT_TRUE(reserve.hold());  // held already is as good
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 1 << 20);

  reserve.release();
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST(FileReserve, SaysWhenThereIsNoSpace) {
  FileReserve nowhere("/nonexistent/folder/reserve");
  EXPECT_FALSE(nowhere.hold());
}

}  // namespace
}  // namespace belfry::store
