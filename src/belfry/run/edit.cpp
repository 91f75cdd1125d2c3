#include "belfry/run/edit.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/run/run_json.h"

namespace belfry::run {
namespace {

// A model gets this long to write a text before it is needed.
constexpr Millis kDraftAhead{20'000};

bool has_failed(const Step& step) {
  return is_final(step.feedback.state) && step.feedback.state != StepState::reported;
}

}  // namespace

Ended failed(std::string_view code, std::string_view message, Ending ending) {
  json::Writer writer;
  writer.object().field("code", code).field("message", message);
  return {.ending = ending, .result = writer.end().take()};
}

Edit::Edit(store::Connection& connection, Run run, Moment moment)
    : connection_(connection), moment_(moment), now_(moment.now) {
  changes_.run = std::move(run);
}

void Edit::begin() {
  add_event("start", nullptr, start_members(changes_.run));
  add_event("plan", nullptr, plan_members(changes_.run));
  settle();
}

bool Edit::can_start(int step) const {
  const Feedback& feedback = at(step).feedback;
  return feedback.state == StepState::waiting && feedback.ready;
}

bool Edit::is_running(int step) const { return at(step).feedback.state == StepState::running; }

void Edit::start(int index, std::string arguments, std::optional<Appointment> appointment) {
  Step& step = at(index);
  run::start(step.feedback);
  step.started_at = now_;
  step.arguments = std::move(arguments);
  if (appointment) {
    step.feedback.feedback_at = appointment->at;
    step.delay = appointment->delay;
    step.elapsed = appointment->elapsed;
    step.feedback.past = appointment->delay == Millis{0} || appointment->at <= now_;
    note_time(step);
  }
  put(step);
  add_event("args", &step, args_members(step));
}

void Edit::end(int index, Ended ended) {
  Step& step = at(index);
  // What could not even begin ends in the same way.
  if (step.feedback.state == StepState::waiting) {
    step.feedback.ready = true;
    run::start(step.feedback);
  }
  step.ended_at = now_;
  (ended.ending == Ending::success ? step.result : step.error) = std::move(ended.result);
  const Word word = run::end(step.feedback, ended.ending, now_);
  if (word == Word::result) return report(step);
  put(step);  // held: its time stays where it is
}

void Edit::come_due(int index, const std::string& text) {
  Step& step = at(index);
  switch (run::come_due(step.feedback, now_)) {
    case Word::nothing: return;
    case Word::result:
      step.result = RunTables::result_of(connection_, {changes_.run.number, index});
      return report(step);
    case Word::in_progress: {
      forget_time(step);
      step.notified_at = now_;
      put(step);
      json::Writer members;
      members.object().field("status", "in_progress").field("message", text);
      add_event("tool_choice", &step, members.end().take());
      if (!changes_.run.quiet) say(step, "progress", text, false);
    }
  }
}

void Edit::cancel() {
  for (Step& step : changes_.run.steps) {
    if (is_final(step.feedback.state)) continue;
    const bool running = step.feedback.state == StepState::running;
    if (step.feedback.waits_for_time()) forget_time(step);
    run::cancel(step.feedback);
    step.error = failed("cancelled", "the run was cancelled").result;
    if (running) changes_.stopped.push_back(step.index);
    step.reported_at = now_;
    put(step);
    add_event("tool_result", &step, result_members(step));
  }
  changes_.run.state = RunState::cancelled;
  finish();
}

void Edit::try_again(int index) {
  Step& step = at(index);
  step.feedback.state = StepState::waiting;
  step.started_at.reset();
  put(step);
  changes_.ready.push_back(index);
}

int Edit::note_crash(int index) {
  Step& step = at(index);
  step.crashes += 1;
  put(step);
  return step.crashes;
}

// Its one final result (G13), and what follows from it.
void Edit::report(Step& step) {
  if (step.feedback.feedback_at && !step.feedback.past && !step.feedback.notified) forget_time(step);
  step.reported_at = now_;
  put(step);
  add_event("tool_result", &step, result_members(step));
  if (is_shown(changes_.run, step)) say(step, "result", result_text(step), true);
  settle();
}

void Edit::settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Step& step : changes_.run.steps)
      if (step.feedback.state == StepState::waiting && !step.feedback.ready && settle(step)) moved = true;
  }
  const bool all_final =
      std::ranges::all_of(changes_.run.steps, [](const Step& step) { return is_final(step.feedback.state); });
  if (!all_final || changes_.run.state != RunState::running) return;
  const bool failed = std::ranges::any_of(changes_.run.steps, [](const Step& step) {
    return has_failed(step) && step.plan.on_failure != OnFailure::carry_on;
  });
  changes_.run.state = failed ? RunState::failed : RunState::completed;
  finish();
}

