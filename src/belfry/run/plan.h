// What is to be done: steps, each a tool with arguments, some of them after others. Plain values, checked (F9).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"

namespace belfry::run {

// A plan is read, shown and told as a whole.
inline constexpr std::size_t kStepsMax = 100;
// Arguments and results stand within events, messages and answers, which are JSON of a limited depth, too.
inline constexpr int kValueDepthMax = kJsonDepthMax - 8;
// Refuses arguments that are nested more deeply.
Result<> check_depth(std::string_view arguments);
// The same JSON in one line, as streams need it.
std::string one_line(std::string_view json);

// What becomes of those that depend on a step that has failed.
enum class OnFailure { skip, fail, carry_on };
std::string_view word(OnFailure policy);
std::optional<OnFailure> parse_on_failure(std::string_view text);

// When to report, as it was asked for (F7).
struct Schedule {
  std::string when;
  std::string language;
  std::string timezone;
  bool from_step = false;     // a relative time counts from the start of the step, not of the plan
  bool holds_errors = false;  // errors wait for the time, too

  bool operator==(const Schedule&) const = default;
};
// A string, or {when, language, timezone, anchor, errors}; other fields of the object are ignored.
Result<Schedule> read_schedule(json::Value value);
std::string schedule_json(const Schedule& schedule);

struct PlannedStep {
  std::string tool;       // aiName
  std::string arguments;  // a JSON object, perhaps with references, and without the schedule if that is Belfry's
  std::optional<Schedule> schedule;
  std::vector<int> depends_on;
  OnFailure on_failure = OnFailure::skip;
};

struct Plan {
  std::string title;
  std::vector<PlannedStep> steps;
};

// {"title"?, "onFailure"?, "steps": [{"aiName", "draftArgs"?, "dependsOn"?, "onFailure"?}]}. `schedule` stays among the
// arguments: whose it is depends on the tool.
Result<Plan> read_plan(json::Value value);
// Every step in an order in which it can be done. Refuses cycles, and dependencies on what is not there.
Result<std::vector<int>> order_of(const Plan& plan);
// The steps that a step comes after, directly or not.
std::vector<int> ancestors(const Plan& plan, int step);

// An object without one of its members, and that member.
struct Taken {
  std::string rest;
  std::optional<std::string> member;
};
Taken take_member(std::string_view object, std::string_view name);

}  // namespace belfry::run
