#include "belfry/plugin/catalog.h"

#include <cstdlib>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include "belfry/base/log.h"
#include "belfry/clock/real_clock.h"
#include "belfry/plugin/watcher.h"
#include "tests/support/scratch_folder.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    fs::create_directories(root_ / "bundled");
    fs::create_directories(root_ / "own");
  }

  void add(const std::string& place, const std::string& name, const std::string& config) const {
    const fs::path folder = root_ / place / name;
    fs::create_directories(folder);
    std::ofstream(folder / "handler") << "#!/bin/sh\n";
    fs::permissions(folder / "handler", fs::perms::owner_all);
    std::ofstream(folder / "config.json") << config;
  }
  Catalog catalog() const {
    return Catalog({root_ / "bundled", root_ / "own"}, [](std::string_view) -> Result<> { return {}; });
  }

  testing::ScratchFolder scratch_;
  const fs::path& root_ = scratch_.path();
};

TEST_F(CatalogTest, EveryFolderWithAConfigIsAPlugin) {
  add("bundled", "draw", R"({"name":"draw"})");
  add("own", "alarm", R"({"name":"alarm"})");
  add("own", ".hidden", R"({"name":"hidden"})");
  fs::create_directories(root_ / "own" / "notes");
  std::ofstream(root_ / "own" / "README.md") << "hello";
  fs::create_directory_symlink(root_ / "bundled" / "draw", root_ / "own" / "linked");

  Catalog all = catalog();
  EXPECT_TRUE(all.scan());

  ASSERT_EQ(all.all().size(), 2u);
  EXPECT_EQ(all.all()[0]->name, "alarm");
  EXPECT_EQ(all.all()[1]->name, "draw");
  EXPECT_FALSE(all.find("hidden"));
  ASSERT_EQ(all.broken().size(), 1u);  // the link has another name than its config.json
  EXPECT_EQ(all.broken()[0].folder, root_ / "own" / "linked");
}

TEST_F(CatalogTest, ALaterFolderReplacesWhatIsBundled) {
  add("bundled", "draw", R"({"name":"draw","description":"bundled"})");
  add("own", "draw", R"({"name":"draw","description":"own"})");
  Catalog all = catalog();
  all.scan();

  EXPECT_EQ(all.find("draw")->description, "own");
}

// F14
TEST_F(CatalogTest, ABrokenReplacementDoesNotBringBackWhatIsBundled) {
  add("bundled", "draw", R"({"name":"draw","description":"bundled"})");
  add("own", "draw", R"({"name":"draw","timeoutMs":"soon"})");
  Catalog all = catalog();
  all.scan();
  EXPECT_FALSE(all.find("draw"));
  EXPECT_EQ(all.broken().size(), 1u);
  fs::remove_all(root_ / "own" / "draw");
  all.scan();
  EXPECT_EQ(all.find("draw")->description, "bundled");
}

TEST_F(CatalogTest, ABrokenOneIsNamedOnceAndHarmsNoOther) {
  std::vector<std::string> lines;
  const log::Capture capture([&](std::string_view line) { lines.emplace_back(line); });
  add("own", "draw", R"({"name":"draw"})");
  add("own", "bad", R"({"name":"bad","timeoutMs":"soon"})");
  std::ofstream(root_ / "own" / "bad" / ".env") << "KEY=sk-secret\n";
  Catalog all = catalog();

  EXPECT_TRUE(all.scan());
  EXPECT_FALSE(all.scan());

  EXPECT_TRUE(all.find("draw"));
  EXPECT_FALSE(all.find("bad"));
  ASSERT_EQ(all.broken().size(), 1u);
  EXPECT_NE(all.broken()[0].why.find("bad/config.json: timeoutMs is a string"), std::string::npos);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("plugin.broken"), std::string::npos);

  add("own", "bad", R"({"name":"bad"})");
  EXPECT_TRUE(all.scan());
  EXPECT_TRUE(all.find("bad"));
  EXPECT_TRUE(all.broken().empty());
}

TEST_F(CatalogTest, AMissingFolderIsBroken) {
  Catalog all({root_ / "nowhere"}, [](std::string_view) -> Result<> { return {}; });

  EXPECT_TRUE(all.scan());

  ASSERT_EQ(all.broken().size(), 1u);
  EXPECT_EQ(all.broken()[0].folder, root_ / "nowhere");
}

