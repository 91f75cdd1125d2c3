#include "belfry/tool/call_tables.h"

#include "belfry/base/assert.h"

namespace belfry::tool {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE tool_call(
        number INTEGER PRIMARY KEY AUTOINCREMENT, tool TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
        task TEXT NOT NULL, call_id TEXT NOT NULL, arguments TEXT NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL,
        error TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER);
      CREATE UNIQUE INDEX tool_call_id ON tool_call(agent, session, call_id) WHERE call_id <> '';
      CREATE INDEX tool_call_session ON tool_call(session, number);
      CREATE INDEX tool_call_agent ON tool_call(agent, number);
      CREATE INDEX tool_call_running ON tool_call(number) WHERE state = 'running';
    )sql"},
};

#define BELFRY_CALL_COLUMNS \
  "number, tool, agent, session, task, call_id, arguments, state, result, error, started_ms, ended_ms"

// A page of calls is one answer: arguments and results may be large.
constexpr std::size_t kPageBytesMax = 4u << 20;
// More than one, so that a table that is too large becomes smaller.
constexpr int kDroppedAtOnce = 4;

CallState parse_state(std::string_view text) {
  for (const CallState state : {CallState::running, CallState::done, CallState::failed})
    if (word(state) == text) return state;
  return CallState::interrupted;
}

CallRecord read_record(const store::Rows& rows) {
  CallRecord record;
  record.number = rows.integer(0);
  record.tool = rows.text(1);
  record.context.agent_id = rows.text(2);
  record.context.session_id = rows.text(3);
  record.context.task_id = rows.text(4);
  record.context.call_id = rows.text(5);
  record.arguments = rows.text(6);
  record.state = parse_state(rows.text(7));
  record.result = rows.text(8);
  record.error = rows.text(9);
  record.started_at = wall_from_ms(rows.integer(10));
  if (!rows.is_null(11)) record.ended_at = wall_from_ms(rows.integer(11));
  return record;
}

}  // namespace

std::string_view word(CallState state) {
  switch (state) {
    case CallState::running: return "running";
    case CallState::done: return "done";
    case CallState::failed: return "failed";
    case CallState::interrupted: return "interrupted";
  }
  assertion_failed("a known state", __FILE__, __LINE__);
}

void CallTables::migrate(Connection& connection) {
  store::migrate(connection, "tool", std::begin(kMigrations), std::end(kMigrations));
}

int CallTables::mark_interrupted(Connection& connection) {
  return static_cast<int>(connection.run("UPDATE tool_call SET state = 'interrupted' WHERE state = 'running'"));
}

std::int64_t CallTables::begin(Connection& connection, const CallRecord& record) {
  const ToolContext& context = record.context;
  connection.run(
      "INSERT INTO tool_call(tool, agent, session, task, call_id, arguments, state, result, error, started_ms)"
      " VALUES(?1,?2,?3,?4,?5,?6,'running','','',?7)",
      record.tool, context.agent_id, context.session_id, context.task_id, context.call_id, record.arguments,
      to_ms(record.started_at));
  auto rows = connection.query("SELECT last_insert_rowid()");
  rows.next();
  return rows.integer(0);
}

void CallTables::begin_again(Connection& connection, std::int64_t number) {
  connection.run("UPDATE tool_call SET state = 'running', result = '', error = '', ended_ms = NULL WHERE number = ?1",
                 number);
}

void CallTables::drop_old(Connection& connection, const ToolContext& context, std::int64_t before_ms) {
  connection.run(
      "DELETE FROM tool_call WHERE agent = ?1 AND session = ?2 AND call_id = ?3 AND call_id <> '' AND started_ms < ?4",
      context.agent_id, context.session_id, context.call_id, before_ms);
  connection.run(
      "DELETE FROM tool_call WHERE number IN (SELECT number FROM tool_call ORDER BY number LIMIT ?1)"
      " AND started_ms < ?2 AND state <> 'running'",
      kDroppedAtOnce, before_ms);
}

void CallTables::end(Connection& connection, const CallRecord& record) {
  connection.run(
      "UPDATE tool_call SET state = ?2, result = ?3, error = ?4, ended_ms = ?5 WHERE number = ?1 AND state = 'running'",
      record.number, word(record.state), record.result, record.error,
      record.ended_at ? std::optional(to_ms(*record.ended_at)) : std::nullopt);
}

std::optional<CallRecord> CallTables::find(Connection& connection, const ToolContext& context) {
  auto rows = connection.query("SELECT " BELFRY_CALL_COLUMNS
                               " FROM tool_call WHERE agent = ?1 AND session = ?2 AND call_id = ?3 AND call_id <> ''",
                               context.agent_id, context.session_id, context.call_id);
  if (!rows.next()) return std::nullopt;
  return read_record(rows);
}

CallTables::Page CallTables::list(Connection& connection, const Query& query) {
  const auto found = [&]() -> store::Rows {
    if (!query.session.empty() && !query.agent.empty())
      return connection.query("SELECT " BELFRY_CALL_COLUMNS
                              " FROM tool_call WHERE session = ?3 AND agent = ?4 AND number < ?1 ORDER BY number DESC"
                              " LIMIT ?2",
                              query.before, query.limit + 1, query.session, query.agent);
    if (!query.session.empty())
      return connection.query("SELECT " BELFRY_CALL_COLUMNS
                              " FROM tool_call WHERE session = ?3 AND number < ?1 ORDER BY number DESC LIMIT ?2",
                              query.before, query.limit + 1, query.session);
    if (!query.agent.empty())
      return connection.query("SELECT " BELFRY_CALL_COLUMNS
                              " FROM tool_call WHERE agent = ?3 AND number < ?1 ORDER BY number DESC LIMIT ?2",
                              query.before, query.limit + 1, query.agent);
    return connection.query("SELECT " BELFRY_CALL_COLUMNS
                            " FROM tool_call WHERE number < ?1 ORDER BY number DESC LIMIT ?2",
                            query.before, query.limit + 1);
  };
  store::Rows rows = found();
  Page page;
  std::size_t bytes = 0;
  while (rows.next()) {
    if (bytes >= kPageBytesMax || static_cast<int>(page.records.size()) == query.limit) {
      page.next = page.records.back().number;
      break;
    }
    page.records.push_back(read_record(rows));
    bytes += page.records.back().arguments.size() + page.records.back().result.size() + sizeof(CallRecord);
  }
  return page;
}

}  // namespace belfry::tool
