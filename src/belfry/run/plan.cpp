#include "belfry/run/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"

namespace belfry::run {
namespace {

constexpr std::size_t kTitleCharactersMax = 200;
constexpr std::size_t kToolNameBytesMax = 64;

std::unexpected<Error> bad(std::string detail) { return fail(Errc::invalid_plan, std::move(detail)); }

// What a reader of fields refuses is about the plan here.
template <class T>
Result<T> in_plan(Result<T> read) {
  if (read) return read;
  return bad(read.error().detail);
}

Result<OnFailure> read_on_failure(const json::Fields& fields, const std::string& field, OnFailure otherwise) {
  std::string text;
  BELFRY_CHECK(in_plan(fields.text("onFailure", text)));
  if (text.empty()) return otherwise;
  if (const auto policy = parse_on_failure(text)) return *policy;
  return bad(fmt::format("{} is \"{}\"; it is skip, fail or continue", field, shortened(text, kToolNameBytesMax)));
}

Result<std::vector<int>> read_depends_on(const json::Fields& fields, int index, std::size_t count) {
  const auto value = fields.find("dependsOn");
  if (!value) return std::vector<int>{};
  const std::string field = fmt::format("steps[{}].dependsOn", index);
  if (value->kind != json::Kind::array) return bad(fmt::format("{} is no list of step numbers", field));
  std::vector<int> all;
  for (const json::Value one : json::elements(*value)) {
    const auto number = one.kind == json::Kind::number ? json::integer(one) : std::nullopt;
    if (!number || *number < 0 || *number >= static_cast<std::int64_t>(count))
      return bad(fmt::format("{} names step {}; there are steps 0 to {}", field, shortened(std::string(one.raw), 20),
                             count - 1));
    if (*number == index) return bad(fmt::format("{} names the step itself", field));
    if (std::ranges::find(all, static_cast<int>(*number)) == all.end()) all.push_back(static_cast<int>(*number));
  }
  return all;
}

Result<PlannedStep> read_step(json::Value value, int index, std::size_t count, OnFailure on_failure) {
  const std::string what = fmt::format("steps[{}]", index);
  if (value.kind != json::Kind::object)
    return bad(fmt::format("{} is {}; an object belongs there", what, json::name(value.kind)));
  BELFRY_TRY(const json::Fields fields,
             in_plan(json::Fields::read(what, value.raw, {"aiName", "draftArgs", "dependsOn", "onFailure"})));
  PlannedStep step;
  BELFRY_CHECK(in_plan(fields.text("aiName", step.tool)));
  if (step.tool.empty()) return bad(fmt::format("{} has no aiName, the name of its tool", what));
  if (step.tool.size() > kToolNameBytesMax) return bad(fmt::format("{}.aiName is too long for a tool's name", what));
  step.arguments = "{}";
  if (const auto arguments = fields.find("draftArgs")) {
    if (arguments->kind != json::Kind::object)
      return bad(fmt::format("{}.draftArgs is {}; an object belongs there", what, json::name(arguments->kind)));
    step.arguments = one_line(arguments->raw);
  }
  BELFRY_TRY(step.depends_on, read_depends_on(fields, index, count));
  BELFRY_TRY(step.on_failure, read_on_failure(fields, what + ".onFailure", on_failure));
  return step;
}

Result<> read_text(json::Value object, std::string_view name, std::string& into) {
  const auto value = json::find(object, name);
  if (!value || value->kind == json::Kind::null) return {};
  if (value->kind != json::Kind::string)
    return fail(Errc::invalid_schedule,
                fmt::format("schedule.{} is {}; a text belongs there", name, json::name(value->kind)));
  into = json::text(*value);
  return {};
}

// One of two words, or nothing.
Result<bool> read_choice(json::Value object, std::string_view name, std::string_view usual, std::string_view other) {
  std::string text;
  BELFRY_CHECK(read_text(object, name, text));
  if (text.empty() || text == usual) return false;
  if (text == other) return true;
  return fail(Errc::invalid_schedule, fmt::format("schedule.{} is \"{}\"; it is \"{}\" or \"{}\"", name,
                                                  shortened(text, kToolNameBytesMax), usual, other));
}

}  // namespace

std::string_view word(OnFailure policy) {
  switch (policy) {
    case OnFailure::skip: return "skip";
    case OnFailure::fail: return "fail";
    case OnFailure::carry_on: return "continue";
  }
  assertion_failed("a known policy", __FILE__, __LINE__);
}

std::optional<OnFailure> parse_on_failure(std::string_view text) {
  for (const OnFailure policy : {OnFailure::skip, OnFailure::fail, OnFailure::carry_on})
    if (word(policy) == text) return policy;
  return std::nullopt;
}

Result<Schedule> read_schedule(json::Value value) {
  Schedule schedule;
  if (value.kind == json::Kind::string) {
    schedule.when = json::text(value);
  } else if (value.kind == json::Kind::object) {
    BELFRY_CHECK(read_text(value, "when", schedule.when));
    BELFRY_CHECK(read_text(value, "language", schedule.language));
    BELFRY_CHECK(read_text(value, "timezone", schedule.timezone));
    BELFRY_TRY(schedule.from_step, read_choice(value, "anchor", "plan", "step"));
    BELFRY_TRY(schedule.holds_errors, read_choice(value, "errors", "now", "hold"));
  } else {
    return fail(Errc::invalid_schedule,
                fmt::format("schedule is {}; a time like \"in 2 minutes\" belongs there, or {{\"when\": …}}",
                            json::name(value.kind)));
  }
  if (is_blank(schedule.when))
    return fail(Errc::invalid_schedule, "schedule says no time; \"in 2 minutes\" or \"明天早上9点\" would be one");
  return schedule;
}

std::string schedule_json(const Schedule& schedule) {
  json::Writer writer;
  writer.object().field("when", schedule.when);
  if (!schedule.language.empty()) writer.field("language", schedule.language);
  if (!schedule.timezone.empty()) writer.field("timezone", schedule.timezone);
  if (schedule.from_step) writer.field("anchor", "step");
  if (schedule.holds_errors) writer.field("errors", "hold");
  return writer.end().take();
}

Result<Plan> read_plan(json::Value value) {
  if (value.kind != json::Kind::object)
    return bad(fmt::format("plan is {}; an object with steps belongs there", json::name(value.kind)));
  BELFRY_TRY(const json::Fields fields,
             in_plan(json::Fields::read("plan", value.raw, {"title", "onFailure", "steps"})));
  Plan plan;
  BELFRY_CHECK(in_plan(fields.text("title", plan.title)));
  if (first_characters(plan.title, kTitleCharactersMax).size() < plan.title.size())
    return bad(fmt::format("title has more than {} characters", kTitleCharactersMax));
  BELFRY_TRY(const OnFailure on_failure, read_on_failure(fields, "onFailure", OnFailure::skip));
  const auto steps = fields.find("steps");
  if (!steps || steps->kind != json::Kind::array) return bad("plan has no list of steps");
  const std::vector<json::Value> all = json::elements(*steps);
  if (all.empty()) return bad("plan has no steps");
  if (all.size() > kStepsMax) return bad(fmt::format("plan has {} steps; at most {} are taken", all.size(), kStepsMax));
  for (std::size_t i = 0; i < all.size(); ++i) {
    BELFRY_TRY(PlannedStep step, read_step(all[i], static_cast<int>(i), all.size(), on_failure));
    plan.steps.push_back(std::move(step));
  }
  BELFRY_CHECK(order_of(plan));
  return plan;
}

Result<std::vector<int>> order_of(const Plan& plan) {
  std::vector<int> order;
  std::vector<bool> placed(plan.steps.size());
  const auto can_be_placed = [&](int index) {
    return !placed[index] && std::ranges::all_of(plan.steps[index].depends_on, [&](int one) { return placed[one]; });
  };
  // At most a hundred rounds over a hundred steps.
  for (bool found = true; found;) {
    found = false;
    for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
      if (!can_be_placed(i)) continue;
      placed[i] = found = true;
      order.push_back(i);
    }
  }
  if (order.size() == plan.steps.size()) return order;
  const auto left = static_cast<int>(std::ranges::find(placed, false) - placed.begin());
  return bad(fmt::format("steps[{}] waits for itself by way of others: dependsOn goes round in a circle", left));
}

