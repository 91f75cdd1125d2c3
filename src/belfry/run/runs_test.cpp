#include "belfry/run/runs.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/base/log.h"
#include "belfry/run/run_json.h"
#include "tests/support/deep_folder.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/world.h"

namespace belfry::run {
namespace {

using testing::make_plugin;
using testing::says;
using testing::ScriptedHost;
using testing::World;
using namespace std::chrono_literals;

World::Options with_plugins(std::vector<plugin::Plugin> plugins, bool drafts = false, SlotLimits slots = {}) {
  World::Options options;
  for (plugin::Plugin& one : plugins) options.plugins.push_back(make_plugin(std::move(one)));
  options.drafts = drafts;
  options.runs.slots = slots;
  return options;
}

plugin::Plugin scheduled_plugin(std::string name, Millis timeout = 60s) {
  return {.name = std::move(name), .description = "does something", .takes_schedule = true, .timeout = timeout};
}

std::string text(json::Value object, std::string_view name) { return json::text_in(object, name); }

// An event, as a client reads it.
struct Seen {
  std::string type;
  std::int64_t step = -1;
  WallTime time;
  std::string json;

  bool has(std::string_view what) const { return json.contains(what); }
};

class RunsTest : public ::testing::Test {
 protected:
  RunsTest() : RunsTest(usual()) {}
  explicit RunsTest(World::Options options) : w(std::move(options)) {
    w.add("bot");
    session = w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    began = w.now();
  }
  static World::Options usual() {
    return with_plugins({scheduled_plugin("image_draw", 300s),
                         scheduled_plugin("html_to_app", 900s),
                         scheduled_plugin("task1"),
                         scheduled_plugin("task2"),
                         scheduled_plugin("task3"),
                         {.name = "plain", .description = "takes no schedule"}});
  }

  Result<Runs::Created> create(const std::string& plan, NewRun wanted = {}) {
    const auto value = json::parse(plan);
    EXPECT_TRUE(value.has_value()) << plan;
    auto read = read_plan(*value);
    if (!read) return std::unexpected(read.error());
    wanted.plan = std::move(*read);
    return w.run(w.runs().create(std::move(wanted)));
  }
  std::string begin(const std::string& plan, NewRun wanted = {}) {
    const auto created = create(plan, std::move(wanted));
    EXPECT_TRUE(created.has_value()) << created.error().detail;
    return created ? created->run.id : "";
  }
  // A plan of one step.
  std::string one(const std::string& tool, const std::string& arguments, NewRun wanted = {}) {
    return begin(fmt::format(R"({{"steps":[{{"aiName":"local__{}","draftArgs":{}}}]}})", tool, arguments),
                 std::move(wanted));
  }
  Errc refusal(const std::string& plan) {
    const auto created = create(plan);
    EXPECT_FALSE(created.has_value()) << plan;
    why = created ? "" : created.error().detail;
    return created ? Errc::unsupported : created.error().code;
  }
  void takes(const std::string& plugin, Nanos duration, const std::string& data = R"({"text":"done"})") {
    w.host().jobs[plugin] = {
        {.takes = duration, .outcome = {.success = true, .data = data, .code = {}, .message = {}}}};
  }
  void fails(const std::string& plugin, Nanos duration, const std::string& code = "plugin_failed") {
    w.host().jobs[plugin] = {{.takes = duration, .outcome = ScriptedHost::failure(code, "no luck")}};
  }
  std::vector<Seen> events(const std::string& id) {
    std::vector<Seen> all;
    std::int64_t last = 0;
    const auto read = w.run(w.runs().events({.id = id}));
    for (const Event& event : *read) {
      EXPECT_EQ(event.seq, ++last);
      const json::Value value = *json::parse(event.json);
      EXPECT_EQ(text(value, "type"), event.type);
      EXPECT_EQ(text(value, "runId"), id);
      Seen seen{.type = event.type, .time = *parse_iso(text(value, "time")), .json = event.json};
      if (const auto step = json::find(value, "stepIndex"); step && step->kind == json::Kind::number)
        seen.step = *json::integer(*step);
      all.push_back(std::move(seen));
    }
    return all;
  }
  std::vector<std::string> types(const std::string& id) {
    std::vector<std::string> all;
    for (const Seen& event : events(id)) all.push_back(event.type);
    return all;
  }
  // How long after the beginning the first event of a kind came, in milliseconds; -1 if none did.
  std::int64_t when(const std::string& id, const std::string& type, std::int64_t step = 0) {
    for (const Seen& event : events(id))
      if (event.type == type && event.step == step) return (event.time - began).count();
    return -1;
  }
  run::Run get(const std::string& id) { return *w.run(w.runs().get(id)); }
  StepState state(const std::string& id, int step = 0) {
    return get(id).steps.at(static_cast<std::size_t>(step)).feedback.state;
  }
  std::vector<std::string> said() {
    std::vector<std::string> all;
    const auto read = w.run(w.chats().lines({.session = session}));
    for (const chat::Line& line : *read) all.push_back(chat::text_of(line.payload));
    return all;
  }
  NewRun in_chat() { return {.plan = {}, .overlays = {}, .agent = "bot", .session = session}; }
  void expect_sound() { EXPECT_EQ(w.problems(), std::vector<std::string>{}); }

