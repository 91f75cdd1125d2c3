#include "belfry/chat/webhooks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/net/signature.h"
#include "tests/support/world.h"

namespace belfry::chat {
namespace {

using testing::kNoon;
using testing::World;
using namespace std::chrono_literals;

const Secret kSecret("a secret of some length");

class WebhooksTest : public ::testing::Test {
 protected:
  WebhooksTest() {
    w.add("bot");
    w.add("cat");
    session = open("ann", "bot");
    EXPECT_TRUE(set({.person = "ann", .url = "https://ann.example/", .secret = kSecret}));
  }
  std::string open(const std::string& person, const std::string& agent) {
    return w.run(w.chats().open({.people = {person}, .agents = {agent}}))->session.id;
  }
  Result<Webhook> set(Webhook webhook) { return w.run(w.webhooks().set(std::move(webhook))); }
  Errc refusal(const Webhook& webhook) { return set(webhook).error().code; }
  Result<> verify(const std::string& person, const std::string& signature, const std::string& body) {
    return w.run(w.webhooks().verify(person, signature, body));
  }
  Result<Posted> receive(Incoming incoming) {
    if (incoming.person.empty()) incoming.person = "ann";
    return w.run(w.webhooks().receive(std::move(incoming)));
  }
  std::vector<Line> lines(const std::string& in) { return *w.run(w.chats().lines({.session = in})); }

  World w;
  std::string session;
};

// P13
TEST_F(WebhooksTest, AWebhookIsSetReadChangedAndRemovedAndSurvivesARestart) {
  EXPECT_EQ(w.run(w.webhooks().get("ann"))->url, "https://ann.example/");
  ASSERT_TRUE(set({.person = "ann", .url = "http://new.example:8080/x", .idempotent = true, .timeout = Millis{500}}));
  w.restart();
  const Webhook found = *w.run(w.webhooks().get("ann"));
  EXPECT_EQ(found.url, "http://new.example:8080/x");
  EXPECT_TRUE(found.idempotent);
  EXPECT_EQ(found.timeout, 500ms);
  EXPECT_EQ(found.secret.reveal(), kSecret.reveal()) << "not given: it stays";
  ASSERT_TRUE(w.run(w.webhooks().remove("ann")));
  EXPECT_EQ(w.run(w.webhooks().get("ann")).error().code, Errc::not_found);
  EXPECT_EQ(w.run(w.webhooks().remove("ann")).error().code, Errc::not_found);
}

// P13
TEST_F(WebhooksTest, AWebhookThatMakesNoSenseIsRefused) {
  EXPECT_EQ(refusal({.person = "nobody", .url = "http://x/", .secret = kSecret}), Errc::not_found);
  EXPECT_EQ(refusal({.person = "bot", .url = "http://x/", .secret = kSecret}), Errc::not_found) << "no person";
  EXPECT_EQ(refusal({.person = "ann", .secret = kSecret}), Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "ftp://x/", .secret = kSecret}), Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "http://x/" + std::string(kWebhookUrlBytesMax, 'a')}),
            Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "http://x/", .secret = Secret("short")}), Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "http://x/", .secret = Secret(std::string(257, 'x'))}),
            Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "http://x/", .timeout = Millis{99}}), Errc::invalid_argument);
  EXPECT_EQ(refusal({.person = "ann", .url = "http://x/", .timeout = Millis{30'001}}), Errc::invalid_argument);
  open("bob", "bot");
  EXPECT_EQ(refusal({.person = "bob", .url = "http://x/"}), Errc::invalid_argument) << "no secret";
  EXPECT_EQ(w.run(w.webhooks().get("ann"))->url, "https://ann.example/") << "nothing has changed";
}

// P13: who is not there, who has no webhook and who signs wrongly hear the same.
TEST_F(WebhooksTest, OnlyWhoKnowsTheSecretIsBelieved) {
  const std::string signature = net::sign(kSecret, kNoon, "{}");
  EXPECT_TRUE(verify("ann", signature, "{}"));
  open("bob", "bot");
  const auto nobody = verify("nobody", signature, "{}");
  const auto without = verify("bob", signature, "{}");
  const auto wrong = verify("ann", net::sign(Secret("another secret of length"), kNoon, "{}"), "{}");
  for (const auto& refused : {nobody, without, wrong}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::bad_signature);
    EXPECT_EQ(refused.error().detail, nobody.error().detail);
  }
  EXPECT_EQ(verify("bob", net::sign(Secret(), kNoon, "{}"), "{}").error().code, Errc::bad_signature);
  w.advance(6min);
  EXPECT_EQ(verify("ann", signature, "{}").error().code, Errc::bad_signature) << "too old";
}

// P13
TEST_F(WebhooksTest, WhatComesInIsSaidByThePersonAndHeardByTheAgentOnce) {
  const auto first = receive({.id = "m1", .text = "你好"});
  ASSERT_TRUE(first);
  EXPECT_EQ(w.counts("bot").pending, 1);
  const auto said = lines(session);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].from, "ann");
  EXPECT_EQ(said[0].source, Source::user);

  w.restart();
  const auto again = receive({.id = "m1", .text = "你好"});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(receive({.id = "m1", .text = "something else"}).error().code, Errc::key_conflict);
  EXPECT_EQ(lines(session).size(), 1u);
  EXPECT_EQ(w.receiver().calls, 0) << "what people say themselves does not come back to them";
}

