#include "belfry/bus/message_tables.h"

#include <charconv>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/store/fault_words.h"

namespace belfry::bus {
namespace {

using store::Connection;
using store::Rows;

// The sums were columns before.
constexpr const char* kSumsIntoTally = R"sql(
      INSERT INTO tally(changes) SELECT all_of_them FROM (SELECT group_concat(
        number || 'a' || accepted || 'k' || acked || 'c' || cancelled || 'e' || expired || 'd' || dead || 'n' || noted || ';',
        '') AS all_of_them FROM recipient) WHERE all_of_them IS NOT NULL;
      ALTER TABLE recipient DROP COLUMN accepted;
      ALTER TABLE recipient DROP COLUMN acked;
      ALTER TABLE recipient DROP COLUMN cancelled;
      ALTER TABLE recipient DROP COLUMN expired;
      ALTER TABLE recipient DROP COLUMN dead;
      ALTER TABLE recipient DROP COLUMN noted;
    )sql";

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE bus(
        id INTEGER PRIMARY KEY CHECK(id = 1), last_sequence INTEGER NOT NULL, ahead_ms INTEGER NOT NULL,
        clean_stop INTEGER NOT NULL);
      INSERT INTO bus VALUES(1, 0, 0, 1);
      CREATE TABLE recipient(
        number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, kind TEXT NOT NULL, created_ms INTEGER NOT NULL,
        removed_ms INTEGER, accepted INTEGER NOT NULL DEFAULT 0, acked INTEGER NOT NULL DEFAULT 0,
        cancelled INTEGER NOT NULL DEFAULT 0, expired INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0,
        noted INTEGER NOT NULL DEFAULT 0);
      CREATE UNIQUE INDEX recipient_name ON recipient(name) WHERE removed_ms IS NULL;
      CREATE TABLE message(
        sequence INTEGER PRIMARY KEY, recipient INTEGER NOT NULL, due_ms INTEGER NOT NULL, created_ms INTEGER NOT NULL,
        attempts INTEGER NOT NULL, expires_ms INTEGER, look_ms INTEGER, sender TEXT NOT NULL, task TEXT, payload TEXT NOT NULL);
      CREATE TABLE due(
        bucket INTEGER NOT NULL, sequence INTEGER NOT NULL, due_ms INTEGER NOT NULL, recipient INTEGER NOT NULL,
        boot_due_ns INTEGER, expires_ms INTEGER, PRIMARY KEY(bucket, sequence)) WITHOUT ROWID;
      CREATE TABLE backlog(
        recipient INTEGER NOT NULL, order_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, sequence INTEGER NOT NULL,
        late_ms INTEGER, PRIMARY KEY(recipient, order_ms, due_ms, sequence)) WITHOUT ROWID;
      CREATE TABLE ended(
        hour INTEGER NOT NULL, sequence INTEGER NOT NULL, recipient INTEGER NOT NULL, state INTEGER NOT NULL,
        created_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL, delivered_ms INTEGER, late_ms INTEGER,
        ended_ms INTEGER NOT NULL, attempts INTEGER NOT NULL, forced INTEGER NOT NULL, sender TEXT NOT NULL, task TEXT,
        ended_by TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY(hour, sequence)) WITHOUT ROWID;
      CREATE TABLE dead(sequence INTEGER PRIMARY KEY, recipient INTEGER NOT NULL, died_ms INTEGER NOT NULL, reason TEXT NOT NULL);
      CREATE TABLE forced(up_to INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, swept INTEGER NOT NULL DEFAULT 0);
    )sql"},
    {2, ClientKeys::tables()},
    {3, R"sql(
      CREATE TABLE forced_stop(
        up_to INTEGER NOT NULL, at_ms INTEGER NOT NULL, swept INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(up_to, at_ms));
      INSERT INTO forced_stop SELECT up_to, at_ms, swept FROM forced;
      DROP TABLE forced;
    )sql"},
    {4, R"sql(
      ALTER TABLE message ADD COLUMN moves TEXT;
      ALTER TABLE ended ADD COLUMN moves TEXT;
      ALTER TABLE dead ADD COLUMN delivered_ms INTEGER;
      ALTER TABLE dead ADD COLUMN late_ms INTEGER;
      ALTER TABLE backlog ADD COLUMN expires_ms INTEGER;
      UPDATE backlog SET expires_ms = (SELECT m.expires_ms FROM message m WHERE m.sequence = backlog.sequence);
      CREATE INDEX backlog_expires ON backlog(expires_ms) WHERE expires_ms IS NOT NULL;
    )sql"},
    {5, "ALTER TABLE message ADD COLUMN session TEXT"},
    {6, "CREATE TABLE exempt(sequence INTEGER PRIMARY KEY, bucket INTEGER NOT NULL)"},
    {7, Tally::tables()},
    {8, kSumsIntoTally},
    // No table: from here on the files carry digests and a witness, which an older program would leave behind (G22).
    {9, ""},
};

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::size_t kForgottenAtOnce = 100;
constexpr std::int64_t kSequencesReserved = 10'000;

