#include "belfry/run/progress_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"

namespace belfry::run {
namespace {

constexpr std::size_t kCharactersMax = 300;
constexpr int kSentencesMax = 2;
constexpr std::size_t kOverlayBytesMax = 20'000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word_character(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return all;
}

// As a word of its own: "capital" has no "api" in it.
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_letter(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

// How many sentences there are, as far as their ends say: "3.5" and "..." are none, and what has no end is one.
int sentences(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kEnds = {".", "!", "?", "。", "！", "？"};
  int count = 0;
  bool open = false;  // something stands behind the last end
  while (!text.empty()) {
    const auto end = std::ranges::find_if(kEnds, [&](std::string_view one) { return text.starts_with(one); });
    if (end != kEnds.end()) {
      text.remove_prefix(end->size());
      // In English a blank follows; within a number or a name nothing ends.
      const bool ends = end->size() > 1 || text.empty() || !is_word_character(text.front());
      if (ends && open) ++count;
      if (ends) open = false;
      continue;
    }
    if (text.front() != ' ' && text.front() != '"' && text.front() != '~') open = true;
    text.remove_prefix(1);
  }
  return count + (open ? 1 : 0);
}

// What nobody says to a person who waits for a picture.
bool is_technical(std::string_view text, std::string_view tool) {
  static constexpr std::array kWords = {"api",         "json",        "plugin", "schedule", "timeout",
                                        "timeoutms",   "backend",     "server", "function", "http",
                                        "tool_choice", "tool_result", "runid",  "async",    "in_progress"};
  static constexpr std::array kChineseWords = {"插件", "接口", "参数", "超时", "服务器", "线程", "进程", "调用"};
  const std::string small = lower(text);
  if (!tool.empty() && has_word(small, lower(tool))) return true;
  if (small.contains("local__") || small.contains("{") || small.contains("`")) return true;
  return std::ranges::any_of(kWords, [&](const char* word) { return has_word(small, word); }) ||
         std::ranges::any_of(kChineseWords, [&](const char* word) { return text.contains(word); });
}

Result<std::string> read_overlay(json::Value object, std::string_view name) {
  auto value = json::find(object, name);
  if (value && value->kind == json::Kind::object) {
    BELFRY_TRY(const json::Fields fields, json::Fields::read(fmt::format("overlays.{}", name), value->raw, {"system"}));
    value = fields.find("system");
  }
  if (!value || value->kind == json::Kind::null) return std::string();
  if (value->kind != json::Kind::string)
    return fail(Errc::invalid_argument, fmt::format("overlays.{} is {}; a text or {{\"system\": text}} belongs there",
                                                    name, json::name(value->kind)));
  std::string text = json::text(*value);
  if (text.size() > kOverlayBytesMax)
    return fail(Errc::too_large, fmt::format("overlays.{} has more than {} bytes", name, kOverlayBytesMax));
  return text;
}

// In JSON an ideograph may be written as \u4e2d.
bool has_escaped_ideograph(std::string_view text) {
  for (std::size_t at = text.find("\\u"); at != std::string_view::npos; at = text.find("\\u", at + 2)) {
    unsigned code = 0;
    const std::string_view digits = text.substr(at + 2, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error == std::errc{} && end == digits.data() + digits.size() && code >= 0x4E00 && code <= 0x9FFF) return true;
  }
  return false;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string_view word(Tongue tongue) { return tongue == Tongue::chinese ? "zh" : "en"; }

// CJK ideographs begin with bytes E4 to E9.
Tongue tongue_of(std::string_view text) {
  const bool chinese = std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xE4 && byte <= 0xE9;
  });
  return chinese || has_escaped_ideograph(text) ? Tongue::chinese : Tongue::english;
}

Result<Overlays> read_overlays(json::Value value) {
  if (value.kind != json::Kind::object)
    return fail(Errc::invalid_argument, fmt::format("overlays is {}; an object belongs there", json::name(value.kind)));
  BELFRY_TRY(const json::Fields known, json::Fields::read("overlays", value.raw, {"global", "schedule_progress"}));
  Overlays overlays;
  BELFRY_TRY(overlays.global, read_overlay(value, "global"));
  BELFRY_TRY(overlays.schedule_progress, read_overlay(value, "schedule_progress"));
  return overlays;
}

std::string overlays_json(const Overlays& overlays) {
  json::Writer writer;
  writer.object();
  if (!overlays.global.empty()) writer.field("global", overlays.global);
  if (!overlays.schedule_progress.empty()) writer.field("schedule_progress", overlays.schedule_progress);
  return writer.end().take();
}

Prompt load_prompt(Tongue tongue) {
  const auto all = json::parse(schedule_progress_json());
  BELFRY_ASSERT(all.has_value());
  const auto one = json::find(*all, word(tongue));
  BELFRY_ASSERT(one && one->kind == json::Kind::object);
  return {.system = json::text_in(*one, "system"), .user = json::text_in(*one, "user")};
}

std::string compose_system(std::string_view system, const Overlays& overlays) {
  std::string all(system);
  for (const std::string& tone : {overlays.global, overlays.schedule_progress})
    if (!is_blank(tone)) all += "\n\n" + tone;
  return all;
}

std::string render_template(std::string_view text, const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    const std::size_t close = open == std::string_view::npos ? open : text.find("}}", open);
    if (close == std::string_view::npos) return out += text;
    const auto value = values.find(text.substr(open + 2, close - open - 2));
    out += text.substr(0, open);
    out += value == values.end() ? text.substr(open, close + 2 - open) : std::string_view(value->second);
    text.remove_prefix(close + 2);
  }
}

std::string default_progress_text(Tongue tongue, std::int64_t seconds) {
  if (tongue == Tongue::chinese) return fmt::format("工具正在执行中，规定时间 {}s 内未完成，继续等待...", seconds);
  return fmt::format("Still working: it is not done after {} s, and you will hear as soon as it is...", seconds);
}

std::optional<std::string> presentable_progress(std::string_view written, std::string_view tool) {
  std::string text;
  for (const char c : written) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (blank && (text.empty() || text.back() == ' ')) continue;
    text += blank ? ' ' : c;
  }
  while (text.ends_with(' ')) text.pop_back();
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (is_blank(text) || !is_utf8(text) || characters(text) > kCharactersMax) return std::nullopt;
  if (sentences(text) > kSentencesMax) return std::nullopt;
  if (is_technical(text, tool)) return std::nullopt;
  return text;
}

}  // namespace belfry::run
