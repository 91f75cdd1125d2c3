// The listings and the checks of MessageTables: reads that examine a bounded number of rows.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "belfry/bus/message_tables.h"
#include "belfry/store/fault_words.h"

namespace belfry::bus {
namespace {

using store::Connection;

// A cursor is a letter for the table and up to four numbers.
struct Cursor {
  char table = 0;
  std::array<std::int64_t, 4> at{};
};

std::string write_cursor(char table, std::array<std::int64_t, 4> at) {
  return fmt::format("{}.{}.{}.{}.{}", table, at[0], at[1], at[2], at[3]);
}

// An empty text is the beginning of the first table. Nothing if nobody gave out such a cursor.
std::optional<Cursor> parse_cursor(std::string_view text, char first_table) {
  Cursor cursor{first_table, {}};
  if (text.empty()) return cursor;
  cursor.table = text.front();
  if (cursor.table < 'b' || cursor.table > 'e') return std::nullopt;
  text.remove_prefix(1);
  for (std::int64_t& number : cursor.at) {
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return text.empty() ? std::optional(cursor) : std::nullopt;
}

Cursor read_cursor(std::string_view text, char first_table) {
  return parse_cursor(text, first_table).value_or(Cursor{first_table, {}});
}

bool wanted(const MessageTables::ListQuery& query, RecipientNumber recipient, std::string_view sender) {
  return (!query.recipient || *query.recipient == recipient) && (query.sender.empty() || query.sender == sender);
}

// The calendar in order of time: buckets by start, and within a page by due time.
void list_calendar(Connection& connection, const MessageTables::ListQuery& query, const Cursor& cursor,
                   MessageTables::ListPage& page) {
  const auto [start, level_number, after, unused] = cursor.at;
  const int level = static_cast<int>(std::clamp<std::int64_t>(level_number, 0, kLevels - 1));
  CalendarLook look;
  for (int i = 0; i < kLevels; ++i) {
    look.from_ms[i] = start + (i > level && start > 0 ? 1 : 0);
    look.until_ms[i] = (std::int64_t{1} << kStartBits) - 1;
  }
  look.sequence_up_to = INT64_MAX;
  look.partial = Bucket{level, start};
  look.partial_after = after;
  look.rows_max = query.examine_max;
  look.split_crowded = false;
  const CalendarPage rows = MessageTables::read_calendar(connection, look);

  page.next = rows.finished ? write_cursor('b', {}) : "";
  for (const CalendarRow& row : rows.rows) {
    const Bucket bucket = Bucket::from_key(row.bucket);
    if (!rows.finished) page.next = write_cursor('c', {bucket.start_ms, bucket.level, row.sequence, 0});
    if (query.recipient && *query.recipient != row.recipient) continue;
    auto found = MessageTables::find(connection, row.sequence, MessageTables::Payload::left_out);
    if (!found || !wanted(query, row.recipient, found->row.body.sender)) continue;
    page.live.push_back({std::move(*found), {row.bucket, {row.due_ms, row.due_ms, row.sequence}, row.boot_due_ns}});
    if (static_cast<int>(page.live.size()) == query.limit) {
      page.next = write_cursor('c', {bucket.start_ms, bucket.level, row.sequence, 0});
      break;
    }
  }
  std::sort(page.live.begin(), page.live.end(),
            [](const auto& a, const auto& b) { return a.location.order < b.location.order; });
}

void list_backlog(Connection& connection, const MessageTables::ListQuery& query, const Cursor& cursor,
                  MessageTables::ListPage& page) {
  const auto [recipient, order_ms, due_ms, sequence] = cursor.at;
  struct Row {
    RecipientNumber recipient;
    Order order;
  };
  std::vector<Row> rows;
  {
    const std::int64_t first = query.recipient ? std::max<std::int64_t>(*query.recipient, recipient) : recipient;
    const std::int64_t last = query.recipient ? *query.recipient : INT64_MAX;
    auto found = connection.query(
        "SELECT recipient, order_ms, due_ms, sequence FROM backlog"
        " WHERE (recipient, order_ms, due_ms, sequence) > (?1, ?2, ?3, ?4) AND recipient <= ?5"
        " ORDER BY recipient, order_ms, due_ms, sequence LIMIT ?6",
        first, first == recipient ? order_ms : INT64_MIN, due_ms, sequence, last, query.examine_max);
    while (found.next())
      rows.push_back(
          {static_cast<RecipientNumber>(found.integer(0)), {found.integer(1), found.integer(2), found.integer(3)}});
  }
  const bool filled = static_cast<int>(rows.size()) == query.examine_max;
  page.next.clear();
  for (const Row& row : rows) {
    const std::array<std::int64_t, 4> here{row.recipient, row.order.order_ms, row.order.due_ms, row.order.sequence};
    if (filled) page.next = write_cursor('b', here);
    auto found = MessageTables::find(connection, row.order.sequence, MessageTables::Payload::left_out);
    if (!found || !wanted(query, row.recipient, found->row.body.sender)) continue;
    page.live.push_back({std::move(*found), {kInBacklog, row.order, std::nullopt}});
    if (static_cast<int>(page.live.size()) == query.limit) {
      page.next = write_cursor('b', here);
      break;
    }
  }
}

}  // namespace

bool MessageTables::is_cursor(std::string_view text) { return parse_cursor(text, 'c').has_value(); }

MessageTables::ListPage MessageTables::list_live(Connection& connection, const ListQuery& query) {
  ListPage page;
  const Cursor cursor = read_cursor(query.cursor, 'c');
  if (cursor.table != 'b') {
    list_calendar(connection, query, cursor, page);
    // Most systems have no backlog: spare the caller an empty last page.
    if (!page.next.starts_with('b') || !page.live.empty()) return page;
  }
  list_backlog(connection, query, cursor.table == 'b' ? cursor : Cursor{'b', {}}, page);
  return page;
}

MessageTables::ListPage MessageTables::list_dead(Connection& connection, const ListQuery& query) {
  ListPage page;
  const Cursor cursor = read_cursor(query.cursor, 'd');
  std::vector<std::int64_t> sequences;
  {
    auto rows = connection.query("SELECT sequence FROM dead WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
                                 cursor.at[0], query.examine_max);
    while (rows.next()) sequences.push_back(rows.integer(0));
  }
  const bool filled = static_cast<int>(sequences.size()) == query.examine_max;
  for (const std::int64_t sequence : sequences) {
    if (filled) page.next = write_cursor('d', {sequence});
    auto found = find(connection, sequence, Payload::left_out);
    if (!found || !wanted(query, found->row.recipient, found->row.body.sender)) continue;
    page.live.push_back({std::move(*found), {}});
    if (static_cast<int>(page.live.size()) == query.limit) {
      page.next = write_cursor('d', {sequence});
      break;
    }
  }
  return page;
}

MessageTables::ListPage MessageTables::list_ended(Connection& connection, const ListQuery& query, MessageState state) {
  ListPage page;
  const Cursor cursor = read_cursor(query.cursor, 'e');
  auto rows = connection.query(
      "SELECT sequence, recipient, state, created_ms, due_ms, delivered_ms, late_ms, ended_ms, attempts, forced, sender,"
      " task, ended_by, reason, moves, hour FROM ended WHERE (hour, sequence) > (?1, ?2) ORDER BY hour, sequence LIMIT ?3",
      cursor.at[0], cursor.at[1], query.examine_max);
  int examined = 0;
  while (rows.next()) {
    ++examined;
    page.next = write_cursor('e', {rows.integer(15), rows.integer(0)});
    const Ended ended = read_ended(rows);
    if (ended.row.state != state || !wanted(query, ended.row.recipient, ended.sender)) continue;
    page.ended.push_back(ended);
    if (static_cast<int>(page.ended.size()) == query.limit) return page;
  }
  if (examined < query.examine_max) page.next.clear();
  return page;
}

std::vector<std::string> MessageTables::conservation_problems(Connection& connection) {
  std::vector<std::string> problems;
  const auto expect_none = [&](const char* sql, std::string_view what) {
    auto rows = connection.query(sql);
    if (rows.next()) problems.push_back(fmt::format("{}, for example sequence {}", what, rows.integer(0)));
  };
  expect_none(
      "SELECT d.sequence FROM due d LEFT JOIN message m ON m.sequence = d.sequence WHERE m.sequence IS NULL LIMIT 1",
      "the calendar has an entry without its message");
  expect_none(
      "SELECT b.sequence FROM backlog b LEFT JOIN message m ON m.sequence = b.sequence WHERE m.sequence IS NULL LIMIT 1",
      "the backlog has an entry without its message");
  expect_none(
      "SELECT d.sequence FROM dead d LEFT JOIN message m ON m.sequence = d.sequence WHERE m.sequence IS NULL LIMIT 1",
      "a dead letter has no message");
  expect_none("SELECT sequence FROM message WHERE sequence > (SELECT last_sequence FROM bus) LIMIT 1",
              "a message is newer than the last sequence");
  expect_none("SELECT e.sequence FROM ended e JOIN message m ON m.sequence = e.sequence LIMIT 1",
              "a message has ended and is still there");
  expect_none(
      "SELECT m.sequence FROM message m LEFT JOIN recipient r ON r.number = m.recipient WHERE r.number IS NULL LIMIT 1",
      "a message has no recipient");

  struct Sums {
    std::int64_t messages = 0;
    std::int64_t due = 0;
    std::int64_t backlog = 0;
    std::int64_t dead = 0;
  };
  std::map<std::int64_t, Sums> sums;
  const auto add_up = [&](const char* sql, std::int64_t Sums::* member) {
    auto rows = connection.query(sql);
    while (rows.next()) sums[rows.integer(0)].*member = rows.integer(1);
  };
  add_up("SELECT recipient, count(*) FROM message GROUP BY recipient", &Sums::messages);
  add_up("SELECT recipient, count(*) FROM due GROUP BY recipient", &Sums::due);
  add_up("SELECT recipient, count(*) FROM backlog GROUP BY recipient", &Sums::backlog);
  add_up("SELECT recipient, count(*) FROM dead GROUP BY recipient", &Sums::dead);

  BusState state;
  try {
    state = load(connection);
  } catch (const store::Fault& fault) {
    if (fault.kind() != store::FaultKind::corrupt) throw;
    problems.push_back(store::in_plain_words(fault));
  }
  for (const RecipientRow& row : state.recipients) {
    const Sums& sum = sums[row.number];
    const RecipientSums& counted = row.sums;
    if (sum.messages - sum.dead != counted.live())
      problems.push_back(
          fmt::format("{}: {} messages are live, but accepted {} - acked {} - cancelled {} - expired {} - dead {} = {}",
                      row.name, sum.messages - sum.dead, counted.accepted, counted.acked, counted.cancelled,
                      counted.expired, counted.dead, counted.live()));
    if (sum.due + sum.backlog + sum.dead != sum.messages)
      problems.push_back(fmt::format("{}: {} messages, but {} in the calendar, {} in the backlog and {} dead letters",
                                     row.name, sum.messages, sum.due, sum.backlog, sum.dead));
    if (sum.dead != counted.dead)
      problems.push_back(fmt::format("{}: {} dead letters, but {} were counted", row.name, sum.dead, counted.dead));
    if (counted.noted != sum.backlog)
      problems.push_back(fmt::format("{}: {} in the backlog, but {} were noted", row.name, sum.backlog, counted.noted));
  }
  return problems;
}

}  // namespace belfry::bus
