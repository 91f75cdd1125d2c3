#include "belfry/net/answer_parser.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::net {
namespace {

constexpr const char* kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntick\r\nb;note=1\r\n, tick tock\r\n0\r\nTrailer: x\r\n\r\n";

struct Read {
  int status = 0;
  std::optional<Millis> retry_after;
  std::string body;
  bool complete = false;

  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, bool ends = false, const std::vector<std::size_t>& pieces = {}) {
  AnswerParser parser;
  Read out;
  const auto feed = [&](std::string_view piece) {
    parser.feed(piece);
    out.body += parser.take_body();
  };
  for (const std::size_t size : pieces) {
    feed(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  feed(bytes);
  if (ends) parser.end();
  out.body += parser.take_body();
  if (parser.head()) out.status = parser.head()->status;
  if (parser.head()) out.retry_after = parser.head()->retry_after;
  out.complete = parser.complete();
  return out;
}

TEST(AnswerParser, ReadsABodyInChunks) { EXPECT_EQ(read(kChunked), (Read{200, {}, "tick, tick tock", true})); }

TEST(AnswerParser, ReadsABodyWithoutAnyChunkByteByByte) {
  const std::string empty = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  EXPECT_EQ(read(empty, false, std::vector<std::size_t>(empty.size(), 1)), (Read{200, {}, "", true}));
}

TEST(AnswerParser, ReadsABodyOfAnAnnouncedLength) {
  EXPECT_EQ(read("HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"),
            (Read{429, Millis{7'000}, "busy", true}));
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbu", true), (Read{200, {}, "bu", false}));
}

TEST(AnswerParser, ReadsABodyThatEndsWithTheConnection) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n\r\nab"), (Read{200, {}, "ab", false}));
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\n\r\nab", true), (Read{200, {}, "ab", true}));
}

TEST(AnswerParser, SkipsAnswersBeforeTheAnswer) {
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 Done\r\n\r\n"),
            (Read{204, {}, "", true}));
  std::string many;
  for (int i = 0; i < 20; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(read(many + "HTTP/1.1 204 Done\r\n\r\n").status, 0);
}

TEST(AnswerParser, AnAnnouncedLengthMakesNoRoom) {
  EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\nab"), (Read{200, {}, "ab", false}));
}

TEST(AnswerParser, SaysWhatIsWrong) {
  for (const std::string& bytes :
       {std::string("SSH-2.0-nothing\r\n\r\n"), std::string("HTTP/1.1 050 Oh\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        "HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x'),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(100'000, 'x')}) {
    AnswerParser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.problem().empty()) << bytes.substr(0, 60);
    EXPECT_TRUE(parser.over());
    EXPECT_FALSE(parser.complete());
  }
  AnswerParser parser;
  parser.end();
  EXPECT_FALSE(parser.problem().empty());
}

RC_GTEST_PROP(AnswerParser, AnySplitOfTheBytesGivesTheSameAnswer, ()) {
  const std::string bytes = *rc::gen::element<std::string>(
      kChunked, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.0 500 Oh\r\nRetry-After: 3\r\n\r\nnothing works");
  const auto pieces = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 9));
  const bool ends = *rc::gen::arbitrary<bool>();

  RC_ASSERT(read(bytes, ends, pieces) == read(bytes, ends));
}

}  // namespace
}  // namespace belfry::net
