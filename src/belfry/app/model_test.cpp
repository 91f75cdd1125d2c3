#include "belfry/app/model.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace belfry::app {
namespace {

Result<Secret> key_with(const std::map<std::string, std::string>& variables, const std::string& named = {}) {
  ModelConfig config;
  config.api_key_env = named;
  return read_model_key(config, [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(ModelKey, StandsInTheVariableThatIsNamed) {
  EXPECT_EQ(key_with({{"OPENAI_API_KEY", "sk-a"}, {"MINE", "sk-b"}})->reveal(), "sk-a");
  EXPECT_EQ(key_with({{"OPENAI_API_KEY", "sk-a"}, {"MINE", "sk-b"}}, "MINE")->reveal(), "sk-b");
}

TEST(ModelKey, CanBeMissingUnlessItsVariableIsNamed) {
  EXPECT_TRUE(key_with({})->empty());
  EXPECT_TRUE(key_with({{"OPENAI_API_KEY", ""}})->empty());
  EXPECT_NE(key_with({{"OPENAI_API_KEY", "sk-a"}}, "MINE").error().detail.find("MINE"), std::string::npos);
  EXPECT_FALSE(key_with({{"MINE", ""}}, "MINE"));
}

TEST(ModelKey, ThatAHeaderCannotCarryIsRefusedWithoutShowingIt) {
  for (const std::string& key :
       {std::string("sk-a\r\nX: y"), std::string("sk a"), std::string("sk-ä"), std::string(5'000, 'k')}) {
    const auto read = key_with({{"OPENAI_API_KEY", key}});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().detail.find("sk"), std::string::npos);
    EXPECT_EQ(read.error().detail.find("kk"), std::string::npos);
  }
}

// G24
TEST(ModelKey, StandsInAFileInstead) {
  const testing::ScratchFolder folder;
  const std::string path = folder.path() / "key";
  const auto read = [&](const std::string& content, const std::string& variable = {}) {
    std::ofstream(path) << content;
    ::chmod(path.c_str(), 0600);
    ModelConfig config;
    config.api_key_file = path;
    config.api_key_env = variable;
    return read_model_key(config, [](const char*) { return "sk-env"; });
  };
  EXPECT_EQ(read("sk-file\n")->reveal(), "sk-file");
  EXPECT_EQ(read("sk-file\r\nmore")->reveal(), "sk-file");
  EXPECT_TRUE(read("").error().detail.contains("no key"));
  EXPECT_TRUE(read("sk file").error().detail.contains("character"));
  EXPECT_FALSE(read("sk file").error().detail.contains("sk file"));
  EXPECT_TRUE(read(std::string(4'097, 'k')).error().detail.contains("longer"));
  EXPECT_TRUE(read("sk-file", "MINE").error().detail.contains("one of them"));
  ASSERT_EQ(::chmod(path.c_str(), 0622), 0);
  ModelConfig config;
  config.api_key_file = path;
  EXPECT_TRUE(read_model_key(config, [](const char*) { return ""; }).error().detail.contains("anybody can write"));
}

// G24
TEST(ModelKey, IsOverwrittenWhereItStood) {
  static char variable[] = "BELFRY_TEST_MODEL_KEY=sk-canary";
  ASSERT_EQ(::putenv(variable), 0);  // NOLINT(concurrency-mt-unsafe)
  ModelConfig config;
  config.api_key_env = "BELFRY_TEST_MODEL_KEY";

  EXPECT_EQ(take_model_key(config)->reveal(), "sk-canary");

  EXPECT_EQ(std::string_view(variable, sizeof variable).find("canary"), std::string_view::npos);
}

TEST(ModelKey, IsNotInTheEnvironmentAnyMore) {
  ModelConfig config;
  config.api_key_env = "BELFRY_TEST_MODEL_KEY";
  ASSERT_EQ(::setenv("BELFRY_TEST_MODEL_KEY", "sk-a", 1), 0);  // NOLINT(concurrency-mt-unsafe)

  EXPECT_EQ(take_model_key(config)->reveal(), "sk-a");

  EXPECT_EQ(std::getenv("BELFRY_TEST_MODEL_KEY"), nullptr);  // NOLINT(concurrency-mt-unsafe)
}

TEST(ModelOptions, AreThoseOfTheSettings) {
  ModelConfig config;
  EXPECT_FALSE(model_options(config, Secret())->has_value());
  config.base_url = "https://models.example/v1";
  EXPECT_FALSE(model_options(config, Secret()));
  config.model = "small";
  config.timeout = Millis{5};

  const auto options = model_options(config, Secret("sk-a"));

  ASSERT_TRUE(options && *options);
  EXPECT_EQ((*options)->base.target, "/v1");
  EXPECT_TRUE((*options)->base.tls);
  EXPECT_EQ((*options)->model, "small");
  EXPECT_EQ((*options)->key.reveal(), "sk-a");
  EXPECT_EQ((*options)->whole, Millis{5});
}

}  // namespace
}  // namespace belfry::app
