#include "belfry/run/run_tables.h"

#include <fmt/format.h>

#include "belfry/base/assert.h"

namespace belfry::run {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE run(
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, once TEXT NOT NULL, body TEXT NOT NULL,
        title TEXT NOT NULL, state TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, speaker TEXT NOT NULL,
        person TEXT NOT NULL, task TEXT NOT NULL, tells_agent INTEGER NOT NULL, quiet INTEGER NOT NULL, after_seq INTEGER NOT NULL,
        overlays TEXT NOT NULL, created_ms INTEGER NOT NULL, ended_ms INTEGER,
        last_event INTEGER NOT NULL);
      CREATE UNIQUE INDEX run_once ON run(once) WHERE once <> '';
      CREATE INDEX run_session ON run(session, number) WHERE session <> '';
      CREATE INDEX run_agent ON run(agent, number) WHERE agent <> '';
      CREATE INDEX run_open ON run(number) WHERE state = 'running';
      CREATE INDEX run_open_session ON run(session, number) WHERE state = 'running';
      CREATE INDEX run_ended ON run(ended_ms) WHERE ended_ms IS NOT NULL;
      CREATE TABLE run_step(
        run INTEGER NOT NULL, step INTEGER NOT NULL, tool TEXT NOT NULL, draft TEXT NOT NULL, schedule TEXT NOT NULL,
        depends_on TEXT NOT NULL, on_failure TEXT NOT NULL, state TEXT NOT NULL, ready INTEGER NOT NULL,
        feedback_ms INTEGER, delay_ms INTEGER NOT NULL, elapsed INTEGER NOT NULL, set_ms INTEGER NOT NULL,
        past INTEGER NOT NULL, crashes INTEGER NOT NULL,
        notified_ms INTEGER, ending INTEGER, timeout_ms INTEGER NOT NULL, started_ms INTEGER, ended_ms INTEGER,
        reported_ms INTEGER, error TEXT NOT NULL, PRIMARY KEY(run, step)) WITHOUT ROWID;
      CREATE INDEX run_step_set ON run_step(run, step) WHERE set_ms <> 0;
      CREATE INDEX run_step_running ON run_step(run, step) WHERE state = 'running';
      CREATE INDEX run_step_ready ON run_step(run, step) WHERE state = 'waiting' AND ready;
      CREATE TABLE run_step_data(
        run INTEGER NOT NULL, step INTEGER NOT NULL, arguments TEXT NOT NULL, result TEXT NOT NULL,
        PRIMARY KEY(run, step));
      CREATE TABLE run_event(
        run INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, event TEXT NOT NULL, PRIMARY KEY(run, seq));
      CREATE TABLE run_due(
        due_ms INTEGER NOT NULL, run INTEGER NOT NULL, step INTEGER NOT NULL, kind INTEGER NOT NULL,
        elapsed INTEGER NOT NULL, set_ms INTEGER NOT NULL, PRIMARY KEY(due_ms, run, step, kind)) WITHOUT ROWID;
      CREATE TABLE run_tell(run INTEGER PRIMARY KEY);
      CREATE INDEX run_due_set ON run_due(set_ms) WHERE set_ms <> 0;
    )sql"},
    {2, "CREATE INDEX run_step_blocked ON run_step(run, step) WHERE state = 'waiting' AND NOT ready"},
    {3, "CREATE INDEX run_step_use ON run_step(tool, coalesce(ended_ms, reported_ms)) WHERE started_ms IS NOT NULL"},
};

#define BELFRY_RUN_COLUMNS \
  "number, id, title, state, agent, session, speaker, person, task, tells_agent, after_seq, quiet, overlays, " \
  "created_ms, ended_ms, last_event"
#define BELFRY_STEP_COLUMNS \
  "step, tool, CASE WHEN ?2 THEN draft ELSE '{}' END, schedule, depends_on, on_failure, state, ready, feedback_ms, " \
  "delay_ms, elapsed, past, notified_ms, ending, timeout_ms, started_ms, ended_ms, reported_ms, error, set_ms, crashes"

constexpr int kDroppedAtOnce = 4;

std::optional<WallTime> maybe_time(const store::Rows& rows, int column) {
  const auto ms = rows.maybe_integer(column);
  return ms ? std::optional(wall_from_ms(*ms)) : std::nullopt;
}

