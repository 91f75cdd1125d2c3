// What people say: into the log and to the agents it is meant for, in one transaction.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/digest.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"

namespace belfry::chat {
namespace {

constexpr int kShownTextMax = 60;

std::string shortened(const std::string& text) {
  if (text.size() <= kShownTextMax) return text;
  std::size_t end = kShownTextMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

Result<> check(const Post& post) {
  if (post.quick_reply_index && post.in_reply_to.empty())
    return fail(Errc::invalid_argument, "quickReplyIndex stands alone; inReplyTo names the question that it answers");
  if (!post.quick_reply_index && is_blank(post.text)) return fail(Errc::invalid_argument, "text is empty");
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

bool is_id_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

// Whether a text calls somebody: "@bot", with nothing before it that would make it an address, and as a whole name.
bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    if (at > 0 && (is_id_letter(text[at - 1]) || (text[at - 1] >= 'A' && text[at - 1] <= 'Z'))) continue;
    std::string_view called = text.substr(at + 1);
    std::size_t length = 0;
    while (length < called.size() && is_id_letter(called[length])) ++length;
    called = called.substr(0, length);
    if (called == name) return true;
    while (!called.empty() && (called.back() == '.' || called.back() == '-')) called.remove_suffix(1);  // "@bot."
    if (called == name) return true;
  }
  return false;
}

Error already_ended(const QuestionRow& question, const QuestionStatus& status) {
  switch (question.state) {
    case QuestionState::answered:
      return {Errc::already_answered, status.answer
                                          ? fmt::format("the question was answered by {} at {}: {}", status.answer->by,
                                                        to_iso(status.answer->at), shortened(status.answer->text))
                                          : "the question was answered"};
    case QuestionState::defaulted:
      return {Errc::question_closed,
              fmt::format("too late: the time to answer ended at {}, and the default answer was taken{}",
                          question.answer_by_ms ? to_iso(wall_from_ms(*question.answer_by_ms)) : "",
                          status.answer ? ": " + shortened(status.answer->text) : "")};
    case QuestionState::expired:
      return {Errc::question_closed,
              fmt::format("too late: the question expired at {}",
                          question.answer_by_ms ? to_iso(wall_from_ms(*question.answer_by_ms)) : "")};
    default: return {Errc::question_closed, "the question is closed: something was typed instead"};
  }
}

// Everything that is decided in the transaction.
struct Decision {
  bool repeated = false;
  Line line;
  std::string session;
};

Result<> take_answer(store::Connection& connection, const SessionRow& session, Line& line) {
  const auto question = ChatTables::find_question(connection, line.in_reply_to);
  if (!question || question->session != session.number)
    return fail(Errc::not_found, fmt::format("{} is not a question of this session", line.in_reply_to));
  if (!ChatTables::close(connection, question->id, QuestionState::answered, session.session.last_seq + 1))
    return std::unexpected(already_ended(*question, ChatTables::status(connection, *question)));
  line.closes.push_back(question->id);
  return {};
}

// A typed reply ends what the agents it goes to have asked here, and answers the question that it names.
void close_by_text(store::Connection& connection, const SessionRow& session, const std::vector<std::string>& agents,
                   Line& line) {
  for (const std::string& agent : agents) {
    for (const std::string& id : ChatTables::open_questions(connection, session.number, agent)) {
      const bool named = id == line.in_reply_to;
      const auto state = named ? QuestionState::answered : QuestionState::closed;
      if (ChatTables::close(connection, id, state, session.session.last_seq + 1)) line.closes.push_back(id);
    }
  }
}

}  // namespace

struct Chats::Plan {
  SessionRow row;
  std::string from;
  std::string text;
  std::string task_id;
  std::string replied_to;    // who said what this replies to
  std::string last_speaker;  // the agent that last spoke to this person
  std::vector<std::string> agents;
};

// What can be known before the transaction; what may change meanwhile is looked at again in it.
Task<Result<Chats::Plan>> Chats::plan(const Post& post) {
  auto job = [post](store::Connection& connection) -> Result<Plan> {
    auto found = ChatTables::find(connection, post.session);
    if (!found)
      return fail(Errc::not_found, fmt::format("there is no session \"{}\"", post.session.substr(0, kIdBytesMax)));
    Plan plan{.row = std::move(*found), .from = post.from, .text = post.text};
    const std::vector<std::string> people = plan.row.session.people();
    if (plan.from.empty()) {
      const bool one = people.size() == 1;
      if (!one && std::find(people.begin(), people.end(), kDefaultPerson) == people.end())
        return fail(Errc::invalid_argument, "there are several people in this session; from says who speaks");
      plan.from = one ? people.front() : kDefaultPerson;
    }
    if (std::find(people.begin(), people.end(), plan.from) == people.end())
      return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a person of this session", plan.from));
    if (!post.in_reply_to.empty()) {
      const auto line = ChatTables::find_line(connection, post.in_reply_to);
      if (!line || ChatTables::session_of(connection, post.in_reply_to) != plan.row.number)
        return fail(Errc::not_found, fmt::format("inReplyTo: there is no message {} in this session",
                                                 post.in_reply_to.substr(0, kIdBytesMax)));
      plan.replied_to = line->from;
      plan.task_id = line->task_id;
      if (post.quick_reply_index) {
        const auto replies = bus::quick_replies_of(line->payload);
        const int index = *post.quick_reply_index;
        if (replies.empty())
          return fail(Errc::invalid_argument, fmt::format("the message {} has no quick replies", post.in_reply_to));
        if (index < 0 || index >= static_cast<int>(replies.size()))
          return fail(Errc::invalid_argument,
                      fmt::format("quickReplyIndex is {}; the message has {} quick replies, 0 to {}", index,
                                  replies.size(), replies.size() - 1));
        const std::string& reply = replies[static_cast<std::size_t>(index)];
        if (!post.text.empty() && post.text != reply)
          return fail(Errc::invalid_argument,
                      fmt::format("text differs from the quick reply {}: {}", index, shortened(reply)));
        plan.text = reply;
      }
    }
    if (const auto speaker = ChatTables::last_speaker_to(connection, plan.row.number, plan.from))
      plan.last_speaker = *speaker;
    return plan;
  };
  co_return co_await store_.read<Plan>(std::move(job));
}

// In a private conversation it is the agent; in a group whom it replies to, whom it calls, or who spoke last.
Result<std::vector<std::string>> Chats::addressees(const Post& post, const Plan& plan) const {
  std::vector<std::string> agents = plan.row.session.agents();
  if (plan.row.session.kind == SessionKind::private_chat) return agents;
  const auto is_agent = [&](const std::string& name) {
    return std::find(agents.begin(), agents.end(), name) != agents.end();
  };
  if (post.quick_reply_index && is_agent(plan.replied_to)) return std::vector{plan.replied_to};
  std::vector<std::string> called;
  for (const std::string& agent : agents)
    if (agent == plan.replied_to || mentions(plan.text, agent)) called.push_back(agent);
  if (called.empty() && is_agent(plan.last_speaker)) called.push_back(plan.last_speaker);
  return called;
}

std::vector<bus::Outgoing> Chats::to_agents(const Plan& plan, const Line& line,
                                            std::vector<std::string>& warnings) const {
  json::Writer payload;
  payload.object().field("text", plan.text).field("messageId", line.id);
  if (!line.in_reply_to.empty()) payload.field("inReplyTo", line.in_reply_to);
  if (line.quick_reply_index) payload.field("quickReplyIndex", *line.quick_reply_index);
  const std::string written = payload.end().take();
  std::vector<bus::Outgoing> messages;
  for (const std::string& agent : plan.agents) {
    if (!bus_.recipient(agent)) {
      warnings.push_back(fmt::format("\"{}\" is not registered, and does not hear this", agent));
      continue;
    }
    messages.push_back({.to = agent,
                        .from = plan.from,
                        .payload = written,
                        .task_id = line.task_id,
                        .session_id = plan.row.session.id});
  }
  if (plan.agents.empty()) warnings.push_back("no agent was called; @name calls one");
  return messages;
}

Task<Result<Posted>> Chats::post(Post post) {
  BELFRY_CO_CHECK(check(post));
  BELFRY_CO_TRY(Plan plan, co_await this->plan(post));
  BELFRY_CO_TRY(plan.agents, addressees(post, plan));

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
  std::vector<bus::Outgoing> messages = to_agents(plan, line, warnings);

  auto decision = std::make_shared<Decision>();
  auto also = [decision, line, post, agents = plan.agents](store::Connection& connection) -> Result<bool> {
    *decision = {.line = line, .session = post.session};
    auto session = ChatTables::find(connection, post.session);
    if (!session) return fail(Errc::not_found, "the session is gone");
    Line& said = decision->line;
    if (!post.key.empty())
      if (const auto known = ChatTables::find_key(connection, session->number, post.key)) {
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
    }
    ChatTables::append(connection, *session, said);
    if (!post.key.empty())
      ChatTables::add_key(connection, session->number, post.key,
                          {.body = body_of(post), .seq = said.seq, .line = said.id});
    return true;
  };
  const auto sent = co_await bus_.send_together(std::move(messages), std::move(also));
  if (!sent) co_return std::unexpected(sent.error());
  if (!decision->repeated) tell({decision->session, decision->line});
  co_return Posted{.id = decision->line.id,
                   .seq = decision->line.seq,
                   .repeated = decision->repeated,
                   .warnings = std::move(warnings)};
}

}  // namespace belfry::chat