  World w;
  std::string session;
  std::string why;
  WallTime began;
};

// --- the examples ---

// F3
TEST_F(RunsTest, AnImageThatIsDoneIn45SecondsIsReportedAfterTheTwoMinutesThatWereAskedFor) {
  takes("image_draw", 45s);
  const std::string id = one("image_draw", R"({"prompt":"1girl","schedule":"in 2 minutes"})");
  ASSERT_EQ(w.host().asked.size(), 1u);
  w.advance(45s);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(75s - 1ms);
  EXPECT_EQ(when(id, "tool_result"), -1);
  w.advance(1ms);
  EXPECT_EQ(when(id, "tool_result"), 120'000);
  EXPECT_EQ(when(id, "tool_choice"), -1);
  EXPECT_EQ(types(id), (std::vector<std::string>{"start", "plan", "args", "tool_result", "done"}));
  EXPECT_EQ(get(id).state, RunState::completed);
  EXPECT_TRUE(events(id)[3].has(R"("heldMs":75000)")) << events(id)[3].json;
  expect_sound();
}

// F4, F10
TEST_F(RunsTest, AJobOfSevenMinutesIsSaidToGoOnAfterFiveAndReportedAfterSeven) {
  takes("html_to_app", 7min);
  const std::string id = one("html_to_app", R"({"app_name":"myapp","schedule":"5分钟后"})", in_chat());
  w.advance(10min);
  EXPECT_EQ(when(id, "tool_choice"), 300'000);
  EXPECT_EQ(when(id, "tool_result"), 420'000);
  EXPECT_EQ(types(id), (std::vector<std::string>{"start", "plan", "args", "tool_choice", "tool_result", "done"}));
  EXPECT_TRUE(events(id)[3].has("\"status\":\"in_progress\""));
  EXPECT_EQ(said(), (std::vector<std::string>{"工具正在执行中，规定时间 300s 内未完成，继续等待...", "done"}));
  expect_sound();
}

// F5
TEST_F(RunsTest, ATimeoutIsReportedWhenItHappens) {
  takes("task1", 5min);
  const std::string id = one("task1", R"({"schedule":"in 2 minutes"})");
  w.advance(10min);
  EXPECT_EQ(when(id, "tool_result"), 60'000);
  EXPECT_EQ(when(id, "tool_choice"), -1);
  EXPECT_EQ(state(id), StepState::timed_out);
  EXPECT_TRUE(events(id)[3].has(R"("code":"timed_out")"));
  EXPECT_EQ(get(id).state, RunState::failed);
  expect_sound();
}

// F9
TEST_F(RunsTest, ThePlanOfThreeStepsReportsAfterOneTwoAndThreeMinutes) {
  for (const char* one : {"task1", "task2", "task3"}) takes(one, 5s);
  const std::string id = begin(R"({"steps":[
    {"aiName":"local__task1","draftArgs":{"schedule":"1分钟后"}},
    {"aiName":"local__task2","draftArgs":{"schedule":"2分钟后"},"dependsOn":[0]},
    {"aiName":"local__task3","draftArgs":{"schedule":"3分钟后"},"dependsOn":[1]}]})");
  w.advance(5min);
  EXPECT_EQ(when(id, "tool_result", 0), 60'000);
  EXPECT_EQ(when(id, "args", 1), 60'000);
  EXPECT_EQ(when(id, "tool_result", 1), 120'000);
  EXPECT_EQ(when(id, "args", 2), 120'000);
  EXPECT_EQ(when(id, "tool_result", 2), 180'000);
  expect_sound();
}

// F2
TEST_F(RunsTest, ThreeHeldResultsBlockNoSlot) {
  takes("task1", 1s);
  for (int i = 0; i < 3; ++i) one("task1", R"({"schedule":"in 10 minutes"})");
  w.advance(2s);
  EXPECT_EQ(w.runs().running(), 0u);
  const std::string fourth = one("task1", "{}");
  w.advance(1s);
  EXPECT_EQ(state(fourth), StepState::reported);
}

// --- schedules ---

// F6
TEST_F(RunsTest, TheScheduleNeverReachesThePlugin) {
  one("image_draw", R"({"prompt":"a","schedule":"in 2 minutes","n":1})");
  EXPECT_EQ(w.host().asked.at(0).arguments, R"({"prompt":"a","n":1})");
}

// F6
TEST_F(RunsTest, AParameterOfAPluginsOwnThatIsCalledScheduleStaysItsOwn) {
  w.set_plugins({make_plugin({.name = "cron",
                              .parameters = R"({"type":"object","properties":{"schedule":{"type":"string"}}})",
                              .takes_schedule = false})});
  const std::string id = one("cron", R"({"schedule":"in 2 minutes"})");
  EXPECT_EQ(w.host().asked.at(0).arguments, R"({"schedule":"in 2 minutes"})");
  EXPECT_EQ(state(id), StepState::reported);
}

// F1
TEST_F(RunsTest, AScheduleThatIsNotDeclaredIsRefused) {
  EXPECT_EQ(refusal(R"({"steps":[{"aiName":"local__plain","draftArgs":{"schedule":"in 2 minutes"}}]})"),
            Errc::invalid_argument);
  EXPECT_NE(why.find("takes no schedule"), std::string::npos) << why;
  EXPECT_TRUE(w.host().asked.empty());
}

// F7
TEST_F(RunsTest, AnUnreadableScheduleIsRefusedBeforeAnythingRuns) {
  for (const std::string bad : {"\"when the cows come home\"", "7", "[]", "{}", R"({"when":"x y z"})", "\"\"",
                                R"({"when":"in 2 minutes","timezone":"Mars/Olympus"})", R"({"when":5})",
                                R"({"when":"in 2 minutes","errors":"maybe"})", "\"every day at 9\""}) {
    EXPECT_EQ(refusal(fmt::format(R"({{"steps":[{{"aiName":"local__task1"}},
      {{"aiName":"local__task2","draftArgs":{{"schedule":{}}}}}]}})",
                                  bad)),
              Errc::invalid_schedule)
        << bad;
    EXPECT_NE(why.find("steps[1]"), std::string::npos) << why;
  }
  EXPECT_TRUE(w.host().asked.empty());
}

// F7
TEST_F(RunsTest, TheObjectFormIsReadWithItsZoneAndIgnoresWhatItDoesNotKnow) {
  takes("task1", 1s);
  // Noon UTC is 20:00 in Shanghai.
  const std::string id =
      one("task1", R"({"schedule":{"when":"今晚9点","language":"zh","timezone":"Asia/Shanghai","mood":1}})");
  w.advance(59min);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1min);
  EXPECT_EQ(when(id, "tool_result"), 3'600'000);
}

// F7
TEST_F(RunsTest, AnAbsoluteTimeThatIsPastMeansAsSoonAsItIsDone) {
  takes("task1", 3s);
  const std::string id = one("task1", R"({"schedule":"2001-01-01T00:00:00Z"})");
  w.advance(10s);
  EXPECT_EQ(when(id, "tool_choice"), -1);
  EXPECT_EQ(when(id, "tool_result"), 3'000);
  EXPECT_TRUE(events(id)[3].has(R"("past":true)"));
}

// F4, F7: nobody wants to hear that it is not done after 0 seconds.
TEST_F(RunsTest, NowIsPastAlreadyAndNoNoticeIsGiven) {
  for (const char* schedule : {R"("now")", R"("现在")", R"("in 0 seconds")", R"({"when":"now","anchor":"step"})"}) {
    takes("task1", 3s);
    w.advance(1us);
    const std::string id = one("task1", fmt::format(R"({{"schedule":{}}})", schedule), in_chat());
    w.advance(10s);
    EXPECT_EQ(types(id), (std::vector<std::string>{"start", "plan", "args", "tool_result", "done"})) << schedule;
    EXPECT_TRUE(events(id)[3].has(R"("past":true)")) << schedule;
  }
  EXPECT_EQ(said().size(), 4u);
}

// F5
TEST_F(RunsTest, AnErrorIsSaidAtOnceUnlessItIsToBeHeld) {
  fails("task1", 1s, "not_configured");
  const std::string now = one("task1", R"({"schedule":"in 1 minute"})");
  const std::string held = one("task1", R"({"schedule":{"when":"in 1 minute","errors":"hold"}})");
  w.advance(2s);
  EXPECT_EQ(state(now), StepState::failed);
  EXPECT_EQ(state(held), StepState::held);
  w.advance(58s);
  EXPECT_EQ(when(now, "tool_result"), 1'000);
  EXPECT_EQ(when(held, "tool_result"), 60'000);
  EXPECT_EQ(state(held), StepState::failed);
}

// F5: what its own service calls a timeout is an error like others.
TEST_F(RunsTest, APluginThatSaysThatItTimedOutWasNotEndedByBelfry) {
  plugin::Outcome outcome = ScriptedHost::failure("timed_out", "the service did not answer");
  outcome.own_word = true;
  w.host().jobs["task1"] = {{.takes = 1s, .outcome = outcome}};
  const std::string id = one("task1", R"({"schedule":{"when":"in 1 minute","errors":"hold"}})");
  w.advance(2s);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1min);
  EXPECT_EQ(state(id), StepState::failed);
}

// F3: elapsed time is elapsed time.
TEST_F(RunsTest, AClockThatIsSetNeitherHurriesNorDelaysARelativeTime) {
  takes("task1", 1s);
  for (const Nanos step : {Nanos(1h), Nanos(-1h)}) {
    const std::string id = one("task1", R"({"schedule":"in 2 minutes"})");
    w.advance(10s);
    w.clock().step_wall(step);
    w.advance(110s - 1ms);
    EXPECT_EQ(state(id), StepState::held) << step.count();
    w.advance(1ms);
    EXPECT_EQ(state(id), StepState::reported) << step.count();
    const std::string later = one("task1", R"({"schedule":"in 1 minute"})");
    w.advance(60s - 1ms);
    EXPECT_EQ(state(later), StepState::held) << step.count();
    w.advance(1ms);
    EXPECT_EQ(state(later), StepState::reported) << step.count();
  }
  expect_sound();
}

// F3: a tool may end before anybody has noticed that the clock was set.
TEST_F(RunsTest, AClockThatIsSetJustBeforeAToolEndsDoesNotHurryItsResult) {
  takes("task1", 9500ms);
  const std::string id = one("task1", R"({"schedule":"in 1 hour"})");
  w.advance(9490ms);
  w.clock().step_wall(2h, false);  // nobody has noticed it yet when the tool ends
  w.advance(10ms);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1h - 9500ms - 1ms);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1ms);
  EXPECT_EQ(state(id), StepState::reported);
  expect_sound();
}

// F7
TEST_F(RunsTest, ATimeOfDayFollowsTheClockThatIsSet) {
  takes("task1", 1s);
  const std::string id = one("task1", R"({"schedule":"at 15:00"})");
  w.advance(10s);
  w.clock().step_wall(3h - 20s);
  w.advance(10s - 1ms);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1ms);
  EXPECT_EQ(state(id), StepState::reported);
}

// --- restarts ---

// F3
TEST_F(RunsTest, AHeldResultSurvivesAndIsReportedOnTimeAfterACrash) {
  takes("task1", 1s, R"({"text":"survived"})");
  const std::string id = one("task1", R"({"schedule":"in 2 minutes"})", in_chat());
  w.advance(5s);
  w.crash();
  w.pass(30s);
  w.start();
  EXPECT_EQ(state(id), StepState::held);
  w.advance(85s);
  EXPECT_EQ(when(id, "tool_result"), 120'000);
  EXPECT_EQ(said(), std::vector<std::string>{"survived"});
  EXPECT_EQ(w.host().asked.size(), 1u);
  expect_sound();
}

// F3
TEST_F(RunsTest, WhatCameDueWhileNothingRanIsReportedAtTheStart) {
  takes("task1", 1s);
  const std::string id = one("task1", R"({"schedule":"in 2 minutes"})");
  w.advance(5s);
  w.crash();
  w.pass(1h);
  w.start();
  w.advance(1ms);
  EXPECT_EQ(state(id), StepState::reported);
}

// F5, G13
TEST_F(RunsTest, WhatRanWhenTheServerDiedIsInterruptedUnlessItMayRunAgain) {
  w.set_plugins({make_plugin(scheduled_plugin("once")),
                 make_plugin({.name = "again", .takes_schedule = true, .idempotent = true})});
  takes("once", 30s);
  takes("again", 30s);
  const std::string once = one("once", R"({"schedule":"in 2 minutes"})", in_chat());
  const std::string again = one("again", R"({"schedule":"in 2 minutes"})");
  w.advance(5s);
  w.crash();
  w.pass(10s);
  w.start();
  EXPECT_EQ(state(once), StepState::interrupted);
  EXPECT_EQ(when(once, "tool_result"), 15'000);
  EXPECT_EQ(state(again), StepState::waiting);
  w.advance(3s);
  EXPECT_EQ(state(again), StepState::running);
  w.advance(30s);
  EXPECT_EQ(state(again), StepState::held);
  w.advance(72s);
  EXPECT_EQ(when(again, "tool_result"), 120'000);
  EXPECT_EQ(w.host().asked.size(), 3u);
  EXPECT_EQ(said().size(), 1u);
  expect_sound();
}

// F5: its guard has a grace to end it.
TEST_F(RunsTest, WhatMayRunAgainIsNotStartedBesideItsOldProcess) {
  w.set_plugins({make_plugin({.name = "again", .idempotent = true})});
  takes("again", 30s);
  const std::string id = one("again", "{}");
  const std::string cancelled = one("again", "{}");
  w.restart();
  w.advance(1s);
  w.restart();
  w.advance(plugin::kTermGrace);
  EXPECT_EQ(w.host().asked.size(), 2u);
  EXPECT_EQ(state(id), StepState::waiting);
  EXPECT_TRUE(w.run(w.runs().cancel(cancelled)).has_value());
  w.advance(1s);
  EXPECT_EQ(w.host().asked.size(), 3u);
  w.advance(30s);
  EXPECT_EQ(state(id), StepState::reported);
  EXPECT_EQ(state(cancelled), StepState::cancelled);
  EXPECT_EQ(get(id).steps[0].crashes, 1);
  expect_sound();
}

// F14: whether it may run again or not.
TEST_F(RunsTest, NothingOfAToolBeginsBesideAProcessOfTheLastLife) {
  for (const bool idempotent : {false, true}) {
    const std::string tool = idempotent ? "again" : "once";
    w.set_plugins({make_plugin({.name = tool, .idempotent = idempotent})});
    takes(tool, 30s);
    for (int i = 0; i < 6; ++i) one(tool, "{}");
    const std::size_t before = w.host().asked.size();
    w.restart();
    w.advance(plugin::kTermGrace);
    EXPECT_EQ(w.host().asked.size(), before) << tool;
    w.advance(1s);
    EXPECT_EQ(w.host().asked.size(), before + 3) << tool;
    w.advance(120s);
  }
  expect_sound();
}

// F14: it was idle, but there.
TEST_F(RunsTest, AProcessThatStaysIsNotStartedBesideTheOneOfTheLastLife) {
  w.set_plugins({make_plugin({.name = "warm", .persistent = true})});
  one("warm", "{}");
  w.advance(1s);
  w.restart();
  one("warm", "{}");
  w.advance(plugin::kTermGrace);
  EXPECT_EQ(w.host().asked.size(), 1u);
  w.advance(1s);
  EXPECT_EQ(w.host().asked.size(), 2u);
  w.stop(false);
  w.start();
  one("warm", "{}");
  EXPECT_EQ(w.host().asked.size(), 3u);
}

// F5
TEST_F(RunsTest, WhatMayRunAgainKeepsItsTurn) {
  w.set_plugins({make_plugin({.name = "again", .idempotent = true, .at_once = 1})});
  takes("again", 30s);
  const std::string first = one("again", "{}");
  const std::string second = one("again", "{}");
  w.restart();
  w.advance(4s);
  EXPECT_EQ(state(first), StepState::running);
  EXPECT_EQ(state(second), StepState::waiting);
}

// G11: it may be the reason why the server dies.
TEST_F(RunsTest, WhatMayRunAgainIsNotStartedAfterTheServerDiedThreeTimesInIt) {
  w.set_plugins({make_plugin({.name = "again", .idempotent = true})});
  takes("again", 30s);
  const std::string id = one("again", "{}");
  for (int i = 0; i < 2; ++i) {
    w.restart();
    w.advance(3s);
    EXPECT_EQ(state(id), StepState::running);
  }
  // Who ends it on purpose has no quarrel with it.
  for (int i = 0; i < 3; ++i) {
    w.stop(false);
    w.start();
    EXPECT_EQ(state(id), StepState::running);
  }
  w.restart();
  w.advance(3s);
  EXPECT_EQ(state(id), StepState::interrupted);
  EXPECT_TRUE(get(id).steps[0].error.contains("3 times")) << get(id).steps[0].error;
  EXPECT_EQ(w.host().asked.size(), 6u);
  expect_sound();
}

// F14
TEST_F(RunsTest, WhatWaitsForItsTurnWaitsAgainAfterARestart) {
  takes("task1", 10s);
  std::vector<std::string> all;
  for (int i = 0; i < 5; ++i) all.push_back(one("task1", "{}"));
  w.advance(1s);
  w.restart();
  w.advance(15s);
  EXPECT_EQ(state(all[0]), StepState::interrupted);
  EXPECT_EQ(state(all[3]), StepState::reported);
  EXPECT_EQ(state(all[4]), StepState::reported);
}

// G12
TEST_F(RunsTest, AStopLeavesWhatRunsForTheNextStart) {
  takes("task1", 30s);
  const std::string running = one("task1", "{}");
  const std::string held = one("task2", R"({"schedule":"in 2 minutes"})");
  w.advance(1s);
  w.stop(false);
  w.start();
  EXPECT_EQ(state(running), StepState::interrupted);
  w.advance(2min);
  EXPECT_EQ(state(held), StepState::reported);
}

// --- plans ---

// F9
TEST_F(RunsTest, ResultsOfEarlierStepsAreFilledIn) {
  takes("task1", 1s, R"({"url":"https://x/y","list":[{"n":7}],"text":"t"})");
  const std::string id = begin(R"({"steps":[
    {"aiName":"local__task1"},
    {"aiName":"local__task2","draftArgs":{"url":"{{steps.0.result.url}}","n":"{{ steps.0.result.list.0.n }}","both":"see {{steps.0.result.url}} ({{steps.0.result.list.0.n}}) {{other}}","all":"{{steps.0.result}}"},"dependsOn":[0]}]})");
  w.advance(2s);
  EXPECT_EQ(
      w.host().asked.at(1).arguments,
      R"({"url":"https://x/y","n":7,"both":"see https://x/y (7) {{other}}","all":{"url":"https://x/y","list":[{"n":7}],"text":"t"}})");
  EXPECT_EQ(get(id).state, RunState::completed);
}

// F9: a page with a template of its own can be handed to a tool.
TEST_F(RunsTest, ASingleCallHasNothingToReferToAndItsBracesAreLeftAlone) {
  one("task1", R"({"html":"{{steps.0.result.x}} {{steps.length}}"})");
  EXPECT_EQ(w.host().asked.at(0).arguments, R"({"html":"{{steps.0.result.x}} {{steps.length}}"})");
  one("task1", R"({"html":"{{steps.7.result.x}}"})");  // a step that there is not
  ASSERT_EQ(w.host().asked.size(), 2u);
  EXPECT_EQ(w.host().asked.at(1).arguments, R"({"html":"{{steps.7.result.x}}"})");
}

// F9
TEST_F(RunsTest, AReferenceThatLeadsNowhereFailsItsStep) {
  takes("task1", 1s, R"({"a":1})");
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
    {"aiName":"local__task2","draftArgs":{"x":"{{steps.0.result.b}}"},"dependsOn":[0]}]})");
  w.advance(2s);
  EXPECT_EQ(state(id, 1), StepState::failed);
  EXPECT_EQ(w.host().asked.size(), 1u);
}

// F9
TEST_F(RunsTest, WhatDependsOnAFailureIsSkippedFailsOrGoesOn) {
  fails("task1", 1s);
  const auto plan = [](const std::string& policy) {
    return fmt::format(R"({{"steps":[{{"aiName":"local__task1"{}}},{{"aiName":"local__task2","dependsOn":[0]}},
      {{"aiName":"local__task3","dependsOn":[1]}},{{"aiName":"local__plain"}}]}})",
                       policy);
  };
  const std::string skipped = begin(plan(""));
  const std::string failed = begin(plan(R"(,"onFailure":"fail")"));
  const std::string gone_on = begin(plan(R"(,"onFailure":"continue")"));
  w.advance(20s);
  EXPECT_EQ(state(skipped, 1), StepState::skipped);
  EXPECT_EQ(state(skipped, 2), StepState::skipped);
  EXPECT_EQ(state(skipped, 3), StepState::reported);
  EXPECT_EQ(get(skipped).state, RunState::failed);
  EXPECT_EQ(state(failed, 1), StepState::failed);
  EXPECT_EQ(state(failed, 2), StepState::skipped);
  EXPECT_EQ(state(gone_on, 1), StepState::reported);
  EXPECT_EQ(state(gone_on, 2), StepState::reported);
  EXPECT_EQ(get(gone_on).state, RunState::completed);
  expect_sound();
}

