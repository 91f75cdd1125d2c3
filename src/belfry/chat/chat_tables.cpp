#include "belfry/chat/chat_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"

namespace belfry::chat {
namespace {

using store::Connection;
using store::Rows;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE session(
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, title TEXT NOT NULL,
        timezone TEXT NOT NULL, created_ms INTEGER NOT NULL, last_seq INTEGER NOT NULL, last_ms INTEGER NOT NULL);
      CREATE TABLE session_key(key TEXT PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE member(
        session INTEGER NOT NULL, name TEXT NOT NULL, person INTEGER NOT NULL, PRIMARY KEY(session, name)) WITHOUT ROWID;
      CREATE INDEX member_name ON member(name, session);
      CREATE TABLE line(
        session INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, sender TEXT NOT NULL,
        recipient TEXT NOT NULL, source TEXT NOT NULL, payload TEXT NOT NULL, task TEXT NOT NULL, in_reply_to TEXT,
        quick_reply_index INTEGER, closes TEXT, created_ms INTEGER NOT NULL, said_ms INTEGER NOT NULL,
        PRIMARY KEY(session, seq));
      CREATE INDEX line_recipient ON line(session, recipient, seq) WHERE recipient <> '';
      CREATE TABLE line_key(
        session INTEGER NOT NULL, key TEXT NOT NULL, body INTEGER NOT NULL, seq INTEGER NOT NULL, line TEXT NOT NULL,
        PRIMARY KEY(session, key)) WITHOUT ROWID;
      CREATE TABLE question(
        id TEXT PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, asker TEXT NOT NULL, person TEXT NOT NULL,
        state TEXT NOT NULL, closed_by INTEGER, answer_by_ms INTEGER, next_ms INTEGER, action TEXT NOT NULL,
        answer_index INTEGER NOT NULL, reminder TEXT NOT NULL, every_ms INTEGER NOT NULL, times INTEGER NOT NULL,
        reminded INTEGER NOT NULL) WITHOUT ROWID;
      CREATE INDEX question_open ON question(session, asker) WHERE state = 'open';
      CREATE INDEX question_next ON question(next_ms) WHERE next_ms IS NOT NULL;
    )sql"},
    {2, R"sql(
      CREATE TABLE private_pair(
        person TEXT NOT NULL, agent TEXT NOT NULL, session INTEGER NOT NULL, PRIMARY KEY(person, agent)) WITHOUT ROWID;
      INSERT OR REPLACE INTO private_pair(person, agent, session)
        SELECT p.name, a.name, s.number FROM session s JOIN member p ON p.session = s.number AND p.person = 1
        JOIN member a ON a.session = s.number AND a.person = 0 WHERE s.kind = 'private' ORDER BY s.last_ms, s.number;
      ALTER TABLE line_key ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
      UPDATE line_key SET used_ms = coalesce(
        (SELECT l.said_ms FROM line l WHERE l.session = line_key.session AND l.seq = line_key.seq), 0);
      CREATE INDEX line_key_used ON line_key(used_ms);
    )sql"},
    {3, "ALTER TABLE line ADD COLUMN due_ms INTEGER;"},
};

#define BELFRY_SESSION_COLUMNS "s.number, s.id, s.kind, s.title, s.timezone, s.created_ms, s.last_seq, s.last_ms"
#define BELFRY_LINE_COLUMNS \
  "l.seq, l.id, l.sender, l.recipient, l.source, l.payload, l.task, l.in_reply_to, l.quick_reply_index, l.closes, " \
  "l.created_ms, l.said_ms, l.due_ms"
// A line, how things stand with its question if it asks, and the line that ended that.
#define BELFRY_LINES_WITH_QUESTIONS \
  "SELECT " BELFRY_LINE_COLUMNS \
  ", q.state, q.answer_by_ms, e.sender, e.payload, e.quick_reply_index, e.said_ms" \
  " FROM line l LEFT JOIN question q ON q.id = l.id LEFT JOIN line e ON e.session = q.session AND e.seq = q.closed_by "
#define BELFRY_QUESTION_COLUMNS \
  "q.id, q.session, q.seq, q.asker, q.person, q.state, q.answer_by_ms, q.next_ms, q.action, q.answer_index, " \
  "q.reminder, q.every_ms, q.times, q.reminded"

// A page of lines is one answer: payloads may be large.
constexpr std::size_t kPageBytesMax = 4u << 20;
// Old keys that go when a new one comes: more than one, so that they become fewer.
constexpr int kKeysForgottenAtOnce = 4;

// Looked through at once by a search; whoever wants more asks for the next page.
constexpr int kExaminedMax = 5'000;

// Without the difference between large and small letters of ASCII.
std::string folded(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

OnTimeout::Action parse_action(std::string_view text) {
  if (text == "default") return OnTimeout::Action::default_answer;
  if (text == "remind") return OnTimeout::Action::remind;
  return OnTimeout::Action::expire;
}

SessionRow read_session(const Rows& rows) {
  SessionRow row;
  row.number = rows.integer(0);
  row.session.id = rows.text(1);
  row.session.kind = parse_session_kind(rows.text(2)).value_or(SessionKind::private_chat);
  row.session.title = rows.text(3);
  row.session.timezone = rows.text(4);
  row.session.created_at = wall_from_ms(rows.integer(5));
  row.session.last_seq = rows.integer(6);
  row.session.last_at = wall_from_ms(rows.integer(7));
  return row;
}

std::vector<Member> read_members(Connection& connection, std::int64_t session) {
  std::vector<Member> members;
  auto rows =
      connection.query("SELECT name, person FROM member WHERE session = ?1 ORDER BY person DESC, name", session);
  while (rows.next()) members.push_back({std::string(rows.text(0)), rows.integer(1) != 0});
  return members;
}

// A line that is larger is not taken apart for a list: a page of them would hold up everybody.
constexpr std::int64_t kPreviewBytesMax = 65'536;

void read_preview(Connection& connection, std::int64_t number, Session& session) {
  auto rows =
      connection.query("SELECT sender, payload FROM line WHERE session = ?1 AND seq = ?2 AND length(payload) <= ?3",
                       number, session.last_seq, kPreviewBytesMax);
  if (!rows.next()) return;
  session.last_from = rows.text(0);
  session.last_text = first_characters(text_of(rows.text(1)), kPreviewCharactersMax);
}

std::optional<SessionRow> first_session(Connection& connection, Rows rows_of_one) {
  std::optional<SessionRow> found;
  if (rows_of_one.next()) found = read_session(rows_of_one);
  if (found) found->session.members = read_members(connection, found->number);
  return found;
}

std::string join(const std::vector<std::string>& ids) {
  std::string all;
  for (const std::string& id : ids) all += fmt::format("{}{}", all.empty() ? "" : " ", id);
  return all;
}

std::vector<std::string> split(std::string_view all) {
  std::vector<std::string> ids;
  while (!all.empty()) {
    const std::size_t end = std::min(all.find(' '), all.size());
    ids.emplace_back(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return ids;
}

Line read_line(const Rows& rows) {
  Line line;
  line.seq = rows.integer(0);
  line.id = rows.text(1);
  line.from = rows.text(2);
  line.to = rows.text(3);
  line.source = parse_source(rows.text(4));
  line.payload = rows.text(5);
  line.task_id = rows.text(6);
  line.in_reply_to = rows.text(7);
  if (!rows.is_null(8)) line.quick_reply_index = static_cast<int>(rows.integer(8));
  line.closes = split(rows.text(9));
  line.created_at = wall_from_ms(rows.integer(10));
  line.said_at = wall_from_ms(rows.integer(11));
  if (const auto due = rows.maybe_integer(12)) line.due_at = wall_from_ms(*due);
  return line;
}

Line read_line_with_question(const Rows& rows) {
  Line line = read_line(rows);
  if (rows.is_null(13)) return line;
  QuestionStatus status{.state = parse_question_state(rows.text(13))};
  if (const auto by = rows.maybe_integer(14)) status.answer_by = wall_from_ms(*by);
  if (const auto ended = rows.maybe_integer(18)) status.ended_at = wall_from_ms(*ended);
  const bool has_answer = status.state == QuestionState::answered || status.state == QuestionState::defaulted;
  if (has_answer && status.ended_at) {
    status.answer = Answer{.text = text_of(rows.text(16)), .by = std::string(rows.text(15)), .at = *status.ended_at};
    if (!rows.is_null(17)) status.answer->index = static_cast<int>(rows.integer(17));
  }
  line.question = std::move(status);
  return line;
}

std::vector<Line> read_page(Rows rows) {
  std::vector<Line> lines;
  std::size_t bytes = 0;
  while (bytes < kPageBytesMax && rows.next()) {
    lines.push_back(read_line_with_question(rows));
    const Line& line = lines.back();
    bytes += line.payload.size() + sizeof(Line);
    if (line.question && line.question->answer) bytes += line.question->answer->text.size();
  }
  return lines;
}

QuestionRow read_question(const Rows& rows) {
  return {.id = std::string(rows.text(0)),
          .session = rows.integer(1),
          .seq = rows.integer(2),
          .asker = std::string(rows.text(3)),
          .person = std::string(rows.text(4)),
          .state = parse_question_state(rows.text(5)),
          .answer_by_ms = rows.maybe_integer(6),
          .next_ms = rows.maybe_integer(7),
          .on_timeout = {.action = parse_action(rows.text(8)),
                         .index = static_cast<int>(rows.integer(9)),
                         .text = std::string(rows.text(10)),
                         .every = Millis{rows.integer(11)},
                         .times = static_cast<int>(rows.integer(12))},
          .reminded = static_cast<int>(rows.integer(13))};
}

std::vector<QuestionRow> read_questions(Rows rows) {
  std::vector<QuestionRow> questions;
  while (rows.next()) questions.push_back(read_question(rows));
  return questions;
}

void add_member(Connection& connection, std::int64_t session, const Member& member) {
  connection.run("INSERT INTO member(session, name, person) VALUES(?1, ?2, ?3)", session, member.id, member.person);
}

}  // namespace

const char* const ChatTables::kFindPrivate =
    "SELECT " BELFRY_SESSION_COLUMNS
    " FROM private_pair p JOIN session s ON s.number = p.session WHERE p.person = ?1 AND p.agent = ?2";
// `recipient <> ''` is what lets the database use the index of the lines that have one.
const char* const ChatTables::kLastSpeaker =
    "SELECT l.sender FROM line l JOIN member m ON m.session = l.session AND m.name = l.sender AND m.person = 0"
    " WHERE l.session = ?1 AND l.recipient = ?2 AND l.recipient <> '' ORDER BY l.seq DESC LIMIT 1";

bool QuestionRow::is_over(std::int64_t now_ms) const {
  const bool reminds = on_timeout.action == OnTimeout::Action::remind && reminded < on_timeout.times;
  return next_ms && *next_ms <= now_ms && !reminds;
}

void ChatTables::migrate(Connection& connection) {
  store::migrate(connection, "chat", std::begin(kMigrations), std::end(kMigrations));
}

// --- sessions ---

SessionRow ChatTables::create(Connection& connection, Session session, const std::string& key) {
  SessionRow row{.number = 0, .session = std::move(session)};
  const Session& made = row.session;
  const bool pair = made.people().size() == 1 && made.agents().size() == 1;
  BELFRY_ASSERT(made.kind == SessionKind::group || pair);
  connection.run(
      "INSERT INTO session(id, kind, title, timezone, created_ms, last_seq, last_ms) VALUES(?1,?2,?3,?4,?5,0,?5)",
      made.id, word(made.kind), made.title, made.timezone, to_ms(made.created_at));
  {
    auto rows = connection.query("SELECT number FROM session WHERE id = ?1", made.id);
    rows.next();
    row.number = rows.integer(0);
  }
  for (const Member& member : made.members) add_member(connection, row.number, member);
  if (made.kind == SessionKind::private_chat)
    connection.run("INSERT OR REPLACE INTO private_pair(person, agent, session) VALUES(?1, ?2, ?3)",
                   made.people().front(), made.agents().front(), row.number);
  if (!key.empty()) connection.run("INSERT INTO session_key(key, session) VALUES(?1, ?2)", key, row.number);
  return row;
}

std::optional<SessionRow> ChatTables::find(Connection& connection, const std::string& id) {
  return first_session(connection,
                       connection.query("SELECT " BELFRY_SESSION_COLUMNS " FROM session s WHERE s.id = ?1", id));
}

std::optional<SessionRow> ChatTables::find_by_number(Connection& connection, std::int64_t number) {
  return first_session(
      connection, connection.query("SELECT " BELFRY_SESSION_COLUMNS " FROM session s WHERE s.number = ?1", number));
}

std::optional<SessionRow> ChatTables::find_by_key(Connection& connection, const std::string& key) {
  return first_session(connection,
                       connection.query("SELECT " BELFRY_SESSION_COLUMNS
                                        " FROM session_key k JOIN session s ON s.number = k.session WHERE k.key = ?1",
                                        key));
}

std::optional<SessionRow> ChatTables::find_private(Connection& connection, const std::string& person,
                                                   const std::string& agent) {
  return first_session(connection, connection.query(kFindPrivate, person, agent));
}

std::vector<std::string> ChatTables::partners(Connection& connection, const std::string& person, int limit) {
  std::vector<std::string> agents;
  auto rows =
      connection.query("SELECT agent FROM private_pair WHERE person = ?1 AND agent <> ?2 ORDER BY agent LIMIT ?3",
                       person, kBelfry, limit);
  while (rows.next()) agents.emplace_back(rows.text(0));
  return agents;
}

Result<ChatTables::SessionPage> ChatTables::list(Connection& connection, const std::string& member,
                                                 const std::string& after, int limit) {
  std::int64_t before = INT64_MAX;
  if (!after.empty()) {
    auto rows = connection.query("SELECT number FROM session WHERE id = ?1", after);
    if (!rows.next())
      return fail(Errc::invalid_argument, fmt::format("after: there is no session \"{}\"; the next of the page before"
                                                      " belongs there",
                                                      after.substr(0, kIdBytesMax)));
    before = rows.integer(0);
  }
  SessionPage page;
  std::vector<std::int64_t> numbers;
  {
    Rows rows = member.empty()
                    ? connection.query("SELECT " BELFRY_SESSION_COLUMNS
                                       " FROM session s WHERE s.number < ?1 ORDER BY s.number DESC LIMIT ?2",
                                       before, limit + 1)
                    : connection.query("SELECT " BELFRY_SESSION_COLUMNS
                                       " FROM member m JOIN session s ON s.number = m.session"
                                       " WHERE m.name = ?3 AND m.session < ?1 ORDER BY m.session DESC LIMIT ?2",
                                       before, limit + 1, member);
    while (rows.next()) {
      SessionRow row = read_session(rows);
      numbers.push_back(row.number);
      page.sessions.push_back(std::move(row.session));
    }
  }
  if (static_cast<int>(page.sessions.size()) > limit) {
    page.sessions.pop_back();
    page.next = page.sessions.back().id;
  }
  for (std::size_t i = 0; i < page.sessions.size(); ++i) {
    page.sessions[i].members = read_members(connection, numbers[i]);
    read_preview(connection, numbers[i], page.sessions[i]);
  }
  return page;
}

// --- lines ---

void ChatTables::append(Connection& connection, SessionRow& session, Line& line) {
  line.seq = ++session.session.last_seq;
  session.session.last_at = line.said_at;
  connection.run(
      "INSERT INTO line(session, seq, id, sender, recipient, source, payload, task, in_reply_to, quick_reply_index,"
      " closes, created_ms, said_ms, due_ms) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
      session.number, line.seq, line.id, line.from, line.to, word(line.source), line.payload, line.task_id,
      line.in_reply_to, line.quick_reply_index ? std::optional<std::int64_t>(*line.quick_reply_index) : std::nullopt,
      join(line.closes), to_ms(line.created_at), to_ms(line.said_at),
      line.due_at ? std::optional(to_ms(*line.due_at)) : std::nullopt);
  connection.run("UPDATE session SET last_seq = ?2, last_ms = ?3 WHERE number = ?1", session.number, line.seq,
                 to_ms(line.said_at));
  const std::vector<std::string> people = session.session.people();
  const std::vector<std::string> agents = session.session.agents();
  if (session.session.kind == SessionKind::private_chat && !people.empty() && !agents.empty())
    connection.run("UPDATE private_pair SET session = ?3 WHERE person = ?1 AND agent = ?2 AND session <> ?3",
                   people.front(), agents.front(), session.number);
}

std::optional<Line> ChatTables::find_line(Connection& connection, const std::string& id) {
  auto rows = connection.query(BELFRY_LINES_WITH_QUESTIONS "WHERE l.id = ?1", id);
  if (!rows.next()) return std::nullopt;
  return read_line_with_question(rows);
}

std::optional<std::int64_t> ChatTables::session_of(Connection& connection, const std::string& line) {
  auto rows = connection.query("SELECT session FROM line WHERE id = ?1", line);
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::vector<Line> ChatTables::read(Connection& connection, std::int64_t session, std::int64_t after, int limit) {
  return read_page(connection.query(BELFRY_LINES_WITH_QUESTIONS
                                    "WHERE l.session = ?1 AND l.seq > ?2 ORDER BY l.seq LIMIT ?3",
                                    session, after, limit));
}

std::vector<Line> ChatTables::read_before(Connection& connection, std::int64_t session, std::int64_t before,
                                          int limit) {
  auto lines = read_page(connection.query(BELFRY_LINES_WITH_QUESTIONS
                                          "WHERE l.session = ?1 AND l.seq < ?2 ORDER BY l.seq DESC LIMIT ?3",
                                          session, before, limit));
  std::reverse(lines.begin(), lines.end());
  return lines;
}

ChatTables::Found ChatTables::search(Connection& connection, std::int64_t session, const std::string& text,
                                     std::int64_t before, int limit) {
  const std::string wanted = folded(text);
  Found found;
  std::size_t bytes = 0;
  int examined = 0;
  auto rows =
      connection.query(BELFRY_LINES_WITH_QUESTIONS "WHERE l.session = ?1 AND l.seq < ?2 ORDER BY l.seq DESC LIMIT ?3",
                       session, before, kExaminedMax);
  while (static_cast<int>(found.lines.size()) < limit && bytes < kPageBytesMax && rows.next()) {
    ++examined;
    bytes += rows.text(5).size();
    found.examined_to = rows.integer(0);
    if (folded(text_of(rows.text(5))).find(wanted) == std::string::npos) continue;
    found.lines.push_back(read_line_with_question(rows));
  }
  found.more = examined > 0 && found.examined_to > 1;
  std::reverse(found.lines.begin(), found.lines.end());
  return found;
}

std::optional<std::string> ChatTables::last_speaker_to(Connection& connection, std::int64_t session,
                                                       const std::string& person) {
  auto rows = connection.query(kLastSpeaker, session, person);
  if (!rows.next()) return std::nullopt;
  return std::string(rows.text(0));
}

std::optional<ChatTables::KnownKey> ChatTables::find_key(Connection& connection, std::int64_t session,
                                                         const std::string& key, std::int64_t since_ms) {
  auto rows = connection.query("SELECT body, seq, line FROM line_key WHERE session = ?1 AND key = ?2 AND used_ms >= ?3",
                               session, key, since_ms);
  if (!rows.next()) return std::nullopt;
  return KnownKey{rows.integer(0), rows.integer(1), std::string(rows.text(2))};
}

void ChatTables::add_key(Connection& connection, std::int64_t session, const std::string& key, const KnownKey& known,
                         std::int64_t now_ms, std::int64_t since_ms) {
  connection.run(
      "DELETE FROM line_key WHERE (session, key) IN"
      " (SELECT session, key FROM line_key WHERE used_ms < ?1 ORDER BY used_ms LIMIT ?2)",
      since_ms, kKeysForgottenAtOnce);
  connection.run("INSERT OR REPLACE INTO line_key(session, key, body, seq, line, used_ms) VALUES(?1,?2,?3,?4,?5,?6)",
                 session, key, known.body, known.seq, known.line, now_ms);
}

// --- questions ---

void ChatTables::ask(Connection& connection, const QuestionRow& question) {
  const OnTimeout& late = question.on_timeout;
  connection.run(
      "INSERT INTO question(id, session, seq, asker, person, state, answer_by_ms, next_ms, action, answer_index, reminder,"
      " every_ms, times, reminded) VALUES(?1,?2,?3,?4,?5,'open',?6,?7,?8,?9,?10,?11,?12,0)",
      question.id, question.session, question.seq, question.asker, question.person, question.answer_by_ms,
      question.next_ms, word(late.action), late.index, late.text, std::int64_t{late.every.count()}, late.times);
}

std::optional<QuestionRow> ChatTables::find_question(Connection& connection, const std::string& id) {
  auto rows = connection.query("SELECT " BELFRY_QUESTION_COLUMNS " FROM question q WHERE q.id = ?1", id);
  if (!rows.next()) return std::nullopt;
  return read_question(rows);
}

std::vector<QuestionRow> ChatTables::open_questions(Connection& connection, std::int64_t session,
                                                    const std::string& asker, const std::string& person) {
  return read_questions(connection.query("SELECT " BELFRY_QUESTION_COLUMNS
                                         " FROM question q WHERE q.session = ?1 AND q.asker = ?2 AND q.state = 'open'"
                                         " AND q.person = ?3 ORDER BY q.seq",
                                         session, asker, person));
}

std::vector<QuestionRow> ChatTables::deadlines(Connection& connection, std::int64_t session, int limit) {
  return read_questions(connection.query("SELECT " BELFRY_QUESTION_COLUMNS
                                         " FROM question q WHERE q.session = ?1 AND q.state = 'open'"
                                         " AND q.answer_by_ms IS NOT NULL ORDER BY q.answer_by_ms, q.seq LIMIT ?2",
                                         session, limit));
}

bool ChatTables::close(Connection& connection, const std::string& id, QuestionState state, std::int64_t by_seq) {
  return connection.run(
             "UPDATE question SET state = ?2, closed_by = ?3, next_ms = NULL WHERE id = ?1 AND state = 'open'", id,
             word(state), by_seq) == 1;
}

bool ChatTables::reminded(Connection& connection, const std::string& id, int times, std::int64_t next_ms) {
  return connection.run("UPDATE question SET reminded = ?2, next_ms = ?3 WHERE id = ?1 AND state = 'open'", id, times,
                        next_ms) == 1;
}

void ChatTables::forget_deadline(Connection& connection, const std::string& id) {
  connection.run("UPDATE question SET next_ms = NULL WHERE id = ?1", id);
}

std::vector<QuestionRow> ChatTables::due_questions(Connection& connection, std::int64_t now_ms, int limit) {
  return read_questions(connection.query("SELECT " BELFRY_QUESTION_COLUMNS
                                         " FROM question q WHERE q.next_ms <= ?1 ORDER BY q.next_ms, q.id LIMIT ?2",
                                         now_ms, limit));
}

std::optional<std::int64_t> ChatTables::next_due(Connection& connection) {
  auto rows = connection.query("SELECT next_ms FROM question WHERE next_ms IS NOT NULL ORDER BY next_ms LIMIT 1");
  if (!rows.next()) return std::nullopt;
  return rows.integer(0);
}

std::vector<std::string> ChatTables::problems(Connection& connection) {
  std::vector<std::string> found;
  if (store::version_of(connection, "chat") < 1) return found;
  auto gaps = connection.query(
      "SELECT s.id, s.last_seq, count(l.seq), coalesce(max(l.seq), 0) FROM session s LEFT JOIN line l ON l.session ="
      " s.number GROUP BY s.number HAVING count(l.seq) <> s.last_seq OR coalesce(max(l.seq), 0) <> s.last_seq");
  while (gaps.next())
    found.push_back(fmt::format("the session {} should have {} lines and has {}, the last one {}", gaps.text(0),
                                gaps.integer(1), gaps.integer(2), gaps.integer(3)));
  auto unclosed = connection.query(
      "SELECT q.id FROM question q LEFT JOIN line l ON l.session = q.session AND l.seq = q.closed_by"
      " WHERE (q.state <> 'open') <> (l.id IS NOT NULL) OR (q.state <> 'open' AND q.next_ms IS NOT NULL)");
  while (unclosed.next())
    found.push_back(fmt::format("the question {} does not agree with the line that closed it", unclosed.text(0)));
  return found;
}

}  // namespace belfry::chat
