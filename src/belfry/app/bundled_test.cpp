#include "belfry/app/bundled.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace belfry::app {
namespace {

namespace fs = std::filesystem;

class BundledPluginsTest : public ::testing::Test {
 protected:
  fs::path program(const char* place) const {
    const fs::path out = root_ / place;
    fs::create_directories(out.parent_path());
    std::ofstream(out) << "";
    return out;
  }
  fs::path folder(const char* place) const {
    fs::create_directories(root_ / place);
    return root_ / place;
  }

  testing::ScratchFolder scratch_;
  const fs::path& root_ = scratch_.path();
};

// F5
TEST_F(BundledPluginsTest, AFolderAboveTheProgramCountsOnlyInASourceTree) {
  const fs::path plugins = folder("plugins");
  const fs::path built = program("build/release/belfry");
  const fs::path elsewhere = program("local/bin/belfry");
  EXPECT_EQ(bundled_plugins_of(built), "");

  std::ofstream(root_ / "CMakeLists.txt") << "";

  EXPECT_EQ(bundled_plugins_of(built), plugins);
  EXPECT_EQ(bundled_plugins_of(elsewhere), "");
}

// F5
TEST_F(BundledPluginsTest, AnInstalledProgramHasThemInShareOrBesideIt) {
  const fs::path belfry = program("local/bin/belfry");
  const fs::path beside = folder("local/bin/plugins");
  EXPECT_EQ(bundled_plugins_of(belfry), beside);

  const fs::path share = folder("local/share/belfry/plugins");

  EXPECT_EQ(bundled_plugins_of(belfry), share);
}

// F5
TEST_F(BundledPluginsTest, AFolderThatAnybodyCanWriteToDoesNotCount) {
  const fs::path belfry = program("local/bin/belfry");
  fs::permissions(folder("local/share/belfry/plugins"), fs::perms::all);

  EXPECT_EQ(bundled_plugins_of(belfry), "");
}

}  // namespace
}  // namespace belfry::app
