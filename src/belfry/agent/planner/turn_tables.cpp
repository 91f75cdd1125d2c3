#include "belfry/agent/planner/turn_tables.h"

#include <algorithm>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"

namespace belfry::agent {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE turn(
        agent TEXT NOT NULL, message TEXT NOT NULL, conversation TEXT NOT NULL, sender TEXT NOT NULL,
        payload TEXT NOT NULL, task TEXT NOT NULL, up_to INTEGER NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
        written_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, began_ms INTEGER NOT NULL, ended_ms INTEGER,
        failures INTEGER NOT NULL, failing_ms INTEGER, answered TEXT NOT NULL, PRIMARY KEY(agent, message)) WITHOUT ROWID;
      CREATE INDEX turn_conversation ON turn(agent, conversation, began_ms);
      CREATE INDEX turn_age ON turn(began_ms);
      CREATE TABLE turn_step(
        agent TEXT NOT NULL, message TEXT NOT NULL, step INTEGER NOT NULL, answer TEXT NOT NULL,
        PRIMARY KEY(agent, message, step)) WITHOUT ROWID;
      CREATE TABLE read_to(
        agent TEXT NOT NULL, conversation TEXT NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY(agent, conversation)) WITHOUT ROWID;
      CREATE TABLE summary(
        agent TEXT NOT NULL, conversation TEXT NOT NULL, up_to_ms INTEGER NOT NULL, text TEXT NOT NULL,
        PRIMARY KEY(agent, conversation)) WITHOUT ROWID;
      CREATE TABLE task_spend(
        task TEXT PRIMARY KEY, turns INTEGER NOT NULL, calls INTEGER NOT NULL, tokens INTEGER NOT NULL,
        at_ms INTEGER NOT NULL) WITHOUT ROWID;
      CREATE INDEX task_spend_age ON task_spend(at_ms);
    )sql"},
};

#define BELFRY_TURN_COLUMNS \
  "agent, message, conversation, sender, payload, task, up_to, state, why, written_ms, due_ms, began_ms, ended_ms," \
  " failures, failing_ms, answered"

// More than one, so that a table that is too large becomes smaller.
constexpr int kDroppedAtOnce = 4;

constexpr TurnState kStates[] = {TurnState::waiting, TurnState::open,      TurnState::done,  TurnState::silent,
                                 TurnState::merged,  TurnState::cancelled, TurnState::failed};

std::optional<std::int64_t> maybe_ms(const std::optional<WallTime>& at) {
  return at ? std::optional(to_ms(*at)) : std::nullopt;
}

std::optional<WallTime> maybe_wall(std::optional<std::int64_t> ms) {
  return ms ? std::optional(wall_from_ms(*ms)) : std::nullopt;
}

Turn read_turn(const store::Rows& rows) {
  Turn turn;
  turn.agent = rows.text(0);
  turn.message = rows.text(1);
  turn.conversation = rows.text(2);
  turn.from = rows.text(3);
  turn.payload = rows.text(4);
  turn.task = rows.text(5);
  turn.up_to = rows.integer(6);
  turn.state = parse_turn_state(rows.text(7));
  turn.why = rows.text(8);
  turn.written_at = wall_from_ms(rows.integer(9));
  turn.due_at = wall_from_ms(rows.integer(10));
  turn.began_at = wall_from_ms(rows.integer(11));
  turn.ended_at = maybe_wall(rows.maybe_integer(12));
  turn.failures = static_cast<int>(rows.integer(13));
  turn.failing_since = maybe_wall(rows.maybe_integer(14));
  turn.answered = rows.text(15);
  return turn;
}

std::string written(const Step& step) {
  json::Writer writer;
  writer.object().field("text", step.text).key("calls").array();
  for (const llm::ToolCall& call : step.calls)
    writer.object().field("id", call.id).field("name", call.name).field("arguments", call.arguments).end();
  return writer.end().end().take();
}

Step read_step(std::string_view text) {
  Step step;
  const auto value = json::parse(text);
  BELFRY_ASSERT(value.has_value());
  step.text = json::text_in(*value, "text");
  const auto calls = json::find(*value, "calls");
  if (!calls) return step;
  for (const json::Value call : json::elements(*calls))
    step.calls.push_back({json::text_in(call, "id"), json::text_in(call, "name"), json::text_in(call, "arguments")});
  return step;
}

}  // namespace

