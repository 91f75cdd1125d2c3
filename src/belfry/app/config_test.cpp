#include "belfry/app/config.h"

#include <map>

#include <gtest/gtest.h>

namespace belfry::app {
namespace {

TEST(Config, ReadsAFile) {
  Config config;
  const auto read = read_toml(config, R"(
[server]
listen = "127.0.0.1:0"
data = "/var/lib/belfry"
token_file = "/etc/belfry/token"
allow_hosts = ["a.example", "b.example:80"]
on_stop = "keep"
stop_deadline_ms = 5000
[limits]
connections = 100
attempts = 3
[retention]
days = 30
runs_days = 90
[llm]
base_url = "http://127.0.0.1:11434/v1"
model = "small"
api_key_env = "MY_KEY"
ca_file = "/etc/belfry/ca.pem"
connect_timeout_ms = 1
first_byte_timeout_ms = 2
silence_timeout_ms = 3
timeout_ms = 4
attempts = 5
[log]
level = "debug"
format = "json"
)",
                              "belfry.toml");

  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(config.listen, "127.0.0.1:0");
  EXPECT_EQ(config.data, "/var/lib/belfry");
  EXPECT_EQ(config.token_file, "/etc/belfry/token");
  EXPECT_EQ(config.allow_hosts, (std::vector<std::string>{"a.example", "b.example:80"}));
  EXPECT_EQ(config.on_stop, OnStop::keep);
  EXPECT_EQ(config.stop_deadline, Millis{5000});
  EXPECT_EQ(config.connections_max, 100);
  EXPECT_EQ(config.attempts_max, 3);
  EXPECT_EQ(config.retention, Millis{30 * 86'400'000LL});
  EXPECT_EQ(config.runs_retention, Millis{90 * 86'400'000LL});
  EXPECT_EQ(config.llm.base_url, "http://127.0.0.1:11434/v1");
  EXPECT_EQ(config.llm.model, "small");
  EXPECT_EQ(config.llm.api_key_env, "MY_KEY");
  EXPECT_EQ(config.llm.ca_file, "/etc/belfry/ca.pem");
  EXPECT_EQ(config.llm.connect_timeout, Millis{1});
  EXPECT_EQ(config.llm.first_byte_timeout, Millis{2});
  EXPECT_EQ(config.llm.silence_timeout, Millis{3});
  EXPECT_EQ(config.llm.timeout, Millis{4});
  EXPECT_EQ(config.llm.attempts, 5);
  EXPECT_EQ(config.log_level, log::Level::debug);
  EXPECT_EQ(config.log_form, LogForm::json);
}

// G24, G19
TEST(Config, ReadsWhatStandsAroundPlugins) {
  Config config;
  EXPECT_EQ(config.sandbox, plugin::Sandbox::usual);
  const auto read = read_toml(config, R"(
[plugins]
sandbox = "strict"
processes = 10
memory_mib = 20
output_entries = 30
output_levels = 40
output_mib = 50
landlock_abi_max = 2
[plugins.old_one]
sandbox = "off"
)",
                              "belfry.toml");
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(config.sandbox, plugin::Sandbox::strict);
  EXPECT_EQ(config.sandboxes, (std::map<std::string, plugin::Sandbox>{{"old_one", plugin::Sandbox::off}}));
  EXPECT_EQ(config.plugin_amounts,
            (plugin::Amounts{.processes = 10, .memory_mib = 20, .entries = 30, .levels = 40, .output_mib = 50}));
  EXPECT_EQ(config.landlock_abi_max, 2);
  const auto refusal = [](const char* text) {
    Config other;
    const auto refused = read_toml(other, text, "belfry.toml");
    return refused ? std::string("it was taken") : refused.error().detail;
  };
  EXPECT_EQ(refusal("[plugins]\nsandbox = \"loose\""),
            "belfry.toml:2: [plugins] sandbox: \"loose\" is not strict, usual or off");
  EXPECT_EQ(refusal("[plugins.x]\nsandbox = \"loose\""),
            "belfry.toml:2: [plugins.x]: \"loose\" is not strict, usual or off");
  EXPECT_EQ(refusal("[plugins.x]\nsandbox = 1"), "belfry.toml:2: [plugins.x]: \"1\" is not strict, usual or off");
  EXPECT_EQ(refusal("[plugins.x]\nprocesses = 1"),
            "belfry.toml:2: [plugins.x]: unknown key processes; there is: sandbox");
  EXPECT_TRUE(refusal("[plugins.\"a-b\"]\nsandbox = \"off\"").contains("no name of a plugin"));
  EXPECT_TRUE(refusal("[plugins]\nprocesses = 0").contains("1 to 1000000"));
}

