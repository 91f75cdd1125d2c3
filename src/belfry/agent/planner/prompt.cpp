#include "belfry/agent/planner/prompt.h"

#include <fmt/format.h>

namespace belfry::agent {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";
constexpr std::size_t kNameBytesShown = 40;

const std::string* value_of(std::string_view name, const PromptValues& values) {
  if (name == "agent") return &values.agent;
  if (name == "people") return &values.people;
  if (name == "now") return &values.now;
  if (name == "timezone") return &values.timezone;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<> check_prompt(std::string_view text) {
  const PromptValues values;
  for (std::size_t at = text.find(kOpen); at != std::string_view::npos; at = text.find(kOpen, at + 1)) {
    const std::size_t end = text.find(kClose, at);
    if (end == std::string_view::npos)
      return fail(Errc::invalid_argument, fmt::format("prompt: the {} at byte {} is not closed", kOpen, at));
    const std::string_view name = trimmed(text.substr(at + 2, end - at - 2));
    if (!value_of(name, values))
      return fail(Errc::invalid_argument,
                  fmt::format("prompt: {{{{{}}}}} is not known; agent, people, now and timezone are",
                              name.substr(0, kNameBytesShown)));
  }
  return {};
}

std::string render_prompt(std::string_view text, const PromptValues& values) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find(kOpen); at != std::string_view::npos; at = text.find(kOpen, done)) {
    const std::size_t end = text.find(kClose, at);
    if (end == std::string_view::npos) break;
    out += text.substr(done, at - done);
    if (const std::string* const value = value_of(trimmed(text.substr(at + 2, end - at - 2)), values)) out += *value;
    done = end + kClose.size();
  }
  return out += text.substr(done);
}

}  // namespace belfry::agent