std::string_view word(TurnState state) {
  switch (state) {
    case TurnState::waiting: return "waiting";
    case TurnState::open: return "open";
    case TurnState::done: return "done";
    case TurnState::silent: return "silent";
    case TurnState::merged: return "merged";
    case TurnState::cancelled: return "cancelled";
    case TurnState::failed: return "failed";
  }
  assertion_failed("a known state of a turn", __FILE__, __LINE__);
}

TurnState parse_turn_state(std::string_view text) {
  for (const TurnState state : kStates)
    if (word(state) == text) return state;
  return TurnState::failed;
}

void TurnTables::migrate(Connection& connection) {
  store::migrate(connection, "planner", std::begin(kMigrations), std::end(kMigrations));
}

void TurnTables::forget_agent(Connection& connection, const std::string& agent) {
  connection.run("DELETE FROM turn WHERE agent = ?1", agent);
  connection.run("DELETE FROM turn_step WHERE agent = ?1", agent);
  connection.run("DELETE FROM read_to WHERE agent = ?1", agent);
  connection.run("DELETE FROM summary WHERE agent = ?1", agent);
}

void TurnTables::drop_old(Connection& connection, std::int64_t before_ms) {
  std::vector<std::pair<std::string, std::string>> old;
  {
    auto rows = connection.query("SELECT agent, message FROM turn WHERE began_ms < ?1 ORDER BY began_ms LIMIT ?2",
                                 before_ms, kDroppedAtOnce);
    while (rows.next()) old.emplace_back(rows.text(0), rows.text(1));
  }
  for (const auto& [agent, message] : old) {
    connection.run("DELETE FROM turn WHERE agent = ?1 AND message = ?2", agent, message);
    connection.run("DELETE FROM turn_step WHERE agent = ?1 AND message = ?2", agent, message);
  }
  connection.run(
      "DELETE FROM task_spend WHERE task IN (SELECT task FROM task_spend WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
      before_ms, kDroppedAtOnce);
}

std::optional<Turn> TurnTables::find(Connection& connection, const std::string& agent, const std::string& message) {
  auto rows =
      connection.query("SELECT " BELFRY_TURN_COLUMNS " FROM turn WHERE agent = ?1 AND message = ?2", agent, message);
  if (!rows.next()) return std::nullopt;
  return read_turn(rows);
}

void TurnTables::put(Connection& connection, const Turn& turn) {
  connection.run("INSERT OR REPLACE INTO turn(" BELFRY_TURN_COLUMNS
                 ") VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
                 turn.agent, turn.message, turn.conversation, turn.from, turn.payload, turn.task, turn.up_to,
                 word(turn.state), turn.why, to_ms(turn.written_at), to_ms(turn.due_at), to_ms(turn.began_at),
                 maybe_ms(turn.ended_at), turn.failures, maybe_ms(turn.failing_since), turn.answered);
}

std::vector<Turn> TurnTables::latest(Connection& connection, const std::string& agent, const std::string& conversation,
                                     int limit) {
  std::vector<Turn> turns;
  auto rows = connection.query("SELECT " BELFRY_TURN_COLUMNS
                               " FROM turn WHERE agent = ?1 AND conversation = ?2 ORDER BY began_ms DESC LIMIT ?3",
                               agent, conversation, limit);
  while (rows.next()) turns.push_back(read_turn(rows));
  std::reverse(turns.begin(), turns.end());
  return turns;
}

std::vector<Turn> TurnTables::list(Connection& connection, const std::string& agent, int limit) {
  std::vector<Turn> turns;
  auto rows = connection.query("SELECT " BELFRY_TURN_COLUMNS
                               " FROM turn WHERE agent = ?1 OR ?1 = '' ORDER BY began_ms DESC LIMIT ?2",
                               agent, limit);
  while (rows.next()) turns.push_back(read_turn(rows));
  return turns;
}

