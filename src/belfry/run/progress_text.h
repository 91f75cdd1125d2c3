// What a person is told when the time has come and the work goes on (F10): a text of the model's own making in the tone of
// the house, or the same sentence every time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "belfry/base/json.h"
#include "belfry/base/result.h"

namespace belfry::run {

enum class Tongue { chinese, english };
std::string_view word(Tongue tongue);
// Chinese if there is anything Chinese in it.
Tongue tongue_of(std::string_view text);

// How the house speaks: for every text, and for these.
struct Overlays {
  std::string global;
  std::string schedule_progress;

  bool operator==(const Overlays&) const = default;
};
// {"global"?, "schedule_progress"?}, each a text or {"system": text}; other members are for others.
Result<Overlays> read_overlays(json::Value value);
std::string overlays_json(const Overlays& overlays);

struct Prompt {
  std::string system;
  std::string user;
};
// The template of prompts/schedule_progress.json.
Prompt load_prompt(Tongue tongue);
// The template's own words, then the tone.
std::string compose_system(std::string_view system, const Overlays& overlays);
// Fills in {{names}}; what is filled in is not looked at again, and names that nobody knows stay as they are.
std::string render_template(std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

std::string default_progress_text(Tongue tongue, std::int64_t seconds);
// What a model wrote, if it can be shown: one or two sentences, without technical terms.
std::optional<std::string> presentable_progress(std::string_view written, std::string_view tool);

// The text of prompts/schedule_progress.json as the program carries it.
std::string_view schedule_progress_json();

}  // namespace belfry::run