// F9
TEST_F(RunsTest, ARelativeTimeOfAStepCanCountFromItsOwnStart) {
  takes("task1", 30s);
  takes("task2", 1s);
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
    {"aiName":"local__task2","draftArgs":{"schedule":{"when":"in 1 minute","anchor":"step"}},"dependsOn":[0]}]})");
  w.advance(5min);
  EXPECT_EQ(when(id, "tool_result", 1), 90'000);
}

// F9
TEST_F(RunsTest, ATimeThatIsOverWhenTheStepBeginsIsFlaggedAndNoNoticeIsGiven) {
  takes("task1", 50s);
  takes("task2", 5s);
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
    {"aiName":"local__task2","draftArgs":{"schedule":"in 30 seconds"},"dependsOn":[0]}]})");
  w.advance(5min);
  EXPECT_EQ(when(id, "tool_choice", 1), -1);
  EXPECT_EQ(when(id, "tool_result", 1), 55'000);
  EXPECT_TRUE(get(id).steps[1].feedback.past);
}

// F9
TEST_F(RunsTest, APlanThatCannotBeCarriedOutIsRefusedAndStartsNothing) {
  const std::string many = [] {
    std::string all = R"({"steps":[)";
    for (int i = 0; i < 10'000; ++i) all += std::string(i ? "," : "") + R"({"aiName":"local__task1"})";
    return all + "]}";
  }();
  for (
      const std::string& plan :
      {many, std::string(R"({"steps":[]})"), std::string(R"({})"), std::string(R"({"steps":[7]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","dependsOn":[1]}]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","dependsOn":[-1]}]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","dependsOn":[0]}]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","dependsOn":["0"]}]})"),
       std::string(
           R"({"steps":[{"aiName":"local__task1","dependsOn":[1]},{"aiName":"local__task1","dependsOn":[0]}]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","draftArgs":[]}]})"),
       std::string(R"({"steps":[{"aiName":"local__task1","onFailure":"panic"}]})"),
       std::string(
           R"({"steps":[{"aiName":"local__task1"},{"aiName":"local__task2","draftArgs":{"x":"{{steps.0.result}}"}}]})"),
       std::string(
           R"({"steps":[{"aiName":"local__task1"},{"aiName":"local__task2","draftArgs":{"x":"{{steps.0.url}}"},"dependsOn":[0]}]})"),
       std::string(R"({"steps":[{"aiName":""}]})"), std::string(R"({"steps":[{"aiName":"local__task1","x":1}]})")})
    EXPECT_EQ(refusal(plan), Errc::invalid_plan) << plan.substr(0, 200);
  EXPECT_EQ(refusal(R"({"steps":[{"aiName":"local__nobody"}]})"), Errc::unknown_tool);
  EXPECT_NE(why.find("local__image_draw"), std::string::npos) << why;
  EXPECT_EQ(refusal(R"({"steps":[{"aiName":"local__../x"}]})"), Errc::unknown_tool);
  EXPECT_TRUE(w.host().asked.empty());
  EXPECT_TRUE(w.run(w.runs().list({}))->empty());
}

