// The tables of conversations, and every statement on them. All of it runs on the store's thread.
//
//   session       one row a conversation, with the number of its last line
//   member        who is in it
//   private_pair  the private conversation of a person and an agent that was used last
//   line          what was said, by (session, seq)
//   line_key      the keys under which clients said something: a repeat finds its line
//   question      lines that ask; `next_ms` is when something happens to an open one
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/chat/conversation.h"
#include "belfry/store/connection.h"

namespace belfry::chat {

struct SessionRow {
  std::int64_t number = 0;
  Session session;
};

struct QuestionRow {
  std::string id;  // of its line
  std::int64_t session = 0;
  std::int64_t seq = 0;
  std::string asker;
  std::string person;  // whom it was put to
  QuestionState state = QuestionState::open;
  std::optional<std::int64_t> answer_by_ms;
  std::optional<std::int64_t> next_ms;
  OnTimeout on_timeout;
  int reminded = 0;

  // Its last moment has passed: no answer counts any more, even if the deadline has not been worked off yet.
  bool is_over(std::int64_t now_ms) const;
};

class ChatTables {
 public:
  static void migrate(store::Connection& connection);

  // Constants, so that a test can ask how they are looked up: both are asked for with every message.
  static const char* const kFindPrivate;
  static const char* const kLastSpeaker;

  // --- sessions ---
  static SessionRow create(store::Connection& connection, Session session, const std::string& key);
  static std::optional<SessionRow> find(store::Connection& connection, const std::string& id);
  static std::optional<SessionRow> find_by_number(store::Connection& connection, std::int64_t number);
  static std::optional<SessionRow> find_by_key(store::Connection& connection, const std::string& key);
  // The private conversation of the two that was used last.
  static std::optional<SessionRow> find_private(store::Connection& connection, const std::string& person,
                                                const std::string& agent);
  // The agents that a person has a private conversation with, at most `limit` of them; Belfry itself is none.
  static std::vector<std::string> partners(store::Connection& connection, const std::string& person, int limit);
  struct SessionPage {
    std::vector<Session> sessions;
    std::string next;
  };
  // Newest first; `member` may be empty; `after` is the id where the page before ended, and refused if there is no such.
  static Result<SessionPage> list(store::Connection& connection, const std::string& member, const std::string& after,
                                  int limit);

  // --- lines ---
  // Gives the line the next number of its session.
  static void append(store::Connection& connection, SessionRow& session, Line& line);
  static std::optional<Line> find_line(store::Connection& connection, const std::string& id);
  // Which session a line is in.
  static std::optional<std::int64_t> session_of(store::Connection& connection, const std::string& line);
  static std::vector<Line> read(store::Connection& connection, std::int64_t session, std::int64_t after, int limit);
  static std::vector<Line> read_before(store::Connection& connection, std::int64_t session, std::int64_t before,
                                       int limit);
  // Lines before `before` whose text has this in it, the newest ones in order; a bounded number of lines is looked at.
  struct Found {
    std::vector<Line> lines;
    std::int64_t examined_to = 0;  // the oldest line that was looked at
    bool more = false;             // there are older ones
  };
  static Found search(store::Connection& connection, std::int64_t session, const std::string& text, std::int64_t before,
                      int limit);
  // The agent that last said something to this person here.
  static std::optional<std::string> last_speaker_to(store::Connection& connection, std::int64_t session,
                                                    const std::string& person);

  struct KnownKey {
    std::int64_t body = 0;
    std::int64_t seq = 0;
    std::string line;
  };
  // Keys that were used before `since_ms` count as forgotten, and adding one removes some of them.
  static std::optional<KnownKey> find_key(store::Connection& connection, std::int64_t session, const std::string& key,
                                          std::int64_t since_ms);
  static void add_key(store::Connection& connection, std::int64_t session, const std::string& key,
                      const KnownKey& known, std::int64_t now_ms, std::int64_t since_ms);

  // --- questions ---
  static void ask(store::Connection& connection, const QuestionRow& question);
  static std::optional<QuestionRow> find_question(store::Connection& connection, const std::string& id);
  // What `asker` wants to know from `person` here.
  static std::vector<QuestionRow> open_questions(store::Connection& connection, std::int64_t session,
                                                 const std::string& asker, const std::string& person);
  // Open questions with a deadline, the next one first.
  static std::vector<QuestionRow> deadlines(store::Connection& connection, std::int64_t session, int limit);
  // Ends an open question by a line of its session. False if it was not open any more.
  static bool close(store::Connection& connection, const std::string& id, QuestionState state, std::int64_t by_seq);
  // Moves an open question's next moment. False if it was not open any more.
  static bool reminded(store::Connection& connection, const std::string& id, int times, std::int64_t next_ms);
  // Nothing happens to it any more.
  static void forget_deadline(store::Connection& connection, const std::string& id);
  static std::vector<QuestionRow> due_questions(store::Connection& connection, std::int64_t now_ms, int limit);
  static std::optional<std::int64_t> next_due(store::Connection& connection);

  // What must hold between the tables, for `doctor`: one line a problem.
  static std::vector<std::string> problems(store::Connection& connection);
};

}  // namespace belfry::chat