std::optional<std::int64_t> maybe_ms(const std::optional<WallTime>& time) {
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}

std::string numbers_json(const std::vector<int>& numbers) {
  json::Writer writer;
  writer.array();
  for (const int one : numbers) writer.value(one);
  return writer.end().take();
}

std::vector<int> read_numbers(std::string_view text) {
  std::vector<int> numbers;
  for (const json::Value one : json::elements(*json::parse(text)))
    numbers.push_back(static_cast<int>(*json::integer(one)));
  return numbers;
}

Run read_run(const store::Rows& rows) {
  Run run;
  run.number = rows.integer(0);
  run.id = rows.text(1);
  run.title = rows.text(2);
  run.state = parse_run_state(rows.text(3)).value_or(RunState::failed);
  run.owner = {.agent = std::string(rows.text(4)),
               .session = std::string(rows.text(5)),
               .speaker = std::string(rows.text(6)),
               .person = std::string(rows.text(7)),
               .task = std::string(rows.text(8))};
  run.tells_agent = rows.integer(9) != 0;
  run.after_seq = rows.integer(10);
  run.quiet = rows.integer(11) != 0;
  run.overlays = read_overlays(*json::parse(rows.text(12))).value_or(Overlays{});
  run.created_at = wall_from_ms(rows.integer(13));
  run.ended_at = maybe_time(rows, 14);
  run.last_event = rows.integer(15);
  return run;
}

Step read_step(const store::Rows& rows) {
  Step step;
  step.index = static_cast<int>(rows.integer(0));
  step.plan.tool = rows.text(1);
  step.plan.arguments = rows.text(2);
  if (!rows.text(3).empty()) {
    const std::string schedule(rows.text(3));
    step.plan.schedule = read_schedule(*json::parse(schedule)).value_or(Schedule{});
  }
  step.plan.depends_on = read_numbers(rows.text(4));
  step.plan.on_failure = parse_on_failure(rows.text(5)).value_or(OnFailure::skip);
  step.feedback.state = parse_step_state(rows.text(6)).value_or(StepState::failed);
  step.feedback.ready = rows.integer(7) != 0;
  step.feedback.feedback_at = maybe_time(rows, 8);
  step.delay = Millis{rows.integer(9)};
  step.elapsed = rows.integer(10) != 0;
  step.feedback.past = rows.integer(11) != 0;
  step.notified_at = maybe_time(rows, 12);
  step.feedback.notified = step.notified_at.has_value();
  if (const auto ending = rows.maybe_integer(13)) step.feedback.ending = static_cast<Ending>(*ending);
  step.timeout = Millis{rows.integer(14)};
  step.started_at = maybe_time(rows, 15);
  step.ended_at = maybe_time(rows, 16);
  step.reported_at = maybe_time(rows, 17);
  step.error = rows.text(18);
  step.set_ms = rows.integer(19);
  step.crashes = static_cast<int>(rows.integer(20));
  step.feedback.holds_errors = step.plan.schedule && step.plan.schedule->holds_errors;
  return step;
}

void read_steps(Connection& connection, Run& run, Detail detail) {
  auto rows = connection.query("SELECT " BELFRY_STEP_COLUMNS " FROM run_step WHERE run = ?1 ORDER BY step", run.number,
                               detail != Detail::outline);
  while (rows.next()) run.steps.push_back(read_step(rows));
  if (detail != Detail::results && detail != Detail::beginnings) return;
  const std::int64_t most = detail == Detail::results ? INT32_MAX : kBeginningBytesMax;  // no text is longer
  auto data =
      connection.query("SELECT step, substr(arguments, 1, ?2), substr(result, 1, ?2) FROM run_step_data WHERE run = ?1",
                       run.number, most);
  while (data.next()) {
    Step& step = run.steps.at(static_cast<std::size_t>(data.integer(0)));
    step.arguments = data.text(1);
    step.result = data.text(2);
  }
}

void insert_step(Connection& connection, std::int64_t run, const Step& step) {
  connection.run(
      "INSERT INTO run_step(run, step, tool, draft, schedule, depends_on, on_failure, state, ready, delay_ms, elapsed, "
      "past, timeout_ms, error, set_ms, crashes) VALUES(?1,?2,?3,?4,?5,?6,?7,'waiting',0,0,0,0,?8,'',0,0)",
      run, step.index, step.plan.tool, step.plan.arguments,
      step.plan.schedule ? schedule_json(*step.plan.schedule) : std::string(), numbers_json(step.plan.depends_on),
      word(step.plan.on_failure), step.timeout.count());
  RunTables::put_step(connection, run, step);
}

}  // namespace

