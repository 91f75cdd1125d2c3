// What happens at its time: results that were held, notices that something goes on, texts to be drafted, agents to be told.
#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/run/run_json.h"
#include "belfry/run/runs.h"

namespace belfry::run {
namespace {

// Worked off in one transaction: whoever else writes waits for at most that many.
constexpr int kAtOnce = 100;
constexpr int kToldAtOnce = 20;
// A wall clock that was set by more than this is not one that drifts.
constexpr Nanos kSetFrom = std::chrono::milliseconds{20};
constexpr std::size_t kRequestBytesMax = 1'000;
// Texts that are written at once; who gets none has the default.
constexpr std::size_t kDraftsMax = 20;
// Of each result, as much as an agent is told; and a little more, to see that there is more.
constexpr std::size_t kResultBytesMax = 16'100;

struct Fired {
  std::vector<Changes> changes;
  std::vector<std::pair<std::size_t, int>> notified;  // which of the changes, which step
  std::vector<StepKey> drafts;
  std::optional<std::int64_t> next_ms;
  bool more = false;
};

std::int64_t seconds(Millis duration) { return std::chrono::ceil<std::chrono::seconds>(duration).count(); }

void log_notice(const Step& step) {
  log::info("schedule.in_progress", "Schedule 延迟反馈: 发送中间状态",
            {{"label", "SCHEDULE"}, {"aiName", step.plan.tool}, {"delayMs", step.delay}});
}

// One row whose time has come.
void fire(store::Connection& connection, const DueRow& row, const std::map<StepKey, std::string>& texts,
          const Moment& moment, Fired& fired) {
  if (row.kind == DueKind::draft) {
    RunTables::drop_due(connection, row);
    fired.drafts.push_back(row.step);
    return;
  }
  auto run = RunTables::find(connection, row.step.run, Detail::arguments);
  if (!run) return RunTables::drop_due(connection, row);
  const Step& step = run->steps.at(static_cast<std::size_t>(row.step.step));
  const auto drafted = texts.find(row.step);
  const std::string text =
      drafted != texts.end() ? drafted->second : default_progress_text(tongue_of(step), seconds(step.delay));
  Edit edit(connection, std::move(*run), moment);
  edit.come_due(row.step.step, text);
  RunTables::drop_due(connection, row);
  fired.changes.push_back(edit.take());
  if (fired.changes.back().run.steps.at(static_cast<std::size_t>(row.step.step)).feedback.late())
    fired.notified.emplace_back(fired.changes.size() - 1, row.step.step);
}

}  // namespace

bool Runs::is_behind(const Now& now) const { return clock_was_set(now) || set_ms_ != shifted_ms_; }

bool Runs::clock_was_set(const Now& now) const {
  const Nanos drift = wall_minus_boot(now) - anchor_;
  return drift > kSetFrom || drift < -kSetFrom;
}

Moment Runs::moment() {
  const Now now = parts_.clock.now();
  if (clock_was_set(now)) {
    const Millis drift = std::chrono::ceil<Millis>(wall_minus_boot(now) - anchor_);  // up: never early
    anchor_ += drift;
    set_ms_ += drift.count();
  }
  return {.now = round_down(now.wall), .set_ms = set_ms_, .drafts = parts_.model != nullptr};
}

Task<bool> Runs::work_off() {
  while (!due_.stopping()) {
    due_.begin_reading();
    const Moment moment = this->moment();
    std::map<StepKey, std::string> texts;
    for (const auto& [key, draft] : drafts_)
      if (!draft.text.empty()) texts.emplace(key, draft.text);
    auto job = [texts = std::move(texts), moment,
                shift = moment.set_ms != shifted_ms_](store::Connection& connection) -> Result<Fired> {
      Fired fired;
      // What waits for elapsed time waits as long as before, however the clock on the wall was set.
      if (shift) RunTables::shift_elapsed(connection, moment.set_ms);
      const auto rows = RunTables::due(connection, to_ms(moment.now), kAtOnce);
      for (const DueRow& row : rows) fire(connection, row, texts, moment, fired);
      fired.more = rows.size() == kAtOnce;
      fired.next_ms = RunTables::next_due(connection);
      return fired;
    };
    const auto fired = co_await parts_.store.write<Fired>(std::move(job), kAtOnce * 4);
    if (!fired) co_return false;
    shifted_ms_ = moment.set_ms;
    for (const Changes& changes : fired->changes) apply(changes);
    for (const auto& [change, step] : fired->notified) {
      const Run& run = fired->changes[change].run;
      log_notice(run.steps[static_cast<std::size_t>(step)]);
      drop_draft({run.number, step});
    }
    for (const StepKey key : fired->drafts) tasks_.spawn("a progress text", draft(key));
    if (fired->more) continue;
    if (fired->next_ms) due_.note(*fired->next_ms);
    co_return true;
  }
  co_return true;
}

namespace {

// What the tool was asked for. One that waits for a turn has no arguments yet: references to others say nothing to a model.
std::string request_of(const Run& run, const Step& step) {
  if (!step.arguments.empty()) return step.arguments;
  const bool refers = run.steps.size() > 1 && step.plan.arguments.contains("{{");
  return refers ? "{}" : step.plan.arguments;
}

class NoProgress final : public llm::Progress {
 public:
  void wrote(std::string_view) override {}
};

}  // namespace

// Written ahead of its time, for the case that the tool is not done by then: what is not ready then is not waited for
// (F4, F10).
Task<void> Runs::draft(StepKey key) {
  if (!parts_.model || closed_) co_return;
  auto look = [key](store::Connection& connection) -> Result<std::optional<Run>> {
    auto run = RunTables::find(connection, key.run, Detail::arguments);
    if (run) run->steps.at(static_cast<std::size_t>(key.step)).arguments = RunTables::arguments_of(connection, key);
    return run;
  };
  const auto found = co_await parts_.store.read<std::optional<Run>>(std::move(look));
  if (!found || !*found) co_return;
  const Run& run = **found;
  const Step& step = run.steps.at(static_cast<std::size_t>(key.step));
  const bool goes_on = step.feedback.waits_for_time() && step.feedback.state != StepState::held;
  if (!goes_on || closed_ || drafts_.size() >= kDraftsMax) co_return;

  const Prompt prompt = load_prompt(tongue_of(step));
  llm::ChatRequest request;
  request.messages.push_back({.role = llm::Role::system, .content = compose_system(prompt.system, run.overlays)});
  request.messages.push_back(
      {.role = llm::Role::user,
       .content = render_template(prompt.user, {{"task", std::string(plain_name(step.plan.tool))},
                                                {"request", shortened(request_of(run, step), kRequestBytesMax)},
                                                {"seconds", std::to_string(seconds(step.delay))}})});
  const auto cancel = std::make_shared<Cancel>();
  drafts_[key] = {.text = {}, .cancel = cancel};
  NoProgress nobody;
  const auto answer = co_await parts_.model->complete(std::move(request), nobody, cancel);
  const auto waiting = drafts_.find(key);
  if (waiting == drafts_.end() || waiting->second.cancel != cancel) co_return;  // it is said, or not needed any more
  const auto text = answer ? presentable_progress(answer->text, plain_name(step.plan.tool)) : std::nullopt;
  if (text) {
    waiting->second.text = *text;
  } else {
    drafts_.erase(waiting);
  }
}

Task<bool> Runs::tell_some() {
  while (!telling_.stopping()) {
    telling_.begin_reading();
    auto look = [](store::Connection& connection) -> Result<std::vector<std::int64_t>> {
      return RunTables::to_tell(connection, kToldAtOnce);
    };
    const auto runs = co_await parts_.store.read<std::vector<std::int64_t>>(std::move(look));
    if (!runs) co_return false;
    if (runs->empty()) co_return true;
    for (const std::int64_t run : *runs) {
      const bool told = co_await tell(run);
      if (!told) co_return false;
    }
  }
  co_return true;
}

// The agent on whose behalf it ran hears how it ended. Sent once under its name, whatever crashes in between.
Task<bool> Runs::tell(std::int64_t number) {
  auto look = [number](store::Connection& connection) -> Result<std::optional<Run>> {
    auto run = RunTables::find(connection, number, Detail::outline);
    if (run) RunTables::read_beginnings(connection, *run, kResultBytesMax);
    return run;
  };
  const auto found = co_await parts_.store.read<std::optional<Run>>(std::move(look));
  if (!found) co_return false;
  if (*found) {
    const Run& run = **found;
    const auto sent = co_await parts_.bus.send({.to = run.owner.agent,
                                                .from = chat::kBelfry,
                                                .payload = ended_payload(run),
                                                .task_id = run.owner.task,
                                                .session_id = run.owner.session,
                                                .once = fmt::format("run-{}", run.id)});
    if (!sent && is_passing(sent.error().code)) co_return false;
    if (!sent)
      log::warn("run.agent_not_told", "an agent could not be told how its run ended",
                {{"run", run.id}, {"agent", run.owner.agent}, {"what", sent.error().detail}});
  }
  auto forget = [number](store::Connection& connection) -> Result<> {
    RunTables::drop_tell(connection, number);
    return {};
  };
  const auto forgotten = co_await parts_.store.write<void>(std::move(forget));
  co_return forgotten.has_value();
}

}  // namespace belfry::run
