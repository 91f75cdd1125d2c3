#include "belfry/agent/planner/context.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"

namespace belfry::agent {
namespace {

using llm::ChatMessage;
using llm::Role;

constexpr std::string_view kOpen = "⟦";
constexpr std::string_view kClose = "⟧";
constexpr std::size_t kQuotedBytesMax = 200;
// As chat completions have it.
constexpr std::size_t kToolNameBytesMax = 64;

// Of things that happened in the same millisecond: what was said, what was done about it, what was answered.
enum Rank { kHeard, kCalled, kSaid };

std::string note(std::string_view text) { return fmt::format("{}{}{}", kOpen, text, kClose); }

// As JSON has it: no quote and no new line of somebody else's ends it.
std::string quoted(std::string_view text) { return json::quoted(without_brackets(shortened(text, kQuotedBytesMax))); }

std::string list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("{}{}", out.empty() ? "" : ", ", quoted(text));
  return out;
}

std::string answer_of(const chat::QuestionStatus& question) {
  switch (question.state) {
    case chat::QuestionState::open: return "not answered yet";
    case chat::QuestionState::closed: return "closed by what was typed instead";
    case chat::QuestionState::expired: return "not answered in time";
    case chat::QuestionState::answered:
    case chat::QuestionState::defaulted: break;
  }
  if (!question.answer) return "answered";
  return fmt::format("{}: {} by {}",
                     question.state == chat::QuestionState::defaulted ? "not answered in time, taken for" : "answered",
                     quoted(question.answer->text), question.answer->by);
}

const chat::Line* line_named(const Material& material, const std::string& id) {
  const auto found = std::ranges::find_if(material.lines, [&id](const chat::Line& line) { return line.id == id; });
  return found == material.lines.end() ? nullptr : &*found;
}

// In a log it is the text that counts; what else stands in a payload is for programs.
std::string text_in_log(const chat::Line& line) {
  const std::string text = chat::text_of(line.payload);
  return text.empty() ? told(line.payload) : without_brackets(text);
}

// What the log has anyway.
bool is_talk(const std::string& tool) { return tool == "reply" || tool == "stay_silent"; }

}  // namespace

std::size_t Item::bytes() const {
  std::size_t sum = 0;
  for (const ChatMessage& message : messages) {
    sum += message.content.size() + 16;
    for (const llm::ToolCall& call : message.calls) sum += call.name.size() + call.arguments.size() + 32;
  }
  return sum;
}

std::string without_brackets(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool opens = rest.starts_with(kOpen);
    if (opens || rest.starts_with(kClose)) {
      out += opens ? "[[" : "]]";
      at += kOpen.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string without_notes(std::string_view answer) {
  std::string out;
  for (std::size_t at = 0; at < answer.size();) {
    const std::size_t open = answer.find(kOpen, at);
    out += answer.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = answer.find(kClose, open);
    if (close == std::string_view::npos) {  // nothing closes it, nor any that follows
      out += without_brackets(answer.substr(open));
      break;
    }
    at = close + kClose.size();
  }
  const std::size_t first = out.find_first_not_of(" \n\t\r");
  const std::size_t last = out.find_last_not_of(" \n\t\r");
  return first == std::string::npos ? "" : out.substr(first, last - first + 1);
}

std::string told(std::string_view payload) {
  const auto value = json::parse(payload);
  if (!value) return without_brackets(payload);
  if (value->kind == json::Kind::string) return without_brackets(json::text(*value));
  if (value->kind != json::Kind::object) return without_brackets(payload);
  static constexpr std::string_view kTold[] = {"text",      "quickReplies", "messageId",      "draftId",
                                               "inReplyTo", "answerBy",     "quickReplyIndex"};
  for (const json::Member& member : json::every_member(*value))
    if (std::ranges::find(kTold, member.key) == std::end(kTold)) return without_brackets(payload);
  const std::string text = json::text_in(*value, "text");
  return without_brackets(text.empty() ? payload : std::string_view(text));
}

std::string Teller::clipped(std::string_view text) const {
  const std::string_view shown = beginning(text, item_bytes_max_);
  if (shown.size() == text.size()) return std::string(text);
  return fmt::format("{}\n{}", shown, note(fmt::format("{} more bytes are left out", text.size() - shown.size())));
}

std::string Teller::header(const chat::Line& line, const Material& material) const {
  std::string who = line.source == chat::Source::system ? "Belfry" : line.from;
  // Said in an agent's name, but not by it.
  if (line.source == chat::Source::tool) who = "a tool that reports here, seen by everybody";
  std::string text = fmt::format("{}, {}", who, at(line.said_at));
  if (line.due_at) text += fmt::format(", written {}", at(line.created_at));
  if (!line.in_reply_to.empty()) {
    const chat::Line* const asked = line_named(material, line.in_reply_to);
    text += asked ? fmt::format(", answers {}", quoted(chat::text_of(asked->payload))) : ", answers an earlier line";
  }
  return note(text);
}

std::string Teller::own_line(const chat::Line& line) const {
  std::string text = text_in_log(line);
  if (line.due_at)
    text = fmt::format(
        "{}\n{}",
        note(fmt::format("written {}, for {}, sent {}", at(line.created_at), at(*line.due_at), at(line.said_at))),
        text);
  if (const auto replies = bus::quick_replies_of(line.payload); !replies.empty())
    text += "\n" + note(fmt::format("offered answers: {}; {}", list(replies),
                                    line.question ? answer_of(*line.question) : "not answered yet"));
  return text;
}

Item Teller::line(const chat::Line& line, const Material& material) const {
  if (line.from == agent_ && line.source != chat::Source::tool)
    return {line.said_at, kSaid, {{.role = Role::assistant, .content = clipped(own_line(line))}}};
  std::string text = fmt::format("{}\n{}", header(line, material), clipped(text_in_log(line)));
  return {line.said_at, kHeard, {{.role = Role::user, .content = std::move(text)}}};
}

std::string Teller::heard(const Turn& turn) const {
  std::string who = turn.from == agent_          ? "what you wrote to yourself"
                    : turn.from == chat::kBelfry ? "Belfry, about a run of yours that has ended"
                                                 : fmt::format("agent {}", quoted(turn.from));
  who += fmt::format(", written {}", at(turn.written_at));
  if (turn.due_at > turn.written_at) who += fmt::format(", for {}", at(turn.due_at));
  who += fmt::format(", delivered {}", at(turn.began_at));
  const auto payload = json::parse(turn.payload);
  if (payload && payload->kind == json::Kind::object) {
    if (const std::string answered = json::text_in(*payload, "inReplyTo"); !answered.empty())
      who += fmt::format(", answers your message {}", quoted(answered));
  }
  std::string text = fmt::format("{}\n{}", note(who), clipped(told(turn.payload)));
  const auto replies = bus::quick_replies_of(turn.payload);
  if (!replies.empty())
    text += "\n" + note(fmt::format("offered answers: {}; {}", list(replies),
                                    turn.answered.empty() ? "answer with one of them or freely"
                                                          : fmt::format("you answered: {}", quoted(turn.answered))));
  return text;
}

Item Teller::call(const tool::CallRecord& record) const {
  const std::string id = fmt::format("call_{}", record.number);
  ChatMessage wanted{.role = Role::assistant, .calls = {presentable({id, record.tool, record.arguments})}};
  std::string shown = record.result.empty() ? R"({"error":"interrupted"})" : result(record.result);
  ChatMessage given{.role = Role::tool, .content = std::move(shown), .call_id = id};
  return {record.started_at, kCalled, {std::move(wanted), std::move(given)}};
}

llm::ToolCall Teller::presentable(llm::ToolCall call) const {
  for (char& c : call.name) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!fits) c = '_';
  }
  call.name = call.name.empty() ? "unnamed" : std::string(beginning(call.name, kToolNameBytesMax));
  const auto value = json::parse(call.arguments);
  const bool is_object = value && value->kind == json::Kind::object;
  if (is_object && call.arguments.size() <= item_bytes_max_) return call;
  json::Writer writer;
  call.arguments = writer.object().field("unreadable", shortened(call.arguments, kQuotedBytesMax)).end().take();
  return call;
}