// The columns that read_found() reads, in its order.
#define BELFRY_FOUND_COLUMNS \
  "m.sequence, m.recipient, m.due_ms, m.created_ms, m.attempts, m.expires_ms, m.look_ms, m.sender, m.task, " \
  "CASE WHEN ?2 THEN m.payload ELSE '' END, " \
  "d.died_ms, d.reason, m.moves, d.delivered_ms, d.late_ms, m.session"
#define BELFRY_ENDED_COLUMNS \
  "sequence, recipient, state, created_ms, due_ms, delivered_ms, late_ms, ended_ms, attempts, forced, sender, task, " \
  "ended_by, reason, moves"

// The times that a message had are kept as text, for few have any and one row should stay one row: "at cause from to;"
// for each, the oldest gone when there are too many.
constexpr int kMovesBytesMax = 1'000;
#define BELFRY_ADD_MOVE \
  "moves = CASE WHEN length(moves) > ?4 THEN substr(moves, instr(moves, ';') + 1) ELSE coalesce(moves, '') END" \
  " || printf('%d %s %d %d;', ?5, ?6, due_ms, ?2)"

// The causes are words of ours: read again, they are the same literals.
std::string_view known_cause(std::string_view text) {
  for (const std::string_view cause : {"moved", "delivered_now", "released", "retried"})
    if (cause == text) return cause;
  return "moved";
}

std::vector<Move> read_moves(std::string_view text) {
  std::vector<Move> moves;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto word = [&] {
      const std::size_t space = std::min(one.find(' '), one.size());
      const std::string_view found = one.substr(0, space);
      one.remove_prefix(std::min(space + 1, one.size()));
      return found;
    };
    const auto time = [&] {
      const std::string_view digits = word();
      std::int64_t ms = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), ms);
      return wall_from_ms(ms);
    };
    Move move;
    move.at = time();
    move.cause = known_cause(word());
    move.from = time();
    move.to = time();
    moves.push_back(move);
  }
  return moves;
}

FoundMessage read_found(const Rows& rows) {
  FoundMessage found;
  MessageRow& row = found.row;
  row.sequence = rows.integer(0);
  row.recipient = static_cast<RecipientNumber>(rows.integer(1));
  row.body.due_ms = rows.integer(2);
  row.body.created_ms = rows.integer(3);
  row.body.attempts = static_cast<int>(rows.integer(4));
  row.body.expires_ms = rows.maybe_integer(5);
  row.look_ms = rows.maybe_integer(6);
  row.body.sender = rows.text(7);
  row.body.task = rows.text(8);
  row.body.payload = rows.text(9);
  found.dead = !rows.is_null(10);
  if (found.dead) {
    found.died_ms = rows.integer(10);
    found.reason = rows.text(11);
    found.delivered_ms = rows.maybe_integer(13);
    found.late_ms = rows.maybe_integer(14);
  }
  found.moves = read_moves(rows.text(12));
  row.body.session = rows.text(15);
  return found;
}

void insert_due(Connection& connection, const CalendarRow& row) {
  connection.run(
      "INSERT INTO due(bucket, sequence, due_ms, recipient, boot_due_ns, expires_ms) VALUES(?1,?2,?3,?4,?5,?6)",
      row.bucket, row.sequence, row.due_ms, row.recipient, row.boot_due_ns, row.expires_ms);
}

void insert_backlog(Connection& connection, RecipientNumber recipient, const Order& order,
                    std::optional<std::int64_t> late_ms, std::optional<std::int64_t> expires_ms) {
  connection.run(
      "INSERT INTO backlog(recipient, order_ms, due_ms, sequence, late_ms, expires_ms) VALUES(?1,?2,?3,?4,?5,?6)",
      recipient, order.order_ms, order.due_ms, order.sequence, late_ms, expires_ms);
}

// A message that gets a new time while a stop is still being swept up waits for that time, also if the process dies before
// the sweep has ended.
void exempt_from_sweep(Connection& connection, const CalendarRow& row) {
  connection.run(
      "INSERT OR REPLACE INTO exempt(sequence, bucket)"
      " SELECT ?1, ?2 WHERE EXISTS(SELECT 1 FROM forced_stop WHERE swept = 0 AND up_to >= ?1)",
      row.sequence, row.bucket);
}

