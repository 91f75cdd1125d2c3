#include "belfry/chat/webhook_tables.h"

#include <fmt/format.h>

namespace belfry::chat {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE webhook(
        person TEXT PRIMARY KEY, url TEXT NOT NULL, secret TEXT NOT NULL, idempotent INTEGER NOT NULL,
        timeout_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE outbox(
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL, task TEXT NOT NULL,
        body TEXT NOT NULL, state TEXT NOT NULL, unclear INTEGER NOT NULL, attempts INTEGER NOT NULL, first_ms INTEGER,
        next_ms INTEGER, expires_ms INTEGER, reason TEXT NOT NULL, last_error TEXT NOT NULL,
        created_ms INTEGER NOT NULL, ended_ms INTEGER);
      CREATE INDEX outbox_due ON outbox(next_ms, number) WHERE next_ms IS NOT NULL;
      CREATE INDEX outbox_turn ON outbox(person, number) WHERE ended_ms IS NULL;
      CREATE INDEX outbox_person ON outbox(person, number);
      CREATE INDEX outbox_sending ON outbox(number) WHERE state = 'sending';
      CREATE INDEX outbox_ended ON outbox(ended_ms) WHERE ended_ms IS NOT NULL;
      CREATE TABLE inbox(
        person TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL, used_ms INTEGER NOT NULL,
        PRIMARY KEY(person, id)) WITHOUT ROWID;
      CREATE INDEX inbox_used ON inbox(used_ms);
    )sql"},
};

#define BELFRY_OUTBOX_COLUMNS \
  "number, id, person, task, state, unclear, attempts, first_ms, next_ms, expires_ms, reason, last_error," \
  " created_ms, ended_ms"

// More than one, so that a table that is too large becomes smaller.
constexpr int kDroppedAtOnce = 4;

OutboxRow read_row(const store::Rows& rows) {
  OutboxRow row;
  row.number = rows.integer(0);
  row.id = rows.text(1);
  row.person = rows.text(2);
  row.task = rows.text(3);
  row.state = parse_outbox_state(rows.text(4));
  row.unclear = rows.integer(5) != 0;
  row.attempts = static_cast<int>(rows.integer(6));
  row.first_ms = rows.maybe_integer(7);
  row.next_ms = rows.maybe_integer(8);
  row.expires_ms = rows.maybe_integer(9);
  row.reason = rows.text(10);
  row.last_error = rows.text(11);
  row.created_ms = rows.integer(12);
  row.ended_ms = rows.maybe_integer(13);
  return row;
}

std::vector<OutboxRow> read_all(store::Rows rows) {
  std::vector<OutboxRow> all;
  while (rows.next()) all.push_back(read_row(rows));
  return all;
}

// The oldest of a person's rows that has not ended gets its time, if it has none.
void give_turn(Connection& connection, const std::string& person, std::int64_t now_ms) {
  connection.run(
      "UPDATE outbox SET next_ms = ?2 WHERE number = (SELECT min(number) FROM outbox WHERE person = ?1 AND ended_ms IS"
      " NULL) AND state = 'waiting' AND next_ms IS NULL",
      person, now_ms);
}

Result<std::int64_t> number_after(Connection& connection, const OutboxQuery& query) {
  if (query.after.empty()) return INT64_MAX;
  auto rows = connection.query("SELECT number FROM outbox WHERE id = ?1 AND person = ?2", query.after, query.person);
  if (rows.next()) return rows.integer(0);
  return fail(Errc::invalid_argument,
              fmt::format("after is \"{}\", and there is no such message", query.after.substr(0, kIdBytesMax)));
}

}  // namespace

void WebhookTables::migrate(Connection& connection) {
  store::migrate(connection, "webhook", std::begin(kMigrations), std::end(kMigrations));
}

// --- webhooks ---

void WebhookTables::set(Connection& connection, const Webhook& webhook) {
  connection.run(
      "INSERT OR REPLACE INTO webhook(person, url, secret, idempotent, timeout_ms, updated_ms)"
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
      webhook.person, webhook.url, webhook.secret.reveal(), webhook.idempotent,
      static_cast<std::int64_t>(webhook.timeout.count()), to_ms(webhook.updated_at));
}