// F9
TEST_F(RunsTest, AToolOfBelfrysOwnCanBeAStepAndActsOnceWhateverCrashes) {
  takes("task1", 1s, R"({"url":"http://x"})");
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
    {"aiName":"send_message","draftArgs":{"to":"worker","payload":{"url":"{{steps.0.result.url}}"}},"dependsOn":[0]}]})",
                               {.plan = {}, .overlays = {}, .agent = "bot"});
  w.advance(1s);
  EXPECT_EQ(get(id).state, RunState::completed);
  w.restart();
  w.advance(1s);
  const auto got = w.drain();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].payload, R"({"url":"http://x"})");
}

// --- slots ---

// F14
TEST_F(RunsTest, NoMoreRunAtOnceThanThereMayAndNobodyIsForgotten) {
  takes("task1", 10s);
  takes("task2", 10s);
  for (int i = 0; i < 6; ++i) one(i % 2 ? "task1" : "task2", "{}");
  w.advance(1s);
  EXPECT_EQ(w.host().running, 3);
  w.advance(20s);
  EXPECT_EQ(w.host().most_at_once, 3);
  EXPECT_EQ(w.host().asked.size(), 6u);
  EXPECT_EQ(w.runs().waiting(), 0u);
}

// F4, F14
TEST_F(RunsTest, WhoeverStillWaitsForATurnAtItsTimeIsSaidToGoOnAndItsTimeoutCountsFromItsStart) {
  takes("task1", 50s);
  for (int i = 0; i < 3; ++i) one("task1", "{}");
  const std::string id = one("task1", R"({"schedule":"in 10 seconds"})");
  w.advance(10min);
  EXPECT_EQ(when(id, "tool_choice"), 10'000);
  EXPECT_EQ(when(id, "args"), 50'000);
  EXPECT_EQ(when(id, "tool_result"), 100'000);
  EXPECT_EQ(state(id), StepState::reported);
}

class LimitsTest : public RunsTest {
 protected:
  LimitsTest()
      : RunsTest(with_plugins({{.name = "single", .at_once = 1},
                               {.name = "many"},
                               {.name = "pausing", .cooldown = 30s},
                               {.name = "left", .provider = "shared"},
                               {.name = "right", .provider = "shared"},
                               {.name = "warm", .persistent = true, .at_once = 5}},
                              false, {.total = 10, .per_tool = 3, .per_provider = 4})) {}
};

// F14
TEST_F(LimitsTest, EachToolAndEachProviderHasItsLimit) {
  for (const char* one : {"single", "many", "left", "right", "warm"}) takes(one, 10s);
  for (int i = 0; i < 4; ++i)
    for (const char* name : {"single", "many", "warm"}) one(name, "{}");
  w.advance(1s);
  EXPECT_EQ(w.host().most_of["single"], 1);
  EXPECT_EQ(w.host().most_of["many"], 3);
  EXPECT_EQ(w.host().most_of["warm"], 1);  // one process, one request at a time
  w.advance(2min);
  for (int i = 0; i < 3; ++i)
    for (const char* name : {"left", "right"}) one(name, "{}");
  w.advance(1s);
  EXPECT_EQ(w.host().running, 4);
}

// F14
TEST_F(LimitsTest, AToolPausesBetweenTwoUses) {
  takes("pausing", 1s);
  const std::string first = one("pausing", "{}");
  w.advance(1s);
  const std::string second = one("pausing", "{}");
  w.advance(10min);
  EXPECT_EQ(when(first, "args"), 0);
  EXPECT_EQ(when(second, "args"), 31'000);
}

// F14
TEST_F(LimitsTest, ARestartDoesNotEndThePauseOfATool) {
  takes("pausing", 1s);
  one("pausing", "{}");
  w.advance(11s);  // 10 s of its pause
  w.restart();
  w.advance(5s);
  const std::string second = one("pausing", "{}");
  w.advance(10min);
  EXPECT_EQ(when(second, "args"), 31'000);
  // One that was cut off pauses from the start on at which its end is said.
  takes("pausing", 20s);
  w.advance(1min);
  one("pausing", "{}");
  w.advance(1s);
  w.restart();
  began = w.now();
  const std::string third = one("pausing", "{}");
  w.clock().step_wall(-1h);
  w.restart();
  w.advance(1h);
  EXPECT_EQ(state(third), StepState::reported);
  EXPECT_EQ(get(third).steps[0].started_at, began - 1h + 30s);
}

// F14
TEST_F(LimitsTest, AToolThatWasAtWorkAtACrashPausesToo) {
  w.set_plugins({make_plugin({.name = "pausing", .idempotent = true, .cooldown = 30s})});
  takes("pausing", 20s);
  const std::string id = one("pausing", "{}");
  w.advance(10s);
  w.restart();
  w.advance(29s);
  EXPECT_EQ(state(id), StepState::waiting);
  w.advance(1s);
  EXPECT_EQ(state(id), StepState::running);
}

// F14
TEST_F(LimitsTest, AStepThatNeverBeganMakesItsToolPauseForNobody) {
  takes("many", 0s, "{}");
  const std::string refused = begin(R"({"steps":[{"aiName":"local__many"},
    {"aiName":"local__pausing","draftArgs":{"a":"{{steps.0.result.nothing}}"},"dependsOn":[0]}]})");
  w.advance(1s);
  EXPECT_EQ(state(refused, 1), StepState::failed);
  const std::string next = one("pausing", "{}");
  EXPECT_EQ(when(next, "args"), 1'000);
}

// F8
TEST_F(RunsTest, WhatIsComingHasTheLaterStepsOfAPlanToo) {
  takes("task1", 30s);
  begin(R"({"steps":[{"aiName":"local__task1","draftArgs":{"schedule":"in 1 minute"}},
    {"aiName":"local__task2","draftArgs":{"schedule":"in 2 minutes"},"dependsOn":[0]},
    {"aiName":"local__task3","draftArgs":{"schedule":{"when":"in 3 minutes","anchor":"step"}},"dependsOn":[1]}]})",
        in_chat());
  const auto coming = [this] {
    std::vector<int> steps;
    const auto all = w.run(w.runs().coming_in(session, 10));
    for (const RunTables::Coming& one : *all) steps.push_back(one.step);
    return steps;
  };
  EXPECT_EQ(coming(), (std::vector<int>{0, 1}));
  w.advance(1min);
  EXPECT_EQ(coming(), std::vector<int>{1});
  w.advance(1min);
  EXPECT_EQ(coming(), std::vector<int>{2});
  w.advance(3min);
  // What waits for others when its time comes has none any more.
  begin(R"({"steps":[{"aiName":"local__task1","draftArgs":{"schedule":"in 2 minutes"}},
    {"aiName":"local__task2","draftArgs":{"schedule":"in 10 seconds"},"dependsOn":[0]}]})",
        in_chat());
  EXPECT_EQ(coming(), (std::vector<int>{1, 0}));
  w.advance(15s);
  EXPECT_EQ(coming(), std::vector<int>{0});
}

// --- cancelling ---

// F8, G10
TEST_F(RunsTest, ACancelledRunSaysNothingMoreAndItsToolIsEnded) {
  takes("task1", 30s);
  const std::string running = one("task1", R"({"schedule":"in 10 seconds"})", in_chat());
  const std::string held = one("task2", R"({"schedule":"in 10 seconds"})", in_chat());
  w.advance(1s);
  EXPECT_TRUE(w.run(w.runs().cancel(running)).has_value());
  EXPECT_TRUE(w.run(w.runs().cancel(held)).has_value());
  EXPECT_EQ(w.host().running, 0);
  EXPECT_EQ(w.run(w.runs().cancel(held)).error().code, Errc::already_cancelled);
  w.advance(1min);
  EXPECT_TRUE(said().empty());
  EXPECT_EQ(types(held).back(), "done");
  EXPECT_TRUE(events(held).back().has(R"("status":"cancelled")"));
  EXPECT_EQ(w.run(w.runs().cancel("nobody")).error().code, Errc::not_found);
  expect_sound();
}

// --- agents and conversations ---

class AgentTest : public RunsTest {
 protected:
  tool::CallOutcome call(const std::string& tool, const std::string& arguments, const std::string& call_id) {
    return *w.run(
        w.tools().call({.tool = tool,
                        .arguments = arguments,
                        .context = {.agent_id = "bot", .session_id = session, .task_id = "t1", .call_id = call_id}}));
  }
};