TEST_F(CatalogTest, OnlyWhatChangedIsNew) {
  add("own", "draw", R"({"name":"draw"})");
  add("own", "alarm", R"({"name":"alarm"})");
  Catalog all = catalog();
  all.scan();
  const auto draw = all.find("draw");
  const auto alarm = all.find("alarm");

  EXPECT_FALSE(all.scan());
  add("own", "draw", R"({"name":"draw","description":"new"})");
  std::ofstream(root_ / "own" / "alarm" / "log.txt") << "it wrote something";
  EXPECT_TRUE(all.scan());

  EXPECT_EQ(draw->description, "");  // whoever works with it goes on with it
  EXPECT_EQ(all.find("draw")->description, "new");
  EXPECT_EQ(all.find("alarm"), alarm);
  fs::remove_all(root_ / "own" / "draw");
  EXPECT_TRUE(all.scan());
  EXPECT_FALSE(all.find("draw"));
}

// F14: plugins may write into their folders as often as they like.
TEST_F(CatalogTest, OnlyWhatChangedIsReadAgain) {
  add("own", "draw", R"({"name":"draw"})");
  add("own", "alarm", R"({"name":"alarm"})");
  const fs::path draw = root_ / "own" / "draw";
  int read = 0;
  Catalog all({root_ / "own"}, [&read](std::string_view) -> Result<> {
    ++read;
    return {};
  });
  const auto read_again = [&] {
    const int before = read;
    all.scan();
    return (read - before) / 2;  // twice each: before and after its files were looked at
  };
  EXPECT_EQ(read_again(), 2);
  std::ofstream(draw / "state.db") << "it wrote something";
  fs::create_directory(draw / "cache");
  EXPECT_EQ(read_again(), 0);
  for (const char* const file : {"handler", ".env", "config.json"}) {
    std::ofstream(draw / file, std::ios::app) << "\n";
    EXPECT_EQ(read_again(), 1) << file;
    EXPECT_EQ(read_again(), 0) << file;
  }
  fs::permissions(draw / "handler", fs::perms::owner_read);
  all.scan();
  EXPECT_FALSE(all.find("draw"));
  fs::permissions(draw / "handler", fs::perms::owner_all);
  all.scan();
  EXPECT_TRUE(all.find("draw"));
}

// F5
TEST_F(CatalogTest, WhatAnybodyCanChangeIsNotRun) {
  add("own", "draw", R"({"name":"draw"})");
  const fs::path draw = root_ / "own" / "draw";
  Catalog all = catalog();
  for (const fs::path& path : {draw, draw / "config.json", draw / "handler"}) {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
    all.scan();

    EXPECT_FALSE(all.find("draw")) << path;
    ASSERT_EQ(all.broken().size(), 1u);
    EXPECT_NE(all.broken()[0].why.find("anybody can write to " + path.string()), std::string::npos);

    fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
    all.scan();
    EXPECT_TRUE(all.find("draw"));
  }
}

// F5
TEST_F(CatalogTest, AFolderElsewhereThatAPluginIsGivenMayBeEverybodys) {
  add("own", "draw", R"({"name":"draw","command":["handler","/tmp"]})");
  Catalog all = catalog();
  all.scan();
  EXPECT_TRUE(all.find("draw"));
}

// F5: it may have the program in it.
TEST_F(CatalogTest, AFolderOfThePluginThatAnybodyCanWriteToIsNotRun) {
  add("own", "draw", R"({"name":"draw","command":["handler","app"]})");
  const fs::path app = root_ / "own" / "draw" / "app";
  fs::create_directory(app);
  fs::permissions(app, fs::perms::all);
  Catalog all = catalog();
  all.scan();
  EXPECT_FALSE(all.find("draw"));
  ASSERT_EQ(all.broken().size(), 1u);
  EXPECT_NE(all.broken()[0].why.find("anybody can write to " + app.string()), std::string::npos);
}

