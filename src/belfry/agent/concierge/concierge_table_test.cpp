// The tables of this folder: what people write to the concierge, and what it does about it.
//
//   utterance => expectation
//   + the next thing they say in the same conversation => expectation       (`+ [2]` presses the second button)
//
// Every conversation begins on Monday 2026-11-16 at 10:00 in Shanghai, with three reminders that are pending.
#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/agent/concierge/intent.h"
#include "belfry/agent/concierge/phrases.h"
#include "tests/support/world.h"

namespace belfry::agent {
namespace {

using testing::World;
using namespace std::chrono_literals;

struct Case {
  int line = 0;
  bool goes_on = false;
  std::string said;
  std::string expected;
};

std::vector<Case> read_cases(const std::string& name) {
  std::ifstream file(std::string(BELFRY_SOURCE_DIR) + "/src/belfry/agent/concierge/" + name);
  std::vector<Case> cases;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t arrow = line.rfind(" => ");
    Case one{.line = number, .said = line.substr(0, arrow), .expected = line.substr(arrow + 4)};
    one.goes_on = one.said.starts_with("+ ");
    if (one.goes_on) one.said.erase(0, 2);
    cases.push_back(one);
  }
  return cases;
}

std::string field(const std::string& object, std::string_view key) {
  const auto value = json::find(*json::parse(object), key);
  if (!value) return "";
  return value->kind == json::Kind::string ? json::text(*value) : std::string(value->raw);
}

// 2026-11-16T10:00, with seconds if there are any, as a clock in Shanghai shows it.
std::string clock(WallTime at) {
  std::string text = when::Zone::named("Asia/Shanghai")->iso(at).substr(0, 19);
  if (text.ends_with(":00")) text.resize(16);
  return text;
}

class Conversations {
 public:
  explicit Conversations(bool chinese) : chinese_(chinese) {
    const WallTime monday = *parse_iso("2026-11-16T02:00:00Z");
    world_.crash();
    world_.pass(monday - world_.now_when_stopped());
    world_.start();
    for (const char* const person : {"user", "bob", "alice", "xiaowang"})
      EXPECT_TRUE(world_.run(world_.chats().add_person(person)));
    world_.add("ops-bot");
  }

  // Another concierge for each, so that nothing of the last one is left.
  void begin() {
    agent_ = fmt::format("concierge-{}", ++conversations_);
    world_.add(agent_, kConcierge);
    const auto opened =
        world_.run(world_.chats().open({.people = {"user"}, .agents = {agent_}, .timezone = "Asia/Shanghai"}));
    session_ = opened->session.id;
    tasks_.clear();
    schedule("2026-11-16T15:00", chinese_ ? "提醒：浇花" : "Reminder: water the plants");
    schedule("2026-11-17T09:00", chinese_ ? "提醒：开会" : "Reminder: team meeting");
    schedule("2026-11-18T18:30", chinese_ ? "提醒：给妈妈打电话" : "Reminder: call mom");
    calls_seen_ = 0;
    asked_.clear();
  }

  // Says it, and gives back what came of it, in the words of the tables.
  std::string say(const std::string& said) {
    chat::Post post{.session = session_, .text = said};
    if (said.starts_with('[') && said.ends_with(']')) {
      post.text.clear();
      post.in_reply_to = asked_;
      post.quick_reply_index = std::stoi(said.substr(1)) - 1;
    }
    const auto posted = world_.run(world_.chats().post(std::move(post)));
    if (!posted) return "refused: " + posted.error().detail;
    world_.advance(0ns);
    const auto lines = *world_.run(world_.chats().lines({.session = session_, .after = posted->seq}));
    if (lines.size() != 1) return fmt::format("{} answers", lines.size());
    asked_ = lines[0].id;
    return in_words(lines[0].payload);
  }

 private:
  void schedule(const std::string& at, const std::string& text) {
    const auto created = world_.run(
        world_.scheduled().create({.session = session_, .text = text, .send_at = *parse_iso(at + ":00+08:00")}));
    tasks_.push_back(created->message.id);
  }

  std::string number_of(const std::string& task) const {
    const auto found = std::find(tasks_.begin(), tasks_.end(), task);
    return found == tasks_.end() ? "?" : std::to_string(found - tasks_.begin() + 1);
  }

  std::vector<tool::CallRecord> new_calls() {
    auto calls = world_.run(world_.tools().calls({.agent = agent_}))->records;
    std::reverse(calls.begin(), calls.end());
    std::erase_if(calls, [this](const tool::CallRecord& call) { return call.number <= calls_seen_; });
    if (!calls.empty()) calls_seen_ = calls.back().number;
    return calls;
  }