// F2, F8
TEST_F(AgentTest, AnAgentGetsTheAcknowledgementNowAndTheResultAsAMessage) {
  takes("image_draw", 45s, R"({"text":"here it is"})");
  const auto outcome = call("local__image_draw", R"({"prompt":"x","schedule":"in 2 minutes"})", "c1");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_NE(outcome.result.find("runId"), std::string::npos);
  EXPECT_NE(outcome.result.find("feedbackAt"), std::string::npos);
  w.advance(119s);
  EXPECT_TRUE(w.receive("bot").empty());
  w.advance(1s);
  const auto got = w.drain("bot");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from, "belfry");
  EXPECT_EQ(got[0].task_id, "t1");
  EXPECT_EQ(got[0].session_id, session);
  EXPECT_NE(got[0].payload.find("here it is"), std::string::npos) << got[0].payload;
  EXPECT_EQ(said(), std::vector<std::string>{"here it is"});
  // The same call again is the same run.
  EXPECT_EQ(call("local__image_draw", R"({"prompt":"x","schedule":"in 2 minutes"})", "c1").result, outcome.result);
  w.advance(5min);
  EXPECT_EQ(w.host().asked.size(), 1u);
  EXPECT_TRUE(w.drain("bot").empty());
}

// F8
TEST_F(RunsTest, WhoIsToHearOfItMustBeAPersonOfTheSession) {
  const std::string plan = R"({"steps":[{"aiName":"local__task1"}]})";
  const auto refused = [&](const std::string& where, const std::string& whom) {
    const auto created = create(plan, {.plan = {}, .overlays = {}, .session = where, .reply_to = whom});
    return created ? Errc::unsupported : created.error().code;
  };
  for (const char* whom : {"nobody", "bot"}) EXPECT_EQ(refused(session, whom), Errc::invalid_argument) << whom;
  EXPECT_EQ(refused("", "ann"), Errc::invalid_argument);
  EXPECT_TRUE(w.host().asked.empty());
  EXPECT_EQ(refused(session, "ann"), Errc::unsupported);
  // An agent's turn may answer another agent; then it is the first person who hears of it.
  one("task1", "{}",
      {.plan = {}, .overlays = {}, .agent = "bot", .session = session, .reply_to = "scout", .in_turn = true});
  EXPECT_EQ(said().size(), 2u);
}

// F8
TEST_F(AgentTest, AnAgentThatIsToBeToldMustBeThere) {
  const std::string plan = R"({"steps":[{"aiName":"local__task1"}]})";
  const auto created = create(plan, {.plan = {}, .overlays = {}, .agent = "nobody", .tells_agent = true});
  EXPECT_EQ(created.error().code, Errc::unknown_recipient);
  const auto called = w.run(w.tools().call(
      {.tool = "local__task1", .arguments = R"({"schedule":"in 1 minute"})", .context = {.agent_id = "nobody"}}));
  EXPECT_EQ(called->code, Errc::unknown_recipient);
  EXPECT_TRUE(w.host().asked.empty());
}

// F8
TEST_F(AgentTest, TheLogSaysThatAnAgentWasRemovedBeforeItCouldBeTold) {
  std::vector<std::string> lines;
  const log::Capture capture([&lines](std::string_view line) {
    if (line.contains("run.agent_not_told")) lines.emplace_back(line);
  });
  w.add("scout");
  one("task1", R"({"schedule":"in 1 minute"})", {.plan = {}, .overlays = {}, .agent = "scout", .tells_agent = true});
  EXPECT_TRUE(w.run(w.bus().remove_recipient("scout")).has_value());
  w.advance(2min);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].contains(R"("agent":"scout")")) << lines[0];
  w.restart();
  w.advance(1s);
  EXPECT_EQ(lines.size(), 1u);
}

// F8, G10
TEST_F(AgentTest, AnAgentHearsThatTheResultWasShownOnlyIfItWas) {
  const auto told = [this]() -> std::string {
    const auto got = w.drain("bot");
    EXPECT_EQ(got.size(), 1u);
    if (got.empty()) return "";
    return std::string(json::find(*json::parse(got[0].payload), "shownToPerson")->raw);
  };
  NewRun wanted = in_chat();
  wanted.tells_agent = true;
  one("task1", "{}", wanted);
  EXPECT_EQ(told(), "true");
  const std::string cancelled = one("task1", R"({"schedule":"in 1 minute"})", wanted);
  EXPECT_TRUE(w.run(w.runs().cancel(cancelled)).has_value());
  w.clock().settle();
  EXPECT_EQ(told(), "false");
  begin(R"({"steps":[{"aiName":"send_message","draftArgs":{"to":"worker","payload":{}}}]})", wanted);
  w.clock().settle();
  EXPECT_EQ(told(), "false");
  EXPECT_EQ(said().size(), 1u);
}

// F8, D21
TEST_F(AgentTest, AnAgentIsToldOfARunThatIsDeletedAtOnce) {
  takes("task1", 10s);
  w.add("scout");
  const NewRun wanted{.plan = {}, .overlays = {}, .agent = "scout", .tells_agent = true};
  const std::string id = one("task1", "{}", wanted);
  // In one go: whoever tells by itself comes too late.
  const auto cancel_and_remove = [](auto& world, std::string run, std::size_t capacity) -> Task<Result<>> {
    const auto cancelled = co_await world.runs().cancel(run);
    EXPECT_TRUE(cancelled.has_value());
    world.disk().set_capacity(capacity);
    auto removed = co_await world.runs().remove(std::move(run));
    co_return removed;
  };
  EXPECT_TRUE(w.run(cancel_and_remove(w, id, testing::Disk::kUnlimited)).has_value());
  w.clock().settle();
  EXPECT_EQ(w.drain("scout").size(), 1u);
  // As long as nobody can be told, it stays.
  const std::string other = one("task1", "{}", wanted);
  const auto refused = w.run(cancel_and_remove(w, other, 0));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().detail.find("its agent could not be told yet"), std::string::npos)
      << refused.error().detail;
  w.disk().set_capacity(testing::Disk::kUnlimited);
  w.advance(1min);
  EXPECT_EQ(w.drain("scout").size(), 1u);
  EXPECT_TRUE(w.run(w.runs().remove(other)).has_value());
}

// F8
TEST_F(AgentTest, AnAgentIsToldOnceWhateverCrashes) {
  takes("task1", 1s);
  call("local__task1", R"({"schedule":"in 1 minute"})", "c1");
  for (int i = 0; i < 6; ++i) {
    w.advance(15s);
    w.restart();
  }
  w.advance(1s);
  EXPECT_EQ(w.drain("bot").size(), 1u);
  EXPECT_EQ(said().size(), 1u);
}

// F8
TEST_F(AgentTest, WithoutAScheduleTheCallerGetsTheResultItself) {
  takes("image_draw", 45s, R"({"text":"here","n":1})");
  auto pending = w.start_task(w.tools().call({.tool = "local__image_draw",
                                              .arguments = R"({"prompt":"x"})",
                                              .context = {.agent_id = "bot", .session_id = session, .in_turn = true}}));
  w.advance(44s);
  EXPECT_FALSE(pending.done());
  w.advance(1s);
  ASSERT_TRUE(pending.done());
  EXPECT_NE((*pending.value()).result.find(R"("data":{"text":"here","n":1})"), std::string::npos);
  EXPECT_TRUE(said().empty());  // the agent says what it makes of it
  EXPECT_TRUE(w.drain("bot").empty());
}

// F5
TEST_F(AgentTest, AFailureIsAValueWithItsWord) {
  fails("task1", 1s, "not_configured");
  fails("task2", 1s, "teapot");
  auto pending = w.start_task(w.tools().call({.tool = "local__task1", .arguments = "{}"}));
  auto other = w.start_task(w.tools().call({.tool = "local__task2", .arguments = "{}"}));
  w.advance(1s);
  EXPECT_EQ((*pending.value()).code, Errc::not_configured);
  EXPECT_EQ((*other.value()).code, Errc::plugin_failed);
  EXPECT_NE((*other.value()).result.find("teapot"), std::string::npos);
}

// F7
TEST_F(AgentTest, AnUnreadableScheduleIsAnErrorOfTheCall) {
  const auto outcome = call("local__task1", R"({"schedule":"when the cows come home"})", "c1");
  EXPECT_EQ(outcome.code, Errc::invalid_schedule);
  EXPECT_TRUE(w.host().asked.empty());
}

// F7, W: the likely reading is taken, and said back with the others.
TEST_F(AgentTest, TheAcknowledgementSaysHowTheTimeWasRead) {
  const auto outcome = call("local__task1", R"({"schedule":"tomorrow at 7"})", "c1");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  EXPECT_TRUE(outcome.result.contains(R"("understood":{"at":"2026-03-02T07:00:00+00:00")")) << outcome.result;
  EXPECT_TRUE(outcome.result.contains(R"("alternatives":[")")) << outcome.result;

  // Whenever it is asked, it is the time at which it reports.
  w.clock().advance(Nanos{123'456});
  const auto created = create(R"({"steps":[{"aiName":"local__task1","draftArgs":{"schedule":"in 90 seconds"}},
                                           {"aiName":"local__task1","draftArgs":{"schedule":"2020-01-01T00:00:00Z"}},
                                           {"aiName":"local__task1","draftArgs":{"schedule":{"when":"in 5 seconds","anchor":"step"}}},
                                           {"aiName":"local__task1"}]})");
  w.advance(10s);
  const run::Run later = get(created->run.id);
  const Readings readings = w.runs().readings(later);
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings.at(0).at, *later.steps[0].feedback.feedback_at);
  EXPECT_TRUE(readings.at(1).past);
}

// F9
TEST_F(AgentTest, AnAgentSubmitsAPlanAndIsToldWhenAllOfItHasEnded) {
  takes("task1", 1s);
  takes("task2", 1s);
  const auto outcome = call(
      "run_plan",
      R"({"title":"two","steps":[{"aiName":"local__task1","draftArgs":{"schedule":"1分钟后"}},{"aiName":"local__task2","draftArgs":{"schedule":"2分钟后"},"dependsOn":[0]}]})",
      "c1");
  ASSERT_TRUE(outcome.ok) << outcome.result;
  w.advance(1min);
  EXPECT_EQ(said().size(), 1u);
  EXPECT_TRUE(w.drain("bot").empty());
  w.advance(1min);
  EXPECT_EQ(said().size(), 2u);
  EXPECT_EQ(w.drain("bot").size(), 1u);
}

