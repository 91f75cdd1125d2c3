#include "belfry/server/chat_wire.h"

#include <gtest/gtest.h>

namespace belfry::server::wire {
namespace {

template <class T>
std::string refusal(const Result<T>& result) {
  return result ? "taken" : std::string(word(result.error().code)) + ": " + result.error().detail;
}

TEST(ChatWire, ReadsWhichLinesAreWanted) {
  const auto request = read_lines_query("after=7&limit=5&waitMs=1000");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->lines.after, 7);
  EXPECT_EQ(request->lines.limit, 5);
  EXPECT_EQ(request->lines.wait, Millis{1'000});
  EXPECT_EQ(read_lines_query("before=9")->lines.before, 9);
  EXPECT_EQ(refusal(read_lines_query("after=-1")),
            "invalid_argument: after is \"-1\"; a whole number, 0 or more, belongs there");
  EXPECT_EQ(refusal(read_lines_query("after=1&before=5")),
            "invalid_argument: after stands beside before; one of them is enough");
  EXPECT_EQ(refusal(read_lines_query("after=0&before=5")), refusal(read_lines_query("before=5&after=1")));
}

// Q7
TEST(ChatWire, AnIndexThatFitsNoListIsHandedOnAsItIs) {
  EXPECT_EQ(read_post(R"({"inReplyTo":"x","quickReplyIndex":-7})")->quick_reply_index, -7);
  EXPECT_EQ(read_post(R"({"inReplyTo":"x","quickReplyIndex":2})")->quick_reply_index, 2);
}

}  // namespace
}  // namespace belfry::server::wire
