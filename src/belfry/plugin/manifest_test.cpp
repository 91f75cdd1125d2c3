#include "belfry/plugin/manifest.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "belfry/base/json.h"
#include "tests/support/scratch_folder.h"

namespace belfry::plugin {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

Result<> any_schema(std::string_view) { return {}; }

Result<Plugin> read(std::string_view text, std::string_view env = "") {
  return read_manifest("/plugins/draw", text, env, any_schema);
}

std::string refusal(std::string_view text, std::string_view env = "") {
  const auto plugin = read(text, env);
  return plugin ? "it was taken" : plugin.error().detail;
}

void expect_refused(std::string_view text, std::string_view part) {
  const std::string why = refusal(text);
  EXPECT_NE(why.find(part), std::string::npos) << text << "\n  " << why;
  EXPECT_TRUE(why.starts_with("/plugins/draw/config.json: ")) << why;
}

TEST(PluginManifest, ANameIsEnough) {
  const auto plugin = read(R"({"name":"draw"})");

  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_EQ(plugin->name, "draw");
  EXPECT_EQ(plugin->parameters, R"({"type":"object"})");
  EXPECT_EQ(plugin->command, std::vector<std::string>{"handler"});
  EXPECT_FALSE(plugin->takes_schedule || plugin->idempotent || plugin->persistent);
}

// G24
TEST(PluginManifest, WhatItNeedsBehindWallsIsRead) {
  const auto plugin = read(R"({"name":"draw","reads":["../shared","/srv/x","$ROOTS","$NOBODY"],"writes":"data/cache",
    "network":"none"})",
                           "ROOTS=/a:relative::/b/../c\n");
  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_EQ(plugin->reads,
            (std::vector<std::string>{"/plugins/shared", "/srv/x", "/a", "/plugins/draw/relative", "/c"}));
  EXPECT_EQ(plugin->writes, "data/cache");
  EXPECT_TRUE(plugin->no_network);
  EXPECT_FALSE(read(R"({"name":"draw","network":"any"})")->no_network);
}

// G24: whoever writes its own config.json, or its program, lifts its own walls.
TEST(PluginManifest, ItsWholeFolderIsNeverItsOwnToWrite) {
  for (const char* const folder : {".", "", "..", "../draw", "/tmp", "a/..", "a/../..", "./a", "a/"})
    expect_refused(fmt::format(R"({{"name":"draw","writes":"{}"}})", folder), "a folder inside the plugin's own");
  expect_refused(R"({"name":"draw","writes":"bin","command":["python3","bin/main.py"]})", "programs must not");
  expect_refused(R"({"name":"draw","writes":"bin","command":["bin"]})", "programs must not");
  expect_refused(R"({"name":"draw","network":"some"})", R"(network is "some"; any or none belongs there)");
  expect_refused(R"({"name":"draw","reads":"/srv"})", "reads");
  expect_refused(R"({"name":"draw","reads":[""]})", "reads");
  expect_refused(
      fmt::format(R"({{"name":"draw","reads":[{}"/b"]}})", fmt::join(std::vector<std::string>(32, R"("/a",)"), "")),
      "reads");
}

// F14
TEST(PluginManifest, EveryFieldIsRead) {
  const auto plugin =
      read(R"({"name":"draw","description":"画画","idempotent":true,"mode":"persistent","provider":"p-1",
    "timeoutMs":300000,"concurrency":2,"cooldownMs":1500,"idleMs":1000,"command":["python3","main.py"],
    "version":"1","author":{},"homepage":"","title":"","tags":[]})");

  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_EQ(plugin->description, "画画");
  EXPECT_TRUE(plugin->idempotent && plugin->persistent);
  EXPECT_EQ(plugin->provider, "p-1");
  EXPECT_EQ(plugin->timeout, 300s);
  EXPECT_EQ(plugin->at_once, 2);
  EXPECT_EQ(plugin->cooldown, 1500ms);
  EXPECT_EQ(plugin->idle_timeout, 1s);
  EXPECT_EQ(plugin->command, (std::vector<std::string>{"python3", "main.py"}));
}

// F14
TEST(PluginManifest, TheTimeoutIsAMinuteUnlessItIsSaid) {
  EXPECT_EQ(read(R"({"name":"draw"})")->timeout, 60s);
  EXPECT_EQ(read(R"({"name":"draw"})")->at_once, 0);
  EXPECT_EQ(read(R"({"name":"draw"})")->cooldown, 0s);
}