// A record names the recipient: a removed one is kept as long as that.
void keep_for_record(Connection& connection, RecipientNumber recipient, std::int64_t ended_ms) {
  connection.run("UPDATE recipient SET removed_ms = ?2 WHERE number = ?1 AND removed_ms < ?2", recipient, ended_ms);
}

CalendarRow read_calendar_row(const Rows& rows) {
  return {.bucket = rows.integer(0),
          .sequence = rows.integer(1),
          .due_ms = rows.integer(2),
          .recipient = static_cast<RecipientNumber>(rows.integer(3)),
          .boot_due_ns = rows.maybe_integer(4),
          .expires_ms = rows.maybe_integer(5)};
}

}  // namespace

MessageTables::Ended MessageTables::read_ended(const Rows& rows) {
  MessageTables::Ended ended;
  EndedRow& row = ended.row;
  row.sequence = rows.integer(0);
  row.recipient = static_cast<RecipientNumber>(rows.integer(1));
  row.state = static_cast<MessageState>(rows.integer(2));
  ended.created_ms = rows.integer(3);
  row.order.due_ms = rows.integer(4);
  row.delivered_ms = rows.maybe_integer(5);
  row.late_ms = rows.maybe_integer(6);
  row.ended_ms = rows.integer(7);
  row.attempts = static_cast<int>(rows.integer(8));
  row.forced = rows.integer(9) != 0;
  ended.sender = rows.text(10);
  ended.task = rows.text(11);
  row.by = rows.text(12);
  row.reason = rows.text(13);
  ended.moves = read_moves(rows.text(14));
  return ended;
}

void MessageTables::migrate(Connection& connection) {
  store::migrate(connection, "bus", std::begin(kMigrations), std::end(kMigrations));
}

BusState MessageTables::load(Connection& connection) {
  BusState state;
  {
    auto rows = connection.query("SELECT last_sequence, ahead_ms, clean_stop FROM bus");
    if (!rows.next()) throw store::NotAsWritten("the table \"bus\" is empty");
    // After a loss, what is here is not all that was given out.
    state.last_sequence = std::max(rows.integer(0), connection.given_out());
    state.ahead_ms = rows.integer(1);
    state.clean_stop = rows.integer(2) != 0;
  }
  {
    auto rows = connection.query("SELECT up_to, at_ms FROM forced_stop WHERE swept = 0 ORDER BY up_to DESC LIMIT 1");
    if (rows.next()) state.forced = Forced{rows.integer(0), rows.integer(1)};
  }
  {
    // What has ended or been delivered since has no row there any more.
    auto rows = connection.query(
        "SELECT d.bucket, d.sequence, d.due_ms, d.recipient, d.boot_due_ns, d.expires_ms FROM exempt e"
        " CROSS JOIN due d ON d.bucket = e.bucket AND d.sequence = e.sequence");
    while (rows.next()) state.exempt.push_back(read_calendar_row(rows));
  }
  SumsByRecipient sums = Tally::read(connection);
  auto rows = connection.query("SELECT number, name, kind, created_ms, removed_ms FROM recipient");
  while (rows.next()) {
    const auto number = static_cast<RecipientNumber>(rows.integer(0));
    state.recipients.push_back({.number = number,
                                .name = std::string(rows.text(1)),
                                .kind = std::string(rows.text(2)),
                                .created_ms = rows.integer(3),
                                .removed_ms = rows.maybe_integer(4),
                                .sums = sums[number]});
  }
  return state;
}

void MessageTables::prepare_to_write(Connection& connection) {
  keys_.load(connection);
  tally_.load(connection);
}

std::optional<InsertOutcome> MessageTables::repeated(Connection& connection, const MessageRow& row,
                                                     std::int64_t keys_not_before_ms) {
  if (!row.key) return std::nullopt;
  const auto used = keys_.find(connection, row.key->name, keys_not_before_ms);
  if (!used) return std::nullopt;
  if (used->body != row.key->body) return InsertOutcome{.sequence = used->sequence, .conflict = true};
  return InsertOutcome{.sequence = used->sequence, .repeated = true, .scheduled_ms = used->scheduled_ms};
}

