// What conversations are made of: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/time.h"

namespace belfry::chat {

// Whoever speaks on behalf of nobody: a deadline that passed, a program that does not say who it is.
inline constexpr const char* kBelfry = "belfry";
// The person who is there without being introduced.
inline constexpr const char* kDefaultPerson = "user";
// The bus's kind of a recipient that is a person: what it is sent goes into conversations.
inline constexpr const char* kPersonKind = "person";

enum class SessionKind { private_chat, group };
std::string_view word(SessionKind kind);
std::optional<SessionKind> parse_session_kind(std::string_view text);

struct Member {
  std::string id;
  bool person = false;
};

// Of a line, for those who do not look at its chat: as much as a list or a notification shows.
constexpr std::size_t kPreviewCharactersMax = 200;

struct Session {
  std::string id;
  SessionKind kind = SessionKind::private_chat;
  std::string title;
  std::string timezone;  // empty: the server's
  WallTime created_at;
  std::int64_t last_seq = 0;
  WallTime last_at;  // of the last line, or of the beginning
  std::vector<Member> members;
  // In lists only: who said the last line, and how it begins. Empty if there is none, or if it is large.
  std::string last_from;
  std::string last_text;

  bool has(std::string_view id) const;
  std::vector<std::string> people() const;
  std::vector<std::string> agents() const;
};

// Where a line comes from. `tool` is for what a tool says while it runs, and not used yet.
enum class Source { user, agent, scheduled_send, tool, system };
std::string_view word(Source source);
Source parse_source(std::string_view text);

enum class QuestionState { open, answered, closed, defaulted, expired };
std::string_view word(QuestionState state);
QuestionState parse_question_state(std::string_view text);

// What becomes of a question that nobody answers in time.
struct OnTimeout {
  enum class Action { expire, default_answer, remind };
  Action action = Action::expire;
  int index = 0;          // of the default answer
  std::string text;       // of the reminder; empty: the question again
  Millis every{600'000};  // between reminders
  int times = 1;
};

std::string_view word(OnTimeout::Action action);

struct Answer {
  std::optional<int> index;  // none: typed
  std::string text;
  std::string by;
  WallTime at;
};

// How things stand with a line that asks.
struct QuestionStatus {
  QuestionState state = QuestionState::open;
  std::optional<WallTime> answer_by;
  std::optional<Answer> answer;
  std::optional<WallTime> ended_at;  // when the line that ended it was said
};

// One line of a conversation. Sequence numbers are dense: 1, 2, 3, …
struct Line {
  std::int64_t seq = 0;
  std::string id;
  std::string from;
  std::string to;  // whom an agent's line is for; empty for what people say
  Source source = Source::user;
  std::string payload;  // JSON
  std::string task_id;
  std::string in_reply_to;
  std::optional<int> quick_reply_index;
  std::vector<std::string> closes;  // the questions that this line ended
  WallTime created_at;              // when it was written
  WallTime said_at;                 // when it came into the conversation
  std::optional<WallTime> due_at;   // when it was to be said, if that was later than it was written
  std::optional<QuestionStatus> question;
};

// What somebody is writing: not a line yet, and gone with the process.
struct Draft {
  std::string id;
  std::string from;
  std::string text;  // all of it so far
};

// Whether a text calls somebody: "@bot", with nothing before it that would make it an address, and as a whole name.
bool mentions(std::string_view text, std::string_view name);

// The text of a payload: `{"text": …}` or a string; empty if it has none.
std::string text_of(std::string_view payload);

}  // namespace belfry::chat
