#include "belfry/chat/private_message_tables.h"

#include <fmt/format.h>

#include "belfry/base/assert.h"

namespace belfry::chat {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE scheduled(
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, session TEXT NOT NULL,
        chat_type TEXT NOT NULL, agent TEXT NOT NULL, person TEXT NOT NULL, text TEXT NOT NULL,
        send_at_ms INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, last_error TEXT NOT NULL,
        created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, created_by TEXT NOT NULL,
        cancelled_by TEXT NOT NULL, sent_message TEXT NOT NULL, sent_ms INTEGER, replace_existing INTEGER NOT NULL,
        max_late_ms INTEGER, attempts INTEGER NOT NULL, once TEXT NOT NULL);
      CREATE INDEX scheduled_due ON scheduled(send_at_ms, number) WHERE status = 'pending';
      CREATE INDEX scheduled_session ON scheduled(session, send_at_ms, number);
      CREATE INDEX scheduled_status ON scheduled(status, send_at_ms, number);
      CREATE INDEX scheduled_order ON scheduled(send_at_ms, number);
      CREATE INDEX scheduled_ended ON scheduled(updated_ms) WHERE status <> 'pending';
      CREATE UNIQUE INDEX scheduled_once ON scheduled(once) WHERE once <> '';
    )sql"},
    {2, R"sql(
      ALTER TABLE scheduled ADD COLUMN in_outbox INTEGER NOT NULL DEFAULT 0;
      DROP INDEX scheduled_due;
      CREATE INDEX scheduled_due ON scheduled(send_at_ms, number) WHERE status = 'pending' AND in_outbox = 0;
    )sql"},
};

#define BELFRY_SCHEDULED_COLUMNS \
  "id, session, agent, person, text, send_at_ms, status, reason, last_error, created_ms, updated_ms, created_by," \
  " cancelled_by, sent_message, sent_ms, replace_existing, max_late_ms, attempts, in_outbox"

// What is pending in one session is found by the times of that session, from the earliest that is pending anywhere: what
// was said before is not walked past, and saying something changes no index in a place of its own.
#define BELFRY_PENDING_OF \
  " FROM scheduled INDEXED BY scheduled_session WHERE session = ?1 AND status = 'pending' AND send_at_ms >=" \
  " (SELECT send_at_ms FROM scheduled INDEXED BY scheduled_status WHERE status = 'pending'" \
  " ORDER BY send_at_ms, number LIMIT 1)"

// More than one, so that a table that is too large becomes smaller.
constexpr int kDroppedAtOnce = 4;

ScheduledMessage read_message(const store::Rows& rows) {
  ScheduledMessage message;
  message.id = rows.text(0);
  message.session_id = rows.text(1);
  message.agent = rows.text(2);
  message.person = rows.text(3);
  message.text = rows.text(4);
  message.send_at = wall_from_ms(rows.integer(5));
  message.status = parse_scheduled_status(rows.text(6)).value_or(ScheduledStatus::failed);
  message.reason = rows.text(7);
  message.last_error = rows.text(8);
  message.created_at = wall_from_ms(rows.integer(9));
  message.updated_at = wall_from_ms(rows.integer(10));
  message.created_by_call = rows.text(11);
  message.cancelled_by_call = rows.text(12);
  message.sent_message_id = rows.text(13);
  if (!rows.is_null(14)) message.sent_at = wall_from_ms(rows.integer(14));
  message.replace_existing = rows.integer(15) != 0;
  if (!rows.is_null(16)) message.max_late = Millis{rows.integer(16)};
  message.attempts = static_cast<int>(rows.integer(17));
  message.in_outbox = rows.integer(18) != 0;
  return message;
}

std::vector<ScheduledMessage> read_all(store::Rows rows) {
  std::vector<ScheduledMessage> all;
  while (rows.next()) all.push_back(read_message(rows));
  return all;
}

std::optional<ScheduledMessage> read_one(store::Rows rows) {
  if (!rows.next()) return std::nullopt;
  return read_message(rows);
}

// Where a page begins: behind the message with this id.
struct Position {
  std::int64_t send_at_ms = INT64_MIN;
  std::int64_t number = 0;
};

