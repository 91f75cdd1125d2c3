#include "belfry/run/runs.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/chat/chat_tables.h"
#include "belfry/run/references.h"
#include "belfry/run/run_json.h"

namespace belfry::run {
namespace {

// Readers that wait for one run: panels and terminals, not crowds.
constexpr std::size_t kReadersMax = 100;
// A time that is past, whatever becomes of the clock.
constexpr std::int64_t kAtOnce = 0;
// As good as for ever: whoever waits so long is woken, looks and waits again.
constexpr Nanos kLong = std::chrono::hours{24};

std::unexpected<Error> no_run(const std::string& id) {
  return fail(Errc::not_found, fmt::format("there is no run \"{}\"", shortened(id, kIdBytesMax)));
}

std::unexpected<Error> about_to_end() {
  return fail(Errc::stopping, "the server is about to end; after the next start `belfry runs` tells what became of it");
}

// What is wrong with a step, with its number.
template <class T>
Result<T> of_step(int index, Result<T> result, std::size_t steps) {
  if (result || steps == 1) return result;
  return fail(result.error().code, fmt::format("steps[{}]: {}", index, result.error().detail));
}

bus::TimeText time_text(const Schedule& schedule, WallTime from) {
  return {.text = schedule.when, .timezone = schedule.timezone, .language = schedule.language, .now = from};
}

bool has_references(const std::string& text) { return text.contains("{{"); }

}  // namespace

// Somebody who waits for events of one run.
class Runs::Reader {
 public:
  Reader(Runs& runs, std::int64_t run, std::shared_ptr<bus::Departure> departure)
      : runs_(runs), run_(run), departure_(std::move(departure)) {
    runs_.readers_[run_].push_back(this);
    if (departure_) departure_->rings(&wake);
  }
  ~Reader() {
    if (departure_) departure_->rings(nullptr);
    const auto found = runs_.readers_.find(run_);
    std::erase(found->second, this);
    if (found->second.empty()) runs_.readers_.erase(found);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Wake wake;

 private:
  Runs& runs_;
  std::int64_t run_;
  std::shared_ptr<bus::Departure> departure_;
};

Runs::Runs(Parts parts, RunsOptions options)
    : parts_(parts),
      options_(std::move(options)),
      slots_(options_.slots),
      anchor_(wall_minus_boot(parts_.clock.now())),
      side_(parts_.context, options_.side_threads),
      pauses_(parts_.clock),
      due_(parts_.context, parts_.clock, parts_.timekeeper, "runs", [this] { return work_off(); }),
      telling_(parts_.context, parts_.clock, parts_.timekeeper, "ends of runs", [this] { return tell_some(); }),
      tasks_(parts_.context) {
  store::Connection& connection = parts_.store.connection_before_start();
  RunTables::migrate(connection);
  RunTables::begin_life(connection);
  due_.look_also([this](const Now& now) { return is_behind(now); });
}

Runs::~Runs() = default;

void Runs::start() { tasks_.spawn("runs of the last life", recover()); }

void Runs::close() {
  closed_ = true;
  for (const auto& [run, readers] : readers_)
    for (Reader* const reader : readers) reader->wake.ring();
}

Task<void> Runs::stop(BootTime deadline) {
  close();
  while (!jobs_.empty() && parts_.clock.now().boot < deadline) co_await parts_.clock.sleep_until(deadline, idle_);
  stopping_ = true;
  pauses_.end();
  for (auto& [key, job] : jobs_) job.cancel->cancel();
  for (auto& [key, draft] : drafts_)
    if (draft.cancel) draft.cancel->cancel();
  co_await due_.stop();
  co_await telling_.stop();
  co_await tasks_.join();
}

// --- what is wanted ---

Result<Appointment> Runs::appoint(const Schedule& schedule, WallTime from) const {
  const auto scheduled = parts_.times.read_schedule(time_text(schedule, from));
  if (!scheduled) return fail(Errc::invalid_schedule, scheduled.error().detail);
  const WallTime at = scheduled->reading.at;
  return Appointment{
      .at = at, .delay = std::max(Millis{0}, Millis{at - from}), .elapsed = scheduled->after.has_value()};
}

Readings Runs::readings(const Run& run) const {
  Readings all;
  for (const Step& step : run.steps) {
    if (!step.plan.schedule || step.plan.schedule->from_step || !step.feedback.feedback_at) continue;
    // The moment from which it was counted is not kept, but follows from what is.
    const WallTime from = step.delay > Millis{0} ? *step.feedback.feedback_at - step.delay : run.created_at;
    if (auto scheduled = parts_.times.read_schedule(time_text(*step.plan.schedule, from)))
      all.emplace(step.index, std::move(scheduled->reading));
  }
  return all;
}

Result<Ability> Runs::check_step(const NewRun& wanted, int index) const {
  const PlannedStep& step = wanted.plan.steps[static_cast<std::size_t>(index)];
  BELFRY_TRY(Ability ability, parts_.tools.find(step.tool));
  if (options_.may_use && !wanted.agent.empty() && !options_.may_use(wanted.agent, step.tool))
    return fail(Errc::unknown_tool, fmt::format("\"{}\" may not use {}", wanted.agent, step.tool));
  // A single call has nothing to refer to: double braces are the tool's own affair.
  if (wanted.plan.steps.size() == 1) {
    BELFRY_CHECK(parts_.tools.check(step.tool, step.arguments));
    return ability;
  }
  const auto referred = referred_steps(step.arguments);
  if (!referred) return std::unexpected(referred.error());
  const std::vector<int> before = ancestors(wanted.plan, index);
  for (const int one : *referred)
    if (std::ranges::find(before, one) == before.end())
      return fail(Errc::invalid_plan,
                  fmt::format("it refers to the result of step {}, which it does not depend on", one));
  if (!has_references(step.arguments)) BELFRY_CHECK(parts_.tools.check(step.tool, step.arguments));
  return ability;
}

// Cuts out what is Belfry's, and refuses what cannot be carried out.
Result<> Runs::check(NewRun& wanted) const {
  if (wanted.tells_agent && !wanted.agent.empty() && !parts_.bus.recipient(wanted.agent))
    return fail(Errc::unknown_recipient,
                fmt::format("there is no agent \"{}\" that could be told how it ended; belfry agents add makes one",
                            shortened(wanted.agent, kIdBytesMax)));
  for (int i = 0; i < static_cast<int>(wanted.plan.steps.size()); ++i) {
    PlannedStep& step = wanted.plan.steps[static_cast<std::size_t>(i)];
    const auto check_one = [&]() -> Result<> {
      BELFRY_TRY(const Ability known, parts_.tools.find(step.tool));
      step.arguments = one_line(step.arguments);
      BELFRY_CHECK(check_depth(step.arguments));
      if (known.refuses_schedule && take_member(step.arguments, "schedule").member)
        return fail(Errc::invalid_argument,
                    fmt::format("{} takes no schedule: its config.json does not declare one", step.tool));
      if (known.takes_schedule) {
        Taken taken = take_member(step.arguments, "schedule");
        step.arguments = std::move(taken.rest);
        const auto given = taken.member ? json::parse(*taken.member) : Result<json::Value>(json::Value{});
        if (given && given->kind != json::Kind::null) {
          BELFRY_TRY(step.schedule, read_schedule(*given));
        }
      }
      BELFRY_CHECK(check_step(wanted, i));
      return {};
    };
    BELFRY_CHECK(of_step(i, check_one(), wanted.plan.steps.size()));
  }
  if (slots_.waiting() + wanted.plan.steps.size() > kWaitingMax)
    return fail(Errc::overloaded, fmt::format("{} steps wait for their turn; come again later", slots_.waiting()));
  return {};
}

Result<Run> Runs::prepare(NewRun wanted) {
  const Moment moment = this->moment();
  Run run{.id = parts_.chats.new_id(), .title = wanted.plan.title, .created_at = moment.now};
  // Rounded up, so that nothing is early.
  const WallTime from = round_up(parts_.clock.now().wall);
  run.owner = {.agent = wanted.agent, .session = wanted.session, .task = wanted.task};
  run.tells_agent = wanted.tells_agent && !wanted.agent.empty();
  run.overlays = wanted.overlays == Overlays{} ? options_.overlays : wanted.overlays;
  for (std::size_t i = 0; i < wanted.plan.steps.size(); ++i) {
    Step step{.index = static_cast<int>(i), .plan = std::move(wanted.plan.steps[i])};
    step.timeout = parts_.tools.find(step.plan.tool)->timeout;
    if (step.plan.schedule) {
      step.feedback.holds_errors = step.plan.schedule->holds_errors;
      if (step.plan.schedule->timezone.empty()) step.plan.schedule->timezone = wanted.timezone;
      const auto appointment = of_step(step.index, appoint(*step.plan.schedule, from), wanted.plan.steps.size());
      if (!appointment) return std::unexpected(appointment.error());
      if (!step.plan.schedule->from_step) {
        // "Now" is past already: nobody wants to hear that it is not done after 0 seconds.
        step.feedback.feedback_at =
            appointment->delay == Millis{0} ? std::min(appointment->at, moment.now) : appointment->at;
        step.delay = appointment->delay;
        step.elapsed = appointment->elapsed;
        step.set_ms = moment.set_ms;
      }
    }
    run.steps.push_back(std::move(step));
  }
  return run;
}

// Where the run belongs: who says there what it has to say, and to whom.
Result<> Runs::place(store::Connection& connection, const NewRun& wanted, Run& run) {
  if (wanted.session.empty()) {
    if (wanted.reply_to.empty() || wanted.in_turn) return {};
    return fail(Errc::invalid_argument, "replyTo says to whom it is said in a session, but there is no sessionId");
  }
  const auto found = chat::ChatTables::find(connection, wanted.session);
  if (!found)
    return fail(Errc::not_found, fmt::format("there is no session \"{}\"", shortened(wanted.session, kIdBytesMax)));
  const chat::Session& session = found->session;
  if (!wanted.agent.empty() && !wanted.in_turn && !session.has(wanted.agent))
    return fail(Errc::invalid_argument, fmt::format("\"{}\" is not in the session {}", wanted.agent, wanted.session));
  run.after_seq = session.last_seq;
  const auto people = session.people();
  const auto agents = session.agents();
  run.quiet = wanted.quiet;
  const bool asked_by_one = std::ranges::find(people, wanted.reply_to) != people.end();
  // Whoever an agent answers in its turn may be an agent, too; somebody else's choice must be a person there.
  if (!wanted.reply_to.empty() && !asked_by_one && !wanted.in_turn)
    return fail(Errc::invalid_argument,
                fmt::format("replyTo is \"{}\", but no person of that name is in the session {}",
                            shortened(wanted.reply_to, kIdBytesMax), wanted.session));
  if (people.empty()) return {};
  run.owner.person = asked_by_one ? wanted.reply_to : people.front();
  const bool speaks = std::ranges::find(agents, wanted.agent) != agents.end();
  const bool one_agent = session.kind == chat::SessionKind::private_chat && !agents.empty();
  run.owner.speaker = speaks ? wanted.agent : one_agent ? agents.front() : chat::kBelfry;
  return {};
}

Task<Result<Runs::Created>> Runs::create(NewRun wanted) {
  if (closed_) co_return fail(Errc::stopping, "the server is about to end");
  if (!wanted.session.empty() && wanted.timezone.empty()) {
    const auto session = co_await parts_.chats.session(wanted.session);
    if (session) wanted.timezone = session->timezone;
  }
  struct Made {
    std::optional<Changes> changes;
    std::int64_t known = 0;
    std::vector<std::string> dropped;
  };
  // One that was made under this name is there, whatever has become of its tools meanwhile.
  const auto fits = check(wanted);
  Result<Run> prepared = fits ? prepare(wanted) : std::unexpected(fits.error());
  std::optional<std::int64_t> oldest_ms;
  if (options_.retention > Millis{0}) oldest_ms = to_ms(now() - options_.retention);
  auto job = [wanted, prepared, moment = moment(), oldest_ms](store::Connection& connection) mutable -> Result<Made> {
    if (const auto known = RunTables::find_once(connection, wanted.once)) {
      if (!wanted.body.empty() && known->body != wanted.body)
        return fail(Errc::key_conflict, "the key was used for another run");
      return Made{.known = known->number};
    }
    if (!prepared) return std::unexpected(prepared.error());
    Made made;
    if (oldest_ms) made.dropped = RunTables::drop_old(connection, *oldest_ms);
    BELFRY_CHECK(place(connection, wanted, *prepared));
    RunTables::insert(connection, *prepared, wanted.once, wanted.body);
    Edit edit(connection, std::move(*prepared), moment);
    edit.begin();
    made.changes = edit.take();
    return made;
  };
  std::size_t bytes = 0;
  for (const PlannedStep& step : wanted.plan.steps) bytes += step.arguments.size();
  BELFRY_CO_TRY(const Made made, co_await parts_.store.write_as_send<Made>(std::move(job), bytes));
  remove_files(made.dropped);
  if (made.changes) {
    apply(*made.changes);
    co_return Created{.run = made.changes->run};
  }
  auto again = [number = made.known](store::Connection& connection) -> Result<Run> {
    auto run = RunTables::find(connection, number, Detail::outline);
    if (!run) return fail(Errc::not_found, "the run has been forgotten");
    return std::move(*run);
  };
  BELFRY_CO_TRY(Run run, co_await parts_.store.read<Run>(std::move(again)));
  co_return Created{.run = std::move(run), .repeated = true};
}

// --- looking ---

Task<Result<Run>> Runs::get(std::string id, Detail detail) {
  auto job = [id, detail](store::Connection& connection) -> Result<Run> {
    const auto number = RunTables::number_of(connection, id);
    if (!number) return no_run(id);
    return std::move(*RunTables::find(connection, *number, detail));
  };
  BELFRY_CO_TRY(Run run, co_await parts_.store.read<Run>(std::move(job)));
  add_progress(run);
  co_return run;
}

Task<Result<std::vector<Run>>> Runs::list(RunTables::Query query, std::string before_id) {
  auto job = [query, before_id](store::Connection& connection) mutable -> Result<std::vector<Run>> {
    if (!before_id.empty()) {
      const auto number = RunTables::number_of(connection, before_id);
      if (!number) return no_run(before_id);
      query.before = *number;
    }
    return RunTables::list(connection, query);
  };
  BELFRY_CO_TRY(std::vector<Run> runs, co_await parts_.store.read<std::vector<Run>>(std::move(job)));
  for (Run& run : runs) add_progress(run);
  co_return runs;
}

// A tool may say something once and then nothing for an hour: who looks in between wants to know it, too.
void Runs::add_progress(Run& run) const {
  for (auto job = jobs_.lower_bound({.run = run.number}); job != jobs_.end() && job->first.run == run.number; ++job) {
    const auto index = static_cast<std::size_t>(job->first.step);
    if (index < run.steps.size() && run.steps[index].feedback.state == StepState::running)
      run.steps[index].progress = job->second.told;
  }
}

Task<Result<std::vector<RunTables::Coming>>> Runs::coming_in(std::string session, int limit) {
  auto job = [session, now = moment().now,
              limit](store::Connection& connection) -> Result<std::vector<RunTables::Coming>> {
    return RunTables::coming_in(connection, session, now, limit);
  };
  co_return co_await parts_.store.read<std::vector<RunTables::Coming>>(std::move(job));
}

Task<Result<std::vector<Event>>> Runs::events(EventsRequest request) {
  struct Look {
    std::int64_t number = 0;
    bool ended = false;
    std::vector<Event> events;
  };
  const BootTime deadline = parts_.clock.now().boot + request.wait;
  std::optional<Reader> reader;  // only if there is something to wait for
  while (true) {
    auto job = [request](store::Connection& connection) -> Result<Look> {
      const auto number = RunTables::number_of(connection, request.id);
      if (!number) return no_run(request.id);
      Look look{.number = *number,
                .events = RunTables::events(connection, *number, request.after, request.limit, request.bytes_max)};
      if (look.events.empty()) look.ended = RunTables::find(connection, *number, Detail::outline)->ended_at.has_value();
      return look;
    };
    BELFRY_CO_TRY(Look look, co_await parts_.store.read<Look>(std::move(job)));
    const bool left = request.departure && request.departure->left();
    const bool enough = !look.events.empty() || look.ended || left || closed_;
    if (closed_ && look.events.empty() && !look.ended && request.wait > Millis{0}) co_return about_to_end();
    if (enough || parts_.clock.now().boot >= deadline) co_return std::move(look.events);
    if (reader) {
      co_await parts_.clock.sleep_until(deadline, reader->wake);
      continue;
    }
    if (const auto others = readers_.find(look.number);
        others != readers_.end() && others->second.size() >= kReadersMax)
      co_return fail(Errc::overloaded, fmt::format("{} wait for events of this run already", kReadersMax));
    // And look again: from here on an event rings, but one may have come before.
    reader.emplace(*this, look.number, request.departure);
  }
}

Task<Result<Run>> Runs::finished(std::string id) {
  std::optional<Reader> reader;
  while (true) {
    BELFRY_CO_TRY(Run run, co_await get(id, Detail::outline));
    if (run.ended_at) co_return co_await get(id, Detail::results);
    if (closed_) co_return about_to_end();
    if (reader) {
      co_await parts_.clock.sleep_until(parts_.clock.now().boot + kLong, reader->wake);
    } else {
      reader.emplace(*this, run.number, nullptr);
    }
  }
}

// --- cancelling ---

Task<Result<Run>> Runs::cancel(std::string id) {
  auto job = [id, moment = moment()](store::Connection& connection) -> Result<Changes> {
    const auto number = RunTables::number_of(connection, id);
    if (!number) return no_run(id);
    auto run = RunTables::find(connection, *number, Detail::arguments);
    if (run->ended_at)
      return fail(run->state == RunState::cancelled ? Errc::already_cancelled : Errc::wrong_state,
                  fmt::format("the run has ended: it is {}", word(run->state)));
    Edit edit(connection, std::move(*run), moment);
    edit.cancel();
    return edit.take();
  };
  BELFRY_CO_TRY(const Changes changes, co_await parts_.store.write<Changes>(std::move(job)));
  apply(changes);
  log::info("run.cancelled", "", {{"run", id}});
  co_return changes.run;
}

Task<Result<>> Runs::remove(std::string id) {
  // Its agent hears how it ended, whatever becomes of it afterwards.
  auto look = [id](store::Connection& connection) -> Result<std::optional<std::int64_t>> {
    const auto number = RunTables::number_of(connection, id);
    return number && RunTables::is_to_tell(connection, *number) ? number : std::nullopt;
  };
  BELFRY_CO_TRY(const std::optional<std::int64_t> to_tell,
                co_await parts_.store.read<std::optional<std::int64_t>>(std::move(look)));
  if (to_tell) {
    const bool told = co_await tell(*to_tell);
    if (!told)
      co_return fail(Errc::unavailable,
                     "its agent could not be told yet how the run ended; it can be deleted after that");
  }
  auto job = [id](store::Connection& connection) -> Result<> {
    const auto number = RunTables::number_of(connection, id);
    if (!number) return no_run(id);
    if (!RunTables::find(connection, *number, Detail::outline)->ended_at)
      return fail(Errc::wrong_state, "the run has not ended; once it is cancelled, or done, it can be deleted");
    RunTables::drop(connection, *number);
    return {};
  };
  BELFRY_CO_CHECK(co_await parts_.store.write<void>(std::move(job)));
  log::info("run.deleted", "", {{"run", id}});
  remove_files({id});
  co_return Result<>{};
}

Task<void> Runs::cancel_awaited(std::string session, std::string agent) {
  auto job = [session, agent](store::Connection& connection) -> Result<std::vector<std::string>> {
    return RunTables::awaited_in(connection, session, agent);
  };
  const auto awaited = co_await parts_.store.read<std::vector<std::string>>(std::move(job));
  if (!awaited) co_return;
  for (const std::string& id : *awaited) co_await cancel(id);
}

// --- telling ---

void Runs::drop_draft(StepKey key) {
  const auto draft = drafts_.find(key);
  if (draft == drafts_.end()) return;
  const auto cancel = draft->second.cancel;
  drafts_.erase(draft);
  cancel->cancel();
}

// What is on the disk now is told, and what follows from it is begun.
void Runs::apply(const Changes& changes) {
  const Run& run = changes.run;
  for (const int step : changes.stopped) {
    const StepKey key{run.number, step};
    if (const auto job = jobs_.find(key); job != jobs_.end()) job->second.cancel->cancel();
  }
  for (const Step& step : run.steps) {
    const StepKey key{run.number, step.index};
    if (run.state == RunState::cancelled) slots_.leave(key);
    // What nobody needs any more is not written to its end: a result that is held needs no notice.
    if (is_final(step.feedback.state) || step.feedback.state == StepState::held) drop_draft(key);
  }
  for (const Event& event : changes.events) {
    for (Listener* const listener : listeners_) listener->happened(event);
    log::debug("run.event", "", {{"run", event.run_id}, {"seq", event.seq}, {"type", event.type}});
  }
  for (const chat::Chats::Said& said : changes.said) parts_.chats.tell(said);
  if (!changes.changed) return;
  for (Listener* const listener : listeners_) listener->changed(run);
  if (!run.owner.session.empty()) parts_.chats.tell_coming(run.owner.session);
  if (const auto found = readers_.find(run.number); found != readers_.end())
    for (Reader* const reader : found->second) reader->wake.ring();
  if (changes.next_ms) due_.note(*changes.next_ms);
  if (run.ended_at && run.tells_agent) telling_.note(kAtOnce);
  for (const int step : changes.ready) queue({run.number, step}, run.steps[static_cast<std::size_t>(step)].plan.tool);
  if (!changes.ready.empty()) pump();
}

}  // namespace belfry::run
