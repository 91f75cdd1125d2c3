// When a step says what: the rules of delayed feedback, without a clock, a disk or a tool (F2 to F5, G13).
//
//   waiting -> running -> held -> reported
//                 |  \-> (late) -> reported
//                 \-> failed, timed_out, interrupted          any of the first three -> cancelled; waiting -> skipped
//
// A step is `late` from its feedback time on if it has not ended by then: one notice that it is in progress, and the result
// as soon as there is one. Each step has exactly one final result, and never a notice after it.
#pragma once

#include <optional>
#include <string_view>

#include "belfry/base/time.h"

namespace belfry::run {

enum class StepState { waiting, running, held, reported, failed, timed_out, interrupted, cancelled, skipped };
std::string_view word(StepState state);
std::optional<StepState> parse_step_state(std::string_view text);
bool is_final(StepState state);

// How a tool ended.
enum class Ending { success, failure, timeout, interruption };

struct Feedback {
  StepState state = StepState::waiting;
  bool ready = false;                   // it waits for nothing but its turn
  std::optional<WallTime> feedback_at;  // when to report; none: when it has ended
  bool past = false;                    // that was over before it was ready
  bool notified = false;                // it was said that it is in progress
  bool holds_errors = false;            // errors wait for the time, too
  std::optional<Ending> ending;         // how it ended, once it has

  bool late() const { return notified && !is_final(state); }
  // Whether its time is still to come.
  bool waits_for_time() const;
};

// What there is to say about a step now.
enum class Word { nothing, in_progress, result };

// Nothing but its turn is missing: a time that is over by now does not count any more.
void make_ready(Feedback& step, WallTime now);
void start(Feedback& step);
// Its tool has ended.
Word end(Feedback& step, Ending ending, WallTime now);
// The feedback time has come.
Word come_due(Feedback& step, WallTime now);
// False: it is too late, and nothing has changed.
bool cancel(Feedback& step);
// It will never be ready: what it depends on has failed. `failed`: that is its own failure, too.
void give_up(Feedback& step, bool failed);

}  // namespace belfry::run
