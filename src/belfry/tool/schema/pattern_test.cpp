#include "belfry/tool/schema/pattern.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace belfry::tool {
namespace {

using namespace std::string_view_literals;

bool found(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled.has_value()) << pattern << ": " << compiled.error().detail;
  return compiled && compiled->found_in(text);
}

std::string refusal(std::string_view pattern) {
  const auto compiled = Pattern::compile(pattern);
  return compiled ? "taken" : compiled.error().detail;
}

TEST(ToolPattern, MeansWhatEcma262Means) {
  EXPECT_TRUE(found("b", "abc"));
  EXPECT_FALSE(found("^b", "abc"));
  EXPECT_FALSE(found("^abc$", "abc\n"));
  EXPECT_FALSE(found("^b$", "a\nb\nc"));
  EXPECT_FALSE(found("^.$", "\xE2\x80\xA8")) << "a dot is no line separator";
  EXPECT_TRUE(found("^.$", "\xF0\x9F\x90\xB2")) << "one character, whatever its length";
  EXPECT_TRUE(found(R"(^\s\S$)", "\xC2\xA0x"));
  EXPECT_TRUE(found(R"(^[\s\d]+$)", "1 \xE3\x80\x80"));
  EXPECT_FALSE(found(R"(^[^\S]$)", "x"));
  EXPECT_TRUE(found(R"(^[\S\n]+$)", "ab\n"));
  EXPECT_TRUE(found(R"(^\cJ\x41\u00e9\u{1F432}\uD83D\uDC32$)", "\nA\xC3\xA9\xF0\x9F\x90\xB2\xF0\x9F\x90\xB2"));
  EXPECT_TRUE(found(R"(^\0$)", "\0"sv));
  EXPECT_TRUE(found(R"(^[\b]$)", "\b"));
  EXPECT_TRUE(found(R"(^\p{Lu}\p{Script=Greek}\P{L}$)",
                    "A\xCE\xB1"
                    "1"));
  EXPECT_TRUE(found(R"(^[\p{Letter}\p{gc=Decimal_Number}]+$)",
                    "\xC3\xA9"
                    "5"));
}

TEST(ToolPattern, FindsNoMeaningOfRe2sOwn) {
  EXPECT_FALSE(found("[[:alpha:]]", "a")) << "an ECMA set of [ : a l p h and a ] behind it";
  EXPECT_TRUE(found("^[[:alpha:]]$", "a]"));
  EXPECT_TRUE(found("^[]$|^x[^]$", "x\n"));
  EXPECT_FALSE(found("[]", "anything"));
  EXPECT_TRUE(found(R"(^[\w-.]+$)", "a-."));
  EXPECT_TRUE(found("^a{b}$", "a{b}"));
  EXPECT_TRUE(found("^a{2,3}?$", "aaa"));
  EXPECT_TRUE(found(R"(^\@\_\/\-$)", "@_/-"));
  EXPECT_TRUE(found("^(?<year>\\d{4})-(?:x|y)$", "2026-y"));
}

TEST(ToolPattern, SaysWhatIsNotSupported) {
  EXPECT_EQ(refusal("(?=a)"), "lookahead is not supported (at byte 0)");
  EXPECT_EQ(refusal("a(?!b)"), "lookahead is not supported (at byte 1)");
  EXPECT_EQ(refusal("(?<!a)b"), "lookbehind is not supported (at byte 0)");
  EXPECT_EQ(refusal(R"((a)\1)"), "backreferences are not supported (at byte 3)");
  EXPECT_EQ(refusal(R"((?<n>a)\k<n>)"), "backreferences are not supported (at byte 7)");
  EXPECT_EQ(refusal("(?i)a"), "flags and other groups with (? are not supported (at byte 0)");
  EXPECT_EQ(refusal("a{1001}"), "it repeats something more than 1000 times; maxLength can say that");
  EXPECT_EQ(refusal("(a{100}){100}"), "it repeats something more than 1000 times; maxLength can say that");
  EXPECT_EQ(refusal(R"(\p{Alphabetic=x})"), "the property \"Alphabetic=x\" is not supported (at byte 16)");
}

TEST(ToolPattern, SaysWhatIsWrong) {
  EXPECT_EQ(refusal(R"(\a)"), "\\a is no escape (at byte 2)");
  EXPECT_EQ(refusal(R"(\Z)"), "\\Z is no escape (at byte 2)");
  EXPECT_EQ(refusal("[z-a]"), "a range in [] goes backwards (at byte 4)");
  EXPECT_EQ(refusal("[a"), "a set has no closing ] (at byte 2)");
  EXPECT_EQ(refusal("a{,5}"), "a count has no beginning; write {0,n} (at byte 1)");
  EXPECT_EQ(refusal("a{5,2}"), "a count goes backwards (at byte 6)");
  EXPECT_EQ(refusal("\\"), "it ends in the middle (at byte 1)");
  EXPECT_EQ(refusal(R"(\u12)"), "hexadecimal digits are missing (at byte 2)");
  EXPECT_EQ(refusal(R"(\uD83D)"), "half of a surrogate pair (at byte 6)");
  EXPECT_EQ(refusal("(a"), "a ( has no )");
  EXPECT_EQ(refusal("a)"), "a ) has no (");
  EXPECT_EQ(refusal("*a"), "there is nothing to repeat in front of *, +, ? or a count");
  EXPECT_EQ(refusal("a**"), "one repetition follows another");
  EXPECT_EQ(refusal(R"(\p{Nonsense})"), "there is no such property: \\p{Nonsense}");
}

}  // namespace
}  // namespace belfry::tool