// F9
TEST_F(AgentTest, AnAgentCancelsItsOwnRunsOnly) {
  takes("task1", 30s);
  call("local__task1", R"({"schedule":"in 1 minute"})", "c1");
  const std::string mine = w.run(w.runs().list({}))->front().id;
  const std::string other = one("task1", "{}");
  EXPECT_TRUE(call("cancel_run", fmt::format(R"({{"runId":"{}"}})", mine), "c2").ok);
  EXPECT_EQ(call("cancel_run", fmt::format(R"({{"runId":"{}"}})", other), "c3").code, Errc::not_found);
  EXPECT_EQ(get(mine).state, RunState::cancelled);
}

// F14
TEST_F(AgentTest, APluginThatIsGoneFailsWhatWaitsForItAndLeavesWhatRuns) {
  takes("task1", 10s);
  std::vector<std::string> all;
  for (int i = 0; i < 4; ++i) all.push_back(one("task1", "{}"));
  w.advance(1s);
  w.set_plugins({});
  w.advance(20s);
  EXPECT_EQ(state(all[0]), StepState::reported);
  EXPECT_EQ(state(all[3]), StepState::failed);
  EXPECT_EQ(w.tools().find("local__task1"), nullptr);
}

// --- progress texts ---

class DraftsTest : public RunsTest {
 protected:
  DraftsTest() : RunsTest(with_plugins({scheduled_plugin("image_draw", 300s)}, true)) { takes("image_draw", 200s); }
  std::string notice(const std::string& id) {
    for (const Seen& event : events(id))
      if (event.type == "tool_choice") return text(*json::parse(event.json), "message");
    return {};
  }
};

// F10
TEST_F(DraftsTest, AModelWritesTheTextAheadOfItsTimeInTheToneOfTheHouse) {
  w.model().answer = [](const llm::ChatRequest&) {
    return says("Your picture is taking shape, a moment more, please.", 5s);
  };
  const std::string id =
      one("image_draw", R"({"prompt":"a cat","schedule":"in 2 minutes"})",
          {.plan = {}, .overlays = {.global = "Speak like a pirate.", .schedule_progress = "Say arr."}});
  w.advance(99s);
  EXPECT_TRUE(w.model().asked.empty());
  w.advance(2s);
  ASSERT_EQ(w.model().asked.size(), 1u);
  const std::string system = w.model().asked[0].messages[0].content;
  EXPECT_NE(system.find("Speak like a pirate.\n\nSay arr."), std::string::npos) << system;
  EXPECT_NE(w.model().asked[0].messages[1].content.find("a cat"), std::string::npos);
  w.advance(3min);
  EXPECT_EQ(notice(id), "Your picture is taking shape, a moment more, please.");
  EXPECT_EQ(when(id, "tool_choice"), 120'000);
}

// F10
TEST_F(DraftsTest, TheModelIsToldWhatTheToolGot) {
  w.set_plugins({make_plugin(scheduled_plugin("image_draw", 300s)), make_plugin({.name = "words"})});
  takes("words", 0s, R"({"text":"a blue cat"})");
  begin(R"({"steps":[{"aiName":"local__words"},{"aiName":"local__image_draw","dependsOn":[0],
    "draftArgs":{"prompt":"{{steps.0.result.text}}","schedule":"in 2 minutes"}}]})");
  w.advance(101s);
  ASSERT_EQ(w.model().asked.size(), 1u);
  EXPECT_TRUE(w.model().asked[0].messages[1].content.contains("a blue cat")) << w.model().asked[0].messages[1].content;
}

// F4, F10
TEST_F(DraftsTest, ATextThatIsNotReadyInTimeOrCannotBeShownIsReplacedByTheDefault) {
  w.model().answer = [](const llm::ChatRequest&) { return says("Too late.", 60s); };
  const std::string late = one("image_draw", R"({"schedule":"in 2 minutes"})");
  w.advance(4min);
  EXPECT_EQ(when(late, "tool_choice"), 120'000);
  EXPECT_EQ(notice(late), default_progress_text(Tongue::english, 120));
  w.model().answer = [](const llm::ChatRequest&) { return says("The plugin image_draw has hit a timeout."); };
  const std::string technical = one("image_draw", R"({"schedule":"2分钟后"})");
  w.advance(4min);
  EXPECT_EQ(notice(technical), default_progress_text(Tongue::chinese, 120));
  w.model().answer = [](const llm::ChatRequest&) { return testing::fails(Errc::model_unavailable, "away"); };
  const std::string away = one("image_draw", R"({"schedule":"in 2 minutes"})");
  w.advance(4min);
  EXPECT_EQ(notice(away), default_progress_text(Tongue::english, 120));
}

// F10, G12: the notice has gone out, so nobody needs the text any more.
TEST_F(DraftsTest, AStopDoesNotWaitForATextThatComesTooLate) {
  w.model().answer = [](const llm::ChatRequest&) { return says("Too late.", 10min); };
  const std::string id = one("image_draw", R"({"schedule":"in 30 seconds"})");
  w.advance(40s);
  EXPECT_EQ(when(id, "tool_choice"), 30'000);
  w.stop(false);
  w.start();
}

// F10
TEST_F(DraftsTest, NoModelIsAskedForWhatIsDoneInTime) {
  takes("image_draw", 10s);
  one("image_draw", R"({"schedule":"in 2 minutes"})");
  w.advance(3min);
  EXPECT_TRUE(w.model().asked.empty());
}

// F10
TEST_F(DraftsTest, ATextIsNotWrittenToItsEndIfTheResultComesFirst) {
  takes("image_draw", 110s);
  w.model().answer = [](const llm::ChatRequest&) { return says("Not needed.", 1min); };
  const std::string id = one("image_draw", R"({"schedule":"in 2 minutes"})");
  w.advance(105s);
  EXPECT_EQ(w.model().under_way, 1);
  w.advance(5s);
  EXPECT_EQ(state(id), StepState::held);
  EXPECT_EQ(w.model().under_way, 0);
}

// --- the log ---

// F11
TEST_F(RunsTest, TheLogSaysWhatBecameOfASchedule) {
  std::vector<std::string> lines;
  const log::Capture capture([&lines](std::string_view line) {
    if (line.find("SCHEDULE") != std::string_view::npos) lines.emplace_back(line);
  });
  takes("task1", 10s);
  one("task1", R"({"schedule":"in 20 seconds"})");
  w.advance(30s);
  takes("task1", 30s);
  one("task1", R"({"schedule":"in 20 seconds"})");
  w.advance(40s);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(lines[0].contains("Schedule 延迟反馈启用") && lines[0].contains(R"("aiName":"local__task1")") &&
              lines[0].contains(R"("scheduleText":"in 20 seconds")") && lines[0].contains(R"("delayMs":20000)") &&
              lines[0].contains("targetISO"))
      << lines[0];
  EXPECT_TRUE(lines[1].contains("Schedule 延迟反馈: 工具已提前完成，延迟后反馈") &&
              lines[1].contains(R"("actualMs":10000)"))
      << lines[1];
  EXPECT_TRUE(lines[3].contains("Schedule 延迟反馈: 发送中间状态") && lines[3].contains(R"("delayMs":20000)"))
      << lines[3];
  EXPECT_TRUE(lines[4].contains("Schedule 延迟反馈: 工具延迟完成") && lines[4].contains(R"("totalMs":30000)"))
      << lines[4];
}

// --- events ---

// F8
TEST_F(RunsTest, EventsCanBeReadFromAnyNumberAndWaitedFor) {
  takes("task1", 10s);
  const std::string id = one("task1", "{}");
  EXPECT_EQ(w.run(w.runs().events({.id = id, .after = 2}))->size(), 1u);
  auto waiting = w.start_task(w.runs().events({.id = id, .after = 3, .wait = 60s}));
  w.advance(9s);
  EXPECT_FALSE(waiting.done());
  w.advance(1s);
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.value()->size(), 2u);
  // Behind the last one there is nothing to wait for: the stream ends.
  auto ended = w.start_task(w.runs().events({.id = id, .after = 5, .wait = 60s}));
  w.advance(1ms);
  EXPECT_TRUE(ended.done());
  EXPECT_EQ(w.run(w.runs().events({.id = "nobody"})).error().code, Errc::not_found);
}

// F8, G12
TEST_F(RunsTest, WhoeverWaitsForEventsHearsThatTheServerEnds) {
  takes("task1", 30s);
  const std::string id = one("task1", "{}");
  auto waiting = w.start_task(w.runs().events({.id = id, .after = 3, .wait = 1min}));
  w.advance(1s);
  EXPECT_FALSE(waiting.done());
  w.runs().close();
  w.clock().settle();
  ASSERT_TRUE(waiting.done());
  EXPECT_EQ(waiting.value().error().code, Errc::stopping);
  EXPECT_TRUE(w.run(w.runs().events({.id = id, .after = 3}))->empty());
}

// F8
TEST_F(RunsTest, ALargeArgumentIsShownInPart) {
  takes("task1", 1s, fmt::format(R"({{"text":"{}"}})", std::string(90'000, 'y')));
  const std::string id = begin(fmt::format(
      R"({{"steps":[{{"aiName":"local__task1","draftArgs":{{"x":"{}"}}}},
                   {{"aiName":"local__plain","draftArgs":{{"x":"{{{{steps.0.result.text}}}}"}},"dependsOn":[0]}}]}})",
      std::string(70'000, 'x')));
  w.advance(2s);
  const run::Run whole = get(id);
  EXPECT_EQ(whole.steps[1].arguments.size(), 90'008u);
  const run::Run shown = *w.run(w.runs().get(id, Detail::beginnings));
  EXPECT_LT(shown.steps[1].arguments.size(), 65'000u);
  const std::string json = run_json(shown, true);
  EXPECT_TRUE(json::parse(json));
  EXPECT_TRUE(json.contains(R"("argsTruncated":true)"));
  EXPECT_TRUE(json.contains(R"("truncated":true)"));
  EXPECT_EQ(json, run_json(whole, true));
}

// F9
TEST_F(RunsTest, ATitleHasUpToTwoHundredCharactersHoweverManyBytesTheyTake) {
  const auto titled = [](int characters) {
    std::string title;
    for (int i = 0; i < characters; ++i) title += "画";
    return fmt::format(R"({{"title":"{}","steps":[{{"aiName":"local__task1"}}]}})", title);
  };
  EXPECT_TRUE(create(titled(200)).has_value());
  EXPECT_EQ(refusal(titled(201)), Errc::invalid_plan);
}

// F8
TEST_F(RunsTest, ARunUnderAKeyIsMadeOnce) {
  const std::string plan = R"({"steps":[{"aiName":"local__task1"}]})";
  const auto first = create(plan, {.plan = {}, .overlays = {}, .once = "k", .body = "a"});
  const auto second = create(plan, {.plan = {}, .overlays = {}, .once = "k", .body = "a"});
  EXPECT_EQ(first->run.id, second->run.id);
  EXPECT_TRUE(second->repeated);
  EXPECT_EQ(create(plan, {.plan = {}, .overlays = {}, .once = "k", .body = "b"}).error().code, Errc::key_conflict);
  EXPECT_EQ(w.host().asked.size(), 1u);
}

// F8, G10
TEST_F(RunsTest, AToolThatIsCancelledHasNothingMoreToSay) {
  struct Told final : Listener {
    std::vector<std::string> all;
    void progressed(const run::Run& /*run*/, int /*step*/, const std::string& progress) override {
      all.push_back(progress);
    }
  } told;
  w.runs().listen(told);
  w.host().jobs["task1"] = {{.takes = 10s, .progress = {"0", "1"}, .at_last = {"2"}, .grace = 2s}};
  const std::string id = one("task1", "{}");
  w.advance(50ms);
  EXPECT_TRUE(w.run(w.runs().cancel(id)).has_value());
  w.advance(5s);
  EXPECT_EQ(told.all, std::vector<std::string>{"0"});
  w.runs().unlisten(told);
}

// F8: a tool may say a thing once and then nothing for an hour.
TEST_F(RunsTest, WhoLooksLaterSeesWhatAToolLastSaidWhileItWorks) {
  w.host().jobs["task1"] = {{.takes = 10s, .progress = {R"({"percent":10})", R"({"percent":50})"}}};
  takes("task2", 20s);
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},{"aiName":"local__task2"}]})");
  w.advance(5s);
  const auto progress_of = [](const run::Run& run) { return std::pair{run.steps[0].progress, run.steps[1].progress}; };
  const std::pair<std::string, std::string> half{R"({"percent":50})", ""};
  EXPECT_EQ(progress_of(*w.run(w.runs().get(id))), half);
  const auto listed = w.run(w.runs().list({}));
  EXPECT_EQ(progress_of(listed->at(0)), half);
  EXPECT_NE(run_json(listed->at(0), false).find(R"("progress":{"percent":50})"), std::string::npos);
  w.advance(10s);
  EXPECT_EQ(progress_of(*w.run(w.runs().get(id))), (std::pair<std::string, std::string>{}));
}

// F8: of two hundred thousand words a person needs the latest.
TEST_F(RunsTest, MuchProgressIsToldInPartAndTheLastOfItBeforeTheEnd) {
  struct Told final : Listener {
    std::vector<std::string> all;
    void happened(const Event& event) override { all.push_back(event.type); }
    void progressed(const run::Run& /*run*/, int /*step*/, const std::string& progress) override {
      all.push_back(progress);
    }
  } told;
  w.runs().listen(told);
  testing::ScriptedJob job{.takes = 1s, .at_last = {"998", "999"}};
  for (int i = 0; i < 100; ++i) job.progress.push_back(std::to_string(i));
  w.host().jobs["task1"] = {job};
  one("task1", "{}");
  w.advance(99ms);
  EXPECT_EQ(told.all.back(), "0");
  w.advance(1ms);
  EXPECT_EQ(told.all.back(), "99");
  w.advance(10s);
  EXPECT_EQ(told.all,
            (std::vector<std::string>{"start", "plan", "args", "0", "99", "998", "999", "tool_result", "done"}));
  w.runs().unlisten(told);
}

// --- memory ---

// F2, G15
TEST_F(RunsTest, ManyHeldResultsAreNotInMemoryAndAreAllReportedInTime) {
  takes("task1", 0s);
  for (int i = 0; i < 300; ++i) one("task1", R"({"schedule":"in 5 minutes"})");
  w.advance(1s);
  EXPECT_EQ(w.runs().running() + w.runs().waiting(), 0u);
  w.restart();
  EXPECT_EQ(w.runs().running() + w.runs().waiting(), 0u);
  w.advance(5min);
  const auto all = *w.run(w.runs().list({.limit = 1000}));
  ASSERT_EQ(all.size(), 300u);
  for (const run::Run& one : all) {
    EXPECT_EQ(one.state, RunState::completed);
    EXPECT_EQ(*one.steps[0].reported_at, *one.steps[0].feedback.feedback_at);
  }
}

// --- found by review ---

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') + std::string(static_cast<std::size_t>(levels), ']');
}

