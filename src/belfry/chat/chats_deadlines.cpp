// Questions that nobody answered in time (Q9).
#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"

namespace belfry::chat {

// What a deadline does to its question, as it stands at that moment.
struct Ending {
  QuestionState state = QuestionState::open;  // open: it is only a reminder
  std::string session;
  QuestionRow question;
  Line asked;
};

namespace {

// In one transaction: whoever answers waits for at most that many.
constexpr int kQuestionsAtOnce = 50;

std::string default_text(const Ending& ending) {
  const auto replies = bus::quick_replies_of(ending.asked.payload);
  const auto index = static_cast<std::size_t>(ending.question.on_timeout.index);
  return index < replies.size() ? replies[index] : std::string();
}

// What the person sees of it.
Saying saying_for(const Ending& ending, std::string id) {
  const OnTimeout& late = ending.question.on_timeout;
  Saying saying{.id = std::move(id),
                .session = ending.session,
                .from = kBelfry,
                .to = ending.question.person,
                .source = Source::system,
                .task_id = ending.asked.task_id,
                .in_reply_to = ending.question.id};
  json::Writer payload;
  payload.object();
  switch (ending.state) {
    case QuestionState::open:
      saying.from = ending.question.asker;
      saying.source = Source::scheduled_send;
      payload.field("text", late.text.empty() ? text_of(ending.asked.payload) : late.text).field("event", "reminder");
      break;
    case QuestionState::defaulted:
      saying.quick_reply_index = late.index;
      saying.closes = {ending.question.id};
      payload.field("text", default_text(ending)).field("event", "question_defaulted");
      break;
    default: saying.closes = {ending.question.id}; payload.field("text", "").field("event", "question_expired");
  }
  saying.payload = payload.end().take();
  return saying;
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

QuestionState outcome_of(const QuestionRow& question) {
  const OnTimeout& late = question.on_timeout;
  if (late.action == OnTimeout::Action::default_answer) return QuestionState::defaulted;
  const bool reminds = late.action == OnTimeout::Action::remind && question.reminded < late.times;
  return reminds ? QuestionState::open : QuestionState::expired;
}

struct DueQuestions {
  std::vector<Ending> endings;
  std::vector<std::string> lost;     // have a deadline and no line that asks
  std::optional<std::int64_t> next;  // deadline of all
};

DueQuestions read_due(store::Connection& connection, std::int64_t now_ms) {
  DueQuestions due{.next = ChatTables::next_due(connection)};
  for (QuestionRow& question : ChatTables::due_questions(connection, now_ms, kQuestionsAtOnce)) {
    const auto session = ChatTables::find_by_number(connection, question.session);
    auto asked = ChatTables::find_line(connection, question.id);
    if (session && asked && question.state == QuestionState::open) {
      const QuestionState state = outcome_of(question);
      due.endings.push_back({state, session->session.id, std::move(question), std::move(*asked)});
    } else {
      due.lost.push_back(std::move(question.id));
    }
  }
  return due;
}

}  // namespace

Task<bool> Chats::end_questions() {
  while (!deadlines_.stopping()) {
    deadlines_.begin_reading();
    auto job = [now_ms = to_ms(now())](store::Connection& connection) -> Result<DueQuestions> {
      return read_due(connection, now_ms);
    };
    auto due = co_await store_.read<DueQuestions>(std::move(job));
    if (!due) co_return false;
    if (due->next) deadlines_.note(*due->next);
    if (due->endings.empty() && due->lost.empty()) break;
    const auto ended = co_await end_together(std::move(due->endings), std::move(due->lost));
    if (ended || ended.error().code == Errc::already_answered) continue;
    if (ended.error().code != Errc::stopping)
      log::warn("chat.deadline_failed", "deadlines of questions could not be stored; tried again soon",
                {{"what", ended.error().detail}});
    co_return false;
  }
  co_return true;
}

// All or none: if one was answered since we looked, we look again.
Task<Result<>> Chats::end_together(std::vector<Ending> endings, std::vector<std::string> lost) {
  for (const std::string& id : lost)
    log::error("chat.deadline_lost", "a question has a deadline and nothing to ask; nothing happens to it",
               {{"id", id}});
  std::vector<bus::Outgoing> messages;
  std::vector<Saying> sayings;
  for (const Ending& ending : endings) {
    sayings.push_back(saying_for(ending, new_id()));
    if (ending.state != QuestionState::open && bus_.recipient(ending.question.asker))
      messages.push_back({.to = ending.question.asker,
                          .from = kBelfry,
                          .payload = news_of(ending),
                          .task_id = ending.asked.task_id,
                          .session_id = ending.session});
  }
  auto all = std::make_shared<std::vector<Said>>();
  auto also = [endings = std::move(endings), lost = std::move(lost), sayings = std::move(sayings), all,
               now = now()](store::Connection& connection) -> Result<bool> {
    all->clear();
    for (const std::string& id : lost) ChatTables::forget_deadline(connection, id);
    for (std::size_t i = 0; i < endings.size(); ++i) {
      const QuestionRow& question = endings[i].question;
      auto said = write_saying(connection, sayings[i], now);
      BELFRY_ASSERT(said.has_value());
      const bool ours = endings[i].state == QuestionState::open
                            ? ChatTables::reminded(connection, question.id, question.reminded + 1,
                                                   to_ms(now) + question.on_timeout.every.count())
                            : ChatTables::close(connection, question.id, endings[i].state, said->line.seq);
      if (!ours) return fail(Errc::already_answered, "the question was answered meanwhile");
      all->push_back(std::move(*said));
    }
    return true;
  };
  BELFRY_CO_CHECK(co_await bus_.send_together(std::move(messages), std::move(also)));
  for (const Said& said : *all) tell(said);
  co_return Result<>{};
}

}  // namespace belfry::chat