// Whether a step that waits for others need not wait any more. It begins after their final results (F9).
bool Edit::settle(Step& step) {
  for (const int one : step.plan.depends_on) {
    const Step& before = at(one);
    if (!has_failed(before) || before.plan.on_failure == OnFailure::carry_on) continue;
    const bool fails = before.plan.on_failure == OnFailure::fail && before.feedback.state != StepState::skipped;
    give_up(step.feedback, fails);
    step.error = run::failed(fails ? "dependency_failed" : "skipped",
                             fmt::format("step {}, which it depends on, has not succeeded", one))
                     .result;
    step.reported_at = now_;
    put(step);
    add_event("tool_result", &step, result_members(step));
    return true;
  }
  const bool done =
      std::ranges::all_of(step.plan.depends_on, [this](int one) { return is_final(at(one).feedback.state); });
  if (!done) return false;
  make_ready(step.feedback, now_);
  note_time(step);
  put(step);
  changes_.ready.push_back(step.index);
  return true;
}

void Edit::finish() {
  changes_.run.ended_at = now_;
  RunTables::end_run(connection_, changes_.run);
  add_event("done", nullptr, done_members(changes_.run));
  if (changes_.run.tells_agent) RunTables::add_tell(connection_, changes_.run.number);
}

void Edit::put(const Step& step) {
  changes_.changed = true;
  RunTables::put_step(connection_, changes_.run.number, step);
}

DueRow Edit::feedback_row(const Step& step) const {
  return {.due_ms = to_ms(*step.feedback.feedback_at),
          .step = {changes_.run.number, step.index},
          .kind = DueKind::feedback,
          .elapsed = step.elapsed,
          .set_ms = step.elapsed ? moment_.set_ms : 0};
}

DueRow Edit::draft_row(const Step& step) const {
  DueRow row = feedback_row(step);
  row.kind = DueKind::draft;
  row.due_ms -= kDraftAhead.count();
  return row;
}

void Edit::note_time(const Step& step) {
  if (!step.feedback.waits_for_time()) return;
  DueRow first = feedback_row(step);
  RunTables::add_due(connection_, first);
  if (moment_.drafts) {
    first = draft_row(step);
    RunTables::add_due(connection_, first);
  }
  changes_.next_ms = std::min(changes_.next_ms.value_or(INT64_MAX), first.due_ms);
}

void Edit::forget_time(const Step& step) {
  RunTables::drop_due(connection_, feedback_row(step));
  RunTables::drop_due(connection_, draft_row(step));
}

void Edit::add_event(std::string_view type, const Step* step, std::string members) {
  Run& run = changes_.run;
  Event event{.run = run.number, .run_id = run.id, .seq = ++run.last_event, .type = std::string(type)};
  event.json = event_json(run, event, step, now_, members);
  RunTables::add_event(connection_, event);
  changes_.changed = true;
  changes_.events.push_back(std::move(event));
}

// In the run's conversation, if it has one: also when no model is there to say it (F8).
void Edit::say(const Step& step, std::string_view suffix, std::string text, bool with_result) {
  const Owner& owner = changes_.run.owner;
  if (owner.session.empty() || owner.person.empty()) return;
  chat::Saying saying{.id = fmt::format("r{}-{}-{}", changes_.run.id, step.index, suffix),
                      .session = owner.session,
                      .from = owner.speaker,
                      .to = owner.person,
                      .source = chat::Source::tool,
                      .payload = saying_payload(changes_.run, step, text, with_result),
                      .task_id = owner.task};
  if (with_result && step.feedback.feedback_at && !step.feedback.past) saying.due_at = step.feedback.feedback_at;
  if (auto said = chat::Chats::write_saying(connection_, saying, now_)) changes_.said.push_back(std::move(*said));
}

Changes Edit::take() {
  for (Step& step : changes_.run.steps) {
    step.arguments.clear();
    step.result.clear();
  }
  return std::move(changes_);
}

}  // namespace belfry::run