InsertOutcome MessageTables::insert(Connection& connection, const MessageRow& row, std::int64_t keys_not_before_ms) {
  if (const auto first = repeated(connection, row, keys_not_before_ms)) return *first;
  if (row.key) {
    const bool delayed = row.body.due_ms > row.body.created_ms;
    keys_.add(connection, {.name = row.key->name,
                           .body = row.key->body,
                           .sequence = row.sequence,
                           .created_ms = row.body.created_ms,
                           .scheduled_ms = delayed ? std::optional(row.body.due_ms) : std::nullopt});
  }
  const Body& body = row.body;
  connection.run(
      "INSERT INTO message(sequence, recipient, due_ms, created_ms, attempts, expires_ms, look_ms, sender, task, payload,"
      " session) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
      row.sequence, row.recipient, body.due_ms, body.created_ms, body.attempts, body.expires_ms, row.look_ms,
      body.sender, body.task, body.payload, body.session);
  RecipientSums& change = tally_.change(row.recipient);
  ++change.accepted;
  if (row.place == kInBacklog) {
    insert_backlog(connection, row.recipient, {body.due_ms, body.due_ms, row.sequence}, 0, body.expires_ms);
    ++change.noted;
  } else {
    insert_due(connection, {row.place, row.sequence, body.due_ms, row.recipient, row.boot_due_ns, body.expires_ms});
  }
  note_sequence(row.sequence);
  return {.sequence = row.sequence};
}

void MessageTables::remove_place(Connection& connection, std::int64_t sequence, RecipientNumber recipient,
                                 std::int64_t place, const Order& order) {
  if (place == kInBacklog) {
    connection.run("DELETE FROM backlog WHERE recipient = ?1 AND order_ms = ?2 AND due_ms = ?3 AND sequence = ?4",
                   recipient, order.order_ms, order.due_ms, sequence);
    --tally_.change(recipient).noted;
  } else {
    connection.run("DELETE FROM due WHERE bucket = ?1 AND sequence = ?2", place, sequence);
  }
}

bool MessageTables::end(Connection& connection, const EndedRow& row) {
  remove_place(connection, row.sequence, row.recipient, row.place, row.order);
  const auto recorded = connection.run(
      "INSERT INTO ended(hour, sequence, recipient, state, created_ms, due_ms, delivered_ms, late_ms, ended_ms, attempts,"
      " forced, sender, task, ended_by, reason, moves)"
      " SELECT ?1, sequence, recipient, ?2, created_ms, due_ms, ?3, ?4, ?5, ?6, ?7, sender, task, ?8, ?9, moves"
      " FROM message WHERE sequence = ?10",
      row.ended_ms / kHourMs, static_cast<int>(row.state), row.delivered_ms, row.late_ms, row.ended_ms, row.attempts,
      row.forced, row.by, row.reason, row.sequence);
  if (recorded == 0) return false;
  connection.run("DELETE FROM message WHERE sequence = ?1", row.sequence);
  // Nobody acks for a recipient that was removed.
  if (row.state != MessageState::acked) keep_for_record(connection, row.recipient, row.ended_ms);
  RecipientSums& change = tally_.change(row.recipient);
  switch (row.state) {
    case MessageState::acked: ++change.acked; break;
    case MessageState::cancelled: ++change.cancelled; break;
    case MessageState::expired: ++change.expired; break;
    default: assertion_failed("an end state", __FILE__, __LINE__);
  }
  return true;
}

bool MessageTables::die(Connection& connection, const DeadRow& row) {
  const auto found = find(connection, row.sequence, Payload::left_out);
  if (!found || found->dead) return false;
  remove_place(connection, row.sequence, found->row.recipient, row.place, row.order);
  connection.run(
      "INSERT INTO dead(sequence, recipient, died_ms, reason, delivered_ms, late_ms) VALUES(?1,?2,?3,?4,?5,?6)",
      row.sequence, found->row.recipient, row.died_ms, row.reason, row.delivered_ms, row.late_ms);
  ++tally_.change(found->row.recipient).dead;
  return true;
}

bool MessageTables::is_removed(Connection& connection, RecipientNumber number) {
  auto rows = connection.query("SELECT 1 FROM recipient WHERE number = ?1 AND removed_ms IS NOT NULL", number);
  return rows.next();
}

void MessageTables::revive(Connection& connection, const FoundMessage& found, const CalendarRow& target,
                           std::optional<std::int64_t> look_ms, const Move& move) {
  connection.run("DELETE FROM dead WHERE sequence = ?1", target.sequence);
  connection.run("UPDATE message SET attempts = 0, due_ms = ?2, look_ms = ?3, " BELFRY_ADD_MOVE " WHERE sequence = ?1",
                 target.sequence, target.due_ms, look_ms, kMovesBytesMax, to_ms(move.at), move.cause);
  --tally_.change(found.row.recipient).dead;
  insert_due(connection, target);
  exempt_from_sweep(connection, target);
}

