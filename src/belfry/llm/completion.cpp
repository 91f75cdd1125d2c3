#include "belfry/llm/completion.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::llm {
namespace {

using json::Kind;
using json::Value;

constexpr std::string_view kDone = "[DONE]";
constexpr std::int64_t kBytesPerToken = 4;
// The old form has one call and no index.
constexpr std::int64_t kOldFormIndex = -1;

std::unexpected<Error> garbled(std::string what) { return fail(Errc::model_garbled, std::move(what)); }

// A member that is there and is no null.
std::optional<Value> member(Value object, std::string_view key) {
  if (object.kind != Kind::object) return std::nullopt;
  const auto found = json::find(object, key);
  return found && found->kind != Kind::null ? found : std::nullopt;
}

std::string text_of(Value object, std::string_view key) {
  const auto found = member(object, key);
  return found && found->kind == Kind::string ? json::text(*found) : std::string();
}

std::optional<std::int64_t> integer_of(Value object, std::string_view key) {
  const auto found = member(object, key);
  return found && found->kind == Kind::number ? json::integer(*found) : std::nullopt;
}

void write_calls(json::Writer& writer, const std::vector<ToolCall>& calls) {
  writer.key("tool_calls").array();
  for (const ToolCall& call : calls) {
    writer.object().field("id", call.id).field("type", "function");
    writer.key("function").object().field("name", call.name).field("arguments", call.arguments).end();
    writer.end();
  }
  writer.end();
}

void write_message(json::Writer& writer, const ChatMessage& message) {
  writer.object().field("role", word(message.role));
  if (message.content.empty() && !message.calls.empty()) {
    writer.key("content").null();  // some servers take an empty text for one that was said
  } else {
    writer.field("content", message.content);
  }
  if (!message.calls.empty()) write_calls(writer, message.calls);
  if (message.role == Role::tool) writer.field("tool_call_id", message.call_id);
  writer.end();
}

// An error that came where an answer was expected. A code like those of HTTP says whose fault it is.
std::unexpected<Error> server_error(Value body) {
  const auto error = member(body, "error").value_or(body);
  const std::int64_t code = integer_of(error, "code").value_or(0);
  const bool ours = code >= 400 && code < 500 && code != 408 && code != 409 && code != 429;
  const std::string message = error_message(body);
  return fail(ours ? Errc::model_refused : Errc::model_unavailable,
              fmt::format("the model's server reports: {}", message.empty() ? "an error" : message));
}

// Reasons for which an answer ends before the model was finished: a call may be half of one.
bool is_cut_off(std::string_view reason) {
  return reason == "length" || reason == "max_tokens" || reason == "content_filter";
}

bool is_blank_byte(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

Result<std::string> request_body(const ChatRequest& request, std::string_view model) {
  json::Writer writer;
  writer.object().field("model", request.model.empty() ? model : std::string_view(request.model));
  writer.key("messages").array();
  for (const ChatMessage& message : request.messages) write_message(writer, message);
  writer.end();
  if (!request.tools.empty()) {
    BELFRY_TRY(const Value tools, json::parse(request.tools));
    if (tools.kind != Kind::array) return fail(Errc::invalid_argument, "tools are a JSON array");
    if (!json::elements(tools).empty()) writer.key("tools").raw(tools.raw);
  }
  writer.field("stream", true);
  writer.key("stream_options").object().field("include_usage", true).end();
  writer.end();
  return writer.take();
}

std::string error_message(Value body) {
  for (const std::string_view key : {"error", "message", "detail"}) {
    const auto found = member(body, key);
    if (!found) continue;
    if (found->kind == Kind::string) return json::text(*found);
    if (found->kind == Kind::object) return text_of(*found, "message");
  }
  return {};
}

std::string shortened(std::string_view text, std::size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const int size = utf8_sequence(text);
    const bool shown = size > 1 || (size == 1 && text.front() >= ' ' && text.front() != '\x7f');
    const std::string_view letter = shown ? text.substr(0, static_cast<std::size_t>(size)) : " ";
    if (out.size() + letter.size() > bytes_max) return out + "…";
    out += letter;
    text.remove_prefix(static_cast<std::size_t>(std::max(size, 1)));
  }
  return out;
}

Result<> Completion::eat(std::string_view chunk) {
  while (!chunk.empty() && is_blank_byte(chunk.back())) chunk.remove_suffix(1);
  if (done_ || chunk.empty()) return {};
  if (chunk == kDone) {
    done_ = true;
    return {};
  }
  const auto body = json::parse(chunk);
  if (!body) return garbled("a chunk of the answer is no JSON: " + body.error().detail);
  return take(*body);
}

Result<> Completion::eat_whole(std::string_view text) {
  const auto body = json::parse(text);
  if (!body) return garbled("the answer is no JSON: " + body.error().detail);
  BELFRY_CHECK(take(*body));
  done_ = true;
  return {};
}

Result<> Completion::take(Value body) {
  if (body.kind != Kind::object) return garbled("the answer is JSON, but no object");
  if (member(body, "error") || text_of(body, "object") == "error") return server_error(body);
  if (const auto usage = member(body, "usage")) take_usage(*usage);
  const auto choices = member(body, "choices");
  if (!choices) return {};
  if (choices->kind != Kind::array) return garbled("\"choices\" is no array");
  for (const Value choice : json::elements(*choices)) BELFRY_CHECK(take_choice(choice));
  return {};
}

// Only one answer was asked for; others that come beside it are not ours.
Result<> Completion::take_choice(Value choice) {
  if (choice.kind != Kind::object) return garbled("a choice is no object");
  if (integer_of(choice, "index").value_or(0) != 0) return {};
  for (const std::string_view key : {"delta", "message"})
    if (const auto delta = member(choice, key)) BELFRY_CHECK(take_delta(*delta));
  if (auto reason = text_of(choice, "finish_reason"); !reason.empty()) finish_reason_ = std::move(reason);
  return {};
}

Result<> Completion::take_delta(Value delta) {
  if (delta.kind != Kind::object) return garbled("a delta is no object");
  for (const std::string_view key : {"content", "refusal"})
    if (const auto content = member(delta, key)) BELFRY_CHECK(take_content(*content));
  if (const auto calls = member(delta, "tool_calls")) {
    if (calls->kind != Kind::array) return garbled("\"tool_calls\" is no array");
    for (const Value call : json::elements(*calls)) BELFRY_CHECK(take_call(call));
  }
  if (const auto function = member(delta, "function_call")) {
    if (!positions_.contains(kOldFormIndex)) {
      BELFRY_TRY(positions_[kOldFormIndex], new_call());
    }
    BELFRY_CHECK(take_function(positions_[kOldFormIndex], *function, false));
  }
  return {};
}

// A text, or a list of parts of which the texts count.
Result<> Completion::take_content(Value content) {
  if (content.kind == Kind::string) return add_text(json::text(content));
  if (content.kind != Kind::array) return garbled("\"content\" is no text");
  for (const Value part : json::elements(content)) {
    if (part.kind == Kind::string) {
      BELFRY_CHECK(add_text(json::text(part)));
    } else {
      BELFRY_CHECK(add_text(text_of(part, "text")));
    }
  }
  return {};
}

Result<> Completion::add_text(std::string_view text) {
  if (text_.size() + text.size() > kTextBytesMax)
    return garbled(fmt::format("the answer is longer than {} bytes", kTextBytesMax));
  text_ += text;
  return {};
}

Result<std::size_t> Completion::new_call() {
  if (calls_.size() == kCallsMax) return garbled(fmt::format("the answer has more than {} calls", kCallsMax));
  calls_.emplace_back();
  return calls_.size() - 1;
}

// Which call a piece belongs to. The index says it, but some servers give none, and some give the same one to all.
Result<std::size_t> Completion::position_of(Value call, const std::string& id, bool named) {
  const auto is_next = [&](const Call& last) {
    return !id.empty() && id != last.id && named && !last.arguments.empty();
  };
  const auto index = integer_of(call, "index");
  if (index && *index >= 0) {
    const auto known = positions_.find(*index);
    if (known != positions_.end() && !is_next(calls_[known->second])) return known->second;
    BELFRY_TRY(const std::size_t position, new_call());
    positions_[*index] = position;
    return position;
  }
  const bool begins = calls_.empty() || is_next(calls_.back()) ||
                      (id.empty() && named && !calls_.back().name.empty()) ||
                      (!id.empty() && !calls_.back().id.empty() && id != calls_.back().id && named);
  if (!begins) return calls_.size() - 1;
  return new_call();
}

Result<> Completion::take_call(Value call) {
  if (call.kind != Kind::object) return garbled("a tool call is no object");
  const std::string id = text_of(call, "id");
  const auto function = member(call, "function");
  const bool named = function && !text_of(*function, "name").empty();
  BELFRY_TRY(const std::size_t position, position_of(call, id, named));
  const bool repeated = !id.empty() && id == calls_[position].id;
  if (!repeated) calls_[position].id += id;
  if (calls_[position].id.size() > kIdBytesMax * 4) return garbled("the id of a tool call does not end");
  if (function) return take_function(position, *function, repeated);
  return {};
}

Result<> Completion::take_function(std::size_t position, Value function, bool repeated) {
  Call& call = calls_[position];
  const std::string name = text_of(function, "name");
  if (!(repeated && name == call.name)) call.name += name;  // some say id and name with every piece
  if (call.name.size() > kIdBytesMax * 4) return garbled("the name of a tool does not end");
  const auto arguments = member(function, "arguments");
  if (!arguments) return {};
  if (arguments->kind != Kind::string && arguments->kind != Kind::object)
    return garbled("the arguments of a tool call are no text");
  const std::string piece = arguments->kind == Kind::string ? json::text(*arguments) : std::string(arguments->raw);
  if (call.arguments.size() + piece.size() > kArgumentsBytesMax)
    return garbled(fmt::format("the arguments of a tool call are longer than {} bytes", kArgumentsBytesMax));
  call.arguments += piece;
  return {};
}

void Completion::take_usage(Value usage) {
  const auto prompt = integer_of(usage, "prompt_tokens");
  const auto completion = integer_of(usage, "completion_tokens");
  constexpr std::int64_t kTokensMax = 1'000'000'000;  // what nobody can have spent, and sums of it fit
  if (!prompt || !completion || *prompt < 0 || *completion < 0) return;
  if (*prompt > kTokensMax || *completion > kTokensMax) return;
  usage_ = Usage{*prompt, *completion};
}

Usage Completion::usage(std::size_t request_bytes) const {
  if (usage_) return *usage_;
  std::size_t bytes = text_.size();
  for (const Call& call : calls_) bytes += call.name.size() + call.arguments.size();
  return {static_cast<std::int64_t>(request_bytes) / kBytesPerToken, static_cast<std::int64_t>(bytes) / kBytesPerToken};
}

// Under one id there is one call: an id that is missing or stands twice is replaced.
Result<std::vector<ToolCall>> Completion::calls() const {
  std::vector<ToolCall> calls;
  std::set<std::string> ids;
  for (const Call& call : calls_) {
    if (call.name.empty()) return garbled("a tool call names no tool");
    std::string id = call.id;
    if (id.empty() || ids.contains(id)) id = fmt::format("call_{:016x}_{}", seed_, calls.size());
    ids.insert(id);
    calls.push_back({std::move(id), call.name, call.arguments.empty() ? "{}" : call.arguments});
  }
  return calls;
}

Result<ChatAnswer> Completion::finish(bool clean_end, std::size_t request_bytes) const {
  if (!done_ && !clean_end) return garbled("the answer breaks off");
  if (finish_reason_.empty()) return garbled("the answer ends without saying why");
  BELFRY_TRY(auto calls, this->calls());
  if (!calls.empty() && is_cut_off(finish_reason_))
    return garbled(fmt::format("the answer ends in the middle of a tool call ({})", finish_reason_));
  const bool promised = finish_reason_ == "tool_calls" || finish_reason_ == "function_call";
  if (promised && calls.empty()) return garbled("the answer ends with tool calls, but has none");
  return ChatAnswer{.text = text_,
                    .calls = std::move(calls),
                    .finish_reason = calls_.empty() ? finish_reason_ : "tool_calls",
                    .usage = usage(request_bytes)};
}

Result<> CompletionReader::refuse(Error error) {
  refused_ = error;
  return std::unexpected(std::move(error));
}

Result<> CompletionReader::feed(std::string_view bytes) {
  if (refused_) return std::unexpected(*refused_);
  if (form_ == Form::unknown) {
    bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    if (bytes.empty()) return {};
    form_ = bytes.front() == '{' ? Form::whole : Form::events;
  }
  if (form_ == Form::events) return feed_events(bytes);
  if (body_.size() + bytes.size() > kWholeAnswerBytesMax)
    return refuse({Errc::model_garbled, fmt::format("the answer is longer than {} bytes", kWholeAnswerBytesMax)});
  body_ += bytes;
  return {};
}

Result<> CompletionReader::feed_events(std::string_view bytes) {
  for (const Event& event : events_.feed(bytes))
    if (auto eaten = completion_.eat(event.data); !eaten) return refuse(eaten.error());
  if (events_.too_long() && !done())
    return refuse({Errc::model_garbled, fmt::format("a chunk of the answer is longer than {} bytes", kEventBytesMax)});
  return {};
}

Result<> CompletionReader::end_bytes() {
  if (form_ == Form::whole) return completion_.eat_whole(body_);
  const auto last = events_.finish();
  if (last) return completion_.eat(last->data);
  return {};
}

Result<ChatAnswer> CompletionReader::finish(bool clean_end, std::size_t request_bytes) {
  if (refused_) return std::unexpected(*refused_);
  if (form_ == Form::unknown) return garbled("the answer is empty");
  if (clean_end && !done()) BELFRY_CHECK(end_bytes());
  return completion_.finish(clean_end, request_bytes);
}

}  // namespace belfry::llm
