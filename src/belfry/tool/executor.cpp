#include "belfry/tool/executor.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/bus/recipients.h"

namespace belfry::tool {
namespace {

// What a call may bring along: as much as a message.
constexpr std::size_t kArgumentsBytesMax = kBodyBytesMax;

// A failure as a model sees it: a word for programs, a sentence, and each place that was wrong.
std::string failure(const Error& error, const std::vector<Violation>& violations = {}) {
  json::Writer writer;
  writer.object().field("error", word(error.code)).field("message", error.detail);
  if (!violations.empty()) {
    writer.key("violations").array();
    for (const Violation& one : violations)
      writer.object().field("path", one.path).field("keyword", one.keyword).field("message", one.message).end();
    writer.end();
  }
  return writer.end().take();
}

// The word of a stored failure, as the code that it was made from.
Errc code_of(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Errc::question_closed); ++i)
    if (word(static_cast<Errc>(i)) == text) return static_cast<Errc>(i);
  return Errc::storage_failed;
}

CallOutcome refused(const Error& error) { return {.ok = false, .code = error.code, .result = failure(error)}; }

// Whether a violation lies in an argument that the tool judges by itself.
bool is_of(const Violation& violation, std::string_view argument) {
  if (!violation.path.starts_with('/')) return false;
  const std::string_view path = std::string_view(violation.path).substr(1);
  return path.substr(0, path.find('/')) == argument;
}

}  // namespace

void write_definition(json::Writer& writer, const Definition& definition) {
  writer.object().field("type", "function").key("function").object();
  writer.field("name", definition.name).field("description", definition.description);
  writer.key("parameters").raw(definition.parameters).end().end();
}

struct Executor::Begun {
  std::int64_t number = 0;
  std::optional<CallRecord> before;  // the same call was made, and has ended
};

Executor::Executor(Clock& clock, store::Store& store, chat::Chats& chats)
    : clock_(clock), store_(store), chats_(chats) {
  store::Connection& connection = store_.connection_before_start();
  CallTables::migrate(connection);
  if (const int count = CallTables::mark_interrupted(connection); count > 0)
    log::warn("tool.calls_interrupted", "tool calls were running when the last life of the server ended",
              {{"count", count}});
}

void Executor::add(std::unique_ptr<Tool> tool) {
  const Definition& definition = tool->definition();
  auto schema = Schema::compile(definition.parameters);
  BELFRY_ASSERT(schema.has_value());
  const std::string name = definition.name;
  tools_.emplace(name, Entry{std::move(tool), std::move(*schema)});
}

std::vector<const Definition*> Executor::definitions() const {
  std::vector<const Definition*> all;
  for (const auto& [name, entry] : tools_) all.push_back(&entry.tool->definition());
  return all;
}

// The session gives its zone; a caller that is not in it has no business there.
Task<Result<>> Executor::check_context(ToolContext& context) {
  if (!context.agent_id.empty()) BELFRY_CO_CHECK(bus::check_id("agentId", context.agent_id));
  if (context.call_id.size() > kKeyBytesMax)
    co_return fail(Errc::invalid_argument, fmt::format("callId is longer than {} bytes", kKeyBytesMax));
  if (context.task_id.size() > kTaskIdBytesMax)
    co_return fail(Errc::invalid_argument, fmt::format("taskId is longer than {} bytes", kTaskIdBytesMax));
  if (context.session_id.empty()) co_return Result<>{};
  BELFRY_CO_TRY(const chat::Session session, co_await chats_.session(context.session_id));
  if (!context.agent_id.empty() && !session.has(context.agent_id))
    co_return fail(Errc::invalid_argument,
                   fmt::format("\"{}\" is not in the session {}", context.agent_id, context.session_id));
  context.timezone = session.timezone;
  co_return Result<>{};
}

std::string Executor::violations(const Entry& entry, const std::string& arguments) const {
  const auto value = json::parse(arguments);
  if (!value) return failure({Errc::invalid_json, "arguments: " + value.error().detail});
  if (value->kind != json::Kind::object)
    return failure(
        {Errc::invalid_argument, fmt::format("arguments is {}; an object belongs there", json::name(value->kind))});
  std::vector<Violation> found = entry.schema.check(*value);
  for (const std::string_view own : entry.tool->judged_by_itself())
    std::erase_if(found, [&](const Violation& violation) { return is_of(violation, own); });
  if (found.empty()) return {};
  std::string all;
  for (const Violation& one : found) all += (all.empty() ? "" : "; ") + sentence(one);
  return failure({Errc::invalid_argument, std::move(all)}, found);
}

