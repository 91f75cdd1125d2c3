// Conversations under random posts, sayings, questions and answers, crashes, stops and power cuts, against what was promised:
// numbers without gaps, nothing lost that was acknowledged, and exactly one end for each question.
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/world.h"

namespace belfry::testing {
namespace {

using chat::Line;
using chat::Post;

class ChatSimulation {
 public:
  ChatSimulation(std::uint64_t seed, bool power_cuts) : dice_(seed), power_cuts_(power_cuts), world_(options(seed)) {
    for (const char* agent : kAgents) world_.add(agent);
    open({.people = {"ann"}, .agents = {"bot"}});
    open({.kind = chat::SessionKind::group, .people = {"ann", "bob"}, .agents = {"bot", "cook"}});
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (world_.broken() || !world_.disk().running()) restart();
    }
  }

  // Faults off: whatever was promised is there, and every deadline has passed.
  void finish() {
    world_.disk().cut_at(0);
    world_.advance(1ms);
    if (world_.broken() || !world_.disk().running()) restart();
    power_cuts_ = false;
    post_again();
    for (int i = 0; i < 3; ++i) {
      world_.clock().suspend(24h);
      world_.advance(1min);
      hear();
    }
    check_logs();
    for (const auto& [id, seq] : posted_)
      if (!lines_.contains(id) || lines_.at(id).seq != seq)
        problem(id + " was posted and is not where it was said to be");
    for (const std::string& id : sent_)
      if (!lines_.contains(id)) problem(id + " was sent to a person and is in no conversation");
    for (const std::string& id : for_bot_)
      if (!heard_.contains(id)) problem(id + " was posted and the agent never heard it");
    for (const std::string& what : world_.problems()) problem(what);
    auto job = [](store::Connection& connection) -> Result<std::vector<std::string>> {
      return chat::ChatTables::problems(connection);
    };
    for (const std::string& what : *world_.run(world_.store().read<std::vector<std::string>>(std::move(job))))
      problem(what);
  }

  std::string problems;
  int questions = 0;
  int restarts = 0;

 private:
  static constexpr const char* kAgents[] = {"bot", "cook"};

  static World::Options options(std::uint64_t seed) {
    World::Options options;
    options.seed = seed ^ 0xc4a7;
    return options;
  }
  std::int64_t dice(std::int64_t sides) {
    return static_cast<std::int64_t>(dice_.next() % static_cast<std::uint64_t>(sides));
  }
  void problem(const std::string& what) { problems += what + "\n"; }
  void open(chat::NewSession wanted) {
    const auto opened = world_.run(world_.chats().open(std::move(wanted)));
    BELFRY_ASSERT(opened.has_value());
    sessions_.push_back(opened->session.id);
  }