void MessageTables::drop_dead(Connection& connection, const FoundMessage& found, std::int64_t now_ms,
                              std::string_view by) {
  RecipientSums& change = tally_.change(found.row.recipient);
  --change.dead;
  ++change.cancelled;
  connection.run(
      "INSERT INTO ended(hour, sequence, recipient, state, created_ms, due_ms, delivered_ms, late_ms, ended_ms, attempts,"
      " forced, sender, task, ended_by, reason, moves)"
      " SELECT ?1, sequence, recipient, ?2, created_ms, due_ms, ?7, ?8, ?3, attempts, 0, sender, task, ?4, ?5, moves"
      " FROM message WHERE sequence = ?6",
      now_ms / kHourMs, static_cast<int>(MessageState::cancelled), now_ms, by,
      fmt::format("dropped; it was a dead letter: {}", found.reason), found.row.sequence, found.delivered_ms,
      found.late_ms);
  connection.run("DELETE FROM dead WHERE sequence = ?1", found.row.sequence);
  connection.run("DELETE FROM message WHERE sequence = ?1", found.row.sequence);
  keep_for_record(connection, found.row.recipient, now_ms);
}

void MessageTables::set_attempts(Connection& connection, std::int64_t sequence, int attempts) {
  connection.run("UPDATE message SET attempts = ?2 WHERE sequence = ?1", sequence, attempts);
}

bool MessageTables::move_to_backlog(Connection& connection, std::int64_t bucket, RecipientNumber recipient,
                                    const Order& order, std::optional<std::int64_t> late_ms,
                                    std::optional<std::int64_t> expires_ms) {
  if (connection.run("DELETE FROM due WHERE bucket = ?1 AND sequence = ?2", bucket, order.sequence) == 0) return false;
  insert_backlog(connection, recipient, order, late_ms, expires_ms);
  ++tally_.change(recipient).noted;
  return true;
}

void MessageTables::reschedule(Connection& connection, const Location& from, const CalendarRow& target,
                               std::optional<std::int64_t> look_ms, const Move& move) {
  remove_place(connection, target.sequence, target.recipient, from.place, from.order);
  insert_due(connection, target);
  exempt_from_sweep(connection, target);
  connection.run("UPDATE message SET due_ms = ?2, look_ms = ?3, " BELFRY_ADD_MOVE " WHERE sequence = ?1",
                 target.sequence, target.due_ms, look_ms, kMovesBytesMax, to_ms(move.at), move.cause);
}

int MessageTables::split_bucket(Connection& connection, Bucket crowded, std::int64_t after, std::int64_t up_to,
                                std::int64_t now_ms, int rows_max) {
  std::vector<CalendarRow> moving;
  std::vector<std::int64_t> looks;
  {
    auto rows = connection.query(
        "SELECT d.bucket, d.sequence, d.due_ms, d.recipient, d.boot_due_ns, d.expires_ms FROM due d"
        " WHERE bucket = ?1 AND sequence > ?2 AND sequence <= ?3 ORDER BY sequence LIMIT ?4",
        crowded.key(), after, up_to, rows_max);
    while (rows.next()) moving.push_back(read_calendar_row(rows));
  }
  for (CalendarRow& row : moving) {
    // Only rows that were moved by a clock step lie elsewhere than at their due time, and then the message row knows.
    std::int64_t look = row.due_ms;
    if (Bucket::around(crowded.level, look) != crowded) {
      auto placed = connection.query("SELECT look_ms FROM message WHERE sequence = ?1", row.sequence);
      look = placed.next() && !placed.is_null(0) ? placed.integer(0) : crowded.start_ms;
    }
    const int level = std::min(crowded.level - 1, level_for(look - now_ms));
    connection.run("DELETE FROM due WHERE bucket = ?1 AND sequence = ?2", row.bucket, row.sequence);
    row.bucket = Bucket::around(level, std::max(look, crowded.start_ms)).key();
    insert_due(connection, row);
  }
  return static_cast<int>(moving.size());
}

void MessageTables::replace(Connection& connection, const CalendarRow& row, std::int64_t look_ms, Bucket target) {
  if (connection.run("DELETE FROM due WHERE bucket = ?1 AND sequence = ?2", row.bucket, row.sequence) == 0) return;
  CalendarRow moved = row;
  moved.bucket = target.key();
  insert_due(connection, moved);
  connection.run("UPDATE message SET look_ms = ?2 WHERE sequence = ?1", row.sequence, look_ms);
}

void MessageTables::set_forced(Connection& connection, Forced forced) {
  // What an earlier stop forced and nobody has swept yet is swept together with this. Its moment is kept: `locate` finds
  // by it what was swept already.
  connection.run("UPDATE forced_stop SET swept = 1");
  connection.run("DELETE FROM exempt");
  connection.run(
      "INSERT INTO forced_stop(up_to, at_ms) VALUES(?1, ?2)"
      " ON CONFLICT(up_to, at_ms) DO UPDATE SET swept = 0",
      forced.up_to, forced.at_ms);
}

