#include "belfry/run/feedback.h"

#include <utility>

#include "belfry/base/assert.h"

namespace belfry::run {
namespace {

constexpr std::pair<StepState, std::string_view> kWords[] = {
    {StepState::waiting, "waiting"},         {StepState::running, "running"},     {StepState::held, "held"},
    {StepState::reported, "reported"},       {StepState::failed, "failed"},       {StepState::timed_out, "timed_out"},
    {StepState::interrupted, "interrupted"}, {StepState::cancelled, "cancelled"}, {StepState::skipped, "skipped"},
};

StepState final_state(Ending ending) {
  switch (ending) {
    case Ending::success: return StepState::reported;
    case Ending::failure: return StepState::failed;
    case Ending::timeout: return StepState::timed_out;
    case Ending::interruption: return StepState::interrupted;
  }
  assertion_failed("a known ending", __FILE__, __LINE__);
}

// A success waits for its time, an error only where that is wanted; a timeout never does (F5).
bool is_held(const Feedback& step, Ending ending) {
  if (ending == Ending::success) return true;
  return step.holds_errors && ending != Ending::timeout;
}

}  // namespace

std::string_view word(StepState state) {
  for (const auto& [one, text] : kWords)
    if (one == state) return text;
  assertion_failed("a known state", __FILE__, __LINE__);
}

std::optional<StepState> parse_step_state(std::string_view text) {
  for (const auto& [state, one] : kWords)
    if (one == text) return state;
  return std::nullopt;
}

bool is_final(StepState state) {
  return state != StepState::waiting && state != StepState::running && state != StepState::held;
}

bool Feedback::waits_for_time() const { return ready && feedback_at && !past && !notified && !is_final(state); }

void make_ready(Feedback& step, WallTime now) {
  BELFRY_ASSERT(step.state == StepState::waiting);
  step.ready = true;
  step.past = step.feedback_at && *step.feedback_at <= now;
}

void start(Feedback& step) {
  BELFRY_ASSERT(step.state == StepState::waiting && step.ready);
  step.state = StepState::running;
}

Word end(Feedback& step, Ending ending, WallTime now) {
  BELFRY_ASSERT(step.state == StepState::running);
  step.ending = ending;
  if (step.waits_for_time() && now < *step.feedback_at && is_held(step, ending)) {
    step.state = StepState::held;
    return Word::nothing;
  }
  step.state = final_state(ending);
  return Word::result;
}

Word come_due(Feedback& step, WallTime now) {
  if (!step.waits_for_time() || now < *step.feedback_at) return Word::nothing;
  if (step.state == StepState::held) {
    step.state = final_state(*step.ending);
    return Word::result;
  }
  step.notified = true;
  return Word::in_progress;
}

bool cancel(Feedback& step) {
  if (is_final(step.state)) return false;
  step.state = StepState::cancelled;
  return true;
}

void give_up(Feedback& step, bool failed) {
  BELFRY_ASSERT(step.state == StepState::waiting);
  step.state = failed ? StepState::failed : StepState::skipped;
}

}  // namespace belfry::run
