#include "belfry/run/references.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/json.h"

namespace belfry::run {
namespace {

std::optional<std::string> results(int step) {
  if (step == 0) return R"({"text":"{{steps.1.result}}","n":[1,{"a.b":2}],"s":"说"})";
  if (step == 1) return "\"plain\"";
  return std::nullopt;
}

Result<std::string> fill(std::string_view text) { return fill_references(text, results); }

// F9
TEST(References, AWholeTextBecomesTheValueAndAPartBecomesText) {
  EXPECT_EQ(*fill(R"({"a":"{{steps.0.result.n}}","b":"n: {{steps.0.result.n}}","c":["{{steps.1.result}}"]})"),
            R"({"a":[1,{"a.b":2}],"b":"n: [1,{\"a.b\":2}]","c":["plain"]})");
  EXPECT_EQ(*fill(R"(" {{ steps.0.result.s }} ")"), "\" 说 \"");
}

// F9
TEST(References, WhatNamesNoStepIsSomebodyElsesTemplate) {
  for (const char* text :
       {R"("{{steps.length}}")", R"("{{ steps.x.result }}")", R"("{{steps}}")", R"("{{steps._1}}")"}) {
    EXPECT_EQ(*fill(text), text);
    EXPECT_TRUE(referred_steps(text)->empty()) << text;
  }
}

// F9
TEST(References, AReferenceMayStandBehindABraceOfSomebodyElses) {
  EXPECT_EQ(*fill(R"("{{{steps.1.result}}}")"), R"("{plain}")");
  EXPECT_EQ(*fill(R"("{{{{steps.1.result}}}}")"), R"("{{plain}}")");
  EXPECT_EQ(*referred_steps(R"("{{{steps.1.result}}}")"), std::vector<int>{1});
}

// F9
TEST(References, WhatWasFilledInIsNotLookedAtAgain) {
  EXPECT_EQ(*fill(R"({"a":"{{steps.0.result.text}}"})"), R"({"a":"{{steps.1.result}}"})");
}

// F9: a megabyte of braces is read once, not once for each of them.
TEST(References, ManyBracesAreReadInOneGo) {
  std::string braces;
  for (int i = 0; i < 250'000; ++i) braces += "{{";
  const std::string text = "\"" + braces + "}}\"";
  EXPECT_EQ(*fill(text), text);
  EXPECT_EQ(referred_steps(text)->size(), 0u);
}

// F9: however often it is asked for, and however large it is, what comes out has its limit.
TEST(References, AResultThatIsReferredToManyTimesIsReadOnceAndTheWholeHasALimit) {
  std::string often = "\"";
  for (int i = 0; i < 40'000; ++i) often += "{{steps.0.result.n}}";
  int asked = 0;
  const auto filled = fill_references(often + "\"", [&asked](int) -> std::optional<std::string> {
    ++asked;
    return R"({"text":")" + std::string(100'000, 'x') + R"(","n":7})";
  });
  EXPECT_EQ(filled->size(), 40'002u);
  EXPECT_EQ(asked, 1);

  const auto large = fill_references(often + "\"", [](int) -> std::optional<std::string> {
    return R"({"n":")" + std::string(1'000'000, 'x') + "\"}";
  });
  EXPECT_EQ(large.error().code, Errc::too_large);
}

// F9
TEST(References, TooManyDifferentOnesAreRefused) {
  std::string many = "[";
  for (int i = 0; i < 101; ++i) many += fmt::format(R"({}"{{{{steps.0.result.a{}}}}}")", i == 0 ? "" : ",", i);
  EXPECT_EQ(referred_steps(many + "]").error().code, Errc::invalid_plan);
  EXPECT_EQ(fill(many + "]").error().code, Errc::invalid_plan);
}

// F9
TEST(References, OtherBracesStayAsTheyAre) {
  for (const std::string text :
       {R"({"a":"{{name}} and {{ and }} and {{}}"})", R"({"a":"{{"})", R"({"{{steps.0.result}}":1})"})
    EXPECT_EQ(*fill(text), text);
}

// F9
TEST(References, WhatCannotBeIsRefused) {
  for (const std::string text :
       {R"("{{steps.7.result}}")", R"("{{steps.0.result.nobody}}")", R"("{{steps.0.result.n.9}}")",
        R"("{{steps.0.result.n.-1}}")", R"("{{steps.1.result.x}}")", R"("{{steps.0}}")", R"("{{steps..result}}")",
        R"("{{steps.-1.result}}")", R"("{{steps.0.result.}}")", R"("{{steps.99999999999999999999.result}}")",
        R"("{{steps.0.output}}")"})
    EXPECT_FALSE(fill(text).has_value()) << text;
}

// F9
TEST(References, StepsThatAreReferredToAreFound) {
  EXPECT_EQ(*referred_steps(R"({"a":["{{steps.3.result}} {{steps.1.result.x}}"],"b":{"c":"{{steps.3.result}}"}})"),
            (std::vector<int>{3, 1}));
  EXPECT_TRUE(referred_steps(R"({"a":"{{x}}"})")->empty());
}

// F9
RC_GTEST_PROP(ReferencesProperty, ATextWithoutReferencesIsFilledInAsItself, (const std::string& text)) {
  json::Writer writer;
  writer.object().field("a", text).end();
  if (writer.str().find("steps.") != std::string::npos) return;
  const std::string before = writer.take();
  RC_ASSERT(*fill(before) == before);
}

}  // namespace
}  // namespace belfry::run