std::optional<Webhook> WebhookTables::find(Connection& connection, const std::string& person) {
  auto rows =
      connection.query("SELECT url, secret, idempotent, timeout_ms, updated_ms FROM webhook WHERE person = ?1", person);
  if (!rows.next()) return std::nullopt;
  return Webhook{.person = person,
                 .url = std::string(rows.text(0)),
                 .secret = Secret(std::string(rows.text(1))),
                 .idempotent = rows.integer(2) != 0,
                 .timeout = Millis{rows.integer(3)},
                 .updated_at = wall_from_ms(rows.integer(4))};
}

bool WebhookTables::has(Connection& connection, const std::string& person) {
  auto rows = connection.query("SELECT 1 FROM webhook WHERE person = ?1", person);
  return rows.next();
}

bool WebhookTables::remove(Connection& connection, const std::string& person) {
  return connection.run("DELETE FROM webhook WHERE person = ?1", person) > 0;
}

// --- outbox ---

bool WebhookTables::add_line(Connection& connection, const std::string& session, const Line& line) {
  if (line.to.empty() || !has(connection, line.to)) return false;
  return add(
      connection,
      {.id = line.id, .person = line.to, .body = webhook_body(session, line), .created_ms = to_ms(line.said_at)});
}

bool WebhookTables::add(Connection& connection, const OutboxRow& row) {
  const bool added = connection.run(
                         "INSERT OR IGNORE INTO outbox(id, person, task, body, state, unclear, attempts, expires_ms,"
                         " reason, last_error, created_ms) VALUES(?1, ?2, ?3, ?4, 'waiting', 0, 0, ?5, '', '', ?6)",
                         row.id, row.person, row.task, row.body, row.expires_ms, row.created_ms) > 0;
  if (added) give_turn(connection, row.person, row.created_ms);
  return added;
}

std::optional<OutboxRow> WebhookTables::find_row(Connection& connection, const std::string& id) {
  auto rows = connection.query("SELECT " BELFRY_OUTBOX_COLUMNS " FROM outbox WHERE id = ?1", id);
  if (!rows.next()) return std::nullopt;
  return read_row(rows);
}

Result<OutboxPage> WebhookTables::list(Connection& connection, const OutboxQuery& query) {
  BELFRY_TRY(const std::int64_t before, number_after(connection, query));
  const int limit = query.limit + 1;  // one more says whether there is a next page
  OutboxPage page{
      .rows = read_all(connection.query("SELECT " BELFRY_OUTBOX_COLUMNS " FROM outbox WHERE person = ?1 AND number < ?2"
                                        " ORDER BY number DESC LIMIT ?3",
                                        query.person, before, limit))};
  if (static_cast<int>(page.rows.size()) == limit) {
    page.rows.pop_back();
    page.next = page.rows.back().id;
  }
  return page;
}

std::vector<OutboxRow> WebhookTables::due(Connection& connection, std::int64_t now_ms, int limit) {
  return read_all(connection.query("SELECT " BELFRY_OUTBOX_COLUMNS
                                   " FROM outbox WHERE next_ms IS NOT NULL AND next_ms <= ?1"
                                   " ORDER BY next_ms, number LIMIT ?2",
                                   now_ms, limit));
}

std::optional<std::int64_t> WebhookTables::next_due(Connection& connection) {
  auto rows = connection.query("SELECT min(next_ms) FROM outbox WHERE next_ms IS NOT NULL");
  if (!rows.next()) return std::nullopt;
  return rows.maybe_integer(0);
}

std::vector<OutboxRow> WebhookTables::sending(Connection& connection) {
  return read_all(
      connection.query("SELECT " BELFRY_OUTBOX_COLUMNS " FROM outbox WHERE state = 'sending' ORDER BY number"));
}

bool WebhookTables::claim(Connection& connection, OutboxRow& row, std::int64_t now_ms) {
  const bool ours = connection.run(
                        "UPDATE outbox SET state = 'sending', attempts = attempts + 1, next_ms = NULL,"
                        " first_ms = coalesce(first_ms, ?2) WHERE number = ?1 AND state = 'waiting'",
                        row.number, now_ms) > 0;
  if (!ours) return false;
  row.state = OutboxState::sending;
  row.attempts += 1;
  row.first_ms = row.first_ms.value_or(now_ms);
  auto rows = connection.query("SELECT body FROM outbox WHERE number = ?1", row.number);
  if (rows.next()) row.body = rows.text(0);
  return true;
}

bool WebhookTables::wait(Connection& connection, const OutboxRow& row, std::int64_t next_ms) {
  return connection.run(
             "UPDATE outbox SET state = 'waiting', next_ms = ?2, last_error = ?3, unclear = ?4"
             " WHERE number = ?1 AND state = 'sending'",
             row.number, next_ms, row.last_error, row.unclear) > 0;
}

