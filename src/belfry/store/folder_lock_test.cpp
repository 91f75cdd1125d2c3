#include "belfry/store/folder_lock.h"

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace belfry::store {
namespace {

// G21
TEST(FolderLock, ASecondOwnerIsRefusedEvenInTheSameProcessUntilTheFirstIsGone) {
  const ::belfry::testing::ScratchFolder folder;
  std::optional<Result<FolderLock>> first = FolderLock::take(folder.path());
  ASSERT_TRUE(first->has_value());

  const auto second = FolderLock::take(folder.path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::data_in_use);

  first.reset();
  EXPECT_TRUE(FolderLock::take(folder.path()).has_value());
}

// G21
TEST(FolderLock, TheLockOfAFolderThatWasMovedAwayIsNotThatOfTheNewOne) {
  const ::belfry::testing::ScratchFolder scratch;
  const auto folder = scratch.path() / "data";
  std::filesystem::create_directory(folder);
  const auto first = FolderLock::take(folder);
  ASSERT_TRUE(first.has_value());
  std::filesystem::rename(folder, scratch.path() / "away");
  std::filesystem::create_directory(folder);

  EXPECT_TRUE(FolderLock::take(folder).has_value());
  EXPECT_FALSE(FolderLock::take(scratch.path() / "away").has_value());
}

// G21
TEST(FolderLock, AFolderThatIsNotThereIsSaidSo) {
  const ::belfry::testing::ScratchFolder scratch;
  const auto lock = FolderLock::take(scratch.path() / "nowhere");
  ASSERT_FALSE(lock.has_value());
  EXPECT_EQ(lock.error().code, Errc::storage_failed);
  EXPECT_TRUE(lock.error().detail.contains("nowhere"));
}

}  // namespace
}  // namespace belfry::store