std::vector<int> ancestors(const Plan& plan, int step) {
  std::vector<int> all;
  std::vector<int> open = plan.steps[step].depends_on;
  while (!open.empty()) {
    const int one = open.back();
    open.pop_back();
    if (std::ranges::find(all, one) != all.end()) continue;
    all.push_back(one);
    open.insert(open.end(), plan.steps[one].depends_on.begin(), plan.steps[one].depends_on.end());
  }
  std::ranges::sort(all);
  return all;
}

Result<> check_depth(std::string_view arguments) {
  if (json::parse(arguments, kValueDepthMax)) return {};
  return fail(Errc::invalid_argument, fmt::format("the arguments are nested deeper than {} levels", kValueDepthMax));
}

// Within texts line ends are written as escapes, so those that are left stand between values.
std::string one_line(std::string_view json) {
  std::string line(json);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
  return line;
}

Taken take_member(std::string_view object, std::string_view name) {
  Taken taken;
  json::Writer writer;
  writer.object();
  for (const json::Member& member : json::every_member(*json::parse(object))) {
    if (member.key == name) {
      taken.member = std::string(member.value.raw);
    } else {
      writer.key(member.key).raw(member.value.raw);
    }
  }
  taken.rest = writer.end().take();
  return taken;
}

}  // namespace belfry::run
