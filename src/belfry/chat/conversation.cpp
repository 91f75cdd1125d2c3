#include "belfry/chat/conversation.h"

#include <algorithm>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"

namespace belfry::chat {

std::string_view word(SessionKind kind) { return kind == SessionKind::group ? "group" : "private"; }

std::optional<SessionKind> parse_session_kind(std::string_view text) {
  if (text == "private") return SessionKind::private_chat;
  if (text == "group") return SessionKind::group;
  return std::nullopt;
}

bool Session::has(std::string_view name) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& member) { return member.id == name; });
}

std::vector<std::string> Session::people() const {
  std::vector<std::string> names;
  for (const Member& member : members)
    if (member.person) names.push_back(member.id);
  return names;
}

std::vector<std::string> Session::agents() const {
  std::vector<std::string> names;
  for (const Member& member : members)
    if (!member.person) names.push_back(member.id);
  return names;
}

std::string_view word(Source source) {
  switch (source) {
    case Source::user: return "user";
    case Source::agent: return "agent";
    case Source::scheduled_send: return "scheduled_send";
    case Source::tool: return "tool";
    case Source::system: return "system";
  }
  assertion_failed("a known source", __FILE__, __LINE__);
}

Source parse_source(std::string_view text) {
  for (const Source source : {Source::user, Source::agent, Source::scheduled_send, Source::tool})
    if (word(source) == text) return source;
  return Source::system;
}

std::string_view word(QuestionState state) {
  switch (state) {
    case QuestionState::open: return "open";
    case QuestionState::answered: return "answered";
    case QuestionState::closed: return "closed";
    case QuestionState::defaulted: return "defaulted";
    case QuestionState::expired: return "expired";
  }
  assertion_failed("a known state", __FILE__, __LINE__);
}

std::string_view word(OnTimeout::Action action) {
  switch (action) {
    case OnTimeout::Action::expire: return "expire";
    case OnTimeout::Action::default_answer: return "default";
    case OnTimeout::Action::remind: return "remind";
  }
  return "expire";
}

QuestionState parse_question_state(std::string_view text) {
  for (const QuestionState state :
       {QuestionState::open, QuestionState::answered, QuestionState::defaulted, QuestionState::expired})
    if (word(state) == text) return state;
  return QuestionState::closed;
}

namespace {

bool is_id_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

}  // namespace

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

std::string text_of(std::string_view payload) {
  const auto value = json::parse(payload);
  if (!value) return {};
  if (value->kind == json::Kind::string) return json::text(*value);
  if (value->kind != json::Kind::object) return {};
  const auto text = json::find(*value, "text");
  return text && text->kind == json::Kind::string ? json::text(*text) : std::string();
}

}  // namespace belfry::chat
