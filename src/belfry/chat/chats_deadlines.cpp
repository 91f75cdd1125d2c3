// Questions that nobody answered in time (Q9).
#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"

namespace belfry::chat {
namespace {

constexpr int kQuestionsAtOnce = 50;
constexpr Millis kTryAgain{1'000};

// What a deadline does to its question, as it stands at that moment.
struct Ending {
  bool happens = false;
  QuestionState state = QuestionState::open;  // open: it is only a reminder
  std::string session;
  QuestionRow question;
  Line asked;
};

std::string default_text(const Ending& ending) {
  const auto replies = bus::quick_replies_of(ending.asked.payload);
  const auto index = static_cast<std::size_t>(ending.question.on_timeout.index);
  return index < replies.size() ? replies[index] : std::string();
}

// The line that the deadline says.
Line line_of(const Ending& ending, const std::string& id, WallTime now) {
  const OnTimeout& late = ending.question.on_timeout;
  Line line{.id = id,
            .from = kBelfry,
            .to = ending.question.person,
            .source = Source::system,
            .task_id = ending.asked.task_id,
            .in_reply_to = ending.question.id,
            .created_at = now,
            .said_at = now};
  json::Writer payload;
  payload.object();
  switch (ending.state) {
    case QuestionState::open:
      line.from = ending.question.asker;
      line.source = Source::scheduled_send;
      payload.field("text", late.text.empty() ? text_of(ending.asked.payload) : late.text).field("event", "reminder");
      break;
    case QuestionState::defaulted:
      line.quick_reply_index = late.index;
      line.closes = {ending.question.id};
      payload.field("text", default_text(ending)).field("event", "question_defaulted");
      break;
    default: line.closes = {ending.question.id}; payload.field("text", "").field("event", "question_expired");
  }
  line.payload = payload.end().take();
  return line;
}

// What the agent that asked is told; a reminder is not for it.
std::string news_of(const Ending& ending) {
  json::Writer payload;
  payload.object();
  if (ending.state == QuestionState::defaulted) {
    payload.field("text", default_text(ending)).field("inReplyTo", ending.question.id);
    payload.field("quickReplyIndex", ending.question.on_timeout.index).field("event", "question_defaulted");
  } else {
    payload.field("text", "").field("inReplyTo", ending.question.id).field("event", "question_expired");
  }
  return payload.end().take();
}

Ending look(store::Connection& connection, const std::string& id, std::int64_t now_ms) {
  Ending ending;
  const auto question = ChatTables::find_question(connection, id);
  if (!question || question->state != QuestionState::open || !question->next_ms || *question->next_ms > now_ms)
    return ending;
  const auto session = ChatTables::find_by_number(connection, question->session);
  const auto asked = ChatTables::find_line(connection, id);
  if (!session || !asked) return ending;
  ending = {.happens = true, .session = session->session.id, .question = *question, .asked = *asked};
  const OnTimeout& late = question->on_timeout;
  if (late.action == OnTimeout::Action::default_answer) {
    ending.state = QuestionState::defaulted;
  } else if (late.action == OnTimeout::Action::expire || question->reminded >= late.times) {
    ending.state = QuestionState::expired;
  }
  return ending;
}

}  // namespace

void Chats::note_deadline(std::int64_t ms) {
  if (next_deadline_ms_ && *next_deadline_ms_ <= ms) return;
  next_deadline_ms_ = ms;
  timekeeper_.look_again();
}

std::optional<Due> Chats::next_due(const Now& now) const {
  if (ending_questions_ || stopping_ || !next_deadline_ms_) return std::nullopt;
  // After a failure: not at once again.
  if (not_before_ && *not_before_ > now.boot) return Due(*not_before_);
  return Due(wall_from_ms(*next_deadline_ms_));
}

// The work waits for the disk, and the loop that waits for time must not: it goes on beside it.
Task<int> Chats::fire_due(Now now, int) {
  const bool due = next_deadline_ms_ && wall_from_ms(*next_deadline_ms_) <= now.wall;
  const bool pausing = not_before_ && *not_before_ > now.boot;
  if (!due || pausing || ending_questions_ || stopping_) co_return 0;
  ending_questions_ = true;
  tasks_.spawn("question deadlines", end_questions());
  co_return 1;
}

Task<void> Chats::end_questions() {
  struct Found {
    std::vector<std::string> due;
    std::optional<std::int64_t> next;
  };
  bool failed = false;
  next_deadline_ms_.reset();  // what comes meanwhile is noted again
  while (!stopping_ && !failed) {
    auto job = [now_ms = to_ms(now())](store::Connection& connection) -> Result<Found> {
      return Found{ChatTables::due_questions(connection, now_ms, kQuestionsAtOnce), ChatTables::next_due(connection)};
    };
    const auto found = co_await store_.read<Found>(std::move(job));
    failed = !found;
    if (found && found->next) note_deadline(*found->next);
    if (!found || found->due.empty()) break;
    for (const std::string& id : found->due) {
      const auto ended = co_await end_question(id);
      failed = failed || !ended;
      if (!ended && ended.error().code != Errc::stopping)
        log::warn("chat.deadline_failed", "a question's deadline could not be stored; tried again soon",
                  {{"id", id}, {"what", ended.error().detail}});
    }
    next_deadline_ms_.reset();
  }
  not_before_.reset();
  if (failed) {
    not_before_ = clock_.now().boot + kTryAgain;
    note_deadline(to_ms(now()));
  }
  ending_questions_ = false;
  timekeeper_.look_again();
}

Task<Result<>> Chats::end_question(std::string id) {
  auto first = [id, now_ms = to_ms(now())](store::Connection& connection) -> Result<Ending> {
    return look(connection, id, now_ms);
  };
  BELFRY_CO_TRY(const Ending ending, co_await store_.read<Ending>(std::move(first)));
  if (!ending.happens) co_return Result<>{};
  std::vector<bus::Outgoing> messages;
  if (ending.state != QuestionState::open && bus_.recipient(ending.question.asker))
    messages.push_back({.to = ending.question.asker,
                        .from = kBelfry,
                        .payload = news_of(ending),
                        .task_id = ending.asked.task_id,
                        .session_id = ending.session});
  auto said = std::make_shared<Said>();
  auto also = [ending, said, line = line_of(ending, new_id(), now()),
               now_ms = to_ms(now())](store::Connection& connection) -> Result<bool> {
    *said = {ending.session, line};
    auto session = ChatTables::find_by_number(connection, ending.question.session);
    if (!session) return false;
    const bool ours =
        ending.state == QuestionState::open
            ? ChatTables::reminded(connection, ending.question.id, ending.question.reminded + 1,
                                   now_ms + ending.question.on_timeout.every.count())
            : ChatTables::close(connection, ending.question.id, ending.state, session->session.last_seq + 1);
    if (!ours) return false;  // answered meanwhile
    ChatTables::append(connection, *session, said->line);
    return true;
  };
  const auto sent = co_await bus_.send_together(std::move(messages), std::move(also));
  if (!sent) co_return std::unexpected(sent.error());
  if (said->line.seq > 0) tell(*said);
  co_return Result<>{};
}

}  // namespace belfry::chat
