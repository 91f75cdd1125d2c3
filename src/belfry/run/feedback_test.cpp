#include "belfry/run/feedback.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::run {
namespace {

using namespace std::chrono_literals;

const WallTime kStart = wall_from_ms(1'000'000);

Feedback running(std::optional<Millis> feedback_after, bool holds_errors = false) {
  Feedback step;
  if (feedback_after) step.feedback_at = kStart + *feedback_after;
  step.holds_errors = holds_errors;
  make_ready(step, kStart);
  start(step);
  return step;
}

// F3
TEST(Feedback, WhatIsDoneEarlyIsHeldUntilItsTime) {
  Feedback step = running(120s);
  EXPECT_EQ(end(step, Ending::success, kStart + 45s), Word::nothing);
  EXPECT_EQ(step.state, StepState::held);
  EXPECT_EQ(come_due(step, kStart + 120s - 1ms), Word::nothing);
  EXPECT_EQ(come_due(step, kStart + 120s), Word::result);
  EXPECT_EQ(step.state, StepState::reported);
  EXPECT_EQ(come_due(step, kStart + 121s), Word::nothing);
}

// F4
TEST(Feedback, WhatIsNotDoneIsSaidToGoOnOnceAndReportedWhenItIs) {
  Feedback step = running(120s);
  EXPECT_EQ(come_due(step, kStart + 120s), Word::in_progress);
  EXPECT_TRUE(step.late());
  EXPECT_EQ(come_due(step, kStart + 120s), Word::nothing);
  EXPECT_EQ(end(step, Ending::success, kStart + 180s), Word::result);
  EXPECT_EQ(step.state, StepState::reported);
  EXPECT_FALSE(step.late());
}

// F4
TEST(Feedback, WhatWaitsForItsTurnAtItsTimeIsSaidToGoOnToo) {
  Feedback step;
  step.feedback_at = kStart + 10s;
  make_ready(step, kStart);
  EXPECT_EQ(come_due(step, kStart + 10s), Word::in_progress);
  start(step);
  EXPECT_EQ(end(step, Ending::success, kStart + 11s), Word::result);
}

// F5
TEST(Feedback, ATimeoutIsNeverHeldAndOtherErrorsOnlyIfThatIsWanted) {
  Feedback one = running(120s, true);
  EXPECT_EQ(end(one, Ending::timeout, kStart + 60s), Word::result);
  EXPECT_EQ(one.state, StepState::timed_out);
  Feedback other = running(120s, false);
  EXPECT_EQ(end(other, Ending::failure, kStart + 60s), Word::result);
  EXPECT_EQ(other.state, StepState::failed);
  Feedback held = running(120s, true);
  EXPECT_EQ(end(held, Ending::failure, kStart + 60s), Word::nothing);
  EXPECT_EQ(held.state, StepState::held);
  EXPECT_EQ(come_due(held, kStart + 120s), Word::result);
  EXPECT_EQ(held.state, StepState::failed);
}

// F7, F9
TEST(Feedback, ATimeThatIsOverBeforeItBeginsDoesNotCount) {
  Feedback step;
  step.feedback_at = kStart;
  make_ready(step, kStart);
  EXPECT_TRUE(step.past);
  start(step);
  EXPECT_EQ(come_due(step, kStart + 1s), Word::nothing);
  EXPECT_EQ(end(step, Ending::success, kStart + 2s), Word::result);
}

// F2
TEST(Feedback, WithoutATimeTheResultIsSaidWhenThereIsOne) {
  Feedback step = running(std::nullopt);
  EXPECT_FALSE(step.waits_for_time());
  EXPECT_EQ(end(step, Ending::success, kStart + 1s), Word::result);
}

// One thing that can happen to a step.
enum class Act { ready, start, end_well, end_badly, time_out, interrupt, come_due, cancel, give_up };

// What was said, in order, with when.
struct Saying {
  Word word;
  WallTime at;
  StepState state;
};

struct Story {
  Feedback step;
  std::vector<Saying> said;
  bool cancelled = false;
};

void act(Story& story, Act what, WallTime now) {
  Feedback& step = story.step;
  const auto note = [&](Word word) {
    if (word != Word::nothing) story.said.push_back({word, now, step.state});
  };
  const bool is_running = step.state == StepState::running;
  switch (what) {
    case Act::ready:
      if (step.state == StepState::waiting && !step.ready) make_ready(step, now);
      return;
    case Act::start:
      if (step.state == StepState::waiting && step.ready) start(step);
      return;
    case Act::end_well:
      if (is_running) note(end(step, Ending::success, now));
      return;
    case Act::end_badly:
      if (is_running) note(end(step, Ending::failure, now));
      return;
    case Act::time_out:
      if (is_running) note(end(step, Ending::timeout, now));
      return;
    case Act::interrupt:
      if (is_running) note(end(step, Ending::interruption, now));
      return;
    case Act::come_due: return note(come_due(step, now));
    case Act::cancel:
      if (cancel(step)) story.cancelled = true;
      return;
    case Act::give_up:
      if (step.state == StepState::waiting && !step.ready) give_up(step, false);
      return;
  }
}

// F2, F3, F4, F5: whatever happens in whatever order, these hold (G13).
RC_GTEST_PROP(FeedbackProperty, OneFinalResultAtTheRightTimeAndAtMostOneNoticeBeforeIt, ()) {
  Story story;
  const bool scheduled = *rc::gen::arbitrary<bool>();
  if (scheduled) story.step.feedback_at = kStart + Millis{*rc::gen::inRange(0, 30)};
  story.step.holds_errors = *rc::gen::arbitrary<bool>();
  const auto acts = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9));
  WallTime now = kStart;
  for (const int one : acts) {
    now += Millis{*rc::gen::inRange(0, 8)};
    const bool was_final = is_final(story.step.state);
    const StepState before = story.step.state;
    // The timer fires whenever it is due, before anything else of that moment.
    act(story, Act::come_due, now);
    act(story, static_cast<Act>(one), now);
    if (was_final) RC_ASSERT(story.step.state == before);
  }
  const auto results = std::ranges::count(story.said, Word::result, &Saying::word);
  const auto notices = std::ranges::count(story.said, Word::in_progress, &Saying::word);
  RC_ASSERT(results <= 1);
  RC_ASSERT(notices <= 1);
  RC_ASSERT(!story.cancelled || results == 0);
  if (notices == 1) RC_ASSERT(story.said.front().word == Word::in_progress);
  for (const Saying& saying : story.said) {
    if (saying.word == Word::in_progress) {
      RC_ASSERT(scheduled && saying.at >= *story.step.feedback_at);
      continue;
    }
    const bool success = saying.state == StepState::reported;
    const bool waits = success || (story.step.holds_errors && saying.state != StepState::timed_out);
    if (scheduled && waits && !story.step.past) RC_ASSERT(saying.at >= *story.step.feedback_at);
  }
  // What has ended and had its time has said so.
  const bool has_ended = story.step.ending.has_value();
  const bool time_is_over = !scheduled || now >= *story.step.feedback_at;
  if (has_ended && !story.cancelled && time_is_over) {
    act(story, Act::come_due, now);
    RC_ASSERT(std::ranges::count(story.said, Word::result, &Saying::word) == 1);
  }
}

}  // namespace
}  // namespace belfry::run