std::string_view word(RunState state) {
  switch (state) {
    case RunState::running: return "running";
    case RunState::completed: return "completed";
    case RunState::failed: return "failed";
    case RunState::cancelled: return "cancelled";
  }
  assertion_failed("a known state", __FILE__, __LINE__);
}

std::optional<RunState> parse_run_state(std::string_view text) {
  for (const RunState state : {RunState::running, RunState::completed, RunState::failed, RunState::cancelled})
    if (word(state) == text) return state;
  return std::nullopt;
}

void RunTables::migrate(Connection& connection) {
  store::migrate(connection, "run", std::begin(kMigrations), std::end(kMigrations));
}

void RunTables::insert(Connection& connection, Run& run, const std::string& once, const std::string& body) {
  connection.run(
      "INSERT INTO run(id, once, body, title, state, agent, session, speaker, person, task, tells_agent, after_seq, "
      "quiet, overlays, created_ms, last_event) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,0)",
      run.id, once, body, run.title, word(run.state), run.owner.agent, run.owner.session, run.owner.speaker,
      run.owner.person, run.owner.task, run.tells_agent, run.after_seq, run.quiet, overlays_json(run.overlays),
      to_ms(run.created_at));
  {
    auto rows = connection.query("SELECT last_insert_rowid()");
    rows.next();
    run.number = rows.integer(0);
  }
  for (const Step& step : run.steps) insert_step(connection, run.number, step);
}

std::optional<RunTables::Known> RunTables::find_once(Connection& connection, const std::string& once) {
  if (once.empty()) return std::nullopt;
  auto rows = connection.query("SELECT number, body FROM run WHERE once = ?1", once);
  if (!rows.next()) return std::nullopt;
  return Known{rows.integer(0), std::string(rows.text(1))};
}