void MessageTables::forced_swept(Connection& connection) {
  // Kept while a backlog may hold rows of it: `locate` finds them by this moment.
  connection.run("UPDATE forced_stop SET swept = 1");
  connection.run("DELETE FROM forced_stop WHERE swept = 1 AND NOT EXISTS(SELECT 1 FROM backlog)");
  connection.run("DELETE FROM exempt");
}

void MessageTables::begin_after(Connection& connection, std::int64_t sequence) {
  connection.run("UPDATE bus SET last_sequence = ?1", sequence);
}

void MessageTables::set_clean_stop(Connection& connection, bool clean) {
  connection.run("UPDATE bus SET clean_stop = ?1", clean);
}

void MessageTables::set_ahead(Connection& connection, std::int64_t ahead_ms) {
  connection.run("UPDATE bus SET ahead_ms = ?1", ahead_ms);
}

RecipientNumber MessageTables::add_recipient(Connection& connection, const RecipientRow& row) {
  connection.run("INSERT INTO recipient(name, kind, created_ms) VALUES(?1, ?2, ?3)", row.name, row.kind,
                 row.created_ms);
  auto rows = connection.query("SELECT number FROM recipient WHERE name = ?1 AND removed_ms IS NULL", row.name);
  BELFRY_ASSERT(rows.next());
  return static_cast<RecipientNumber>(rows.integer(0));
}

void MessageTables::remove_recipient(Connection& connection, RecipientNumber number, std::int64_t now_ms) {
  connection.run("UPDATE recipient SET removed_ms = ?2 WHERE number = ?1", number, now_ms);
}

std::vector<RecipientNumber> MessageTables::forget_removed(Connection& connection, std::int64_t before_ms) {
  std::vector<RecipientNumber> numbers;
  {
    auto rows = connection.query("SELECT number FROM recipient WHERE removed_ms < ?1", before_ms);
    while (rows.next() && numbers.size() < kForgottenAtOnce) {
      const auto number = static_cast<RecipientNumber>(rows.integer(0));
      if (tally_.sums(number).all_ended()) numbers.push_back(number);
    }
  }
  for (const RecipientNumber number : numbers) {
    connection.run("DELETE FROM recipient WHERE number = ?1", number);
    tally_.forget(number);
  }
  return numbers;
}

bool MessageTables::drop_old(Connection& connection, std::int64_t before_ms, int rows_max) {
  // Whole hours only: the range that is dropped has no newer row in it.
  const auto dropped = connection.run(
      "DELETE FROM ended WHERE (hour, sequence) IN"
      " (SELECT hour, sequence FROM ended WHERE hour < ?1 ORDER BY hour, sequence LIMIT ?2)",
      before_ms / kHourMs, rows_max);
  const bool more_keys = keys_.drop_old(connection, before_ms, rows_max);
  return dropped == rows_max || more_keys;
}

namespace {

// The earliest unread bucket over all levels; of two with the same start the coarser one, since it may hold rows that
// belong before those of the finer.
std::optional<Bucket> next_bucket(Connection& connection, const CalendarLook& look, const std::int64_t* from_ms) {
  std::optional<Bucket> next;
  for (int level = kLevels - 1; level >= 0; --level) {
    const std::int64_t until = next ? std::min(look.until_ms[level], next->start_ms) : look.until_ms[level];
    if (from_ms[level] >= until) continue;
    auto rows = connection.query("SELECT bucket FROM due WHERE bucket >= ?1 AND bucket < ?2 ORDER BY bucket LIMIT 1",
                                 Bucket{level, from_ms[level]}.key(), Bucket{level, until}.key());
    if (rows.next()) next = Bucket::from_key(rows.integer(0));
  }
  return next;
}

}  // namespace