TEST(PluginManifest, WhatIsWrongIsNamed) {
  expect_refused("", "name is missing");
  expect_refused("[]", "an array");
  expect_refused(R"({"name":"draw",})", "");
  expect_refused(R"({"name":"other"})", "both must be the same");
  expect_refused(R"({"name":5})", "name is a number");
  expect_refused(R"({"name":"draw","timeout":5})", "unknown field \"timeout\"");
  expect_refused(R"({"name":"draw","timeoutMs":0})", "from 1 to 86400000");
  expect_refused(R"({"name":"draw","timeoutMs":86400001})", "from 1 to 86400000");
  expect_refused(R"({"name":"draw","timeoutMs":"60"})", "timeoutMs is a string");
  expect_refused(R"({"name":"draw","concurrency":101})", "from 1 to 100");
  expect_refused(R"({"name":"draw","concurrency":0})", "from 1 to 100");
  expect_refused(R"({"name":"draw","cooldownMs":-1})", "from 0");
  expect_refused(R"({"name":"draw","mode":"forever"})", "oneshot or persistent");
  expect_refused(R"({"name":"draw","provider":"a b"})", "no id");
  expect_refused(R"({"name":"draw","command":[]})", "names no program");
  expect_refused(R"({"name":"draw","command":"python3 main.py"})", "a list of strings");
  expect_refused(R"({"name":"draw","command":["a\u0000b"]})", "zero byte");
  expect_refused(R"({"name":"draw","inputSchema":[]})", "inputSchema is an array");
  expect_refused(R"({"name":"draw","inputSchema":{"type":"string"}})", "\"object\"");
  expect_refused(R"({"name":"draw","inputSchema":{"properties":[]}})", "inputSchema.properties is an array");
  expect_refused(R"({"name":"draw","schedule":"yes"})", "true or false");
  expect_refused(std::string(kManifestBytesMax + 1, ' '), "more than");
}

TEST(PluginManifest, ANameCannotLeadOutOfItsFolder) {
  for (const char* const name : {"image_draw", "qq_message_markGroupAsRead", "A1", "_"})
    EXPECT_TRUE(check_plugin_name(name)) << name;
  for (const char* const name : {"", "..", ".", "a/b", "a b", "a-b", "画", "a.b", "a\n"})
    EXPECT_FALSE(check_plugin_name(name)) << name;
  EXPECT_TRUE(check_plugin_name(std::string(56, 'a')));
  EXPECT_FALSE(check_plugin_name(std::string(57, 'a')));
  EXPECT_FALSE(read_manifest("/plugins/..", R"({"name":".."})", "", any_schema));
}

// F14: as the sample of the task has them.
TEST(PluginManifest, CommentsAreNoPartOfIt) {
  const auto plugin = read(R"({
    // what it is
    "name": "draw", /* two
    lines */ "description": "http://example.org /* no comment */ \" // neither",
    "inputSchema": {"type": "object", "properties": {
      // ... 其他参数
      "schedule": {"type": "string", "description": "a \" : b"} } }
  } // the end)");

  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_EQ(plugin->description, "http://example.org /* no comment */ \" // neither");
  EXPECT_TRUE(plugin->takes_schedule);
  EXPECT_EQ(plugin->parameters,
            R"({"type":"object","properties":{"schedule":{"type":"string","description":"a \" : b"}}})");
  expect_refused(R"({"name":"draw"} /* no end)", "");
  EXPECT_EQ(without_comments("1//a\n2/*b\nc*/3/**/4/"), "1   \n2   \n   3    4/");
}

// F1
TEST(PluginManifest, ScheduleIsTakenOnlyIfItIsDeclared) {
  EXPECT_FALSE(read(R"({"name":"draw"})")->takes_schedule);
  EXPECT_FALSE(read(R"({"name":"draw","schedule":false})")->takes_schedule);
  EXPECT_FALSE(read(R"({"name":"draw","inputSchema":{"properties":{"when":{"type":"string"}}}})")->takes_schedule);
  for (const char* const shape :
       {R"({"type":"string"})", R"({"type":["object","string"]})", R"({"type":["null","string"]})",
        R"({"type":"object","properties":{"when":{},"language":{}}})", R"({"type":"object"})",
        R"({"oneOf":[{"type":"number"},{"type":"string"}]})", R"({"anyOf":[{"type":"object"}]})"}) {
    const auto plugin =
        read(fmt::format(R"({{"name":"draw","inputSchema":{{"properties":{{"schedule":{}}}}}}})", shape));
    ASSERT_TRUE(plugin) << plugin.error().detail;
    EXPECT_TRUE(plugin->takes_schedule) << shape;
  }
}

// F1
TEST(PluginManifest, TheStandardScheduleIsAddedIfItIsAskedFor) {
  const auto plugin = read(R"({"name":"draw","schedule":true,
    "inputSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":false}})");

  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_TRUE(plugin->takes_schedule);
  const auto schema = json::parse(plugin->parameters);
  ASSERT_TRUE(schema) << schema.error().detail;
  const auto properties = json::find(*schema, "properties");
  EXPECT_EQ(json::find(*properties, "a")->raw, R"({"type":"string"})");
  const auto schedule = json::find(*properties, "schedule");
  ASSERT_TRUE(schedule);
  EXPECT_EQ(json::elements(*json::find(*schedule, "oneOf")).size(), 2u);
  EXPECT_EQ(json::find(*schema, "required")->raw, R"(["a"])");
  EXPECT_EQ(json::find(*schema, "additionalProperties")->raw, "false");
  EXPECT_TRUE(json::parse(read(R"({"name":"draw","schedule":true})")->parameters));
}

