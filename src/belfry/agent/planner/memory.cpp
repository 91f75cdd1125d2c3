#include "belfry/agent/planner/memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/agent/planner/prompt.h"
#include "belfry/agent/planner/turn_tables.h"
#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"

namespace belfry::agent {
namespace {

// What is looked at in one go.
constexpr int kLinesMax = 50;
constexpr std::size_t kLineBytesMax = 2'000;
constexpr std::size_t kLearntMax = 10;
// Conversations that are looked at at the same time; others wait for their next message.
constexpr std::size_t kLookingMax = 16;

struct Silent final : llm::Progress {
  void wrote(std::string_view) override {}
};

// Models like to put their JSON between fences or words.
std::string_view object_in(std::string_view text) {
  const std::size_t first = text.find('{');
  const std::size_t last = text.rfind('}');
  return first == std::string_view::npos || last < first ? std::string_view{} : text.substr(first, last - first + 1);
}

}  // namespace

Memory::Memory(asio::io_context& context, Clock& clock, store::Store& store, chat::Chats& chats, Roster& roster,
               llm::Model* model, std::int64_t task_calls_max)
    : clock_(clock),
      store_(store),
      chats_(chats),
      roster_(roster),
      model_(model),
      task_calls_max_(task_calls_max),
      tasks_(context) {
  MemoryTables::migrate(store_.connection_before_start());
  chats_.listen(*this);
}

Memory::~Memory() { chats_.unlisten(*this); }

void Memory::close() {
  closed_ = true;
  const auto all = under_way_;  // one that is cancelled leaves the list
  for (const std::shared_ptr<Cancel>& one : all) one->cancel();
}

void Memory::said(const std::string& session, const chat::Line& line) {
  if (!model_ || closed_ || line.source == chat::Source::system) return;
  if (looking_.contains(session)) {
    came_meanwhile_.insert(session);
    return;
  }
  if (looking_.size() >= kLookingMax) return;
  looking_.insert(session);
  tasks_.spawn("a look for facts", look(session));
}

Task<void> Memory::look(std::string session) {
  bool more = true;
  while (more && !closed_) {
    came_meanwhile_.erase(session);
    const auto looked = co_await look_once(session);
    if (!looked && !closed_)
      log::warn("memory.failed", "a conversation was not looked at for facts; the next message has it looked at again",
                {{"session", session}, {"error", word(looked.error().code)}, {"what", looked.error().detail}});
    more = looked && (*looked || came_meanwhile_.contains(session));
  }
  looking_.erase(session);
  came_meanwhile_.erase(session);
}

// True if there may be more.
Task<Result<bool>> Memory::look_once(std::string session) {
  BELFRY_CO_TRY(auto looked, co_await read(session));
  if (!looked) co_return false;
  const bool more = looked->lines.size() == kLinesMax;
  const bool by_people =
      std::ranges::any_of(looked->lines, [](const chat::Line& line) { return line.source == chat::Source::user; });
  Learnt learnt;
  if (by_people) {
    Silent silent;
    const auto cancel = std::make_shared<Cancel>();
    under_way_.insert(cancel);
    const auto asked = co_await model_->complete(request(*looked), silent, cancel);
    under_way_.erase(cancel);
    BELFRY_CO_TRY(const llm::ChatAnswer answer, asked);
    auto read = read_answer(answer.text, *looked, session);
    // An answer that cannot be read is not asked for again: the next one may be better.
    if (read) learnt = std::move(*read);
    if (!read)
      log::warn("memory.garbled", "what a model wanted to keep could not be read",
                {{"session", session}, {"what", read.error().detail}});
    const Spend more_spent{.calls = 1, .tokens = answer.usage.prompt_tokens + answer.usage.completion_tokens};
    auto job = [task = looked->lines.back().task_id, more_spent,
                now = round_down(clock_.now().wall)](store::Connection& connection) -> Result<> {
      TurnTables::spend(connection, task, more_spent, to_ms(now));
      return {};
    };
    BELFRY_CO_CHECK(co_await store_.write<void>(std::move(job)));
  }
  BELFRY_CO_CHECK(co_await write(session, std::move(*looked), std::move(learnt)));
  co_return more;
}

// Nothing if nobody there keeps facts, nothing is new, or its task has cost enough.
Task<Result<std::optional<Memory::Looked>>> Memory::read(std::string session) {
  BELFRY_CO_TRY(const chat::Session found, co_await chats_.session(session));
  Looked looked;
  bool keeps = false;
  for (const std::string& agent : found.agents()) {
    const auto profile = roster_.find(agent);
    if (!profile || !profile->memory) continue;
    keeps = true;
    looked.model = profile->model;
  }
  if (!keeps) co_return std::nullopt;
  looked.people = found.people();
  auto job = [looked, session, most = task_calls_max_](store::Connection& connection) -> Result<std::optional<Looked>> {
    Looked all = looked;
    const auto row = chat::ChatTables::find(connection, session);
    if (!row) return std::nullopt;
    all.lines =
        chat::ChatTables::read(connection, row->number, MemoryTables::looked_to(connection, session), kLinesMax);
    if (all.lines.empty()) return std::nullopt;
    if (TurnTables::spent(connection, all.lines.back().task_id).calls >= most) return std::nullopt;
    for (const std::string& person : all.people)
      for (Fact& fact : MemoryTables::list(connection, person, kFactsMax)) all.known.push_back(std::move(fact));
    return all;
  };
  co_return co_await store_.read<std::optional<Looked>>(std::move(job));
}

llm::ChatRequest Memory::request(const Looked& looked) {
  std::string text = "Known facts:\n";
  for (const Fact& fact : looked.known)
    text += fmt::format("{} {}: {}\n", fact.number, fact.person, json::quoted(fact.text));
  if (looked.known.empty()) text += "none\n";
  text += fmt::format("\nPeople: {}\n\nSaid since:\n", fmt::join(looked.people, ", "));
  for (const chat::Line& line : looked.lines)
    text += fmt::format("{}: {}\n", line.from, json::quoted(shortened(told(line.payload), kLineBytesMax)));
  return {.model = looked.model,
          .messages = {{.role = llm::Role::system, .content = std::string(memory_prompt())},
                       {.role = llm::Role::user, .content = std::move(text)}}};
}

Result<Memory::Learnt> Memory::read_answer(const std::string& text, const Looked& looked, const std::string& session) {
  BELFRY_TRY(const json::Value answer, json::parse(object_in(text)));
  if (answer.kind != json::Kind::object) return fail(Errc::model_garbled, "the answer is no object");
  Learnt learnt;
  const auto facts = json::find(answer, "facts");
  if (facts && facts->kind == json::Kind::array) {
    for (const json::Value one : json::elements(*facts)) {
      if (one.kind != json::Kind::object || learnt.facts.size() == kLearntMax) continue;
      Fact fact{.person = json::text_in(one, "person"), .text = json::text_in(one, "text"), .session = session};
      const bool known_person = std::ranges::find(looked.people, fact.person) != looked.people.end();
      const bool one_line = std::ranges::none_of(fact.text, [](char c) { return c >= 0 && c < ' '; });
      const bool fits = !is_blank(fact.text) && one_line && fact.text.size() <= kFactBytesMax;
      if (known_person && fits) learnt.facts.push_back(std::move(fact));
    }
  }
  const auto forget = json::find(answer, "forget");
  if (forget && forget->kind == json::Kind::array)
    for (const json::Value one : json::elements(*forget))
      if (one.kind == json::Kind::number)
        if (const auto number = json::integer(one)) learnt.forget.push_back(*number);
  return learnt;
}

Task<Result<>> Memory::write(std::string session, Looked looked, Learnt learnt) {
  auto job = [session, looked, learnt, now = round_down(clock_.now().wall)](store::Connection& connection) -> Result<> {
    for (const std::int64_t number : learnt.forget)
      for (const std::string& person : looked.people) MemoryTables::remove(connection, person, number);
    for (Fact fact : learnt.facts) {
      fact.learnt_at = now;
      MemoryTables::add(connection, fact);
    }
    MemoryTables::set_looked_to(connection, session, looked.lines.back().seq);
    return {};
  };
  co_return co_await store_.write<void>(std::move(job));
}

Task<Result<std::vector<Fact>>> Memory::facts(std::string person) {
  auto job = [person](store::Connection& connection) -> Result<std::vector<Fact>> {
    return MemoryTables::list(connection, person, kFactsMax);
  };
  co_return co_await store_.read<std::vector<Fact>>(std::move(job));
}

Task<Result<>> Memory::forget(std::string person, std::int64_t number) {
  auto job = [person, number](store::Connection& connection) -> Result<> {
    if (MemoryTables::remove(connection, person, number)) return {};
    return fail(Errc::not_found, fmt::format("no fact {} is known about \"{}\"", number, person));
  };
  co_return co_await store_.write<void>(std::move(job));
}

Task<Result<std::int64_t>> Memory::forget_all(std::string person) {
  auto job = [person](store::Connection& connection) -> Result<std::int64_t> {
    return MemoryTables::remove_all(connection, person);
  };
  co_return co_await store_.write<std::int64_t>(std::move(job));
}

}  // namespace belfry::agent