CalendarPage MessageTables::read_calendar(Connection& connection, const CalendarLook& look) {
  CalendarPage page;
  std::copy(std::begin(look.from_ms), std::end(look.from_ms), page.from_ms);
  while (static_cast<int>(page.rows.size()) < look.rows_max) {
    const auto next = next_bucket(connection, look, page.from_ms);
    page.finished = !next;
    for (int level = 0; level < kLevels; ++level) {
      // Nothing unread starts before `next`, and on coarser levels nothing starts with it.
      const std::int64_t reached = next ? next->start_ms + (level > next->level ? 1 : 0) : INT64_MAX;
      page.from_ms[level] = std::max(page.from_ms[level], std::min(look.until_ms[level], reached));
    }
    if (!next) return page;

    const bool coarse = next->level > kFinestLevel && look.split_crowded;
    const int room = coarse ? look.rows_max + 1 : look.rows_max - static_cast<int>(page.rows.size());
    const std::int64_t after =
        look.partial == next ? std::max(look.sequence_after, look.partial_after) : look.sequence_after;
    const std::size_t before = page.rows.size();
    {
      auto rows = connection.query(
          "SELECT bucket, sequence, due_ms, recipient, boot_due_ns, expires_ms FROM due"
          " WHERE bucket = ?1 AND sequence > ?2 AND sequence <= ?3 ORDER BY sequence LIMIT ?4",
          next->key(), after, look.sequence_up_to, room);
      while (rows.next()) page.rows.push_back(read_calendar_row(rows));
    }
    if (page.rows.size() > before) page.last_sequence = page.rows.back().sequence;
    const bool filled = static_cast<int>(page.rows.size() - before) == room;
    if (filled && coarse) {
      page.rows.resize(before);
      page.crowded = next;
      return page;
    }
    if (filled) {
      page.partial = next;
      return page;
    }
    page.from_ms[next->level] = next->start_ms + 1;
  }
  return page;
}

std::vector<Order> MessageTables::read_backlog_orders(Connection& connection, RecipientNumber recipient,
                                                      const Order& after, int rows_max) {
  std::vector<Order> orders;
  auto rows = connection.query(
      "SELECT order_ms, due_ms, sequence FROM backlog WHERE recipient = ?1 AND (order_ms, due_ms, sequence) > (?2, ?3, ?4)"
      " ORDER BY order_ms, due_ms, sequence LIMIT ?5",
      recipient, after.order_ms, after.due_ms, after.sequence, rows_max);
  while (rows.next()) orders.push_back({rows.integer(0), rows.integer(1), rows.integer(2)});
  return orders;
}

std::vector<BacklogRow> MessageTables::read_backlog(Connection& connection, RecipientNumber recipient,
                                                    const Order& after, std::optional<Order> before, int rows_max,
                                                    std::size_t bytes_max) {
  std::vector<BacklogRow> found;
  std::size_t bytes = 0;
  const Order last = before.value_or(Order{INT64_MAX, INT64_MAX, INT64_MAX});
  auto rows = connection.query(
      "SELECT b.order_ms, b.due_ms, b.sequence, m.sender, m.task, m.payload, m.created_ms, m.expires_ms, m.attempts,"
      " b.late_ms, m.session FROM backlog b JOIN message m ON m.sequence = b.sequence"
      " WHERE b.recipient = ?1 AND (b.order_ms, b.due_ms, b.sequence) > (?2, ?3, ?4)"
      " AND (b.order_ms, b.due_ms, b.sequence) < (?5, ?6, ?7)"
      " ORDER BY b.order_ms, b.due_ms, b.sequence LIMIT ?8",
      recipient, after.order_ms, after.due_ms, after.sequence, last.order_ms, last.due_ms, last.sequence, rows_max);
  while (bytes < bytes_max && rows.next()) {
    BacklogRow row;
    row.order = {rows.integer(0), rows.integer(1), rows.integer(2)};
    row.body = {.sender = std::string(rows.text(3)),
                .task = std::string(rows.text(4)),
                .session = std::string(rows.text(10)),
                .payload = std::string(rows.text(5)),
                .created_ms = rows.integer(6),
                .due_ms = row.order.due_ms,
                .expires_ms = rows.maybe_integer(7),
                .attempts = static_cast<int>(rows.integer(8))};
    row.expires_ms = row.body.expires_ms;
    row.late_ms = rows.maybe_integer(9);
    bytes += row.body.bytes();
    found.push_back(std::move(row));
  }
  return found;
}

std::optional<Body> MessageTables::read_body(Connection& connection, std::int64_t sequence, Payload payload) {
  auto rows = connection.query(
      "SELECT sender, task, CASE WHEN ?2 THEN payload ELSE '' END, created_ms, due_ms, expires_ms, attempts, session FROM"
      " message WHERE sequence = ?1",
      sequence, payload == Payload::wanted);
  if (!rows.next()) return std::nullopt;
  return Body{.sender = std::string(rows.text(0)),
              .task = std::string(rows.text(1)),
              .session = std::string(rows.text(7)),
              .payload = std::string(rows.text(2)),
              .created_ms = rows.integer(3),
              .due_ms = rows.integer(4),
              .expires_ms = rows.maybe_integer(5),
              .attempts = static_cast<int>(rows.integer(6))};
}