Result<Position> position_after(Connection& connection, const std::string& id) {
  if (id.empty()) return Position{};
  auto rows = connection.query("SELECT send_at_ms, number FROM scheduled WHERE id = ?1", id);
  if (!rows.next())
    return fail(Errc::invalid_argument, fmt::format("after is \"{}\", and there is no such task", id.substr(0, 64)));
  return Position{rows.integer(0), rows.integer(1)};
}

}  // namespace

std::string_view word(ScheduledStatus status) {
  switch (status) {
    case ScheduledStatus::pending: return "pending";
    case ScheduledStatus::sent: return "sent";
    case ScheduledStatus::cancelled: return "cancelled";
    case ScheduledStatus::failed: return "failed";
  }
  assertion_failed("a known status", __FILE__, __LINE__);
}

std::optional<ScheduledStatus> parse_scheduled_status(std::string_view text) {
  for (const ScheduledStatus status :
       {ScheduledStatus::pending, ScheduledStatus::sent, ScheduledStatus::cancelled, ScheduledStatus::failed})
    if (word(status) == text) return status;
  return std::nullopt;
}

void PrivateMessageTables::migrate(Connection& connection) {
  store::migrate(connection, "scheduled", std::begin(kMigrations), std::end(kMigrations));
}

void PrivateMessageTables::insert(Connection& connection, const ScheduledMessage& message, const std::string& once) {
  connection.run(
      "INSERT INTO scheduled(id, session, chat_type, agent, person, text, send_at_ms, status, reason, last_error,"
      " created_ms, updated_ms, created_by, cancelled_by, sent_message, replace_existing, max_late_ms, attempts, once)"
      " VALUES(?1,?2,'private',?3,?4,?5,?6,'pending','','',?7,?7,?8,'','',?9,?10,0,?11)",
      message.id, message.session_id, message.agent, message.person, message.text, to_ms(message.send_at),
      to_ms(message.created_at), message.created_by_call, message.replace_existing ? 1 : 0,
      message.max_late ? std::optional(message.max_late->count()) : std::nullopt, once);
}

std::optional<ScheduledMessage> PrivateMessageTables::find(Connection& connection, const std::string& id) {
  return read_one(connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS " FROM scheduled WHERE id = ?1", id));
}

std::optional<ScheduledMessage> PrivateMessageTables::find_once(Connection& connection, const std::string& once) {
  return read_one(
      connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS " FROM scheduled WHERE once = ?1 AND once <> ''", once));
}

std::vector<ScheduledMessage> PrivateMessageTables::pending_of(Connection& connection, const std::string& session) {
  return read_all(
      connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS BELFRY_PENDING_OF " ORDER BY send_at_ms, number", session));
}

Result<ScheduledPage> PrivateMessageTables::list(Connection& connection, const ScheduledQuery& query) {
  BELFRY_TRY(const Position from, position_after(connection, query.after));
  const int limit = query.limit + 1;  // one more says whether there is a next page
  const auto found = [&]() -> store::Rows {
    if (!query.session.empty() && query.status == ScheduledStatus::pending)
      return connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS BELFRY_PENDING_OF
                              " AND (send_at_ms, number) > (?2, ?3) ORDER BY send_at_ms, number LIMIT ?4",
                              query.session, from.send_at_ms, from.number, limit);
    if (!query.session.empty() && query.status)
      return connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS
                              " FROM scheduled INDEXED BY scheduled_session"
                              " WHERE session = ?4 AND status = ?5 AND (send_at_ms, number) > (?1, ?2)"
                              " ORDER BY send_at_ms, number LIMIT ?3",
                              from.send_at_ms, from.number, limit, query.session, word(*query.status));
    if (!query.session.empty())
      return connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS
                              " FROM scheduled WHERE session = ?4 AND (send_at_ms, number) > (?1, ?2)"
                              " ORDER BY send_at_ms, number LIMIT ?3",
                              from.send_at_ms, from.number, limit, query.session);
    if (query.status)
      return connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS
                              " FROM scheduled WHERE status = ?4 AND (send_at_ms, number) > (?1, ?2)"
                              " ORDER BY send_at_ms, number LIMIT ?3",
                              from.send_at_ms, from.number, limit, word(*query.status));
    return connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS
                            " FROM scheduled WHERE (send_at_ms, number) > (?1, ?2)"
                            " ORDER BY send_at_ms, number LIMIT ?3",
                            from.send_at_ms, from.number, limit);
  };
  ScheduledPage page{.messages = read_all(found())};
  if (static_cast<int>(page.messages.size()) == limit) {
    page.messages.pop_back();
    page.next = page.messages.back().id;
  }
  return page;
}

