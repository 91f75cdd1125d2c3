#include "belfry/tool/executor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/recipients.h"
#include "belfry/tool/schema/json_tree.h"

namespace belfry::tool {
namespace {

constexpr std::size_t kValuesMax = 100'000;  // in arguments that are compared

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

CallOutcome refused(const Error& error, const std::vector<Violation>& violations = {}) {
  return {.ok = false, .code = error.code, .result = failure(error, violations)};
}

// A schema that takes anything for the arguments that a tool judges by itself.
std::string without(std::string_view parameters, const std::vector<std::string_view>& judged_by_itself) {
  json::Writer writer;
  writer.object();
  for (const json::Member& member : json::every_member(*json::parse(parameters))) {
    writer.key(member.key);
    if (member.key != "properties") {
      writer.raw(member.value.raw);
      continue;
    }
    writer.object();
    for (const json::Member& property : json::every_member(member.value)) {
      const bool own = std::ranges::find(judged_by_itself, property.key) != judged_by_itself.end();
      writer.key(property.key).raw(own ? "true" : property.value.raw);
    }
    writer.end();
  }
  return writer.end().take();
}

// Whether two texts mean the same JSON: a client that makes its call again may write the members in another order.
bool same_json(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = json::parse(a);
  const auto second = json::parse(b);
  if (!first || !second) return false;
  const auto left = Tree::read(*first, kValuesMax);
  const auto right = Tree::read(*second, kValuesMax);
  return left && right && compare(left->root(), right->root()) == 0;
}

// What can be written down: everything else about a call may be wrong, and its record says so.
Result<> check_size(const CallRequest& request) {
  const ToolContext& context = request.context;
  if (request.tool.size() > kIdBytesMax)
    return fail(Errc::unknown_tool, fmt::format("no tool has a name of more than {} bytes", kIdBytesMax));
  if (request.arguments.size() > kBodyBytesMax)
    return fail(Errc::too_large,
                fmt::format("arguments has {} bytes; at most {} are taken", request.arguments.size(), kBodyBytesMax));
  if (!context.agent_id.empty()) BELFRY_CHECK(bus::check_id("agentId", context.agent_id));
  if (!context.session_id.empty()) BELFRY_CHECK(bus::check_id("sessionId", context.session_id));
  if (context.call_id.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("callId is longer than {} bytes", kKeyBytesMax));
  if (context.task_id.size() > kTaskIdBytesMax)
    return fail(Errc::invalid_argument, fmt::format("taskId is longer than {} bytes", kTaskIdBytesMax));
  return {};
}

}  // namespace

void write_definition(json::Writer& writer, const Definition& definition) {
  writer.object().field("type", "function").key("function").object();
  writer.field("name", definition.name).field("description", definition.description);
  writer.key("parameters").raw(definition.parameters).end().end();
}

struct Executor::Begun {
  std::int64_t number = 0;
  bool again = false;
  std::optional<CallRecord> before;  // the same call was made, and has come to its end
};

// Keeps the name of a call while it is under way.
class Executor::Running {
 public:
  Running(std::set<std::string>& all, const ToolContext& context) : all_(all) {
    if (context.call_id.empty()) return;
    name_ = fmt::format("{}\n{}\n{}", context.agent_id, context.session_id, context.call_id);
    is_first_ = all_.insert(name_).second;
  }
  ~Running() {
    if (is_first_ && !name_.empty()) all_.erase(name_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  bool is_first() const { return is_first_; }

 private:
  std::set<std::string>& all_;
  std::string name_;
  bool is_first_ = true;
};

Executor::Executor(Clock& clock, store::Store& store, chat::Chats& chats, Millis retention)
    : clock_(clock), store_(store), chats_(chats), retention_(retention) {
  store::Connection& connection = store_.connection_before_start();
  CallTables::migrate(connection);
  if (const int count = CallTables::mark_interrupted(connection); count > 0)
    log::warn("tool.calls_interrupted", "tool calls were running when the last life of the server ended",
              {{"count", count}});
}

void Executor::add(std::unique_ptr<Tool> tool) {
  const Definition& definition = tool->definition();
  BELFRY_ASSERT(Schema::compile(definition.parameters).has_value());
  auto schema = Schema::compile(without(definition.parameters, tool->judged_by_itself()));
  BELFRY_ASSERT(schema.has_value());
  const std::string name = definition.name;
  tools_.insert_or_assign(name, std::make_shared<const Entry>(std::move(tool), std::move(*schema)));
}

void Executor::remove(const std::string& name) { tools_.erase(name); }

std::vector<const Definition*> Executor::definitions(const chat::Session* session) const {
  const bool in_group = session && session->kind != chat::SessionKind::private_chat;
  std::vector<const Definition*> all;
  for (const auto& [name, entry] : tools_)
    if (!in_group || !entry->tool->in_private_chats_only()) all.push_back(&entry->tool->definition());
  return all;
}

const Tool* Executor::find(std::string_view name) const {
  const auto found = tools_.find(name);
  return found == tools_.end() ? nullptr : found->second->tool.get();
}

Result<> Executor::check(std::string_view name, const std::string& arguments) const {
  const auto found = tools_.find(name);
  if (found == tools_.end())
    return fail(Errc::unknown_tool, fmt::format("there is no tool \"{}\"", beginning(name, kIdBytesMax)));
  const auto misfits = misfit(*found->second, arguments);
  if (!misfits) return {};
  const auto refusal = json::parse(misfits->result);
  return fail(misfits->code, json::text_in(*refusal, "message"));
}

std::string Executor::names() const {
  std::string all;
  for (const auto& [name, entry] : tools_) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// The session gives its zone; a caller that is not in it has no business there.
Task<Result<>> Executor::enter_session(ToolContext& context) {
  if (context.session_id.empty()) co_return Result<>{};
  BELFRY_CO_TRY(const chat::Session session, co_await chats_.session(context.session_id));
  const bool is_in_it = context.agent_id.empty() || session.has(context.agent_id);
  if (!is_in_it && !context.in_turn)
    co_return fail(Errc::invalid_argument,
                   fmt::format("\"{}\" is not in the session {}", context.agent_id, context.session_id));
  context.is_private = is_in_it && session.kind == chat::SessionKind::private_chat;
  context.timezone = session.timezone;
  co_return Result<>{};
}

std::optional<CallOutcome> Executor::misfit(const Entry& entry, const std::string& arguments) const {
  const auto value = json::parse(arguments);
  if (!value) return refused({Errc::invalid_json, "arguments: " + value.error().detail});
  if (value->kind != json::Kind::object)
    return refused(
        {Errc::invalid_argument, fmt::format("arguments is {}; an object belongs there", json::name(value->kind))});
  const std::vector<Violation> found = entry.schema.check(*value);
  if (found.empty()) return std::nullopt;
  std::string all;
  for (const Violation& one : found) all += (all.empty() ? "" : "; ") + sentence(one);
  return refused({Errc::invalid_argument, std::move(all)}, found);
}

Result<Executor::Begun> Executor::begin(store::Connection& connection, const CallRecord& record) const {
  if (retention_ > Millis{0}) CallTables::drop_old(connection, record.context, to_ms(record.started_at - retention_));
  auto known = CallTables::find(connection, record.context);
  if (!known) return Begun{.number = CallTables::begin(connection, record)};
  if (known->tool != record.tool || !same_json(known->arguments, record.arguments))
    return fail(Errc::key_conflict, fmt::format("the callId was used for another call, of {}", known->tool));
  const std::int64_t number = known->number;
  const auto code = parse_errc(known->error);
  const bool has_ended =
      known->state == CallState::done || (known->state == CallState::failed && !(code && is_passing(*code)));
  if (has_ended) return Begun{.number = number, .before = std::move(known)};
  CallTables::begin_again(connection, number);
  return Begun{.number = number, .again = true};
}

Task<Result<CallOutcome>> Executor::call(CallRequest request) {
  if (request.arguments.empty()) request.arguments = "{}";
  if (const auto fits = check_size(request); !fits) co_return refused(fits.error());
  const Running running(running_, request.context);
  if (!running.is_first())
    co_return refused({Errc::wrong_state, "this call is still running; ask again a little later"});

  CallRecord record{.tool = std::move(request.tool),
                    .context = std::move(request.context),
                    .arguments = std::move(request.arguments),
                    .started_at = now()};
  auto job = [this, record](store::Connection& connection) { return begin(connection, record); };
  auto begun = co_await store_.write_as_send<Begun>(std::move(job), record.arguments.size());
  if (!begun) {
    if (is_passing(begun.error().code)) co_return std::unexpected(begun.error());
    co_return refused(begun.error());
  }
  if (begun->before) {
    CallRecord& before = *begun->before;
    co_return CallOutcome{.number = before.number,
                          .ok = before.state == CallState::done,
                          .code = parse_errc(before.error).value_or(Errc::invalid_argument),
                          .result = std::move(before.result),
                          .repeated = true};
  }
  record.number = begun->number;
  record.context.again = begun->again;
  record.context.once = fmt::format("call {}", record.number);
  std::erase_if(unended_, [&](const CallRecord& one) { return one.number == record.number; });
  co_return co_await run(std::move(record), std::move(request.refusal));
}

Task<CallOutcome> Executor::run(CallRecord record, std::optional<Error> refusal) {
  CallOutcome outcome = co_await perform(record, std::move(refusal));
  outcome.number = record.number;
  record.state = outcome.ok ? CallState::done : CallState::failed;
  record.result = outcome.result;
  record.error = outcome.ok ? "" : std::string(word(outcome.code));
  record.ended_at = now();
  co_await end(std::move(record));
  co_return outcome;
}

Task<CallOutcome> Executor::perform(CallRecord& record, std::optional<Error> refusal) {
  if (refusal) co_return refused(*refusal);
  const auto found = tools_.find(record.tool);
  if (found == tools_.end())
    co_return refused(
        {Errc::unknown_tool, fmt::format("there is no tool \"{}\"; there are: {}", record.tool, names())});
  // Kept: it may be replaced while it is at work.
  const std::shared_ptr<const Entry> entry = found->second;
  if (const auto entered = co_await enter_session(record.context); !entered) co_return refused(entered.error());
  if (auto misfits = misfit(*entry, record.arguments)) co_return std::move(*misfits);
  try {
    auto called = co_await entry->tool->call(record.context, record.arguments);
    if (!called) co_return refused(called.error());
    co_return CallOutcome{.ok = true, .result = std::move(*called)};
  } catch (const std::exception& e) {
    log::error("tool.failed", "a tool ended with an exception", {{"tool", record.tool}, {"what", e.what()}});
  }
  co_return refused({Errc::unavailable, "the tool ended with an exception"});
}

Task<void> Executor::end(CallRecord record) {
  std::vector<CallRecord> records = std::exchange(unended_, {});
  records.push_back(std::move(record));
  auto job = [&records](store::Connection& connection) -> Result<> {
    for (const CallRecord& one : records) CallTables::end(connection, one);
    return {};
  };
  const auto ended = co_await store_.write<void>(std::move(job));
  if (ended) co_return;
  log::warn("tool.record_incomplete",
            "a tool call has ended, and its end could not be stored; the next one's brings it along",
            {{"tool", records.back().tool}, {"number", records.back().number}, {"what", ended.error().detail}});
  unended_.insert(unended_.end(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
}

Task<Result<CallTables::Page>> Executor::calls(CallTables::Query query) {
  auto job = [query](store::Connection& connection) -> Result<CallTables::Page> {
    return CallTables::list(connection, query);
  };
  co_return co_await store_.read<CallTables::Page>(std::move(job));
}

}  // namespace belfry::tool
