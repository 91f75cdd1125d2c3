#include "belfry/llm/sse.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::llm {
namespace {

using Events = std::vector<Event>;

struct Outcome {
  Events events;
  bool too_long = false;

  bool operator==(const Outcome&) const = default;
};

// What comes of a text that comes in pieces of these lengths, the rest in one.
Outcome outcome_of(std::string_view text, const std::vector<std::size_t>& pieces = {},
                   std::size_t bytes_max = kEventBytesMax) {
  EventParser parser(bytes_max);
  Events all;
  const auto add = [&](std::string_view piece) {
    const Events events = parser.feed(piece);
    all.insert(all.end(), events.begin(), events.end());
  };
  for (const std::size_t size : pieces) {
    add(text.substr(0, size));
    text.remove_prefix(std::min(size, text.size()));
  }
  add(text);
  return {all, parser.too_long()};
}

Events events_of(std::string_view text) { return outcome_of(text).events; }

TEST(EventParser, ReadsEventsWithAnyEndOfLine) {
  const Events expected{{"", "one"}, {"", "two"}};

  EXPECT_EQ(events_of("data: one\n\ndata: two\n\n"), expected);
  EXPECT_EQ(events_of("data: one\r\n\r\ndata: two\r\n\r\n"), expected);
  EXPECT_EQ(events_of("data: one\r\rdata: two\r\r"), expected);
  EXPECT_EQ(events_of("data: one\r\n\ndata: two\n\r\n"), expected);
}

TEST(EventParser, JoinsLinesOfDataAndTakesOneBlankOnly) {
  EXPECT_EQ(events_of("data: a\ndata:b\ndata:  c\ndata\ndata:\n\n"), (Events{{"", "a\nb\n c\n\n"}}));
}

TEST(EventParser, SkipsCommentsAndFieldsThatMeanNothingHere) {
  EXPECT_EQ(
      events_of(": keep-alive\n\nid: 7\nretry: 10\nnonsense\n\nevent: error\ndata: x\n\n: OPENROUTER PROCESSING\n\n"),
      (Events{{"error", "x"}}));
}

TEST(EventParser, AnEventWithoutItsEmptyLineHasNotComeYet) {
  EXPECT_EQ(events_of("data: one\n\ndata: two\n"), (Events{{"", "one"}}));
  EXPECT_EQ(events_of("data: one\n\ndata: tw"), (Events{{"", "one"}}));
  EXPECT_EQ(events_of(""), Events{});
}

TEST(EventParser, ATypeIsOfOneEventOnly) { EXPECT_EQ(events_of("event: error\n\ndata: x\n\n"), (Events{{"", "x"}})); }

TEST(EventParser, AByteOrderMarkInFrontIsNoPartOfTheFirstName) {
  EXPECT_EQ(events_of("\xEF\xBB\xBF"
                      "data: x\n\n"),
            (Events{{"", "x"}}));
}

TEST(EventParser, ACleanEndGivesWhatStandsLast) {
  for (const char* text : {"data: [DONE]", "data: [DONE]\n", "data: [DONE]\r"}) {
    EventParser parser;
    parser.feed(text);
    const auto last = parser.finish();
    ASSERT_TRUE(last);
    EXPECT_EQ(last->data, "[DONE]");
  }
  EventParser parser;
  parser.feed("data: x\n\n: bye");
  EXPECT_FALSE(parser.finish());
}

TEST(EventParser, RefusesWhatIsTooLongAndStaysWithThat) {
  const std::string line = "data: " + std::string(20, 'x');
  EXPECT_FALSE(outcome_of(line + "\n\n", {}, 30).too_long);
  EXPECT_TRUE(outcome_of(line + line, {}, 30).too_long);
  EXPECT_TRUE(outcome_of(line + "\n" + line + "\n\n", {}, 30).too_long);
  EXPECT_TRUE(outcome_of(":" + std::string(40, ' '), {3, 5, 7}, 30).too_long);

  EventParser parser(30);
  EXPECT_EQ(parser.feed("data: y\n\n" + line + line).size(), 1u);
  EXPECT_TRUE(parser.too_long());
  EXPECT_TRUE(parser.feed("\n\ndata: x\n\n").empty());
  EXPECT_FALSE(parser.finish());
}

RC_GTEST_PROP(EventParser, AnySplitOfTheBytesGivesTheSameEvents, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "data", "event", "id", ":", " ", "\n", "\r", "\r\n", "x", "\xEF\xBB\xBF", "\xEF", "[DONE]", "data: y\n\n"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const auto pieces = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 6));

  RC_ASSERT(outcome_of(text, pieces, 24) == outcome_of(text, {}, 24));
}

}  // namespace
}  // namespace belfry::llm