// By the index that knows nothing of what waits in the outbox: that may be much, and is walked past otherwise.
std::vector<ScheduledMessage> PrivateMessageTables::due(Connection& connection, std::int64_t now_ms, int limit) {
  return read_all(connection.query("SELECT " BELFRY_SCHEDULED_COLUMNS " FROM scheduled INDEXED BY scheduled_due"
                                   " WHERE status = 'pending' AND in_outbox = 0 AND send_at_ms <= ?1"
                                   " ORDER BY send_at_ms, number LIMIT ?2",
                                   now_ms, limit));
}

std::optional<std::int64_t> PrivateMessageTables::next_due(Connection& connection) {
  auto rows = connection.query(
      "SELECT send_at_ms FROM scheduled INDEXED BY scheduled_due"
      " WHERE status = 'pending' AND in_outbox = 0 ORDER BY send_at_ms, number LIMIT 1");
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

bool PrivateMessageTables::cancel(Connection& connection, const std::string& id, const std::string& reason,
                                  const std::string& call, std::int64_t now_ms) {
  return connection.run(
             "UPDATE scheduled SET status = 'cancelled', reason = ?2, cancelled_by = ?3, updated_ms = ?4"
             " WHERE id = ?1 AND status = 'pending'",
             id, reason, call, now_ms) > 0;
}

bool PrivateMessageTables::change(Connection& connection, const std::string& id, const std::string& text,
                                  std::int64_t send_at_ms, std::int64_t now_ms) {
  return connection.run(
             "UPDATE scheduled SET text = ?2, send_at_ms = ?3, updated_ms = ?4 WHERE id = ?1 AND status = 'pending'",
             id, text, send_at_ms, now_ms) > 0;
}

bool PrivateMessageTables::mark_sent(Connection& connection, const std::string& id, const std::string& message,
                                     int attempts, std::int64_t now_ms) {
  return connection.run(
             "UPDATE scheduled SET status = 'sent', sent_message = ?2, sent_ms = ?4, updated_ms = ?4, attempts = ?3,"
             " last_error = '' WHERE id = ?1 AND status = 'pending' AND sent_message = ''",
             id, message, attempts, now_ms) > 0;
}

bool PrivateMessageTables::mark_failed(Connection& connection, const std::string& id, const std::string& reason,
                                       const std::string& error, std::int64_t now_ms) {
  return connection.run(
             "UPDATE scheduled SET status = 'failed', reason = ?2, last_error = ?3, updated_ms = ?4"
             " WHERE id = ?1 AND status = 'pending'",
             id, reason, error, now_ms) > 0;
}

bool PrivateMessageTables::set_in_outbox(Connection& connection, const std::string& id, bool in_outbox) {
  return connection.run("UPDATE scheduled SET in_outbox = ?2 WHERE id = ?1 AND status = 'pending'", id, in_outbox) > 0;
}

bool PrivateMessageTables::note_attempt(Connection& connection, const std::string& id, int attempts,
                                        const std::string& error, std::int64_t now_ms) {
  return connection.run(
             "UPDATE scheduled SET attempts = ?2, last_error = ?3, updated_ms = ?4 WHERE id = ?1 AND status = 'pending'",
             id, attempts, error, now_ms) > 0;
}

void PrivateMessageTables::drop_old(Connection& connection, std::int64_t before_ms) {
  connection.run(
      "DELETE FROM scheduled WHERE number IN (SELECT number FROM scheduled WHERE status <> 'pending' AND updated_ms < ?1"
      " ORDER BY updated_ms LIMIT ?2)",
      before_ms, kDroppedAtOnce);
}

}  // namespace belfry::chat
