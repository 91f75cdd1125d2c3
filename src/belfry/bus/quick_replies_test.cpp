#include "belfry/bus/quick_replies.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/world.h"

namespace belfry::bus {
namespace {

using testing::World;
using Replies = std::vector<std::string>;

std::string word_of(const Result<std::string>& result) {
  return result ? *result : std::string(word(result.error().code));
}

Result<Replies> read(std::string_view text) { return read_quick_replies(*json::parse(text)); }

std::string code(std::string_view text) {
  const auto result = read(text);
  return result ? "taken" : std::string(word(result.error().code));
}

std::string quoted_list(const Replies& replies) {
  json::Writer writer;
  writer.array();
  for (const std::string& reply : replies) writer.value(reply);
  return writer.end().take();
}

// Q2
TEST(QuickReplies, WhatIsNoListOfStringsIsRefusedAndTheIndexNamed) {
  EXPECT_EQ(code(R"("yes")"), "quickReplies_invalid_type");
  EXPECT_EQ(code(R"({"0":"yes"})"), "quickReplies_invalid_type");
  EXPECT_EQ(code(R"(["yes",1])"), "quickReplies_invalid_type");
  EXPECT_EQ(code(R"(["yes",null])"), "quickReplies_invalid_type");
  EXPECT_NE(read(R"(["yes",["no"]])").error().detail.find("quickReplies[1]"), std::string::npos);
  // More than ten, and one of them no string: it is no list of strings in the first place.
  EXPECT_EQ(code(R"([1,2,3,4,5,6,7,8,9,10,11])"), "quickReplies_invalid_type");
}

// Q3
TEST(QuickReplies, MoreThanTenAreRefusedAndTenAreNot) {
  EXPECT_EQ(code(quoted_list(Replies(10, "x"))), "taken");
  EXPECT_EQ(code(quoted_list(Replies(11, "x"))), "quickReplies_too_many");
}

// Q4
TEST(QuickReplies, AnEmptyListAndNullAreAsGoodAsNone) {
  EXPECT_TRUE(read("[]")->empty());
  EXPECT_TRUE(read("null")->empty());
  EXPECT_EQ(word_of(with_quick_replies(R"({"text":"hi","quickReplies":[]})", {})), R"({"text":"hi"})");
  EXPECT_EQ(word_of(with_quick_replies(R"({"text":"hi","quickReplies":null})", {"a"})),
            R"({"text":"hi","quickReplies":["a"]})");
}

// Q5
TEST(QuickReplies, EmptyAndBlankTextsAreRefused) {
  EXPECT_EQ(code(R"([""])"), "quickReplies_empty_string");
  EXPECT_EQ(code(R"(["yes"," \t"])"), "quickReplies_empty_string");
  EXPECT_EQ(code("[\"\u3000\u00a0\u200b\"]"), "quickReplies_empty_string");
  EXPECT_EQ(code("[\"\u3000好\"]"), "taken");
}

// Q6
TEST(QuickReplies, TheyTravelInThePayloadWhereverTheyWereGiven) {
  EXPECT_EQ(word_of(with_quick_replies(R"({"text":"hi"})", {"b", "a"})), R"({"text":"hi","quickReplies":["b","a"]})");
  EXPECT_EQ(word_of(with_quick_replies(R"("hi")", {"a"})), R"({"text":"hi","quickReplies":["a"]})");
  EXPECT_EQ(word_of(with_quick_replies(R"({"quickReplies":["a"]})", {"a"})), R"({"quickReplies":["a"]})");
  EXPECT_EQ(word_of(with_quick_replies(R"({"quickReplies":["a"]})", {"b"})), "invalid_argument");
  EXPECT_EQ(word_of(with_quick_replies(R"({"quickReplies":[1]})", {})), "quickReplies_invalid_type");
  EXPECT_EQ(word_of(with_quick_replies(R"({"quick\u0052eplies":[""]})", {})), "quickReplies_empty_string");
  EXPECT_EQ(word_of(with_quick_replies("[1,2]", {"a"})), "invalid_argument");
  EXPECT_EQ(word_of(with_quick_replies(R"({"quickReplies":["a"],"quickReplies":["b"]})", {})), "invalid_json");
}

// A payload without them is nobody's business.
TEST(QuickReplies, APayloadWithoutThemIsSentAsItIs) {
  std::string many = "{";
  for (int i = 0; i < 200; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  many += R"("k0":"\n"})";
  EXPECT_EQ(word_of(with_quick_replies(many, {})), many);
  EXPECT_EQ(word_of(with_quick_replies(R"( "quickReplies" )", {})), R"( "quickReplies" )");
}

// What the rules say about a list, said again in a few words.
std::string judged(const Replies& replies) {
  if (replies.size() > 10) return "quickReplies_too_many";
  for (const std::string& reply : replies)
    if (reply.find_first_not_of(' ') == std::string::npos) return "quickReplies_empty_string";
  return "taken";
}

rc::Gen<Replies> some_replies() {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 13), [](std::size_t count) {
    return rc::gen::container<Replies>(count,
                                       rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \"\\"))));
  });
}

// Q1, Q2, Q3, Q4, Q5, Q6
RC_GTEST_PROP(QuickReplies, TheLibraryTakesWhatTheRulesAllowInOrderAndNothingElse, ()) {
  const Replies replies = *some_replies();
  World w;
  const auto sent = w.try_send({.payload = R"({"text":"?"})", .quick_replies = replies});
  const std::string expected = judged(replies);
  RC_ASSERT((sent ? "taken" : std::string(word(sent.error().code))) == expected);
  const auto got = w.drain();
  RC_ASSERT(got.size() == (expected == "taken" ? 1u : 0u));
  if (!got.empty()) RC_ASSERT(quick_replies_of(got[0].payload) == replies);
}

// Q1, Q2, Q3, Q4, Q5, Q6
RC_GTEST_PROP(QuickReplies, TheToolTakesWhatTheRulesAllowInOrderAndNothingElse, ()) {
  const Replies replies = *some_replies();
  const bool in_payload = *rc::gen::arbitrary<bool>();
  World w;
  const std::string list = quoted_list(replies);
  const std::string arguments = in_payload ? R"({"to":"worker","payload":{"text":"?","quickReplies":)" + list + "}}"
                                           : R"({"to":"worker","payload":{"text":"?"},"quickReplies":)" + list + "}";
  const auto outcome = w.run(w.tools().call({.tool = "send_message", .arguments = arguments}));
  RC_ASSERT(outcome.has_value());
  const std::string expected = judged(replies);
  RC_ASSERT((outcome->ok ? "taken" : std::string(word(outcome->code))) == expected);
  const auto got = w.drain();
  RC_ASSERT(got.size() == (expected == "taken" ? 1u : 0u));
  if (!got.empty()) RC_ASSERT(quick_replies_of(got[0].payload) == replies);
}

}  // namespace
}  // namespace belfry::bus