  std::string in_words(const std::string& payload) {
    std::string cancelled;
    bool listed = false;
    for (const tool::CallRecord& call : new_calls()) {
      const std::string& arguments = call.arguments;
      if (call.tool == "list_scheduled_private_messages") listed = true;
      if (call.tool == "schedule_private_message" && call.context.session_id == session_)
        return fmt::format("remind {} | {}", clock(*parse_iso(field(arguments, "send_at"))),
                           Phrases::subject(field(arguments, "message_text")));
      if (call.tool == "schedule_private_message") return will_tell(call);
      if (call.tool == "reschedule_scheduled_private_message")
        return fmt::format("move {} {}", number_of(field(arguments, "task_id")),
                           clock(*parse_iso(field(arguments, "send_at"))));
      if (call.tool == "cancel_scheduled_private_message")
        cancelled += (cancelled.empty() ? "" : ",") + number_of(field(arguments, "task_id"));
      if (call.tool == "send_message") return told(call);
    }
    if (!cancelled.empty()) return "cancel " + (cancelled == "1,2,3" ? "all" : cancelled);
    return asked(payload, listed);
  }

  static std::string told(const tool::CallRecord& call) {
    if (call.error == "unknown_recipient") return "nobody " + field(call.arguments, "to");
    const std::string at = field(call.arguments, "schedule");
    return fmt::format("tell {} {} | {}", field(call.arguments, "to"), at.empty() ? "now" : clock(*parse_iso(at)),
                       passed_on(field(field(call.arguments, "payload"), "text")));
  }

  std::string will_tell(const tool::CallRecord& call) {
    const auto session = world_.run(world_.chats().session(call.context.session_id));
    return fmt::format("tell {} {} | {}", session->people().front(),
                       clock(*parse_iso(field(call.arguments, "send_at"))),
                       passed_on(field(call.arguments, "message_text")));
  }

  static std::string passed_on(std::string text) {
    for (const std::string_view frame : {"user asked me to tell you: ", "user 让我转告你："})
      if (text.starts_with(frame)) text.erase(0, frame.size());
    return text;
  }

  std::string asked(const std::string& payload, bool listed) const {
    const auto note = read_note(payload);
    const std::string text = field(payload, "text");
    const Intent intent = note ? note->intent : Intent{};
    std::string times;
    for (const WallTime time : intent.times) times += " " + clock(time);
    switch (note ? note->ask : Ask::nothing) {
      case Ask::when: return "ask when | " + intent.what;
      case Ask::what: return "ask what";
      case Ask::which_time: return fmt::format("ask which{} | {}", times, intent.what);
      case Ask::once: return fmt::format("once{} | {}", times, intent.what);
      case Ask::cancel: return "ask cancel";
      case Ask::move: return "ask move";
      case Ask::new_time: return "ask movetime " + number_of(intent.task);
      case Ask::nothing: break;
    }
    const auto has = [&text](std::string_view part) { return text.find(part) != std::string::npos; };
    if (has("is past.") || has("已经过去了")) return "past";
    if (has("say it on time") || has("到点就说")) return "help";
    if (has("whom you mean") || has("不知道你说的是谁")) return "nobody";
    if (has("这里没有叫")) return "nobody " + text.substr(text.find("“") + 3, text.find("”") - text.find("“") - 3);
    if (listed && (has("This is coming") || has("接下来有"))) return "list";
    return "talk";
  }

  World world_;
  bool chinese_;
  int conversations_ = 0;
  std::string agent_;
  std::string session_;
  std::string asked_;
  std::vector<std::string> tasks_;
  std::int64_t calls_seen_ = 0;
};

void hold_table(const std::string& name, bool chinese) {
  Conversations all(chinese);
  const std::vector<Case> cases = read_cases(name);
  EXPECT_GE(cases.size(), 150u);
  for (const Case& one : cases) {
    if (!one.goes_on) all.begin();
    EXPECT_EQ(all.say(one.said), one.expected) << name << ":" << one.line << ": " << one.said;
  }
}

// P1, P10
TEST(Concierge, UnderstandsTheEnglishTable) { hold_table("utterances_en.txt", false); }

// P1, P10
TEST(Concierge, UnderstandsTheChineseTable) { hold_table("utterances_zh.txt", true); }

}  // namespace
}  // namespace belfry::agent