// F6
TEST(PluginManifest, NothingElseMayNeedTheSchedule) {
  for (const char* declared :
       {R"(,"schedule":true,"inputSchema":{)", R"(,"inputSchema":{"properties":{"schedule":{"type":"string"}},)"})
    expect_refused(fmt::format(R"({{"name":"draw"{}"required":["prompt","schedule"]}}}})", declared),
                   "inputSchema.required names schedule");
  for (const char* part :
       {R"("allOf":[{"required":["schedule"]}])", R"("anyOf":[true,{"required":["schedule"]}])",
        R"("oneOf":[{"allOf":[{"required":["schedule"]}]}])",
        R"("if":{"required":["a"]},"then":{"required":["schedule"]})",
        R"("$ref":"#/$defs/a~1b","$defs":{"a/b":{"$ref":"#/$defs/c"},"c":{"required":["schedule"]}})",
        R"("allOf":[{"$ref":"#/anyOf/1"}],"anyOf":[true,{"required":["schedule"]}])",
        R"("dependentSchemas":{"a":{"required":["schedule"]}})"})
    expect_refused(fmt::format(R"({{"name":"draw","schedule":true,"inputSchema":{{{}}}}})", part),
                   "required names schedule");
  for (const char* part : {R"("dependentRequired":{"a":["b","schedule"]})", R"("dependencies":{"a":["schedule"]})"})
    expect_refused(fmt::format(R"({{"name":"draw","schedule":true,"inputSchema":{{{}}}}})", part), ".a names schedule");
  // A circle of references ends, and what nobody refers to counts for nothing.
  EXPECT_TRUE(read(R"({"name":"draw","schedule":true,"inputSchema":{"$ref":"#/$defs/a","$defs":{
    "a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"},"c":{"required":["schedule"]}}}})"));
  expect_refused(R"({"name":"draw","schedule":true,"inputSchema":{"anyOf":[true,{"required":["schedule"]}]}})",
                 "inputSchema.anyOf[1].required names schedule");
  const auto needs_it = [](std::string_view schema) -> Result<> {
    if (schema.contains(R"("schedule":true)")) return fail(Errc::invalid_argument, "$ref leads nowhere");
    return {};
  };
  const auto refers = read_manifest("/plugins/draw",
                                    R"({"name":"draw","inputSchema":{"properties":{"schedule":{"type":"string"},
    "label":{"$ref":"#/properties/schedule"}}}})",
                                    "", needs_it);
  ASSERT_FALSE(refers);
  EXPECT_NE(refers.error().detail.find("refers to a part of schedule"), std::string::npos) << refers.error().detail;
  EXPECT_NE(refers.error().detail.find("$ref leads nowhere"), std::string::npos) << refers.error().detail;
}

// F6
TEST(PluginManifest, AScheduleOfThePluginsOwnStaysItsOwn) {
  const char* const own = R"("inputSchema":{"properties":{"schedule":{"type":"array"}}})";

  const auto plugin = read(fmt::format(R"({{"name":"draw","schedule":false,{}}})", own));

  ASSERT_TRUE(plugin) << plugin.error().detail;
  EXPECT_FALSE(plugin->takes_schedule);
  EXPECT_EQ(plugin->parameters, R"({"properties":{"schedule":{"type":"array"}}})");
  EXPECT_FALSE(read(R"({"name":"draw","schedule":false,"inputSchema":{"properties":{"schedule":{"type":"string"}}}})")
                   ->takes_schedule);
}

// F6
TEST(PluginManifest, OursIsNotAddedWhereThePluginHasItsOwn) {
  expect_refused(R"({"name":"draw","schedule":true,"inputSchema":{"properties":{"schedule":{"type":"string"}}}})",
                 "has a parameter of its own called schedule");
  for (const char* const shape : {R"({"type":"array"})", R"({"type":"number"})", "{}", "true", R"({"oneOf":[]})",
                                  R"({"type":"object","properties":{"cron":{}}})"})
    expect_refused(fmt::format(R"({{"name":"draw","inputSchema":{{"properties":{{"schedule":{}}}}}}})", shape),
                   "it must take a string");
}

