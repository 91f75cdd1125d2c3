#include "belfry/app/terminal.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/utf8.h"

namespace belfry::app {
namespace {

TEST(Terminal, ChineseCharactersTakeTwoColumns) {
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("提醒"), 4u);
  EXPECT_EQ(columns_of("é…"), 2u);
}

// G25
TEST(Terminal, WhatATerminalWouldObeyIsNotPrinted) {
  EXPECT_EQ(printable("a\x1b[31mb\nc"), "a [31mb c");
  EXPECT_EQ(printable("t\u009b31m\u0085x"), "t 31m x");
  EXPECT_EQ(printable("safe\u202egnp.exe\u2066x\u2069\u200f\u061c"), "safe gnp.exe x   ");
  EXPECT_EQ(printable("one\u2028two\x7f"), "one two ");
  EXPECT_EQ(printable("提醒我，ありがとう مرحبا 👍🏽 é"), "提醒我，ありがとう مرحبا 👍🏽 é");
  EXPECT_EQ(printable("\x9b"
                      "31m\xff"),
            "\ufffd31m\ufffd")
      << "bytes that are no character";
}

// G25
TEST(Terminal, JsonSaysTheSameWithoutWhatATerminalWouldObey) {
  EXPECT_EQ(escaped_for_terminal("{\"a\":\"\u009b31m\u202e\"}\n"), "{\"a\":\"\\u009b31m\\u202e\"}\n");
  EXPECT_EQ(escaped_for_terminal("{\"提醒\":1}"), "{\"提醒\":1}");
}

TEST(Terminal, WhatFitsIsLeftAsItIs) {
  EXPECT_EQ(fitted("hello", 5), "hello");
  EXPECT_EQ(fitted("提醒", 4), "提醒");
}

TEST(Terminal, WhatIsTooLongIsCutBetweenCharacters) {
  EXPECT_EQ(fitted("hello", 4), "hel…");
  EXPECT_EQ(fitted("提醒我", 4), "提…");
  EXPECT_EQ(fitted("提醒我", 5), "提醒…");
  EXPECT_EQ(fitted("x", 0), "");
}

RC_GTEST_PROP(Terminal, NothingIsWiderThanTheTerminal, (const std::vector<char32_t>& characters)) {
  std::string text;
  for (const char32_t one : characters) append_utf8(text, static_cast<unsigned>(one % 0xd800));
  const auto columns = *rc::gen::inRange<std::size_t>(0, 30);
  const std::string cut = fitted(text, columns);
  RC_ASSERT(columns_of(cut) <= columns);
  RC_ASSERT(is_utf8(cut));
}

}  // namespace
}  // namespace belfry::app