bool WebhookTables::end(Connection& connection, const OutboxRow& row, std::int64_t now_ms) {
  const bool ended = connection.run(
                         "UPDATE outbox SET state = ?2, reason = ?3, last_error = ?4, unclear = ?5, body = '',"
                         " next_ms = NULL, ended_ms = ?6 WHERE number = ?1 AND state IN ('waiting', 'sending')",
                         row.number, word(row.state), row.reason, row.last_error, row.unclear, now_ms) > 0;
  if (ended) give_turn(connection, row.person, now_ms);
  return ended;
}

bool WebhookTables::withdraw(Connection& connection, const OutboxRow& row, bool untried, std::int64_t now_ms) {
  const bool gone = connection.run(
                        "DELETE FROM outbox WHERE number = ?1 AND state = 'waiting' AND unclear = 0"
                        " AND (attempts = 0 OR NOT ?2)",
                        row.number, untried) > 0;
  if (gone) give_turn(connection, row.person, now_ms);
  return gone;
}

void WebhookTables::hurry(Connection& connection, const std::string& person, std::int64_t now_ms) {
  connection.run(
      "UPDATE outbox SET next_ms = ?2 WHERE number = (SELECT min(number) FROM outbox WHERE person = ?1 AND ended_ms IS"
      " NULL) AND next_ms > ?2",
      person, now_ms);
}

void WebhookTables::hurry_next(Connection& connection, const OutboxRow& row, std::int64_t now_ms) {
  connection.run(
      "UPDATE outbox SET next_ms = ?3 WHERE number = ?1 AND next_ms > ?3 AND number = (SELECT min(number) FROM outbox"
      " WHERE person = ?2 AND ended_ms IS NULL)",
      row.number, row.person, now_ms);
}

void WebhookTables::drop_old(Connection& connection, std::int64_t before_ms) {
  connection.run(
      "DELETE FROM outbox WHERE number IN (SELECT number FROM outbox WHERE ended_ms IS NOT NULL AND ended_ms < ?1"
      " ORDER BY ended_ms LIMIT ?2)",
      before_ms, kDroppedAtOnce);
}

// --- inbox ---

std::optional<std::string> WebhookTables::inbox_session(Connection& connection, const std::string& person,
                                                        const std::string& id) {
  auto rows = connection.query("SELECT session FROM inbox WHERE person = ?1 AND id = ?2", person, id);
  if (!rows.next()) return std::nullopt;
  return std::string(rows.text(0));
}

void WebhookTables::note_inbox(Connection& connection, const std::string& person, const std::string& id,
                               const std::string& session, std::int64_t now_ms, std::int64_t forget_before_ms) {
  connection.run(
      "DELETE FROM inbox WHERE (person, id) IN (SELECT person, id FROM inbox WHERE used_ms < ?1 ORDER BY used_ms LIMIT"
      " ?2)",
      forget_before_ms, kDroppedAtOnce);
  connection.run("INSERT OR REPLACE INTO inbox(person, id, session, used_ms) VALUES(?1, ?2, ?3, ?4)", person, id,
                 session, now_ms);
}

void WebhookTables::forget_inbox(Connection& connection, const std::string& person, const std::string& id) {
  connection.run("DELETE FROM inbox WHERE person = ?1 AND id = ?2", person, id);
}

std::vector<std::string> WebhookTables::problems(Connection& connection) {
  std::vector<std::string> found;
  if (store::version_of(connection, "webhook") < 1 || store::version_of(connection, "scheduled") < 2) return found;
  auto lost = connection.query(
      "SELECT s.id FROM scheduled s LEFT JOIN outbox o ON o.id = 's' || s.id AND o.ended_ms IS NULL"
      " WHERE s.status = 'pending' AND s.in_outbox <> (o.id IS NOT NULL)");
  while (lost.next())
    found.push_back(fmt::format("the scheduled message {} does not agree with the outbox", lost.text(0)));
  auto stuck = connection.query(
      "SELECT person, count(*) FROM outbox WHERE ended_ms IS NULL GROUP BY person"
      " HAVING sum(state = 'sending' OR next_ms IS NOT NULL) <> 1");
  while (stuck.next())
    found.push_back(fmt::format("\"{}\" has {} messages in the outbox, and not exactly one of them has its turn",
                                stuck.text(0), stuck.integer(1)));
  return found;
}

}  // namespace belfry::chat
