// Requests for runs: plans, schedules, overlays, references to earlier results.
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/run/plan.h"
#include "belfry/run/progress_text.h"
#include "belfry/run/references.h"
#include "belfry/server/run_wire.h"
#include "refusal.h"

namespace {

using namespace belfry;
using namespace belfry::run;

std::optional<std::string> result_of(int step) {
  if (step % 2 == 0) return R"({"a":[1,{"b":"{{steps.1.result}}"}],"text":"说"})";
  return std::nullopt;
}

void check_plan(const Plan& plan) {
  BELFRY_ASSERT(!plan.steps.empty() && plan.steps.size() <= kStepsMax);
  const auto order = order_of(plan);
  BELFRY_ASSERT(order && order->size() == plan.steps.size());
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    for (const int before : ancestors(plan, i)) BELFRY_ASSERT(before != i);
    const std::string& arguments = plan.steps[static_cast<std::size_t>(i)].arguments;
    BELFRY_ASSERT(arguments.find_first_of("\r\n") == std::string::npos);
    const Taken taken = take_member(arguments, "schedule");
    BELFRY_ASSERT(json::parse(taken.rest).has_value());
    if (taken.member) fuzz::check(read_schedule(*json::parse(*taken.member)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto wanted = server::wire::read_new_run(text);
  fuzz::check(wanted);
  if (wanted) check_plan(wanted->plan);
  const auto value = json::parse(text);
  if (!value) return 0;
  fuzz::check(read_overlays(*value));
  const auto schedule = read_schedule(*value);
  fuzz::check(schedule);
  // As it is stored, it is read again.
  if (schedule) BELFRY_ASSERT(read_schedule(*json::parse(schedule_json(*schedule))) == *schedule);
  fuzz::check(referred_steps(text));
  const auto filled = fill_references(text, result_of);
  fuzz::check(filled);
  if (filled) BELFRY_ASSERT(json::parse(*filled, kValueDepthMax).has_value());
  return 0;
}
