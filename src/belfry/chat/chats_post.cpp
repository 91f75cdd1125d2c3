// What people say: into the log and to the agents it is meant for, in one transaction.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/digest.h"
#include "belfry/base/json.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"

namespace belfry::chat {
namespace {

constexpr int kShownTextMax = 60;

std::string shortened(const std::string& text) { return belfry::shortened(text, kShownTextMax); }

Result<> check(const Post& post) {
  if (post.quick_reply_index && post.in_reply_to.empty())
    return fail(Errc::invalid_argument, "quickReplyIndex stands alone; inReplyTo names the question that it answers");
  if (!post.quick_reply_index && is_blank(post.text))
    return fail(Errc::invalid_argument,
                fmt::format("text is {}; a message needs one", post.text.empty() ? "empty" : "blank"));
  if (post.text.size() > kTextBytesMax)
    return fail(Errc::too_large,
                fmt::format("text has {} bytes; at most {} are taken", post.text.size(), kTextBytesMax));
  if (post.key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("key is longer than {} bytes", kKeyBytesMax));
  return {};
}

std::int64_t body_of(const Post& post) {
  return digest(
             fmt::format("{}\n{}\n{}\n{}", post.from, post.in_reply_to, post.quick_reply_index.value_or(-1), post.text))
      .high;
}

Error already_ended(const QuestionRow& question, const QuestionStatus& status) {
  const std::string at = to_iso(status.ended_at.value_or(wall_from_ms(question.next_ms.value_or(0))));
  switch (question.state) {
    case QuestionState::open:  // its deadline is being worked off
      return {Errc::question_closed, fmt::format("too late: the time to answer ended at {}", at)};
    case QuestionState::answered:
      return {Errc::already_answered, status.answer ? fmt::format("the question was answered by {} at {}: {}",
                                                                  status.answer->by, at, shortened(status.answer->text))
                                                    : "the question was answered"};
    case QuestionState::defaulted:
      return {Errc::question_closed,
              fmt::format("too late: the time to answer ended at {}, and the default answer was taken{}", at,
                          status.answer ? ": " + shortened(status.answer->text) : "")};
    case QuestionState::expired:
      return {Errc::question_closed, fmt::format("too late: the question expired at {}", at)};
    case QuestionState::closed: break;
  }
  return {Errc::question_closed, fmt::format("the question was closed at {}: something was typed instead", at)};
}

Error already_ended(store::Connection& connection, const QuestionRow& question) {
  const auto asked = ChatTables::find_line(connection, question.id);
  return already_ended(question, asked && asked->question ? *asked->question : QuestionStatus{});
}

// What a post means, as far as it can be known before the transaction; what may change meanwhile is looked at again in it.
struct Plan {
  Session session;
  std::int64_t number = 0;  // the session's
  std::string from;
  std::string text;
  std::string task_id;     // of the question that it answers
  std::string replied_to;  // who said what this replies to
  std::vector<std::string> agents;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<std::string> speaker(const Session& session, const Post& post) {
  const std::vector<std::string> people = session.people();
  if (!post.from.empty()) {
    if (has(people, post.from)) return post.from;
    return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a person of this session", post.from));
  }
  if (people.size() == 1) return people.front();
  if (has(people, kDefaultPerson)) return kDefaultPerson;
  return fail(Errc::invalid_argument, "there are several people in this session; from says who speaks");
}

// The text of the button that was pressed.
Result<std::string> pressed(const Post& post, const Line& asked) {
  const auto replies = bus::quick_replies_of(asked.payload);
  const int index = *post.quick_reply_index;
  if (replies.empty())
    return fail(Errc::invalid_argument, fmt::format("the message {} has no quick replies", asked.id));
  if (index < 0 || index >= static_cast<int>(replies.size()))
    return fail(Errc::invalid_argument, fmt::format("quickReplyIndex is {}; the message has {} quick replies, 0 to {}",
                                                    index, replies.size(), replies.size() - 1));
  const std::string& reply = replies[static_cast<std::size_t>(index)];
  if (!post.text.empty() && post.text != reply)
    return fail(Errc::invalid_argument,
                fmt::format("text differs from the quick reply {}: {}", index, shortened(reply)));
  return reply;
}

Result<> read_reply(store::Connection& connection, const Post& post, Plan& plan) {
  if (post.in_reply_to.empty()) return {};
  const auto line = ChatTables::find_line(connection, post.in_reply_to);
  if (!line || ChatTables::session_of(connection, post.in_reply_to) != plan.number)
    return fail(Errc::not_found, fmt::format("inReplyTo: there is no message {} in this session",
                                             post.in_reply_to.substr(0, kIdBytesMax)));
  plan.replied_to = line->from;
  const auto question = ChatTables::find_question(connection, line->id);
  const bool ours = question && question->person == plan.from;
  if (ours) plan.task_id = line->task_id;  // whatever else is said begins a task of its own (D20)
  if (!post.quick_reply_index) return {};
  BELFRY_TRY(plan.text, pressed(post, *line));
  if (question && !ours)
    return fail(Errc::invalid_argument,
                fmt::format("the question was put to \"{}\", and is theirs to answer", question->person));
  return {};
}

// In a private conversation it is the agent; in a group whom it replies to, whom it calls, or who spoke last.
std::vector<std::string> addressees(store::Connection& connection, const Post& post, const Plan& plan) {
  std::vector<std::string> agents = plan.session.agents();
  if (plan.session.kind == SessionKind::private_chat) return agents;
  if (post.quick_reply_index && has(agents, plan.replied_to)) return {plan.replied_to};
  std::vector<std::string> called;
  for (const std::string& agent : agents)
    if (agent == plan.replied_to || mentions(plan.text, agent)) called.push_back(agent);
  if (!called.empty()) return called;
  if (auto last = ChatTables::last_speaker_to(connection, plan.number, plan.from)) called.push_back(std::move(*last));
  return called;
}

Result<Plan> make_plan(store::Connection& connection, const Post& post) {
  auto found = ChatTables::find(connection, post.session);
  if (!found)
    return fail(Errc::not_found, fmt::format("there is no session \"{}\"", post.session.substr(0, kIdBytesMax)));
  Plan plan{.session = std::move(found->session), .number = found->number, .text = post.text};
  BELFRY_TRY(plan.from, speaker(plan.session, post));
  BELFRY_CHECK(read_reply(connection, post, plan));
  plan.agents = addressees(connection, post, plan);
  return plan;
}

std::vector<bus::Outgoing> to_agents(const bus::MessageBus& bus, const Plan& plan, const Line& line,
                                     std::vector<std::string>& warnings) {
  json::Writer payload;
  payload.object().field("text", plan.text).field("messageId", line.id);
  if (!line.in_reply_to.empty()) payload.field("inReplyTo", line.in_reply_to);
  if (line.quick_reply_index) payload.field("quickReplyIndex", *line.quick_reply_index);
  const std::string written = payload.end().take();
  std::vector<bus::Outgoing> messages;
  for (const std::string& agent : plan.agents) {
    if (!bus.recipient(agent)) {
      warnings.push_back(fmt::format("\"{}\" is not registered, and does not hear this", agent));
      continue;
    }
    messages.push_back(
        {.to = agent, .from = plan.from, .payload = written, .task_id = line.task_id, .session_id = plan.session.id});
  }
  if (plan.agents.empty()) warnings.push_back("no agent was called; @name calls one");
  return messages;
}

// Everything that is decided in the transaction.
struct Decision {
  bool repeated = false;
  Line line;
  std::vector<std::string> warnings;
};

Result<> take_answer(store::Connection& connection, const SessionRow& session, Line& line) {
  const auto question = ChatTables::find_question(connection, line.in_reply_to);
  if (!question || question->session != session.number)
    return fail(Errc::not_found, fmt::format("{} is not a question of this session", line.in_reply_to));
  if (question->is_over(to_ms(line.said_at)) ||
      !ChatTables::close(connection, question->id, QuestionState::answered, session.session.last_seq + 1))
    return std::unexpected(already_ended(connection, *question));
  line.closes.push_back(question->id);
  return {};
}

// A typed reply ends what the agents it goes to want to know from this person, and answers the question that it names.
void close_by_text(store::Connection& connection, const SessionRow& session, const std::vector<std::string>& agents,
                   Line& line) {
  for (const std::string& agent : agents) {
    for (const QuestionRow& question : ChatTables::open_questions(connection, session.number, agent, line.from)) {
      if (question.is_over(to_ms(line.said_at))) continue;  // its deadline decides
      const auto state = question.id == line.in_reply_to ? QuestionState::answered : QuestionState::closed;
      if (ChatTables::close(connection, question.id, state, session.session.last_seq + 1))
        line.closes.push_back(question.id);
    }
  }
}

// What somebody should know whose typed reply names a question and does not answer it.
std::optional<std::string> vain_reply(store::Connection& connection, const Line& line) {
  if (line.in_reply_to.empty() || has(line.closes, line.in_reply_to)) return std::nullopt;
  const auto question = ChatTables::find_question(connection, line.in_reply_to);
  if (!question) return std::nullopt;
  if (question->person != line.from)
    return fmt::format("the question was put to \"{}\", and this does not answer it", question->person);
  return already_ended(connection, *question).detail + "; this was said all the same";
}

}  // namespace

Task<Result<Posted>> Chats::post(Post post) {
  BELFRY_CO_CHECK(check(post));
  auto look = [post](store::Connection& connection) { return make_plan(connection, post); };
  BELFRY_CO_TRY(const Plan plan, co_await store_.read<Plan>(std::move(look)));

  json::Writer payload;
  payload.object().field("text", plan.text).end();
  const Line line{.id = new_id(),
                  .from = plan.from,
                  .source = Source::user,
                  .payload = payload.take(),
                  .task_id = plan.task_id.empty() ? new_id() : plan.task_id,
                  .in_reply_to = post.in_reply_to,
                  .quick_reply_index = post.quick_reply_index,
                  .created_at = now(),
                  .said_at = now()};
  std::vector<std::string> warnings;
  std::vector<bus::Outgoing> messages = to_agents(bus_, plan, line, warnings);

  auto decision = std::make_shared<Decision>();
  const std::int64_t keys_since_ms = to_ms(now() - bus_.retention());
  auto also = [decision, line, post, keys_since_ms,
               agents = plan.agents](store::Connection& connection) -> Result<bool> {
    *decision = {.line = line};
    auto session = ChatTables::find(connection, post.session);
    if (!session) return fail(Errc::not_found, "the session is gone");
    Line& said = decision->line;
    if (!post.key.empty())
      if (const auto known = ChatTables::find_key(connection, session->number, post.key, keys_since_ms)) {
        if (known->body != body_of(post))
          return fail(Errc::key_conflict, fmt::format("the key was used for another message, {}", known->line));
        decision->repeated = true;
        said.id = known->line;
        said.seq = known->seq;
        return false;
      }
    if (post.quick_reply_index) {
      BELFRY_CHECK(take_answer(connection, *session, said));
    } else {
      close_by_text(connection, *session, agents, said);
      if (auto warning = vain_reply(connection, said)) decision->warnings.push_back(std::move(*warning));
    }
    ChatTables::append(connection, *session, said);
    if (!post.key.empty())
      ChatTables::add_key(connection, session->number, post.key,
                          {.body = body_of(post), .seq = said.seq, .line = said.id}, to_ms(said.said_at),
                          keys_since_ms);
    return true;
  };
  BELFRY_CO_CHECK(co_await bus_.send_together(std::move(messages), std::move(also)));
  if (!decision->repeated) tell({plan.session.id, decision->line});
  std::move(decision->warnings.begin(), decision->warnings.end(), std::back_inserter(warnings));
  co_return Posted{.id = decision->line.id,
                   .seq = decision->line.seq,
                   .repeated = decision->repeated,
                   .warnings = std::move(warnings)};
}

}  // namespace belfry::chat
