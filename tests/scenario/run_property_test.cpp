// The rules of feedback over all orderings of a tool's end, its feedback time, its timeout, a cancel and a restart, on the
// whole kernel: what is stored and said, not what one function returns.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/world.h"

namespace belfry::run {
namespace {

using testing::make_plugin;
using testing::ScriptedHost;
using testing::World;
using namespace std::chrono_literals;

constexpr Millis kTimeout = 12s;

struct Case {
  Millis takes{0};
  bool succeeds = true;
  std::optional<Millis> schedule;
  bool holds_errors = false;
  bool idempotent = false;
  // What happens, in order of time, each a moment after the beginning.
  struct Blow {
    Millis at{0};
    int what = 0;  // 0 cancel, 1 crash, 2 stop, 3 crash with an outage
  };
  std::vector<Blow> blows;
};

Case draw() {
  Case one;
  one.takes = Millis{*rc::gen::inRange(0, 20) * 1'000};
  one.succeeds = *rc::gen::inRange(0, 4) != 0;
  if (*rc::gen::inRange(0, 5) != 0) one.schedule = Millis{*rc::gen::inRange(1, 18) * 1'000};
  one.holds_errors = *rc::gen::arbitrary<bool>();
  one.idempotent = *rc::gen::arbitrary<bool>();
  const int blows = *rc::gen::inRange(0, 4);
  for (int i = 0; i < blows; ++i)
    one.blows.push_back({Millis{*rc::gen::inRange(0, 44) * 500}, *rc::gen::inRange(0, 4)});
  std::ranges::sort(one.blows, {}, &Case::Blow::at);
  return one;
}

struct Told {
  std::string type;
  WallTime at;
  std::string json;
};

class Story {
 public:
  explicit Story(const Case& one) : case_(one), w_(options(one)) {
    w_.add("bot");
    session_ = w_.run(w_.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    auto& job = w_.host().jobs["tool"];
    job.push_back({.takes = one.takes});
    if (!one.succeeds) job.front().outcome = ScriptedHost::failure("plugin_failed", "no luck");
    began_ = w_.now();
    std::string arguments = "{}";
    if (one.schedule)
      arguments = fmt::format(R"({{"schedule":{{"when":"in {} seconds","errors":"{}"}}}})",
                              one.schedule->count() / 1'000, one.holds_errors ? "hold" : "now");
    NewRun wanted{.plan = {}, .overlays = {}, .agent = "bot", .session = session_, .tells_agent = true};
    wanted.plan.steps.push_back(
        {.tool = "local__tool", .arguments = arguments, .schedule = std::nullopt, .depends_on = {}});
    id_ = w_.run(w_.runs().create(std::move(wanted)))->run.id;
  }

  void live() {
    for (const Case::Blow& blow : case_.blows) {
      const WallTime due = began_ + blow.at;
      if (due > w_.now()) w_.advance(due - w_.now());
      strike(blow.what);
    }
    w_.advance(2min);
  }

  std::vector<Told> events() {
    std::vector<Told> all;
    const auto read = w_.run(w_.runs().events({.id = id_}));
    for (const Event& event : *read)
      all.push_back({event.type, *parse_iso(json::text_in(*json::parse(event.json), "time")), event.json});
    return all;
  }
  std::size_t lines() { return w_.run(w_.chats().lines({.session = session_}))->size(); }
  std::size_t messages() { return w_.drain("bot").size(); }
  run::Step step() { return w_.run(w_.runs().get(id_))->steps.front(); }
  std::vector<std::string> problems() {
    auto job = [](store::Connection& connection) -> Result<std::vector<std::string>> {
      return RunTables::problems(connection);
    };
    return *w_.run(w_.store().read<std::vector<std::string>>(job));
  }
  WallTime began() const { return began_; }
  bool cancelled() const { return cancelled_; }
  bool was_interrupted() const { return restarted_while_running_; }
  bool restarted() const { return restarted_; }
  std::size_t starts() { return w_.host().asked.size(); }
  // When the process was not there.
  const std::vector<std::pair<WallTime, WallTime>>& outages() const { return outages_; }

 private:
  static World::Options options(const Case& one) {
    World::Options options;
    options.plugins = {
        make_plugin({.name = "tool", .takes_schedule = true, .idempotent = one.idempotent, .timeout = kTimeout})};
    return options;
  }
  void strike(int what) {
    if (what == 0) {
      if (w_.run(w_.runs().cancel(id_))) cancelled_ = true;
      return;
    }
    if (step().feedback.state == StepState::running) restarted_while_running_ = true;
    restarted_ = true;
    const WallTime from = w_.now();
    if (what == 2) {
      w_.stop(false);
    } else {
      w_.crash();
    }
    if (what == 3) w_.pass(5s);
    w_.start();
    outages_.emplace_back(from, w_.now());
  }

  Case case_;
  World w_;
  std::string session_;
  std::string id_;
  WallTime began_;
  bool cancelled_ = false;
  bool restarted_ = false;
  bool restarted_while_running_ = false;
  std::vector<std::pair<WallTime, WallTime>> outages_;
};

// The first moment from `at` on at which the process was there.
WallTime first_alive(const Story& story, WallTime at) {
  for (const auto& [from, to] : story.outages())
    if (at > from && at < to) return to;
  return at;
}

// F2, F3, F4, F5, G13
RC_GTEST_PROP(RunProperty, OneResultAtItsTimeAndAtMostOneNoticeBeforeItWhateverHappens, ()) {
  const Case one = draw();
  Story story(one);
  story.live();
  const auto events = story.events();
  const auto count = [&](std::string_view type) { return std::ranges::count(events, type, &Told::type); };
  RC_ASSERT(events.back().type == "done");
  RC_ASSERT(count("tool_result") == 1);
  RC_ASSERT(count("tool_choice") <= 1);
  RC_ASSERT(story.problems().empty());
  RC_ASSERT(story.messages() == 1u);

  const Told& result = *std::ranges::find(events, "tool_result", &Told::type);
  const auto notice = std::ranges::find(events, "tool_choice", &Told::type);
  if (notice != events.end()) RC_ASSERT(&*notice < &result);
  const StepState state = story.step().feedback.state;
  RC_ASSERT(story.cancelled() == (state == StepState::cancelled));
  // What is said in the conversation is what the events say; of what was cancelled nothing more.
  const std::size_t lines = (notice != events.end() ? 1u : 0u) + (story.cancelled() ? 0u : 1u);
  RC_ASSERT(story.lines() == lines);

  const WallTime due = story.began() + one.schedule.value_or(Millis{0});
  if (notice != events.end()) {
    RC_ASSERT(one.schedule.has_value());
    RC_ASSERT(notice->at == first_alive(story, due));
  }
  if (state == StepState::reported && one.schedule) RC_ASSERT(result.at >= due);
  // Not interrupted: everything is known to the millisecond.
  if (story.restarted() || story.cancelled()) {
    if (story.was_interrupted() && !one.idempotent) RC_ASSERT(story.starts() == 1u);
    return;
  }
  const bool in_time = one.takes < kTimeout;
  const WallTime end = story.began() + std::min(one.takes, kTimeout);
  const bool is_held = one.schedule && end < due && in_time && (one.succeeds || one.holds_errors);
  RC_ASSERT(result.at == (is_held ? due : end));
  const bool is_late = one.schedule && end > due;
  // In the same millisecond either may come first.
  if (!one.schedule || end != due) RC_ASSERT((notice != events.end()) == is_late);
  RC_ASSERT(state == (!in_time ? StepState::timed_out : one.succeeds ? StepState::reported : StepState::failed));
}

}  // namespace
}  // namespace belfry::run