std::optional<std::int64_t> RunTables::number_of(Connection& connection, const std::string& id) {
  auto rows = connection.query("SELECT number FROM run WHERE id = ?1", id);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::optional<Run> RunTables::find(Connection& connection, std::int64_t number, Detail detail) {
  std::optional<Run> run;
  {
    auto rows = connection.query("SELECT " BELFRY_RUN_COLUMNS " FROM run WHERE number = ?1", number);
    if (!rows.next()) return std::nullopt;
    run = read_run(rows);
  }
  read_steps(connection, *run, detail);
  return run;
}

std::vector<Run> RunTables::list(Connection& connection, const Query& query) {
  std::vector<Run> runs;
  {
    // One statement for each way to look them up, so that each has its index.
    const std::string state(query.state ? word(*query.state) : "");
    auto rows =
        !query.session.empty()
            ? connection.query("SELECT " BELFRY_RUN_COLUMNS
                               " FROM run WHERE session = ?1 AND session <> '' AND number < ?2 AND (?3 = '' OR "
                               "state = ?3) AND (?4 = '' OR agent = ?4) ORDER BY number DESC LIMIT ?5",
                               query.session, query.before, state, query.agent, query.limit)
        : !query.agent.empty()
            ? connection.query("SELECT " BELFRY_RUN_COLUMNS
                               " FROM run WHERE agent = ?1 AND agent <> '' AND number < ?2 AND (?3 = '' OR "
                               "state = ?3) ORDER BY number DESC LIMIT ?4",
                               query.agent, query.before, state, query.limit)
        : state == "running"
            ? connection.query("SELECT " BELFRY_RUN_COLUMNS
                               " FROM run WHERE state = 'running' AND number < ?1 ORDER BY number DESC LIMIT ?2",
                               query.before, query.limit)
            : connection.query("SELECT " BELFRY_RUN_COLUMNS
                               " FROM run WHERE number < ?1 AND (?2 = '' OR state = ?2) ORDER BY number DESC "
                               "LIMIT ?3",
                               query.before, state, query.limit);
    while (rows.next()) runs.push_back(read_run(rows));
  }
  for (Run& run : runs) read_steps(connection, run, Detail::outline);
  return runs;
}

void RunTables::put_step(Connection& connection, std::int64_t run, const Step& step) {
  const Feedback& feedback = step.feedback;
  std::optional<std::int64_t> ending;
  if (feedback.ending) ending = static_cast<std::int64_t>(*feedback.ending);
  connection.run(
      "UPDATE run_step SET state = ?3, ready = ?4, feedback_ms = ?5, delay_ms = ?6, elapsed = ?7, past = ?8, "
      "notified_ms = ?9, ending = ?10, timeout_ms = ?11, started_ms = ?12, ended_ms = ?13, reported_ms = ?14, error = ?15, set_ms = ?16, "
      "crashes = ?17 WHERE run = ?1 AND step = ?2",
      run, step.index, word(feedback.state), feedback.ready, maybe_ms(feedback.feedback_at), step.delay.count(),
      step.elapsed, feedback.past, maybe_ms(step.notified_at), ending, step.timeout.count(), maybe_ms(step.started_at),
      maybe_ms(step.ended_at), maybe_ms(step.reported_at), step.error, step.set_ms, step.crashes);
  if (step.arguments.empty() && step.result.empty()) return;
  connection.run(
      "INSERT INTO run_step_data(run, step, arguments, result) VALUES(?1,?2,?3,?4) ON CONFLICT(run, step) DO UPDATE SET "
      "arguments = CASE WHEN ?3 = '' THEN arguments ELSE ?3 END, result = CASE WHEN ?4 = '' THEN result ELSE ?4 END",
      run, step.index, step.arguments, step.result);
}

std::string RunTables::result_of(Connection& connection, StepKey step) {
  auto rows = connection.query("SELECT result FROM run_step_data WHERE run = ?1 AND step = ?2", step.run, step.step);
  return rows.next() ? std::string(rows.text(0)) : std::string();
}

std::string RunTables::arguments_of(Connection& connection, StepKey step) {
  auto rows = connection.query("SELECT arguments FROM run_step_data WHERE run = ?1 AND step = ?2", step.run, step.step);
  return rows.next() ? std::string(rows.text(0)) : std::string();
}

void RunTables::end_run(Connection& connection, const Run& run) {
  connection.run("UPDATE run SET state = ?2, ended_ms = ?3 WHERE number = ?1", run.number, word(run.state),
                 maybe_ms(run.ended_at));
}

std::vector<StepKey> RunTables::running_steps(Connection& connection) {
  std::vector<StepKey> all;
  auto rows = connection.query("SELECT run, step FROM run_step WHERE state = 'running' ORDER BY run, step");
  while (rows.next()) all.push_back({rows.integer(0), static_cast<int>(rows.integer(1))});
  return all;
}

std::vector<RunTables::ReadyStep> RunTables::ready_steps(Connection& connection) {
  std::vector<ReadyStep> all;
  auto rows = connection.query(
      "SELECT run, step, tool, crashes FROM run_step WHERE state = 'waiting' AND ready ORDER BY run, step");
  while (rows.next())
    all.push_back({.step = {rows.integer(0), static_cast<int>(rows.integer(1))},
                   .tool = std::string(rows.text(2)),
                   .crashes = static_cast<int>(rows.integer(3))});
  return all;
}

std::optional<WallTime> RunTables::last_use(Connection& connection, const std::string& tool) {
  auto rows = connection.query(
      "SELECT max(coalesce(ended_ms, reported_ms)) FROM run_step WHERE tool = ?1 AND started_ms IS NOT NULL", tool);
  rows.next();
  return maybe_time(rows, 0);
}

void RunTables::add_event(Connection& connection, const Event& event) {
  connection.run("INSERT INTO run_event(run, seq, type, event) VALUES(?1,?2,?3,?4)", event.run, event.seq, event.type,
                 event.json);
  connection.run("UPDATE run SET last_event = ?2 WHERE number = ?1", event.run, event.seq);
}

std::vector<Event> RunTables::events(Connection& connection, std::int64_t run, std::int64_t after, int limit,
                                     std::size_t bytes_max) {
  std::vector<Event> all;
  std::size_t bytes = 0;
  auto rows = connection.query(
      "SELECT seq, type, event, (SELECT id FROM run WHERE number = ?1) FROM run_event WHERE run = ?1 AND seq > ?2 ORDER "
      "BY seq LIMIT ?3",
      run, after, limit);
  while (bytes < bytes_max && rows.next()) {
    all.push_back({.run = run,
                   .run_id = std::string(rows.text(3)),
                   .seq = rows.integer(0),
                   .type = std::string(rows.text(1)),
                   .json = std::string(rows.text(2))});
    bytes += all.back().json.size();
  }
  return all;
}

void RunTables::add_due(Connection& connection, const DueRow& row) {
  connection.run("INSERT OR IGNORE INTO run_due(due_ms, run, step, kind, elapsed, set_ms) VALUES(?1,?2,?3,?4,?5,?6)",
                 row.due_ms, row.step.run, row.step.step, static_cast<int>(row.kind), row.elapsed, row.set_ms);
}

void RunTables::drop_due(Connection& connection, const DueRow& row) {
  connection.run("DELETE FROM run_due WHERE due_ms = ?1 AND run = ?2 AND step = ?3 AND kind = ?4", row.due_ms,
                 row.step.run, row.step.step, static_cast<int>(row.kind));
}

std::vector<DueRow> RunTables::due(Connection& connection, std::int64_t now_ms, int limit) {
  std::vector<DueRow> all;
  auto rows = connection.query(
      "SELECT due_ms, run, step, kind, elapsed FROM run_due WHERE due_ms <= ?1 ORDER BY due_ms, run, step, kind LIMIT ?2",
      now_ms, limit);
  while (rows.next())
    all.push_back({.due_ms = rows.integer(0),
                   .step = {rows.integer(1), static_cast<int>(rows.integer(2))},
                   .kind = static_cast<DueKind>(rows.integer(3)),
                   .elapsed = rows.integer(4) != 0});
  return all;
}

std::optional<std::int64_t> RunTables::next_due(Connection& connection) {
  auto rows = connection.query("SELECT due_ms FROM run_due ORDER BY due_ms LIMIT 1");
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

void RunTables::shift_elapsed(Connection& connection, std::int64_t set_ms) {
  connection.run(
      "UPDATE run_step SET feedback_ms = feedback_ms + ?1 - (SELECT d.set_ms FROM run_due d WHERE d.due_ms = "
      "run_step.feedback_ms AND d.run = run_step.run AND d.step = run_step.step AND d.kind = 1) WHERE (run, step) IN "
      "(SELECT run, step FROM run_due WHERE elapsed AND kind = 1 AND set_ms <> ?1)",
      set_ms);
  connection.run("UPDATE run_due SET due_ms = due_ms + ?1 - set_ms, set_ms = ?1 WHERE elapsed AND set_ms <> ?1",
                 set_ms);
  // What waits for other steps has no row there yet.
  connection.run(
      "UPDATE run_step SET feedback_ms = feedback_ms + ?1 - set_ms, set_ms = ?1 WHERE state = 'waiting' AND NOT ready AND "
      "elapsed AND feedback_ms IS NOT NULL AND set_ms <> ?1",
      set_ms);
}

void RunTables::begin_life(Connection& connection) {
  connection.run("UPDATE run_due SET set_ms = 0 WHERE set_ms <> 0");
  connection.run("UPDATE run_step SET set_ms = 0 WHERE set_ms <> 0");
}

void RunTables::drop(Connection& connection, std::int64_t number) {
  connection.run("DELETE FROM run_event WHERE run = ?1", number);
  connection.run("DELETE FROM run_step_data WHERE run = ?1", number);
  connection.run("DELETE FROM run_step WHERE run = ?1", number);
  connection.run("DELETE FROM run WHERE number = ?1", number);
}

std::vector<std::string> RunTables::drop_old(Connection& connection, std::int64_t before_ms) {
  std::vector<std::pair<std::int64_t, std::string>> old;
  {
    auto rows = connection.query(
        "SELECT number, id FROM run WHERE ended_ms IS NOT NULL AND ended_ms < ?1 AND NOT EXISTS(SELECT 1 FROM run_tell WHERE "
        "run = number) LIMIT ?2",
        before_ms, kDroppedAtOnce);
    while (rows.next()) old.emplace_back(rows.integer(0), rows.text(1));
  }
  std::vector<std::string> ids;
  for (auto& [number, id] : old) {
    drop(connection, number);
    ids.push_back(std::move(id));
  }
  return ids;
}

std::vector<RunTables::Coming> RunTables::coming_in(Connection& connection, const std::string& session, WallTime now,
                                                    int limit) {
  std::vector<Coming> all;
  // One that waits for others when its time comes reports when it is done: nobody knows when that is.
  auto rows = connection.query(
      "SELECT r.id, r.title, r.person, r.created_ms, s.step, s.tool, s.state, s.feedback_ms FROM run r JOIN run_step s ON "
      "s.run = r.number WHERE r.session = ?1 AND r.state = 'running' AND s.feedback_ms IS NOT NULL AND "
      "s.notified_ms IS NULL AND NOT s.past AND s.state IN ('waiting','running','held') AND (s.ready OR s.feedback_ms > ?2) ORDER "
      "BY s.feedback_ms LIMIT ?3",
      session, to_ms(now), limit);
  while (rows.next())
    all.push_back({.run_id = std::string(rows.text(0)),
                   .title = std::string(rows.text(1)),
                   .person = std::string(rows.text(2)),
                   .created_at = wall_from_ms(rows.integer(3)),
                   .step = static_cast<int>(rows.integer(4)),
                   .tool = std::string(rows.text(5)),
                   .state = parse_step_state(rows.text(6)).value_or(StepState::waiting),
                   .at = wall_from_ms(rows.integer(7))});
  return all;
}

std::vector<std::string> RunTables::awaited_in(Connection& connection, const std::string& session,
                                               const std::string& agent) {
  std::vector<std::string> all;
  auto rows = connection.query(
      "SELECT id FROM run WHERE session = ?1 AND state = 'running' AND quiet AND agent <> '' AND "
      "(?2 = '' OR agent = ?2)",
      session, agent);
  while (rows.next()) all.emplace_back(rows.text(0));
  return all;
}

void RunTables::add_tell(Connection& connection, std::int64_t run) {
  connection.run("INSERT OR IGNORE INTO run_tell(run) VALUES(?1)", run);
}

void RunTables::drop_tell(Connection& connection, std::int64_t run) {
  connection.run("DELETE FROM run_tell WHERE run = ?1", run);
}

std::vector<std::int64_t> RunTables::to_tell(Connection& connection, int limit) {
  std::vector<std::int64_t> all;
  auto rows = connection.query("SELECT run FROM run_tell ORDER BY run LIMIT ?1", limit);
  while (rows.next()) all.push_back(rows.integer(0));
  return all;
}

bool RunTables::is_to_tell(Connection& connection, std::int64_t run) {
  return connection.query("SELECT 1 FROM run_tell WHERE run = ?1", run).next();
}

void RunTables::read_beginnings(Connection& connection, Run& run, std::size_t bytes) {
  auto rows = connection.query("SELECT step, substr(result, 1, ?2) FROM run_step_data WHERE run = ?1", run.number,
                               static_cast<std::int64_t>(bytes));
  while (rows.next()) run.steps.at(static_cast<std::size_t>(rows.integer(0))).result = rows.text(1);
}

std::vector<std::string> RunTables::problems(Connection& connection) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {"SELECT count(*) FROM run_step s WHERE s.state = 'held' AND NOT EXISTS(SELECT 1 FROM run_due d WHERE d.run = s.run "
       "AND d.step = s.step AND d.kind = 1 AND d.due_ms = s.feedback_ms)",
       "held results without a time"},
      {"SELECT count(*) FROM run_due d WHERE d.kind = 1 AND NOT EXISTS(SELECT 1 FROM run_step s WHERE s.run = d.run AND "
       "s.step = d.step AND s.state IN ('waiting','running','held'))",
       "feedback times of steps that have ended"},
      {"SELECT count(*) FROM run r WHERE r.state <> 'running' AND EXISTS(SELECT 1 FROM run_step s WHERE s.run = r.number "
       "AND s.state IN ('waiting','running','held'))",
       "runs that have ended with steps that have not"},
      {"SELECT count(*) FROM run r WHERE r.last_event <> (SELECT count(*) FROM run_event e WHERE e.run = r.number)",
       "runs whose events are not dense"},
  };
  std::vector<std::string> found;
  if (store::version_of(connection, "run") < 1) return found;
  for (const auto& [sql, what] : kRules) {
    auto rows = connection.query(sql);
    rows.next();
    if (rows.integer(0) > 0) found.push_back(fmt::format("{} {}", rows.integer(0), what));
  }
  return found;
}

}  // namespace belfry::run