std::vector<Item> Teller::items(const Material& material) const {
  std::vector<Item> all;
  for (const chat::Line& one : material.lines) all.push_back(line(one, material));
  for (const Turn& turn : material.turns) {
    all.push_back({turn.began_at, kHeard, {{.role = Role::user, .content = heard(turn)}}});
    const auto answers = material.answers.find(turn.message);
    if (answers == material.answers.end()) continue;
    for (const Step& step : answers->second)
      if (!step.text.empty())
        all.push_back({turn.ended_at.value_or(turn.began_at),
                       kSaid,
                       {{.role = Role::assistant, .content = clipped(without_notes(step.text))}}});
  }
  for (const tool::CallRecord& record : material.calls)
    if (!is_talk(record.tool) || material.lines.empty()) all.push_back(call(record));
  if (material.summary) std::erase_if(all, [&](const Item& item) { return item.at <= material.summary->up_to; });
  for (std::size_t i = 0; i < all.size(); ++i) all[i].order = i;
  std::ranges::sort(all, {}, [](const Item& item) { return std::tuple(item.at, item.rank, item.order); });
  return all;
}

Cut cut(std::vector<Item> items, std::size_t budget_bytes) {
  std::size_t total = 0;
  for (const Item& item : items) total += item.bytes();
  if (total <= budget_bytes || items.size() < 2) return {std::move(items), {}};
  std::size_t first = items.size() - 1;
  std::size_t kept = items[first].bytes();
  while (first > 0 && kept + items[first - 1].bytes() <= budget_bytes / 2) kept += items[--first].bytes();
  // A summary ends at a moment: what happened in the same one is not torn apart.
  while (first > 0 && items[first].at == items[first - 1].at) --first;
  Cut both;
  both.left_out.assign(std::make_move_iterator(items.begin()),
                       std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(first)));
  both.kept.assign(std::make_move_iterator(items.begin() + static_cast<std::ptrdiff_t>(first)),
                   std::make_move_iterator(items.end()));
  return both;
}

std::vector<ChatMessage> notes(const Material& material, bool something_is_missing) {
  std::vector<ChatMessage> all;
  std::string facts;
  for (const Fact& fact : material.facts)
    facts += fmt::format("\n- {}: {}", fact.person, json::quoted(without_brackets(fact.text)));
  if (!facts.empty())
    all.push_back({.role = Role::user, .content = note("what is known from earlier conversations") + facts});
  if (material.summary)
    all.push_back({.role = Role::user,
                   .content = note("notes on what was said before") + "\n" + without_brackets(material.summary->text)});
  if (something_is_missing) all.push_back({.role = Role::user, .content = note("older messages are left out here")});
  return all;
}

std::string as_text(const std::vector<Item>& items) {
  std::string out;
  for (const Item& item : items)
    for (const ChatMessage& message : item.messages) {
      if (message.role == Role::assistant && !message.content.empty()) out += note("the agent") + "\n";
      out += message.content;
      for (const llm::ToolCall& call : message.calls)
        out += note(fmt::format("the agent called {}", call.name)) + call.arguments;
      out += "\n\n";
    }
  return out;
}

}  // namespace belfry::agent
