#include "belfry/app/model.h"

#include <cstdlib>
#include <map>

#include <gtest/gtest.h>

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
