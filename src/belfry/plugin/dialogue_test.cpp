#include "belfry/plugin/dialogue.h"

#include <gtest/gtest.h>

#include "belfry/plugin/guard.h"

namespace belfry::plugin {
namespace {

// What is left of an answer to request 12 of a persistent plugin.
Dialogue heard(std::initializer_list<const char*> lines) {
  Dialogue dialogue("12", nullptr);
  for (const char* const line : lines) dialogue.take(line);
  return dialogue;
}

TEST(PluginDialogue, ARequestIsOneLine) {
  const Job job{.arguments = "{\"a\":\n1}", .context = "{\r\n}", .output_dir = "/out"};

  EXPECT_EQ(request_line(job, ""), "{\"args\":{\"a\": 1},\"context\":{  }}\n");
  EXPECT_EQ(request_line({}, "7"), "{\"id\":\"7\",\"args\":{},\"context\":{}}\n");
  EXPECT_NE(request_line(job, "7").find("\"outputDir\":\"/out\""), std::string::npos);
}

// F6: what Belfry takes for itself is not in the line; what it is given is there as it is.
TEST(PluginDialogue, ARequestHasTheArgumentsAsTheyAre) {
  const Job job{.arguments = R"({"schedule":["mine"]})"};

  EXPECT_NE(request_line(job, "").find(R"("args":{"schedule":["mine"]})"), std::string::npos);
}

TEST(PluginDialogue, OnlyWhatHasTheIdOfTheRequestCounts) {
  EXPECT_EQ(heard({R"({"id":"12","success":true,"data":1})"}).result()->data, "1");
  // Chatter, and what comes late.
  const Dialogue late =
      heard({"loading", "[1]", R"({"id":"9","success":true})", R"({"id":"2","success":true})", R"({"progress":1})",
             R"({"id":"12","success":true,"data":5})", R"({"id":"12","success":false})"});
  EXPECT_FALSE(late.problem());
  EXPECT_EQ(late.result()->data, "5");
}

TEST(PluginDialogue, AResultThatCanBeNobodysIsAFault) {
  EXPECT_TRUE(heard({R"({"success":true})"}).problem());
  EXPECT_TRUE(heard({R"({"id":"13","success":true})"}).problem());
  EXPECT_TRUE(heard({R"({"id":"100","success":true})"}).problem());
  EXPECT_TRUE(heard({R"({"id":12,"success":true})"}).problem());
}

TEST(PluginDialogue, LastWordsAreTextInOneLine) {
  EXPECT_EQ(last_words("a\r\n\tb\x1b[0m\xff\n", 100), "a b [0m\xEF\xBF\xBD");
  EXPECT_EQ(last_words("一二三", 7), "二三");
  EXPECT_EQ(last_words("", 7), "");
}

TEST(PluginGuard, AnOrderArrivesAsItWasGiven) {
  const GuardOrder order{.grace_ms = 5,
                         .folder = "/a b",
                         .command = {"x", "", "y\n"},
                         .environment = {"A=1", "B="},
                         .sandbox = Sandbox::strict,
                         .landlock_abi_max = 2,
                         .no_network = true,
                         .reads = {"/r", "/s"},
                         .writes = {"/w"},
                         .output = "/o",
                         .amounts = {.processes = 1, .memory_mib = 2, .entries = 3, .levels = 4, .output_mib = 5}};
  const std::string bytes = encode(order);

  EXPECT_EQ(decode_order(bytes), order);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_order(bytes.substr(0, size))) << size;
}

}  // namespace
}  // namespace belfry::plugin