Result<Executor::Begun> Executor::begin(store::Connection& connection, const CallRecord& record) const {
  auto known = CallTables::find(connection, record.context);
  if (!known) return Begun{CallTables::begin(connection, record), std::nullopt};
  if (known->tool != record.tool || known->arguments != record.arguments)
    return fail(Errc::key_conflict, fmt::format("the callId was used for another call, of {}", known->tool));
  if (known->state == CallState::running)
    return fail(Errc::wrong_state, "this call is still running; ask again a little later");
  if (known->state == CallState::interrupted) {
    CallTables::begin_again(connection, known->number, to_ms(record.started_at));
    return Begun{known->number, std::nullopt};
  }
  const std::int64_t number = known->number;
  return Begun{number, std::move(known)};
}

Task<Result<CallOutcome>> Executor::call(CallRequest request) {
  const auto found = tools_.find(request.tool);
  if (found == tools_.end()) {
    std::string names;
    for (const auto& [name, entry] : tools_) names += (names.empty() ? "" : ", ") + name;
    co_return refused({Errc::unknown_tool,
                       fmt::format("there is no tool \"{}\"; there are: {}", request.tool.substr(0, 100), names)});
  }
  if (request.arguments.empty()) request.arguments = "{}";
  if (request.arguments.size() > kArgumentsBytesMax)
    co_return refused({Errc::too_large, fmt::format("arguments has {} bytes; at most {} are taken",
                                                    request.arguments.size(), kArgumentsBytesMax)});
  const auto fits = co_await check_context(request.context);
  if (!fits) co_return refused(fits.error());

  CallRecord record{.tool = request.tool,
                    .context = std::move(request.context),
                    .arguments = std::move(request.arguments),
                    .started_at = now()};
  auto job = [this, record](store::Connection& connection) { return begin(connection, record); };
  auto begun = co_await store_.write<Begun>(std::move(job));
  if (!begun) {
    const Errc code = begun.error().code;
    if (code == Errc::key_conflict || code == Errc::wrong_state) co_return refused(begun.error());
    co_return std::unexpected(begun.error());
  }
  if (begun->before) {
    CallRecord& before = *begun->before;
    const bool ok = before.state == CallState::done;
    co_return CallOutcome{.number = before.number,
                          .ok = ok,
                          .code = ok ? Errc::invalid_argument : code_of(before.error),
                          .result = std::move(before.result),
                          .repeated = true};
  }
  record.number = begun->number;
  co_return co_await run(found->second, std::move(record));
}

Task<CallOutcome> Executor::run(Entry& entry, CallRecord record) {
  CallOutcome outcome{.number = record.number};
  // No client can write a key with a control character in front of it.
  record.context.key = fmt::format(
      "\x01"
      "call {}",
      record.number);
  outcome.result = violations(entry, record.arguments);
  if (outcome.result.empty()) {
    Result<std::string> called = fail(Errc::storage_failed, "the tool ended with an exception");
    try {
      called = co_await entry.tool->call(record.context, record.arguments);
    } catch (const std::exception& e) {
      log::error("tool.failed", "a tool ended with an exception", {{"tool", record.tool}, {"what", e.what()}});
    }
    outcome.ok = called.has_value();
    if (!called) outcome.code = called.error().code;
    outcome.result = called ? std::move(*called) : failure(called.error());
  }
  record.state = outcome.ok ? CallState::done : CallState::failed;
  record.result = outcome.result;
  record.error = outcome.ok ? "" : std::string(word(outcome.code));
  record.ended_at = now();
  auto job = [record](store::Connection& connection) -> Result<> {
    CallTables::end(connection, record);
    return {};
  };
  const auto ended = co_await store_.write<void>(std::move(job));
  if (!ended)
    log::warn("tool.record_incomplete", "a tool call has ended, and its end could not be stored",
              {{"tool", record.tool}, {"number", record.number}, {"what", ended.error().detail}});
  co_return outcome;
}

Task<Result<std::vector<CallRecord>>> Executor::calls(CallTables::Query query) {
  query.limit = std::clamp(query.limit, 1, kListPageMax);
  auto job = [query](store::Connection& connection) -> Result<std::vector<CallRecord>> {
    return CallTables::list(connection, query);
  };
  co_return co_await store_.read<std::vector<CallRecord>>(std::move(job));
}

}  // namespace belfry::tool