// G19
TEST(Config, RefusesWhatItDoesNotKnowAndSaysWhere) {
  const struct {
    const char* text;
    const char* says;
  } table[] = {
      {"[server]\nlisen = \"x\"", "f.toml:2: [server] lisen: unknown key; [server] has: listen"},
      {"[sever]\n",
       "unknown section sever; there are the sections [server], [limits], [plugins], [overlays], [retention], "},
      {"listen = \"x\"", "unknown key listen"},
      {"[server]\non_stop = \"explode\"", "deliver or keep"},
      {"[server]\nstop_deadline_ms = -1", "a number from 0"},
      {"[server]\nstop_deadline_ms = \"soon\"", "a number from 0"},
      {"[server]\nlisten = 1.5", "neither a text nor a whole number"},
      {"[server]\nallow_hosts = [1]", "neither a text"},
      {"[server]\nlisten = \"x\"", "a port is missing"},
      {"[server]\ndata = \"\"", "\"\" is not a directory"},
      {"[server]\ntoken_file = \"\"", "\"\" is not a file"},
      {"[server]\nallow_hosts = \"\"", "a list of host names"},
      {"[server]\nallow_hosts = []", "a list of host names"},
      {"[server]\nallow_hosts = [\"http://a.example\"]", "without a scheme"},
      {"[server]\nallow_hosts = [\"a.example/b\"]", "without a scheme"},
      {"[server]\nallow_hosts = [\"a.example:b\"]", "without a scheme"},
      {"[retention]\ndays = 0", "a number from 1"},
      {"[retention]\nruns_days = -1", "a number from 0"},
      {"[log]\nlevel = \"loud\"", "debug, info"},
      {"[llm]\nbase_url = \"models.example\"", "is not a URL like"},
      {"[llm]\nmodel = \"\"", "the name of a model"},
      {"[llm]\napi_key = \"sk-x\"", "f.toml:2: [llm] api_key: unknown key; [llm] has: base_url, model, api_key_env"},
      {"[llm]\ntimeout_ms = 0", "a number from 1"},
      {"[llm]\nattempts = 21", "a number from 1 to 20"},
      {"[server\n", "f.toml:1"},
  };
  for (const auto& line : table) {
    Config config;
    const auto read = read_toml(config, line.text, "f.toml");
    ASSERT_FALSE(read) << line.text;
    EXPECT_NE(read.error().detail.find(line.says), std::string::npos) << read.error().detail;
  }
}

TEST(Config, TheEnvironmentCountsMoreThanTheFile) {
  Config config;
  ASSERT_TRUE(read_toml(config, "[server]\nlisten = \"a:1\"\ndata = \"/a\"", "f"));
  const char* environment[] = {"PATH=/bin",           "BELFRY_SERVER_LISTEN=b:2",       "BELFRY_RETENTION_DAYS=2",
                               "BELFRY_URL=http://x", "BELFRY_SERVER_ALLOW_HOSTS=x,y",  "BELFRY_USER_LANGUAGE=zh",
                               "BELFRY_LLM_MODEL=m",  "BELFRY_LLM_BASE_URL=https://x/", nullptr};

  ASSERT_TRUE(read_environment(config, environment));

  EXPECT_EQ(config.listen, "b:2");
  EXPECT_EQ(config.data, "/a");
  EXPECT_EQ(config.retention, Millis{2 * 86'400'000LL});
  EXPECT_EQ(config.allow_hosts.size(), 2u);
  EXPECT_EQ(config.language, when::Language::chinese);
  EXPECT_EQ(config.llm.model, "m");
  EXPECT_EQ(config.llm.base_url, "https://x/");
}

// G19
TEST(Config, AnUnknownVariableOfOursIsRefused) {
  for (const char* entry : {"BELFRY_SERVER_LISTN=x", "BELFRY_LIMITS_=1", "BELFRY_RETENTION_DAYS=many",
                            "BELFRY_SERVER_TOKEN_FILE=", "BELFRY_SERVER_ALLOW_HOSTS=", "BELFRY_LLM_KEY=x"}) {
    Config config;
    const char* environment[] = {entry, nullptr};
    EXPECT_FALSE(read_environment(config, environment)) << entry;
  }
}

// Somebody writes the key where its variable belongs, and should not read it in the terminal.
TEST(Config, AKeyInPlaceOfItsVariableIsNotShown) {
  Config config;
  const auto read = read_toml(config, "[llm]\napi_key_env = \"sk-secret-key\"", "f");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().detail.find("sk-"), std::string::npos) << read.error().detail;
}

TEST(Config, FindsTheDataDirectory) {
  const auto with = [](std::map<std::string, std::string> values) {
    return default_data_directory([values](const char* name) -> const char* {
      const auto found = values.find(name);
      return found == values.end() ? nullptr : found->second.c_str();
    });
  };
  EXPECT_EQ(with({{"XDG_DATA_HOME", "/x"}, {"HOME", "/h"}}).value(), "/x/belfry");
  EXPECT_EQ(with({{"HOME", "/h"}}).value(), "/h/.local/share/belfry");
  EXPECT_EQ(with({{"XDG_DATA_HOME", "relative"}, {"HOME", "/h"}}).value(), "/h/.local/share/belfry");
  EXPECT_FALSE(with({}));
}

}  // namespace
}  // namespace belfry::app