bool TurnTables::another_fails(Connection& connection, const Turn& turn) {
  auto rows = connection.query(
      "SELECT 1 FROM turn WHERE agent = ?1 AND conversation = ?2 AND message <> ?3 AND state = 'open'"
      " AND failing_ms IS NOT NULL LIMIT 1",
      turn.agent, turn.conversation, turn.message);
  return rows.next();
}

std::vector<std::string> TurnTables::cancel_open(Connection& connection, const std::string& agent,
                                                 const std::string& conversation, std::int64_t now_ms) {
  std::vector<std::string> messages;
  {
    auto rows = connection.query(
        "SELECT message FROM turn WHERE agent = ?1 AND conversation = ?2 AND state IN ('open', 'waiting')", agent,
        conversation);
    while (rows.next()) messages.emplace_back(rows.text(0));
  }
  for (const std::string& message : messages)
    connection.run(
        "UPDATE turn SET state = 'cancelled', why = 'somebody stopped it', ended_ms = ?3"
        " WHERE agent = ?1 AND message = ?2 AND state IN ('open', 'waiting')",
        agent, message, now_ms);
  return messages;
}

std::vector<Step> TurnTables::steps(Connection& connection, const std::string& agent, const std::string& message) {
  std::vector<Step> steps;
  auto rows =
      connection.query("SELECT answer FROM turn_step WHERE agent = ?1 AND message = ?2 ORDER BY step", agent, message);
  while (rows.next()) steps.push_back(read_step(rows.text(0)));
  return steps;
}

bool TurnTables::add_step(Connection& connection, const Turn& turn, int step, const Step& answer) {
  return connection.run("INSERT OR IGNORE INTO turn_step(agent, message, step, answer) VALUES(?1,?2,?3,?4)", turn.agent,
                        turn.message, step, written(answer)) > 0;
}

std::int64_t TurnTables::read_to(Connection& connection, const std::string& agent, const std::string& conversation) {
  auto rows = connection.query("SELECT seq FROM read_to WHERE agent = ?1 AND conversation = ?2", agent, conversation);
  return rows.next() ? rows.integer(0) : 0;
}

void TurnTables::set_read_to(Connection& connection, const std::string& agent, const std::string& conversation,
                             std::int64_t seq) {
  connection.run(
      "INSERT INTO read_to(agent, conversation, seq) VALUES(?1,?2,?3)"
      " ON CONFLICT(agent, conversation) DO UPDATE SET seq = max(seq, ?3)",
      agent, conversation, seq);
}

std::optional<Summary> TurnTables::summary(Connection& connection, const std::string& agent,
                                           const std::string& conversation) {
  auto rows = connection.query("SELECT up_to_ms, text FROM summary WHERE agent = ?1 AND conversation = ?2", agent,
                               conversation);
  if (!rows.next()) return std::nullopt;
  return Summary{wall_from_ms(rows.integer(0)), std::string(rows.text(1))};
}

void TurnTables::set_summary(Connection& connection, const std::string& agent, const std::string& conversation,
                             const Summary& summary) {
  connection.run("INSERT OR REPLACE INTO summary(agent, conversation, up_to_ms, text) VALUES(?1,?2,?3,?4)", agent,
                 conversation, to_ms(summary.up_to), summary.text);
}

Spend TurnTables::spend(Connection& connection, const std::string& task, const Spend& more, std::int64_t now_ms) {
  connection.run(
      "INSERT INTO task_spend(task, turns, calls, tokens, at_ms) VALUES(?1,?2,?3,?4,?5) ON CONFLICT(task) DO UPDATE SET"
      " turns = turns + ?2, calls = calls + ?3, tokens = tokens + ?4, at_ms = ?5",
      task, more.turns, more.calls, more.tokens, now_ms);
  return spent(connection, task);
}

void TurnTables::forgive(Connection& connection, const std::string& task) {
  connection.run("DELETE FROM task_spend WHERE task = ?1", task);
}

Spend TurnTables::spent(Connection& connection, const std::string& task) {
  auto rows = connection.query("SELECT turns, calls, tokens FROM task_spend WHERE task = ?1", task);
  if (!rows.next()) return {};
  return {rows.integer(0), rows.integer(1), rows.integer(2)};
}

}  // namespace belfry::agent
