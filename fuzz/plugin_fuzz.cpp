// What a plugin's folder and its output say: config.json, a zero byte, .env; and the same bytes as lines of an answer, in
// one piece and in many.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/utf8.h"
#include "belfry/plugin/dialogue.h"
#include "belfry/plugin/manifest.h"
#include "belfry/tool/schema.h"
#include "refusal.h"

namespace {

using namespace belfry;
using namespace belfry::plugin;

Result<> check_schema(std::string_view text) {
  const auto schema = tool::Schema::compile(text);
  if (!schema) return std::unexpected(schema.error());
  return {};
}

void read_folder(std::string_view config, std::string_view env) {
  const auto plugin = read_manifest("/plugins/draw", config, env, check_schema);
  fuzz::check(plugin);
  if (!plugin) return;
  BELFRY_ASSERT(plugin->name == "draw" && !plugin->command.empty());
  const auto schema = json::parse(plugin->parameters);
  BELFRY_ASSERT(schema && schema->kind == json::Kind::object);
  const auto properties = json::find(*schema, "properties");
  BELFRY_ASSERT(!plugin->takes_schedule || (properties && json::find(*properties, "schedule")));
}

void read_env(std::string_view text) {
  const auto variables = read_variables(text);
  fuzz::check(variables);
  if (!variables) return;
  BELFRY_ASSERT(variables->size() <= kVariablesMax);
  for (const auto& [name, value] : *variables)
    BELFRY_ASSERT(!name.empty() && !name.contains('=') && !value.contains('\0'));
}

struct Heard {
  std::vector<std::string> lines;
  bool too_much = false;
  bool operator==(const Heard&) const = default;
};

Heard cut(std::string_view bytes, std::size_t piece) {
  Lines lines(100, 1'000);
  Heard heard;
  const auto take = [&](std::string_view line) { heard.lines.emplace_back(line); };
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) lines.feed(bytes.substr(0, piece), take);
  lines.finish(take);
  heard.too_much = lines.too_much();
  return heard;
}

void answer(std::string_view bytes, const std::string& id) {
  Dialogue dialogue(id, [](const std::string& progress) { BELFRY_ASSERT(json::parse(progress)); });
  for (const std::string& line : cut(bytes, 4096).lines) dialogue.take(line);
  if (const auto& result = dialogue.result()) {
    BELFRY_ASSERT(result->success ? json::parse(result->data).has_value() : !result->message.empty());
    BELFRY_ASSERT(result->success || (!result->code.empty() && is_utf8(result->message)));
  }
  BELFRY_ASSERT(!dialogue.problem() || is_utf8(dialogue.problem()->message));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view config = text.substr(0, text.find('\0'));
  const std::string_view rest = config.size() < text.size() ? text.substr(config.size() + 1) : config;
  BELFRY_ASSERT(without_comments(config).size() == config.size());
  read_folder(config, rest);
  read_env(rest);
  const Heard whole = cut(text, text.size() + 1);
  if (!whole.too_much) BELFRY_ASSERT(whole == cut(text, 3));
  answer(text, "");
  answer(text, "7");
  const std::string words = last_words(text, 50);
  BELFRY_ASSERT(is_utf8(words) && !words.contains('\n'));
  return 0;
}