// F5: a process that stays has read them when it began.
TEST_F(CatalogTest, AModuleOfAPersistentPluginMakesItNew) {
  add("own", "draw", R"({"name":"draw","mode":"persistent"})");
  const fs::path draw = root_ / "own" / "draw";
  fs::create_directories(draw / "colours" / "__pycache__");
  Catalog all = catalog();
  all.scan();
  const auto write = [&](const char* file, const char* text) { std::ofstream(draw / file) << text; };

  for (const char* const file : {"module.py", "colours/red.py"}) {
    write(file, "1");
    EXPECT_TRUE(all.scan()) << file;
    EXPECT_FALSE(all.scan()) << file;
    write(file, "22");
    EXPECT_TRUE(all.scan()) << file;
  }
  for (const char* const file :
       {".state", "work.log", "cache.json", "state.db", "colours/part.tmp", "colours/__pycache__/red.pyc"}) {
    write(file, "1");
    EXPECT_FALSE(all.scan()) << file;
  }
  fs::create_directory_symlink("/", draw / "everything");
  EXPECT_FALSE(all.scan());
}

class PluginWatcherTest : public CatalogTest {
 protected:
  void TearDown() override {
    bool stopped = false;
    asio::co_spawn(context_, watcher_->stop(), [&](std::exception_ptr) { stopped = true; });
    context_.restart();
    while (!stopped) context_.run_one();
    CatalogTest::TearDown();
  }
  void start(std::vector<fs::path> folders) {
    watcher_.emplace(context_, clock_, std::move(folders), [this] { ++changes_; });
    watcher_->start();
  }
  // Runs until one more change was noticed.
  void expect_noticed(const std::function<void()>& change) {
    const int before = changes_;
    change();
    context_.restart();
    while (changes_ == before) context_.run_one();
  }

  asio::io_context context_{1};
  RealClock clock_{context_};
  std::optional<Watcher> watcher_;
  int changes_ = 0;
};

TEST_F(PluginWatcherTest, EveryChangeOfAPluginIsNoticed) {
  start({root_ / "own"});
  const fs::path draw = root_ / "own" / "draw";

  expect_noticed([&] { add("own", "draw", R"({"name":"draw"})"); });
  expect_noticed([&] { std::ofstream(draw / "config.json") << "{}"; });
  // As editors do it: another file takes its place.
  expect_noticed([&] {
    std::ofstream(root_ / "new") << R"({"name":"draw"})";
    fs::rename(root_ / "new", draw / "config.json");
  });
  expect_noticed([&] { std::ofstream(draw / "config.json") << "{}"; });
  expect_noticed([&] { fs::permissions(draw / "handler", fs::perms::owner_read); });
  expect_noticed([&] { fs::create_directory(draw / "colours"); });
  expect_noticed([&] { std::ofstream(draw / "colours" / "red.py") << "1"; });
  expect_noticed([&] { fs::rename(draw, root_ / "own" / "paint"); });
  expect_noticed([&] { std::ofstream(root_ / "own" / "paint" / ".env") << "A=1\n"; });
  expect_noticed([&] { fs::remove_all(root_ / "own" / "paint"); });
}

TEST_F(PluginWatcherTest, APluginWithVeryManyFoldersLeavesTheOthersTheirs) {
  add("own", "many", R"({"name":"many"})");
  for (int i = 0; i < 1'100; ++i) fs::create_directory(root_ / "own" / "many" / std::to_string(i));
  add("bundled", "draw", R"({"name":"draw"})");
  start({root_ / "own", root_ / "bundled"});

  expect_noticed([&] { std::ofstream(root_ / "bundled" / "draw" / "config.json") << "{}"; });
}

TEST_F(PluginWatcherTest, AFolderThatComesLaterOrComesBackIsNoticed) {
  start({root_ / "later"});

  expect_noticed([&] { fs::create_directory(root_ / "later"); });
  expect_noticed([&] { add("later", "draw", R"({"name":"draw"})"); });
  expect_noticed([&] { fs::remove_all(root_ / "later"); });
  expect_noticed([&] { fs::create_directory(root_ / "later"); });
}

// F14
TEST_F(PluginWatcherTest, AFolderWhoseParentsComeLaterIsNoticed) {
  start({root_ / "a" / "b" / "later"});

  expect_noticed([&] { fs::create_directory(root_ / "a"); });
  expect_noticed([&] { fs::create_directories(root_ / "a" / "b" / "later"); });
  expect_noticed([&] { add("a/b/later", "draw", R"({"name":"draw"})"); });
  expect_noticed([&] { fs::remove_all(root_ / "a"); });
  expect_noticed([&] { fs::create_directories(root_ / "a" / "b" / "later"); });
  expect_noticed([&] { add("a/b/later", "draw", R"({"name":"draw"})"); });
}

}  // namespace
}  // namespace belfry::plugin