  void step() {
    switch (dice(16)) {
      case 0:
      case 1:
      case 2: return type();
      case 3:
      case 4:
      case 5: return say();
      case 6:
      case 7:
      case 8: return press();
      case 9:
      case 10: return world_.advance(Millis{dice(60'000)});
      case 11: return world_.advance(Millis{dice(600'000)});
      case 12: return hear();
      case 13: return post_again();
      case 14: return dice(2) == 0 ? restart() : stop();
      default:
        if (power_cuts_) world_.disk().cut_at(1 + dice(30));
    }
  }

  // Under a key, so that what failed without an outcome can be posted again.
  void post(Post post) {
    if (post.key.empty()) post.key = fmt::format("k{}", ++keys_);
    const auto outcome = world_.run(world_.chats().post(post));
    if (!outcome) {
      if (outcome.error().code == Errc::storage_failed) unknown_.push_back(std::move(post));
      return;
    }
    posted_[outcome->id] = outcome->seq;
    if (post.session == sessions_[0]) for_bot_.insert(outcome->id);
    if (post.quick_reply_index) pressed_[outcome->id] = {post.in_reply_to, *post.quick_reply_index};
  }
  void post_again() {
    for (Post& one : std::exchange(unknown_, {})) post(std::move(one));
  }

  void type() {
    const bool group = dice(2) == 0;
    Post wanted{.session = sessions_[group ? 1 : 0], .from = group && dice(2) == 0 ? "bob" : "ann"};
    wanted.text = fmt::format("{} number {}", dice(2) == 0 ? "@bot @cook" : "hm", ++texts_);
    if (dice(3) == 0 && !asked_.empty()) wanted.in_reply_to = any_question();
    post(std::move(wanted));
  }

  std::string any_question() {
    return asked_[static_cast<std::size_t>(dice(static_cast<std::int64_t>(asked_.size())))];
  }

  void press() {
    if (asked_.empty()) return;
    const std::string question = any_question();
    const bool group = dice(2) == 0;
    post({.session = sessions_[group ? 1 : 0],
          .from = group && dice(2) == 0 ? "bob" : "ann",
          .in_reply_to = question,
          .quick_reply_index = static_cast<int>(dice(2))});
  }

  std::string some_payload() {
    const std::string text = fmt::format(R"("text":"number {}")", ++texts_);
    if (dice(2) == 0) return "{" + text + "}";
    const char* const late[] = {R"({"action":"default","index":1})", R"({"action":"expire"})",
                                R"({"action":"remind","every":60000,"times":2})"};
    const std::string by = to_iso(world_.now() + Millis{dice(900'000)});
    return fmt::format(R"({{{},"quickReplies":["yes","no"],"answerBy":"{}","onTimeout":{}}})", text, by, late[dice(3)]);
  }

  void say() {
    bus::Outgoing message{.to = dice(3) == 0 ? "bob" : "ann",
                          .from = kAgents[dice(2)],
                          .payload = some_payload(),
                          .session_id = sessions_[static_cast<std::size_t>(dice(2))]};
    if (dice(3) == 0) message.delay = Millis{dice(300'000)};
    const bool question = message.payload.find("quickReplies") != std::string::npos;
    const auto sent = world_.try_send(std::move(message));
    if (!sent) return;
    sent_.insert(bus::to_text(sent->id));
    if (question) asked_.push_back(bus::to_text(sent->id));
  }

  // What the agents get, and what it names.
  void hear() {
    for (const char* agent : kAgents) {
      const auto got = world_.run(world_.bus().receive({.recipient = agent, .max = 100}));
      if (!got) return;
      std::vector<std::string> leases;
      for (const bus::Delivery& one : *got) {
        leases.push_back(one.lease);
        const auto id = json::find(*json::parse(one.payload), "messageId");
        if (id) heard_.insert(json::text(*id));
      }
      if (leases.empty()) continue;
      const auto acked = world_.run(world_.bus().ack_leases(agent, leases, "simulation"));
      if (!acked) return;  // they come again
    }
  }

  void restart() {
    ++restarts;
    world_.crash();
    world_.pass(Millis{dice(200'000)});
    start();
  }
  void stop() {
    if (world_.try_stop(dice(2) == 0)) start();
  }
  void start() {
    while (true) {
      try {
        return world_.start();
      } catch (const store::Fault&) {
        world_.disk().reboot();
      }
    }
  }

  std::vector<Line> log_of(const std::string& session) {
    std::vector<Line> log;
    while (true) {
      const auto page =
          world_.run(world_.chats().lines({.session = session, .after = log.empty() ? 0 : log.back().seq}));
      if (!page || page->empty()) return log;
      log.insert(log.end(), page->begin(), page->end());
    }
  }

  void check_logs() {
    std::map<std::string, std::vector<Line>> ends;  // of questions
    std::set<std::string> texts;
    const auto all = world_.run(world_.chats().sessions("", "", chat::kLinesPageMax));
    for (const chat::Session& session : all->sessions) {
      std::int64_t last = 0;
      for (const Line& line : log_of(session.id)) {
        if (line.seq != ++last) problem(fmt::format("{} has a gap before {}", session.id, line.seq));
        if (!lines_.emplace(line.id, line).second) problem(line.id + " stands in two places");
        const std::string text = chat::text_of(line.payload);
        const bool once = line.in_reply_to.empty() && text.find("number") != std::string::npos;
        if (once && !texts.insert(text).second) problem("said twice: " + text);
        for (const std::string& id : line.closes) ends[id].push_back(line);
      }
      if (last != session.last_seq) problem(session.id + " does not know its last line");
    }
    for (const auto& [id, line] : lines_) {
      if (!line.question) continue;
      ++questions;
      if (line.question->state == chat::QuestionState::open) problem(id + " has not ended");
      if (ends[id].size() != 1) problem(fmt::format("{} ended {} times", id, ends[id].size()));
    }
    for (const auto& [id, press] : pressed_) {
      const auto question = lines_.find(press.first);
      const auto& status = question == lines_.end() ? std::nullopt : question->second.question;
      if (!status || !status->answer || status->answer->index != press.second || ends[press.first].front().id != id)
        problem(id + " was taken as an answer and is not the one");
    }
  }

  SeededRandom dice_;
  bool power_cuts_;
  World world_;
  std::vector<std::string> sessions_;
  std::vector<std::string> asked_;
  std::vector<Post> unknown_;                                   // failed, and nobody knows how far they came
  std::map<std::string, std::int64_t> posted_;                  // acknowledged: where
  std::map<std::string, std::pair<std::string, int>> pressed_;  // acknowledged answers: to what, which
  std::set<std::string> sent_;                                  // acknowledged, for people
  std::set<std::string> for_bot_;                               // acknowledged posts of the private conversation
  std::set<std::string> heard_;                                 // what the agents got
  std::map<std::string, Line> lines_;                           // at the end
  int keys_ = 0;
  int texts_ = 0;
};

std::int64_t from_environment(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

void simulate(bool power_cuts) {
  const std::int64_t first = from_environment("BELFRY_SEED", 1);
  const std::int64_t runs = from_environment("BELFRY_SIMULATIONS", 40);
  int questions = 0;
  int restarts = 0;
  for (std::int64_t seed = first; seed < first + runs; ++seed) {
    ChatSimulation simulation(static_cast<std::uint64_t>(seed), power_cuts);
    simulation.run(120);
    simulation.finish();
    ASSERT_EQ(simulation.problems, "") << "replay: BELFRY_SEED=" << seed << " BELFRY_SIMULATIONS=1";
    questions += simulation.questions;
    restarts += simulation.restarts;
  }
  if (runs > 10) {
    EXPECT_GT(questions, runs);
    EXPECT_GT(restarts, runs);
  }
}

// A8, Q7, Q9
TEST(ChatSimulation, ConversationsKeepTheirPromisesThroughCrashesAndStops) { simulate(false); }

// A8, Q7, Q9
TEST(ChatSimulation, ConversationsKeepTheirPromisesThroughPowerCuts) { simulate(true); }

}  // namespace
}  // namespace belfry::testing
