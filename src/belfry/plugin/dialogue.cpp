#include "belfry/plugin/dialogue.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::plugin {
namespace {

// Results are put into messages, which are JSON themselves.
constexpr int kDepthMax = kJsonDepthMax - 8;
constexpr std::size_t kMessageBytesMax = 4'000;
constexpr std::size_t kCodeBytesMax = 64;

bool is_code(std::string_view word) {
  return !word.empty() && word.size() <= kCodeBytesMax && word.front() >= 'a' && word.front() <= 'z' &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

// Requests are counted.
bool is_earlier(std::string_view id, std::string_view than) {
  const bool number = !id.empty() && id.find_first_not_of("0123456789") == std::string_view::npos;
  return number && (id.size() < than.size() || (id.size() == than.size() && id < than));
}

std::string said(std::string_view message) {
  if (is_blank(message)) return "the plugin failed and did not say why";
  return shortened(message, kMessageBytesMax);
}

Outcome failure_of(json::Value object) {
  const auto error = json::find(object, "error");
  if (!error || error->kind == json::Kind::null) return failure("plugin_failed", said(""));
  if (error->kind == json::Kind::string) return failure("plugin_failed", said(json::text(*error)));
  if (error->kind != json::Kind::object) return failure("plugin_failed", said(error->raw));
  const std::string code = json::text_in(*error, "code");
  const std::string message = json::text_in(*error, "message");
  if (is_code(code)) {
    Outcome outcome = failure(code, said(message));
    outcome.own_word = true;
    return outcome;
  }
  return failure("plugin_failed", said(code.empty() ? message : fmt::format("{}: {}", code, message)));
}

Outcome success_of(json::Value object) {
  const auto data = json::find(object, "data");
  return {.success = true, .data = data ? std::string(data->raw) : "null"};
}

}  // namespace

Outcome failure(std::string code, std::string message) {
  return {.success = false, .code = std::move(code), .message = std::move(message)};
}

void Lines::feed(std::string_view bytes, const Take& take) {
  total_ += bytes.size();
  too_much_ = too_much_ || total_ > total_max_;
  while (!too_much_ && !bytes.empty()) {
    const auto end = std::min(bytes.find('\n'), bytes.size());
    too_much_ = begun_.size() + end > line_max_;
    if (too_much_) return;
    begun_ += bytes.substr(0, end);
    if (end == bytes.size()) return;
    bytes.remove_prefix(end + 1);
    take(std::exchange(begun_, {}));
  }
}

void Lines::finish(const Take& take) {
  if (!too_much_ && !begun_.empty()) take(std::exchange(begun_, {}));
}

std::string request_line(const Job& job, std::string_view id) {
  json::Writer writer;
  writer.object();
  if (!id.empty()) writer.field("id", id);
  writer.key("args").raw(job.arguments.empty() ? "{}" : job.arguments);
  writer.key("context").raw(job.context.empty() ? "{}" : job.context);
  if (!id.empty() && !job.output_dir.empty()) writer.field("outputDir", job.output_dir);
  std::string line = writer.end().take();
  // Between the parts of JSON a line may end; within its strings it cannot.
  std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line + '\n';
}

void Dialogue::refuse(std::string why) {
  if (!problem_) problem_ = failure("bad_output", fmt::format("line {} of its output: {}", lines_, why));
}

void Dialogue::take(std::string_view line) {
  ++lines_;
  if (problem_ || line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  if (!id_.empty()) return take_of_many(line);
  if (result_) return refuse("there is more after the result; a plugin gives exactly one");
  const auto value = json::parse(line, kDepthMax);
  if (!value) return refuse(fmt::format("it is no JSON: {}", value.error().detail));
  if (value->kind != json::Kind::object) return refuse(fmt::format("it is {}, not an object", json::name(value->kind)));
  take_object(*value);
}

// One that stays may say what it likes between two requests, and that may arrive when the next one is under way. So only
// what has our id counts; a result that can be nobody's is a fault that would else show as a timeout.
void Dialogue::take_of_many(std::string_view line) {
  const auto value = json::parse(line, kDepthMax);
  if (result_ || !value || value->kind != json::Kind::object) return;
  const std::string id = json::text_in(*value, "id");
  if (id == id_) return take_object(*value);
  if (json::find(*value, "success") && !is_earlier(id, id_))
    refuse(fmt::format("a result whose id is not that of the request, \"{}\"", id_));
}

void Dialogue::take_object(json::Value object) {
  const auto success = json::find(object, "success");
  const auto progress = json::find(object, "progress");
  if (success && success->kind == json::Kind::boolean) {
    result_ = json::boolean(*success) ? success_of(object) : failure_of(object);
  } else if (success) {
    refuse(fmt::format("success is {}; true or false belongs there", json::name(success->kind)));
  } else if (progress) {
    if (progress_) progress_(std::string(progress->raw));
  } else {
    refuse("it has neither \"success\" nor \"progress\"");
  }
}

std::string last_words(std::string_view bytes, std::size_t most) {
  // A character that was cut in two at the front is left out, not shown as a broken one.
  while (bytes.size() > most || (!bytes.empty() && (static_cast<unsigned char>(bytes.front()) & 0xC0) == 0x80))
    bytes.remove_prefix(bytes.size() > most ? bytes.size() - most : 1);
  std::string out;
  while (!bytes.empty()) {
    const int size = utf8_sequence(bytes);
    const auto byte = static_cast<unsigned char>(bytes.front());
    const bool c1 = size == 2 && byte == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0;
    if (size == 0) {
      out += "\xEF\xBF\xBD";
    } else if (byte < 0x20 || byte == 0x7F || c1) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += bytes.substr(0, static_cast<std::size_t>(size));
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max(size, 1)));
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace belfry::plugin