// F9
TEST_F(RunsTest, WhatIsNestedTooDeeplyIsRefusedAndNeverEndsTheServer) {
  const auto plan = [](int levels) {
    return fmt::format(R"({{"steps":[{{"aiName":"local__task1","draftArgs":{{"deep":{}}}}}]}})", nested(levels));
  };
  EXPECT_TRUE(create(plan(40)).has_value());
  EXPECT_EQ(refusal(plan(kValueDepthMax)), Errc::invalid_argument);
  auto called =
      w.run(w.tools().call({.tool = "local__task1", .arguments = fmt::format(R"({{"deep":{}}})", nested(60))}));
  EXPECT_EQ(called->code, Errc::invalid_argument);
  // What becomes too deep by being filled in fails its step.
  takes("task1", 0s, nested(50));
  const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
    {"aiName":"local__task2","draftArgs":{"d":[[[[[[[[[[[["{{steps.0.result}}"]]]]]]]]]]]]},"dependsOn":[0]}]})");
  w.advance(1s);
  EXPECT_EQ(state(id, 1), StepState::failed);
  w.restart();
  w.advance(1s);
  expect_sound();
}

// F8
TEST_F(RunsTest, EventsStandInOneLineHoweverTheyWereWritten) {
  takes("task1", 0s, "{\n\"a\":\r\n1}");
  const std::string id = begin("{\"steps\":[{\"aiName\":\"local__task1\",\"draftArgs\":{\n\"x\":\r\n1}}]}");
  w.advance(1s);
  for (const Seen& event : events(id)) EXPECT_EQ(event.json.find_first_of("\r\n"), std::string::npos) << event.json;
}

// F3
TEST_F(RunsTest, AClockThatIsSetDoesNotMoveTheRelativeTimeOfAStepThatWaitsForOthers) {
  takes("task1", 30s);
  takes("task2", 1s);
  for (const Nanos step : {Nanos(1h), Nanos(-1h)}) {
    const std::string id = begin(R"({"steps":[{"aiName":"local__task1"},
      {"aiName":"local__task2","draftArgs":{"schedule":"in 2 minutes"},"dependsOn":[0]}]})");
    w.advance(10s);
    w.clock().step_wall(step);
    w.advance(110s - 1ms);
    EXPECT_EQ(state(id, 1), StepState::held) << step.count();
    w.advance(1ms);
    EXPECT_EQ(state(id, 1), StepState::reported) << step.count();
  }
}

// F3, G13
TEST_F(RunsTest, AClockThatWasSetDoesNotMoveItAfterARestartEither) {
  w.set_plugins(
      {make_plugin({.name = "again", .idempotent = true}), make_plugin({.name = "task2", .takes_schedule = true})});
  takes("again", 30s);
  takes("task2", 1s);
  for (const Nanos step : {Nanos(1h), Nanos(-1h)}) {
    const std::string id = begin(R"({"steps":[{"aiName":"local__again"},
      {"aiName":"local__task2","draftArgs":{"schedule":"in 2 minutes"},"dependsOn":[0]}]})");
    w.advance(10s);
    w.clock().step_wall(step);
    w.advance(2s);
    w.restart();
    w.advance(108s - 1ms);
    EXPECT_EQ(state(id, 1), StepState::held) << step.count();
    w.advance(1ms);
    EXPECT_EQ(state(id, 1), StepState::reported) << step.count();
  }
}

// F11
TEST_F(RunsTest, ANoticeIsLoggedOnceAlsoIfSeveralComeTogether) {
  int notices = 0;
  const log::Capture capture([&notices](std::string_view line) {
    if (line.find("发送中间状态") != std::string_view::npos) ++notices;
  });
  takes("task1", 30s);
  begin(R"({"steps":[{"aiName":"local__task1","draftArgs":{"schedule":"in 5 seconds"}},
    {"aiName":"local__task1","draftArgs":{"schedule":"in 5 seconds"}},
    {"aiName":"local__task1","draftArgs":{"schedule":"in 5 seconds"}}]})");
  w.advance(10s);
  EXPECT_EQ(notices, 3);
}