std::optional<FoundMessage> MessageTables::find(Connection& connection, std::int64_t sequence, Payload payload) {
  auto rows = connection.query("SELECT " BELFRY_FOUND_COLUMNS
                               " FROM message m LEFT JOIN dead d ON d.sequence = m.sequence WHERE m.sequence = ?1",
                               sequence, payload == Payload::wanted);
  if (!rows.next()) return std::nullopt;
  return read_found(rows);
}

std::vector<MessageTables::Overdue> MessageTables::read_expired(Connection& connection, const Overdue& after,
                                                                std::int64_t now_ms, int rows_max) {
  std::vector<Overdue> expired;
  auto rows = connection.query(
      "SELECT expires_ms, recipient, order_ms, due_ms, sequence FROM backlog"
      " WHERE (expires_ms, recipient, order_ms, due_ms, sequence) > (?1, ?2, ?3, ?4, ?5) AND expires_ms <= ?6"
      " ORDER BY expires_ms, recipient, order_ms, due_ms, sequence LIMIT ?7",
      after.expires_ms, after.recipient, after.order.order_ms, after.order.due_ms, after.order.sequence, now_ms,
      rows_max);
  while (rows.next())
    expired.push_back({.expires_ms = rows.integer(0),
                       .recipient = static_cast<RecipientNumber>(rows.integer(1)),
                       .order = {rows.integer(2), rows.integer(3), rows.integer(4)}});
  return expired;
}

std::optional<Location> MessageTables::locate(Connection& connection, const FoundMessage& found) {
  const std::int64_t due_ms = found.row.body.due_ms;
  const Order own{due_ms, due_ms, found.row.sequence};
  const std::int64_t look = found.row.look_ms.value_or(due_ms);
  for (int level = 0; level < kLevels; ++level) {
    const std::int64_t bucket = Bucket::around(level, look).key();
    auto rows =
        connection.query("SELECT boot_due_ns FROM due WHERE bucket = ?1 AND sequence = ?2", bucket, found.row.sequence);
    if (rows.next()) return Location{bucket, own, rows.maybe_integer(0)};
  }
  const auto in_backlog = [&](const Order& order) {
    auto rows = connection.query(
        "SELECT 1 FROM backlog WHERE recipient = ?1 AND order_ms = ?2 AND due_ms = ?3 AND sequence = ?4",
        found.row.recipient, order.order_ms, order.due_ms, order.sequence);
    return rows.next();
  };
  if (in_backlog(own)) return Location{kInBacklog, own, std::nullopt};
  std::vector<std::int64_t> stops;
  {
    auto rows = connection.query("SELECT at_ms FROM forced_stop WHERE up_to >= ?1", found.row.sequence);
    while (rows.next()) stops.push_back(rows.integer(0));
  }
  for (const std::int64_t at_ms : stops) {
    const Order forced{std::min(at_ms, due_ms), due_ms, found.row.sequence};
    if (in_backlog(forced)) return Location{kInBacklog, forced, std::nullopt};
  }
  return std::nullopt;
}

std::optional<MessageTables::Ended> MessageTables::find_ended(Connection& connection, std::int64_t sequence) {
  // Ended rows are kept by the hour in which they ended; there are at most some hundred hours, newest first.
  std::vector<std::int64_t> hours;
  {
    std::int64_t below = INT64_MAX;
    while (true) {
      auto rows = connection.query("SELECT hour FROM ended WHERE hour < ?1 ORDER BY hour DESC LIMIT 1", below);
      if (!rows.next()) break;
      below = rows.integer(0);
      hours.push_back(below);
    }
  }
  for (const std::int64_t hour : hours) {
    auto rows = connection.query("SELECT " BELFRY_ENDED_COLUMNS " FROM ended WHERE hour = ?1 AND sequence = ?2", hour,
                                 sequence);
    if (rows.next()) return read_ended(rows);
  }
  return std::nullopt;
}

void MessageTables::before_commit(Connection& connection, store::Room room) {
  tally_.before_commit(connection, room);
  if (last_sequence_ > reserved_) {
    // Ahead of need: a page less to write in most groups. A restart skips what was reserved and not used.
    reserving_ = last_sequence_ + kSequencesReserved;
    connection.run("UPDATE bus SET last_sequence = ?1", reserving_);
  }
  connection.note_given_out(std::max(reserved_, reserving_));
}

void MessageTables::after_group(bool committed) {
  keys_.after_group(committed);
  tally_.after_group(committed);
  if (committed) reserved_ = std::max(reserved_, reserving_);
  reserving_ = 0;
  last_sequence_ = 0;
}

}  // namespace belfry::bus
