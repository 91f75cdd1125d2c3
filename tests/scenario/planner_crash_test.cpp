// A conversation with an agent that thinks, with the power cut at every change of the disk in turn: whatever happens, each
// effect happens once, and nothing is early.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/bus/quick_replies.h"
#include "tests/support/world.h"

namespace belfry::agent {
namespace {

using testing::calls;
using testing::kNoon;
using testing::says;
using testing::ScriptedAnswer;
using testing::World;
using namespace std::chrono_literals;

constexpr Millis kDelay = 90s;

bool is_told(const llm::ChatRequest& request, std::string_view text) {
  for (const llm::ChatMessage& message : request.messages)
    if (message.role != llm::Role::system && message.content.find(text) != std::string::npos) return true;
  return false;
}

bool is_bob(const llm::ChatRequest& request) { return request.messages.front().content.starts_with("Bob"); }

// Answers by what it is told, so that it is the same model in every life.
ScriptedAnswer answer(const llm::ChatRequest& request) {
  if (is_bob(request)) return says("Tuesday", 2s);
  if (is_told(request, "answers your message")) return says("Bob says Tuesday.", 2s);
  if (request.messages.back().role == llm::Role::tool) return says("都安排好了。", 2s);
  return calls(
      {{"same", "send_message",
        R"({"to":"bob","payload":{"text":"Which day?"},"delayMs":90000,"quickReplies":["Monday","Tuesday","Friday"]})"},
       {"same", "schedule_private_message", R"({"send_at":"明天早上9点","message_text":"记得带伞"})"}},
      2s);
}

class Scenario {
 public:
  explicit Scenario(std::int64_t cut) {
    world.model().answer = answer;
    EXPECT_TRUE(world.run(world.roster().add("ann", {.prompt = "Ann"})));
    EXPECT_TRUE(world.run(world.roster().add("bob", {.prompt = "Bob"})));
    EXPECT_TRUE(world.run(world.chats().add_person("user")));
    session = world.run(world.chats().open({.people = {"user"}, .agents = {"ann"}}))->session.id;
    if (cut > 0) world.disk().cut_at(cut);
  }

  // The person presses send again until it is said; the key makes that safe.
  void ask() {
    while (true) {
      const auto posted =
          world.run(world.chats().post({.session = session, .text = "问 bob 哪天，明早9点提醒我带伞", .key = "k"}));
      if (posted) return;
      recover();
    }
  }
  void recover() {
    if (world.disk().running()) return;
    cuts += 1;
    world.restart();
  }
  void pass(Millis time) {
    const Millis step = 500ms;
    for (Millis gone{0}; gone < time; gone += step) {
      world.advance(step);
      recover();
    }
  }
  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (const chat::Line& line : *world.run(world.chats().lines({.session = session})))
      all.push_back(fmt::format("{}: {}", line.from, chat::text_of(line.payload)));
    return all;
  }

  World world;
  std::string session;
  int cuts = 0;
};

void check(Scenario& one, const std::string& context) {
  // What was asked and answered, each line once and nothing else.
  EXPECT_EQ(one.texts(), (std::vector<std::string>{"user: 问 bob 哪天，明早9点提醒我带伞", "ann: 都安排好了。",
                                                   "ann: Bob says Tuesday."}))
      << context;
  // One message reached Bob, on time, with its answers; his own is on it.
  const auto bobs = one.world.run(one.world.planner().turns("bob", 10));
  ASSERT_TRUE(bobs);
  ASSERT_EQ(bobs->size(), 1u) << context;
  EXPECT_EQ(bus::quick_replies_of(bobs->front().payload).size(), 3u);
  EXPECT_GE(bobs->front().began_at - bobs->front().written_at, kDelay) << context;
  EXPECT_EQ(bobs->front().answered, "Tuesday") << context;
  bool saw_options = false;
  for (const llm::ChatRequest& request : one.world.model().asked)
    if (is_bob(request) && is_told(request, R"(offered answers: "Monday", "Tuesday", "Friday")")) saw_options = true;
  EXPECT_TRUE(saw_options) << context;
  // One reminder, said tomorrow at nine without a model, and in the next context as the agent's own.
  const auto tasks = one.world.run(one.world.scheduled().list({.session = one.session}));
  ASSERT_TRUE(tasks);
  EXPECT_EQ(tasks->messages.size(), 1u) << context;
  const std::size_t asked = one.world.model().asked.size();
  const WallTime nine = kNoon + 21h;
  one.world.crash();
  one.world.pass(nine - one.world.now_when_stopped() - 2s);
  one.world.start();
  EXPECT_EQ(one.texts().size(), 3u) << context;
  one.world.advance(2s);
  EXPECT_EQ(one.texts().back(), "ann: 记得带伞") << context;
  EXPECT_EQ(one.texts().size(), 4u) << context;
  EXPECT_EQ(one.world.model().asked.size(), asked) << context;
  EXPECT_TRUE(one.world.run(one.world.chats().post({.session = one.session, .text = "谢谢"})));
  one.world.advance(5s);
  bool as_its_own = false;
  for (const llm::ChatMessage& message : one.world.model().asked.back().messages)
    if (message.role == llm::Role::assistant && message.content.find("记得带伞") != std::string::npos)
      as_its_own = true;
  EXPECT_TRUE(as_its_own) << context;
  EXPECT_EQ(one.world.problems(), std::vector<std::string>{}) << context;
}

// A1, A5, D18, P9
TEST(PlannerCrash, EveryEffectHappensOnceWhereverThePowerIsCut) {
  std::int64_t cut = 0;
  bool was_cut = true;
  for (; was_cut; ++cut) {
    Scenario one(cut);
    one.ask();
    one.pass(3min);
    check(one, fmt::format("power cut at change {}", cut));
    was_cut = cut == 0 || one.cuts > 0;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(cut, 40) << "there are more changes than this in the scenario";
}

}  // namespace
}  // namespace belfry::agent