// P13
TEST_F(WebhooksTest, ItGoesToTheOnlyAgentOrTheOneThatIsNamed) {
  ASSERT_TRUE(receive({.id = "1", .text = "to cat", .agent = "cat"}));
  const auto private_sessions = w.run(w.chats().sessions("ann", "", 10))->sessions;
  ASSERT_EQ(private_sessions.size(), 2u) << "the first word to an agent opens their session";
  EXPECT_EQ(receive({.id = "2", .text = "to whom?"}).error().code, Errc::invalid_argument);
  ASSERT_TRUE(receive({.id = "3", .text = "to bot", .session = session}));
  EXPECT_EQ(lines(session).size(), 1u);
  EXPECT_EQ(receive({.id = "4", .text = "x", .agent = "nobody"}).error().code, Errc::unknown_recipient);
  EXPECT_EQ(receive({.id = "", .text = "x"}).error().code, Errc::invalid_argument);
  EXPECT_EQ(receive({.id = std::string(129, 'x'), .text = "x"}).error().code, Errc::invalid_argument);
  EXPECT_EQ(receive({.id = "5", .text = " ", .agent = "bot"}).error().code, Errc::invalid_argument);
}

// P13: a repeat finds the session that the first one chose, whatever was opened since.
TEST_F(WebhooksTest, ARepeatGoesWhereTheFirstOneWent) {
  ASSERT_TRUE(receive({.id = "1", .text = "hi", .agent = "bot"}));
  const std::string newer = open("ann", "bot");
  ASSERT_TRUE(w.run(w.chats().post({.session = newer, .text = "here now"})));
  EXPECT_TRUE(receive({.id = "1", .text = "hi", .agent = "bot"})->repeated);
  EXPECT_EQ(lines(session).size(), 1u);
  EXPECT_EQ(lines(newer).size(), 1u);
}

// P13
TEST_F(WebhooksTest, AMessageThatWasRefusedLeavesNothingBehind) {
  const std::string other = open("ann", "cat");
  EXPECT_FALSE(receive({.id = "k1", .text = "", .session = session}));
  ASSERT_TRUE(receive({.id = "k1", .text = "for cat", .session = other}));
  EXPECT_TRUE(lines(session).empty());
  EXPECT_EQ(lines(other).size(), 1u);
  EXPECT_EQ(receive({.id = "k1", .text = "for cat", .session = session}).error().code, Errc::key_conflict);
}

// P13
TEST_F(WebhooksTest, OthersSessionsDoNotExist) {
  const std::string bobs = open("bob", "bot");
  ASSERT_TRUE(w.run(w.chats().post({.session = bobs, .text = "secret"})));
  const std::string line = lines(bobs)[0].id;
  EXPECT_EQ(receive({.id = "1", .text = "x", .session = bobs}).error().code, Errc::not_found);
  EXPECT_EQ(receive({.id = "2", .text = "x", .session = "nothing"}).error().code, Errc::not_found);
  EXPECT_EQ(receive({.id = "3", .text = "x", .in_reply_to = line}).error().code, Errc::not_found);
  EXPECT_EQ(lines(bobs).size(), 1u);
}

// P13, Q7
TEST_F(WebhooksTest, AButtonIsPressedFromOutside) {
  w.send({.to = "ann", .from = "bot", .payload = R"({"text":"Lunch?","quickReplies":["noodles","rice"]})"});
  w.advance(1ms);
  ASSERT_EQ(w.receiver().heard.size(), 1u);
  const std::string body = w.receiver().heard[0].request.body;
  EXPECT_NE(body.find(R"("quick_replies":["noodles","rice"])"), std::string::npos) << body;
  const std::string question = json::text(*json::find(*json::parse(body), "id"));
  ASSERT_TRUE(receive({.id = "1", .in_reply_to = question, .quick_reply_index = 1}));
  EXPECT_EQ(receive({.id = "2", .in_reply_to = question, .quick_reply_index = 0}).error().code, Errc::already_answered);
  EXPECT_EQ(text_of(lines(session)[1].payload), "rice");
}

}  // namespace
}  // namespace belfry::chat
