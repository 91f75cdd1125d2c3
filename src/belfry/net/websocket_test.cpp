#include "belfry/net/websocket.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::net::websocket {
namespace {

constexpr std::uint32_t kMask = 0x37fa213d;

Violation violation_of(std::string_view bytes, Side side = Side::server) {
  Reader reader(side, 1'000);
  const auto read = reader.next(bytes);
  return read ? Violation{0, "none"} : read.error();
}

// G9: the example of RFC 6455, section 1.3.
TEST(WebSocket, TheHandshakeIsAnsweredAsTheStandardSays) {
  EXPECT_EQ(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  EXPECT_TRUE(is_client_key("dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(is_client_key("dGhlIHNhbXBsZSBub25jZ==="));
  EXPECT_FALSE(is_client_key(""));
}

// The examples of RFC 6455, section 5.7.
TEST(WebSocket, FramesAreThoseOfTheStandard) {
  EXPECT_EQ(frame(Opcode::text, "Hello"), "\x81\x05Hello");
  EXPECT_EQ(frame(Opcode::text, "Hello", kMask), "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
  const std::string middle = frame(Opcode::text, std::string(256, 'x'));
  EXPECT_EQ(middle.substr(0, 4), std::string("\x81\x7e\x01\x00", 4));
  const std::string large = frame(Opcode::text, std::string(65'536, 'x'));
  EXPECT_EQ(large.substr(0, 10), std::string("\x81\x7f\0\0\0\0\0\1\0\0", 10));
}

// Whatever is said, and however it is cut into frames and packets, arrives as it was said.
RC_GTEST_PROP(WebSocket, TextsArriveHoweverTheyAreCut, ()) {
  const auto texts =
      *rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(rc::gen::inRange<char>(32, 126)));
  std::string bytes;
  for (const std::string& text : texts) {
    const std::size_t cut = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    std::string first = frame(Opcode::text, text.substr(0, cut), kMask);
    first[0] = static_cast<char>(first[0] & 0x7F);  // not the last one
    std::string second = frame(Opcode::continuation, text.substr(cut), kMask);
    bytes += first;
    bytes += frame(Opcode::ping, "p", kMask);  // control frames may stand in between
    bytes += second;
  }
  Reader reader(Side::server, 10'000);
  std::vector<std::string> heard;
  std::string waiting;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t size = *rc::gen::inRange<std::size_t>(1, 40);
    waiting += bytes.substr(at, size);
    at += size;
    std::string_view left = waiting;
    while (true) {
      const auto message = reader.next(left);
      RC_ASSERT(message.has_value());
      if (!*message) break;
      if ((*message)->opcode == Opcode::text) heard.push_back((*message)->payload);
    }
    waiting.erase(0, waiting.size() - left.size());
  }
  RC_ASSERT(heard == texts);
}

TEST(WebSocket, AServerTakesMaskedFramesAndAClientOthers) {
  EXPECT_EQ(violation_of(frame(Opcode::text, "x")).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(Opcode::text, "x", kMask), Side::client).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(Opcode::text, "x"), Side::client).close_code, 0);
}

TEST(WebSocket, WhatTheStandardForbidsIsRefused) {
  EXPECT_EQ(violation_of(frame(Opcode::binary, "x", kMask)).close_code, kUnsupported);
  EXPECT_EQ(violation_of(frame(Opcode::continuation, "x", kMask)).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(static_cast<Opcode>(3), "x", kMask)).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(Opcode::ping, std::string(126, 'x'), kMask)).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(Opcode::text, "\xC3", kMask)).close_code, kNotUtf8);
  EXPECT_EQ(violation_of(frame(Opcode::text, std::string(1'001, 'x'), kMask)).close_code, kTooLarge);
  EXPECT_EQ(violation_of(close_frame(1005, "", kMask)).close_code, kProtocolError);
  EXPECT_EQ(violation_of(frame(Opcode::close, "x", kMask)).close_code, kProtocolError);
  std::string reserved = frame(Opcode::text, "x", kMask);
  reserved[0] = static_cast<char>(reserved[0] | 0x40);
  EXPECT_EQ(violation_of(reserved).close_code, kProtocolError);
  EXPECT_EQ(violation_of(std::string("\x81\xfe\0\x05\0\0\0\0xxxxx", 13)).close_code, kProtocolError);
}

// A message is refused by its announced size, before any of it is stored.
TEST(WebSocket, FragmentsTogetherAreBoundedToo) {
  Reader reader(Side::server, 1'000);
  std::string first = frame(Opcode::text, std::string(600, 'x'), kMask);
  first[0] = static_cast<char>(first[0] & 0x7F);
  const std::string bytes = first + frame(Opcode::continuation, std::string(600, 'x'), kMask).substr(0, 8);
  std::string_view left = bytes;
  const auto read = reader.next(left);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().close_code, kTooLarge);
}

TEST(WebSocket, AReasonIsCutBetweenCharacters) {
  std::string reason;
  for (int i = 0; i < 100; ++i) reason += "钟";
  const std::string bytes = close_frame(kRestarting, reason);
  Reader reader(Side::client, 1'000);
  std::string_view left = bytes;
  const auto read = reader.next(left);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->close_code, kRestarting);
  EXPECT_EQ((*read)->payload.size(), 123u);
}

}  // namespace
}  // namespace belfry::net::websocket