TEST(PluginManifest, TheSchemaIsChecked) {
  std::string checked;
  const CheckSchema refusing = [&](std::string_view schema) -> Result<> {
    checked = schema;
    return fail(Errc::invalid_argument, "#/type: is wrong");
  };

  const auto plugin = read_manifest("/plugins/draw", R"({"name":"draw","schedule":true})", "", refusing);

  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().detail, "/plugins/draw/config.json: inputSchema: #/type: is wrong");
  EXPECT_NE(checked.find("oneOf"), std::string::npos);
}

TEST(PluginManifest, VariablesAreRead) {
  const auto variables = read_variables(
      "\xEF\xBB\xBF# a comment\r\n\r\nA=1\r\nexport B = two words # remark\nC='single \\n #'\nD=\"a\\nb\\\"c\" # remark\n"
      "EMPTY=\n_x9=a=b\nA=last\nE=#\nF=a#b\nG='' ");

  ASSERT_TRUE(variables) << variables.error().detail;
  EXPECT_EQ(*variables, (Variables{{"B", "two words"},
                                   {"C", "single \\n #"},
                                   {"D", "a\nb\"c"},
                                   {"EMPTY", ""},
                                   {"_x9", "a=b"},
                                   {"A", "last"},
                                   {"E", ""},
                                   {"F", "a#b"},
                                   {"G", ""}}));
}

TEST(PluginManifest, ARefusedVariableIsNotShown) {
  for (const std::string line : {"sk-secret", "1KEY=sk-secret", "K-Y=sk-secret", "KEY='sk-secret",
                                 "KEY=\"sk-secret\" x", "=sk-secret", "export sk-secret"}) {
    const std::string why = refusal(R"({"name":"draw"})", "A=1\n" + line + "\n");
    EXPECT_TRUE(why.starts_with("/plugins/draw/.env: line 2")) << line << ": " << why;
    EXPECT_EQ(why.find("secret"), std::string::npos) << why;
  }
  EXPECT_FALSE(read_variables(std::string("A=a\0b", 5)));
  std::string many;
  for (std::size_t i = 0; i <= kVariablesMax; ++i) many += fmt::format("V{}=1\n", i);
  EXPECT_FALSE(read_variables(many));
}

class PluginFolderTest : public ::testing::Test {
 protected:
  PluginFolderTest() { fs::create_directory(folder_); }
  void write(const std::string& name, std::string_view text, bool executable = false) const {
    std::ofstream(folder_ / name) << text;
    fs::permissions(folder_ / name, executable ? fs::perms::owner_all : fs::perms::owner_read | fs::perms::owner_write);
  }
  Result<Plugin> read_it() const { return read_plugin(folder_, any_schema); }
  std::string refused() const {
    const auto plugin = read_it();
    return plugin ? "it was taken" : plugin.error().detail;
  }

  testing::ScratchFolder scratch_;
  const fs::path& root_ = scratch_.path();
  fs::path folder_ = root_ / "draw";
};

TEST_F(PluginFolderTest, TheProgramIsFound) {
  write("config.json", R"({"name":"draw"})");
  EXPECT_NE(refused().find("there is no"), std::string::npos);
  write("handler", "#!/bin/sh\n");
  EXPECT_NE(refused().find("chmod +x"), std::string::npos);
  write("handler", "#!/bin/sh\n", true);
  ASSERT_TRUE(read_it());
  EXPECT_EQ(read_it()->command.front(), (folder_ / "handler").string());

  write("config.json", R"({"name":"draw","command":["./handler","x"]})");
  EXPECT_TRUE(read_it());
  write("config.json", R"({"name":"draw","command":["sh","main.sh"]})");
  ASSERT_TRUE(read_it()) << refused();
  EXPECT_TRUE(read_it()->command.front().ends_with("/bin/sh"));
  write("config.json", R"({"name":"draw","command":["no-such-program"]})");
  EXPECT_NE(refused().find("no program no-such-program"), std::string::npos);
  write("config.json", R"({"name":"draw","command":["/bin"]})");
  EXPECT_NE(refused().find("not executable"), std::string::npos);
}

TEST_F(PluginFolderTest, AnotherProgramIsAnotherEdition) {
  write("config.json", R"({"name":"draw","command":["sh","main.sh"]})");
  write("main.sh", "echo 1");
  const auto before = read_it();
  write("notes.txt", "of no importance");
  EXPECT_EQ(*before, *read_it());

  write("main.sh", "echo 1, 2");

  EXPECT_NE(*before, *read_it());
}

TEST_F(PluginFolderTest, FilesThatAreNoneOrTooLargeAreRefused) {
  EXPECT_NE(refused().find("there is no config.json"), std::string::npos);
  fs::create_directory(folder_ / "config.json");
  EXPECT_NE(refused().find("no file"), std::string::npos);
  fs::remove(folder_ / "config.json");
  write("config.json", std::string(kManifestBytesMax + 1, ' '));
  EXPECT_NE(refused().find("more than"), std::string::npos);
}

}  // namespace
}  // namespace belfry::plugin
