#include "belfry/run/progress_text.h"

#include <gtest/gtest.h>

namespace belfry::run {
namespace {

Result<Overlays> overlays(std::string_view text) { return read_overlays(*json::parse(text)); }

// F10
TEST(ProgressText, TheDefaultIsTheSameSentenceEveryTimeInBothLanguages) {
  EXPECT_EQ(default_progress_text(Tongue::chinese, 120), "工具正在执行中，规定时间 120s 内未完成，继续等待...");
  EXPECT_NE(default_progress_text(Tongue::english, 120).find("120 s"), std::string::npos);
}

// F10
TEST(ProgressText, OverlaysAreTextsOrObjectsWithASystemText) {
  const auto both = overlays(R"({"global":"a","schedule_progress":{"system":"b"}})");
  EXPECT_EQ(*both, (Overlays{.global = "a", .schedule_progress = "b"}));
  EXPECT_EQ(*overlays("{}"), Overlays{});
  EXPECT_EQ(*overlays(R"({"global":null,"schedule_progress":{}})"), Overlays{});
  for (const char* bad : {R"({"global":"a","other":{"x":1}})", R"({"global":{"system":"a","user":"b"}})",
                          R"({"global":7})", R"({"schedule_progress":{"system":[]}})", "[]", "\"x\""})
    EXPECT_FALSE(overlays(bad).has_value()) << bad;
}

// F10
TEST(ProgressText, TheSystemTextIsTheTemplateThenTheHouseThenThis) {
  EXPECT_EQ(compose_system("base", {.global = "house", .schedule_progress = "this"}), "base\n\nhouse\n\nthis");
  EXPECT_EQ(compose_system("base", {}), "base");
}

// F10
TEST(ProgressText, ATemplateIsFilledInOnce) {
  EXPECT_EQ(render_template("{{a}} {{b}} {{c}} {{", {{"a", "{{b}}"}, {"b", "2"}}), "{{b}} 2 {{c}} {{");
}

// F10
TEST(ProgressText, TheTemplateHasBothLanguages) {
  for (const Tongue tongue : {Tongue::chinese, Tongue::english}) {
    EXPECT_FALSE(load_prompt(tongue).system.empty());
    EXPECT_NE(load_prompt(tongue).user.find("{{request}}"), std::string::npos);
  }
}

// F10
TEST(ProgressText, WhatAModelWroteIsShownOnlyIfItIsShortAndPlain) {
  EXPECT_EQ(presentable_progress("  \"Almost there,\n one moment.\" ", "image_draw"), "Almost there, one moment.");
  EXPECT_EQ(presentable_progress("正在为您绘制，请稍候~", "image_draw"), "正在为您绘制，请稍候~");
  EXPECT_TRUE(presentable_progress("We are in the capital.", "image_draw"));
  EXPECT_TRUE(presentable_progress("We start now.", "art"));
  EXPECT_FALSE(presentable_progress("The art is on its way.", "art"));
  EXPECT_FALSE(presentable_progress("正在用art绘制。", "art"));
  std::string long_text;
  for (int i = 0; i < 300; ++i) long_text += "好";
  EXPECT_TRUE(presentable_progress(long_text, ""));
  for (const std::string& bad : {std::string(), std::string(" \n"), long_text + "好", std::string("the API is slow"),
                                 std::string("image_draw is busy"), std::string("{\"message\":\"x\"}"),
                                 std::string("接口很慢"), std::string("local__x goes on"), std::string("bad \xff")})
    EXPECT_FALSE(presentable_progress(bad, "image_draw")) << bad;
}

// F10
TEST(ProgressText, WhatAModelWroteIsShownOnlyIfItHasOneOrTwoSentences) {
  for (const char* good : {"One moment.", "One moment... It takes shape!", "It is 3.5 km away. Please wait",
                           "请稍候。马上就好！", "真的吗？！好~"})
    EXPECT_TRUE(presentable_progress(good, "x")) << good;
  for (const char* bad : {"One. Two. Three.", "One! Two? And three", "一。二。三。", "一！二？三"})
    EXPECT_FALSE(presentable_progress(bad, "x")) << bad;
}

}  // namespace
}  // namespace belfry::run