// F10
TEST_F(RunsTest, ChineseIsChineseHoweverItIsWritten) {
  fails("task1", 0s);
  one("task1", R"({"prompt":"\u753b\u4e00\u53ea\u732b"})", in_chat());
  w.advance(1s);
  EXPECT_EQ(said(), std::vector<std::string>{"task1 没有成功：no luck"});
}

// F7
TEST_F(RunsTest, ATimeIsReadInTheZoneOfTheSession) {
  takes("task1", 1s);
  session = w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}, .timezone = "Asia/Shanghai"}))->session.id;
  const std::string id = one("task1", R"({"schedule":"今晚9点"})", in_chat());
  w.advance(59min);
  EXPECT_EQ(state(id), StepState::held);
  w.advance(1min);
  EXPECT_EQ(state(id), StepState::reported);
}

// F8
TEST_F(AgentTest, FilesOfACallThatAnAgentWaitsForAreShownAllTheSame) {
  takes("image_draw", 1s, R"({"text":"a cat","files":[{"name":"cat.png"}]})");
  auto pending = w.start_task(w.tools().call({.tool = "local__image_draw",
                                              .arguments = "{}",
                                              .context = {.agent_id = "bot", .session_id = session, .in_turn = true}}));
  w.advance(1s);
  ASSERT_TRUE(pending.done());
  EXPECT_EQ(said(), std::vector<std::string>{"a cat"});
}

// F8
TEST_F(RunsTest, TheFilesOfAResultThatIsTooLargeForALineAreShownAllTheSame) {
  takes("task1", 1s,
        fmt::format(R"({{"text":"a page","all":"{}","files":[{{"name":"a.html","bytes":7}}]}})",
                    std::string(70'000, 'x')));
  one("task1", "{}", in_chat());
  w.advance(1s);
  const std::string line = w.run(w.chats().lines({.session = session}))->at(0).payload;
  EXPECT_TRUE(line.contains(R"("data":{"files":[{"name":"a.html","bytes":7}]},"truncated":true)"))
      << line.substr(0, 500);
  EXPECT_EQ(said(), std::vector<std::string>{"a page"});
}

class RunFilesTest : public RunsTest {
 protected:
  struct Syncs {
    int count = 0;
    bool fail = false;
  };
  static World::Options with_files(const std::filesystem::path& folder, std::shared_ptr<Syncs> syncs) {
    World::Options options = usual();
    options.runs.files = folder;
    options.runs.sync = [syncs](int) {
      ++syncs->count;
      errno = ENOSPC;
      return syncs->fail ? -1 : 0;
    };
    return options;
  }
  RunFilesTest()
      : RunFilesTest(std::make_unique<testing::ScratchFolder>(testing::memory_folder()), std::make_shared<Syncs>()) {}
  RunFilesTest(std::unique_ptr<testing::ScratchFolder> folder, std::shared_ptr<Syncs> syncs)
      : RunsTest(with_files(folder->path(), syncs)), scratch(std::move(folder)), syncs(std::move(syncs)) {}
  void leave(const std::string& id) const {
    std::filesystem::create_directories(files / id / "0");
    std::ofstream(files / id / "0" / "a.txt") << "a";
  }

  std::unique_ptr<testing::ScratchFolder> scratch;
  const std::filesystem::path& files = scratch->path();
  std::shared_ptr<Syncs> syncs;
};

// F8: what was forgotten just before the server died leaves no files behind.
TEST_F(RunFilesTest, AStartRemovesTheFilesOfRunsThatAreForgotten) {
  const std::string id = one("task1", "{}");
  leave(id);
  for (int i = 0; i < 1'100; ++i) leave(fmt::format("gone{}", i));
  w.restart();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(files), {}), 1);
  EXPECT_TRUE(std::filesystem::exists(files / id / "0" / "a.txt"));
}

// G18, G15: also if many are deleted at once, and if the last life ended while one of them was half removed.
TEST_F(RunFilesTest, FoldersOfAnyDepthEndNeitherTheServerNorAStart) {
  takes("task1", 0s);
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(one("task1", "{}"));
  for (const std::string& id : ids) testing::make_deep_folder(files, id, id == ids.back() ? 20'000 : 3'000);
  EXPECT_TRUE(w.run(w.runs().remove(ids[0])).has_value());
  EXPECT_TRUE(w.run(w.runs().remove(ids[1])).has_value());
  EXPECT_TRUE(std::filesystem::exists(files / ids[0]));  // half removed
  w.restart();
  EXPECT_TRUE(w.run(w.runs().remove(ids[2])).has_value());
  w.advance(10min);
  EXPECT_TRUE(std::filesystem::is_empty(files));
}

// G2
TEST_F(RunFilesTest, AResultIsReportedOnceItsFilesAreOnTheDisk) {
  struct Told final : Listener {
    explicit Told(const Syncs& syncs) : syncs(syncs) {}
    void happened(const Event& event) override {
      if (event.type == "tool_result") synced_before = syncs.count;
    }
    const Syncs& syncs;
    int synced_before = -1;
  } told(*syncs);
  w.runs().listen(told);
  takes("task1", 5s);
  const std::string id = one("task1", "{}");
  w.advance(1s);
  leave(id);
  w.advance(10s);
  EXPECT_EQ(state(id), StepState::reported);
  EXPECT_EQ(told.synced_before, 4);  // the file, its folder, the run's, and the one of all runs
  w.runs().unlisten(told);
}

// G2
TEST_F(RunFilesTest, AResultWhoseFilesTheDiskDoesNotTakeIsAFailure) {
  syncs->fail = true;
  takes("task1", 5s);
  const std::string id = one("task1", "{}");
  w.advance(1s);
  leave(id);
  w.advance(10s);
  EXPECT_EQ(get(id).state, RunState::failed);
  EXPECT_TRUE(get(id).steps.at(0).error.contains("storage_failed")) << get(id).steps.at(0).error;
}

// D21
TEST_F(RunFilesTest, WhatAToolWritesWhileItEndsGoesWithItsRun) {
  w.host().jobs["task1"] = {{.takes = 10s, .grace = 2s}};
  const std::string id = one("task1", "{}");
  w.advance(1s);
  EXPECT_TRUE(w.run(w.runs().cancel(id)).has_value());
  EXPECT_TRUE(w.run(w.runs().remove(id)).has_value());
  w.advance(1s);
  leave(id);
  w.advance(2s);
  EXPECT_FALSE(std::filesystem::exists(files / id));
}

// D21
TEST_F(RunFilesTest, RunsAndTheirFilesStayUntilSomebodyDeletesThem) {
  takes("task1", 0s);
  const std::string id = one("task1", "{}");
  leave(id);
  w.crash();
  w.pass(24h * 400);
  w.start();
  takes("task1", 10s);
  const std::string other = one("task1", "{}");
  w.advance(1s);
  EXPECT_EQ(get(id).state, RunState::completed);
  EXPECT_TRUE(std::filesystem::exists(files / id / "0" / "a.txt"));
  EXPECT_EQ(w.run(w.runs().remove(other)).error().code, Errc::wrong_state);
  EXPECT_TRUE(w.run(w.runs().remove(id)).has_value());
  EXPECT_EQ(w.run(w.runs().get(id)).error().code, Errc::not_found);
  EXPECT_EQ(w.run(w.runs().remove(id)).error().code, Errc::not_found);
  EXPECT_FALSE(std::filesystem::exists(files / id));
  w.advance(10s);
  EXPECT_EQ(state(other), StepState::reported);
  expect_sound();
}

class RetentionTest : public RunsTest {
 protected:
  static World::Options for_a_day() {
    World::Options options = usual();
    options.runs.retention = 24h;
    return options;
  }
  RetentionTest() : RunsTest(for_a_day()) {}
};

// D21
TEST_F(RetentionTest, RunsGoAfterTheTimeThatWasSet) {
  takes("task1", 0s);
  const std::string id = one("task1", "{}");
  w.crash();
  w.pass(23h);
  w.start();
  const std::string second = one("task1", "{}");
  EXPECT_EQ(get(id).state, RunState::completed);
  w.crash();
  w.pass(2h);
  w.start();
  one("task1", "{}");
  EXPECT_EQ(w.run(w.runs().get(id)).error().code, Errc::not_found);
  EXPECT_EQ(get(second).state, RunState::completed);
}

// F8
TEST_F(AgentTest, AnAgentThatIsToldToStopNeedNotWaitForItsTools) {
  takes("image_draw", 100s);
  auto pending = w.start_task(w.tools().call({.tool = "local__image_draw",
                                              .arguments = "{}",
                                              .context = {.agent_id = "bot", .session_id = session, .in_turn = true}}));
  w.advance(1s);
  auto cancelled = [](Runs& runs, std::string where) -> Task<bool> {
    co_await runs.cancel_awaited(std::move(where), "bot");
    co_return true;
  };
  w.run(cancelled(w.runs(), session));
  w.advance(1ms);
  ASSERT_TRUE(pending.done());
  EXPECT_EQ((*pending.value()).code, Errc::cancelled);
  EXPECT_EQ(w.host().running, 0);
}

// G17
TEST_F(RunsTest, AResultIsNotLostBecauseTheDiskIsFullRightNow) {
  takes("task1", 10s);
  const std::string id = one("task1", "{}");
  w.advance(1s);
  w.disk().set_capacity(0);
  w.advance(15s);
  w.disk().set_capacity(testing::Disk::kUnlimited);
  w.advance(5s);
  EXPECT_EQ(state(id), StepState::reported);
}

}  // namespace
}  // namespace belfry::run
