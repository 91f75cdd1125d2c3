// How steps get their turn, run and end.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/run/references.h"
#include "belfry/run/run_json.h"
#include "belfry/run/runs.h"

namespace belfry::run {
namespace {

// Between two attempts to store something that the disk does not take.
constexpr Millis kTryAgain{1'000};
constexpr std::size_t kDetailBytesMax = 2'000;
// Between two words of a tool about its progress: nobody reads faster.
constexpr Millis kBetweenProgress{100};
// A tool that was at work whenever the server died is likely to be the reason (G11).
constexpr int kCrashesMax = 3;
// So long after a start the guards of the last life have ended their plugins: TERM, KILL after the grace, and some patience.
constexpr Millis kOldProcessesEnd = plugin::kTermGrace + Millis{1'000};

Ended ended_of(const plugin::Outcome& outcome) {
  if (outcome.success) {
    if (!json::parse(outcome.data, kValueDepthMax))
      return failed("bad_output", fmt::format("the result is nested deeper than {} levels", kValueDepthMax));
    return {.ending = Ending::success, .result = one_line(outcome.data)};
  }
  const bool ended_by_us = outcome.code == "timed_out" && !outcome.own_word;
  const Ending ending = ended_by_us ? Ending::timeout : Ending::failure;
  return failed(outcome.code.empty() ? "plugin_failed" : outcome.code, shortened(outcome.message, kDetailBytesMax),
                ending);
}

std::string interruption(int crashes) {
  if (crashes < kCrashesMax) return "the server ended while the tool was at work; it was not started again";
  return fmt::format("the server ended {} times while the tool was at work; it was not started again", crashes);
}

Ended ended_of(const Error& error) { return failed(word(error.code), error.detail); }

// When to report, as the log has it (F11).
void log_schedule(const Step& step, const when::Zone& zone) {
  if (!step.feedback.feedback_at || !step.plan.schedule) return;
  log::info("schedule.enabled", "Schedule 延迟反馈启用",
            {{"label", "SCHEDULE"},
             {"aiName", step.plan.tool},
             {"scheduleText", step.plan.schedule->when},
             {"delayMs", step.delay},
             {"targetISO", zone.iso(*step.feedback.feedback_at)}});
}

void log_end(const Step& step) {
  if (!step.feedback.feedback_at || !step.started_at || !step.ended_at) return;
  const Millis took = *step.ended_at - *step.started_at;
  if (step.feedback.state == StepState::held)
    log::info("schedule.held", "Schedule 延迟反馈: 工具已提前完成，延迟后反馈",
              {{"label", "SCHEDULE"}, {"aiName", step.plan.tool}, {"delayMs", step.delay}, {"actualMs", took}});
  else if (step.notified_at && step.feedback.state == StepState::reported)
    log::info("schedule.late", "Schedule 延迟反馈: 工具延迟完成",
              {{"label", "SCHEDULE"}, {"aiName", step.plan.tool}, {"totalMs", took}});
}

}  // namespace

// A step that may run, with everything that it needs.
struct Runs::Started {
  Run run;
  Order order;
};

// What ran when the last life of the server ended: started again if that does no harm, or ended (F3). What waited for its
// turn waits again.
Task<void> Runs::recover() {
  struct Found {
    std::vector<std::pair<StepKey, std::string>> running;
    std::vector<RunTables::ReadyStep> ready;
    std::optional<std::int64_t> next_ms;
    bool to_tell = false;
  };
  auto look = [](store::Connection& connection) -> Result<Found> {
    Found found;
    for (const StepKey key : RunTables::running_steps(connection))
      if (const auto run = RunTables::find(connection, key.run, Detail::outline))
        found.running.emplace_back(key, run->steps.at(static_cast<std::size_t>(key.step)).plan.tool);
    found.ready = RunTables::ready_steps(connection);
    found.next_ms = RunTables::next_due(connection);
    found.to_tell = !RunTables::to_tell(connection, 1).empty();
    return found;
  };
  auto found = co_await parts_.store.read<Found>(look);
  while (!found && !closed_) {
    co_await pauses_.pause(kTryAgain);
    found = co_await parts_.store.read<Found>(look);
  }
  if (!found) co_return;
  if (!found->running.empty())
    log::warn("run.interrupted", "tools were at work when the last life of the server ended",
              {{"count", found->running.size()}});
  // After a crash a tool's process may still be at work. It counts for the tool's `concurrency`, and two of them in one
  // output folder would be more than "again".
  const Millis old_process = parts_.bus.started_clean() ? Millis{0} : kOldProcessesEnd;
  for (const auto& [key, tool] : found->running) {
    const auto ability = parts_.tools.find(tool);
    if (ability) hold_back(*ability, std::max(ability->appetite.cooldown, old_process));
    co_await take_up(key, ability && ability->idempotent);
  }
  co_await remember_pauses();
  for (const Ability& one : parts_.tools.lasting()) hold_back(one, old_process);
  for (const RunTables::ReadyStep& one : found->ready) {
    const auto ability = parts_.tools.find(one.tool);
    if (ability && one.crashes > 0) hold_back(*ability, old_process);  // of an earlier life, if the last one was short
    queue(one.step, one.tool);
  }
  if (found->next_ms) due_.note(*found->next_ms);
  if (found->to_tell) telling_.note(0);
  recovered_ = true;
  pump();
  co_await sweep_files();
}

Task<void> Runs::take_up(StepKey key, bool idempotent) {
  const bool crashed = !parts_.bus.started_clean();
  const auto changed = co_await edit_surely(key.run, [key, idempotent, crashed](Edit& edit) {
    if (!edit.is_running(key.step)) return false;
    const int crashes = crashed ? edit.note_crash(key.step) : 0;
    if (idempotent && crashes < kCrashesMax) {
      edit.try_again(key.step);
    } else {
      edit.end(key.step, failed("interrupted", interruption(crashes), Ending::interruption));
    }
    return true;
  });
  if (changed) apply(*changed);
}

void Runs::hold_back(const Ability& tool, Millis pause) {
  if (tool.is_plugin) slots_.pause(tool.appetite.tool, parts_.clock.now().boot + pause);
}

// A tool that pauses between two uses does so over a restart, too.
Task<void> Runs::remember_pauses() {
  using Uses = std::vector<std::pair<Appetite, WallTime>>;
  auto look = [pausing = parts_.tools.pausing()](store::Connection& connection) -> Result<Uses> {
    Uses uses;
    for (const Appetite& one : pausing)
      if (const auto last = RunTables::last_use(connection, one.tool)) uses.emplace_back(one, *last);
    return uses;
  };
  const auto uses = co_await parts_.store.read<Uses>(std::move(look));
  if (!uses) co_return;
  const Now now = parts_.clock.now();
  for (const auto& [tool, last] : *uses) {
    // Not for longer than the pause is, however the clock was set meanwhile.
    const Millis left = std::min(tool.cooldown, Millis{last + tool.cooldown - round_down(now.wall)});
    if (left > Millis{0}) slots_.pause(tool.tool, now.boot + left);
  }
}

// The same, and again while the disk does not take it: a result is not lost because the disk is full right now.
Task<Result<Changes>> Runs::edit_surely(std::int64_t run, std::function<bool(Edit&)> change) {
  while (true) {
    auto changed = co_await edit(run, change);
    if (changed || !is_passing(changed.error().code) || stopping_) co_return changed;
    log::warn("run.not_stored", "what has become of a tool could not be stored; it is tried again",
              {{"what", changed.error().detail}});
    co_await pauses_.pause(kTryAgain);
  }
}

// Changes a run in a transaction, if it is still there and the change applies.
Task<Result<Changes>> Runs::edit(std::int64_t run, std::function<bool(Edit&)> change) {
  const Moment moment = this->moment();
  auto job = [run, change, moment,
              shift = moment.set_ms != shifted_ms_](store::Connection& connection) -> Result<Changes> {
    // The clock was set a moment ago: its time is compared with that clock.
    if (shift) RunTables::shift_elapsed(connection, moment.set_ms);
    auto found = RunTables::find(connection, run, Detail::arguments);
    if (!found) return fail(Errc::not_found, "the run has been forgotten");
    Edit edit(connection, std::move(*found), moment);
    if (!change(edit)) return fail(Errc::wrong_state, "the step is not what it was");
    return edit.take();
  };
  co_return co_await parts_.store.write<Changes>(std::move(job));
}

void Runs::queue(StepKey key, const std::string& tool) {
  // One whose tool is gone finds that out when it begins.
  const auto ability = parts_.tools.find(tool);
  slots_.wait(key, ability ? ability->appetite : Appetite{.tool = tool, .provider = tool});
}

void Runs::pump() {
  if (!recovered_ || closed_) return;
  const BootTime now = parts_.clock.now().boot;
  while (const auto next = slots_.take(now)) tasks_.spawn("a step", work(*next));
  const auto look = slots_.next_look(now);
  if (!look || (looking_ && *looking_ <= *look)) return;
  looking_ = look;
  tasks_.spawn("a tool's pause", look_after(*look));
}

Task<void> Runs::look_after(BootTime due) {
  const Nanos left = due - parts_.clock.now().boot;
  co_await pauses_.pause(std::chrono::ceil<Millis>(left));
  if (looking_ == due) looking_.reset();
  pump();
}

Task<void> Runs::work(StepKey key) {
  // Only what runs takes a place: it is free as soon as the tool has ended, however long its result waits (F2).
  struct Place {
    Runs& runs;
    StepKey key;
    bool held = true;
    bool ran = false;
    void leave() {
      if (!std::exchange(held, false)) return;
      runs.slots_.give_back(key, runs.parts_.clock.now().boot, ran);
      runs.idle_.ring();
      runs.pump();
    }
    ~Place() { leave(); }
  } place{*this, key};

  auto begun = co_await begin(key);
  while (!begun && !closed_) {
    log::warn("run.not_begun", "a step could not be begun; it is tried again", {{"what", begun.error().detail}});
    co_await pauses_.pause(kTryAgain);
    begun = co_await begin(key);
  }
  if (!begun || !*begun) co_return;
  if (stopping_) co_return co_await put_back(key);
  place.ran = true;
  const plugin::Outcome outcome = co_await perform(std::move(**begun), key);
  place.leave();
  // Ended by a stop: the next start says what becomes of it.
  if (closed_ && outcome.code == "cancelled" && !outcome.own_word) co_return;
  co_await record_end(key, ended_of(outcome));
}

// Nothing was started: after the next start it has its turn.
Task<void> Runs::put_back(StepKey key) {
  co_await edit(key.run, [key](Edit& edit) {
    if (!edit.is_running(key.step)) return false;
    edit.try_again(key.step);
    return true;
  });
}

// Reads what the step needs, fills it in, and stores that it runs. Nothing if it does not run after all.
Task<Result<std::optional<Runs::Started>>> Runs::begin(StepKey key) {
  struct Material {
    Run run;
    std::map<int, std::string> results;
  };
  auto look = [key](store::Connection& connection) -> Result<std::optional<Material>> {
    auto run = RunTables::find(connection, key.run, Detail::arguments);
    if (!run || run->ended_at) return std::nullopt;
    Material material{.run = std::move(*run), .results = {}};
    const Step& step = material.run.steps.at(static_cast<std::size_t>(key.step));
    if (material.run.steps.size() == 1) return material;  // its braces are the tool's own affair
    for (const int one : referred_steps(step.plan.arguments).value_or(std::vector<int>{}))
      if (material.run.steps.at(static_cast<std::size_t>(one)).feedback.state == StepState::reported)
        material.results[one] = RunTables::result_of(connection, {key.run, one});
    return material;
  };
  BELFRY_CO_TRY(auto material, co_await parts_.store.read<std::optional<Material>>(std::move(look)));
  if (!material) co_return std::nullopt;
  const Step& step = material->run.steps[static_cast<std::size_t>(key.step)];

  std::optional<Appointment> appointment;
  const auto prepared = [&]() -> Result<std::string> {
    BELFRY_TRY(const Ability ability, parts_.tools.find(step.plan.tool));
    const auto result_of = [&](int one) -> std::optional<std::string> {
      const auto found = material->results.find(one);
      return found == material->results.end() ? std::nullopt : std::optional(found->second);
    };
    std::string arguments = step.plan.arguments;
    if (material->run.steps.size() > 1) {
      BELFRY_TRY(arguments, fill_references(step.plan.arguments, result_of));
    }
    BELFRY_CHECK(parts_.tools.check(step.plan.tool, arguments));
    if (step.plan.schedule && step.plan.schedule->from_step && !step.feedback.feedback_at) {
      BELFRY_TRY(appointment, appoint(*step.plan.schedule, round_up(parts_.clock.now().wall)));
    }
    return arguments;
  }();
  const auto changed = co_await edit(key.run, [&](Edit& edit) {
    if (!edit.can_start(key.step)) return false;
    if (prepared) {
      edit.start(key.step, *prepared, appointment);
    } else {
      edit.end(key.step, ended_of(prepared.error()));
    }
    return true;
  });
  if (!changed) {
    if (changed.error().code == Errc::wrong_state || changed.error().code == Errc::not_found) co_return std::nullopt;
    co_return std::unexpected(changed.error());
  }
  apply(*changed);
  if (!prepared) co_return std::nullopt;
  const Step& started = changed->run.steps[static_cast<std::size_t>(key.step)];
  log_schedule(started, options_.zone);
  Started ready{.run = changed->run, .order = {}};
  ready.order = {.tool = started.plan.tool,
                 .arguments = *prepared,
                 .run_id = changed->run.id,
                 .step = key.step,
                 .owner = changed->run.owner,
                 .language = std::string(word(tongue_of(started))),
                 .timeout = started.timeout};
  co_return ready;
}

Task<plugin::Outcome> Runs::perform(Started started, StepKey key) {
  if (!options_.files.empty()) {
    const auto folder = options_.files / started.run.id / std::to_string(key.step);
    std::error_code ec;
    std::filesystem::create_directories(folder, ec);
    if (ec)
      co_return plugin::Outcome{.success = false,
                                .data = {},
                                .code = "storage_failed",
                                .message = "there is no folder for the tool's files: " + ec.message()};
    started.order.output_dir = folder;
  }
  // One that left nothing leaves no folder either.
  struct Folder {
    std::string path;
    ~Folder() {
      std::error_code ignored;
      if (path.empty() || !std::filesystem::remove(path, ignored)) return;
      std::filesystem::remove(std::filesystem::path(path).parent_path(), ignored);
    }
  } output{started.order.output_dir};
  auto cancel = std::make_shared<Cancel>();
  jobs_[key] = {.cancel = cancel, .run = started.run};
  struct Listed {
    Runs& runs;
    StepKey key;
    ~Listed() { runs.jobs_.erase(key); }
  } listed{*this, key};
  if (stopping_) cancel->cancel();
  auto progress = [this, key](std::string said) { take_progress(key, std::move(said)); };
  std::string what;
  try {
    auto outcome = co_await parts_.tools.perform(started.order, progress, cancel);
    // Belfry's own tools act once under their names: what passes is waited for.
    while (outcome.passing && !cancel->cancelled() && !closed_) {
      co_await pauses_.pause(kTryAgain);
      outcome = co_await parts_.tools.perform(started.order, progress, cancel);
    }
    if (outcome.passing) outcome.code = "cancelled";
    tell_progress(key);  // the last of it, before the end
    if (!started.order.output_dir.empty() && outcome.code != "cancelled") {
      const auto synced = co_await sync_files_of(key, started.run.id);
      if (!synced) outcome = {.code = std::string(word(synced.error().code)), .message = synced.error().detail};
    }
    co_return outcome;
  } catch (const std::exception& e) {
    what = e.what();
  }
  log::error("run.tool_failed", "a tool ended with an exception", {{"what", what}});
  co_return plugin::Outcome{
      .success = false, .data = {}, .code = "crashed", .message = "the tool ended with an exception"};
}

// A tool may say more than anybody can look at.
void Runs::take_progress(StepKey key, std::string said) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  JobState& job = found->second;
  job.progress = std::move(said);
  const BootTime now = parts_.clock.now().boot;
  if (now >= job.quiet_until) return tell_progress(key);
  if (std::exchange(job.will_tell, true)) return;
  tasks_.spawn("progress of a tool", tell_progress_later(key, std::chrono::ceil<Millis>(job.quiet_until - now)));
}

void Runs::tell_progress(StepKey key) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.progress.empty()) return;
  JobState& job = found->second;
  if (job.cancel->cancelled()) return;  // nothing more of it is said
  job.quiet_until = parts_.clock.now().boot + kBetweenProgress;
  job.told = std::exchange(job.progress, {});
  for (Listener* const listener : listeners_) listener->progressed(job.run, key.step, job.told);
}

Task<void> Runs::tell_progress_later(StepKey key, Millis pause) {
  co_await pauses_.pause(pause);
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) co_return;
  found->second.will_tell = false;
  tell_progress(key);
}

Task<void> Runs::record_end(StepKey key, Ended ended) {
  const auto changed = co_await edit_surely(key.run, [key, &ended](Edit& edit) {
    if (!edit.is_running(key.step)) return false;  // cancelled meanwhile
    edit.end(key.step, ended);
    return true;
  });
  if (!changed) co_return;
  log_end(changed->run.steps[static_cast<std::size_t>(key.step)]);
  apply(*changed);
}

}  // namespace belfry::run
