#include "belfry/agent/profile.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/agent/planner/prompt.h"
#include "belfry/base/assert.h"
#include "belfry/base/fields.h"
#include "belfry/bus/recipients.h"

namespace belfry::agent {
namespace {

constexpr std::size_t kToolsMax = 200;
constexpr std::size_t kModelBytesMax = 200;
constexpr std::int64_t kSettleMax = 60'000;
constexpr std::int64_t kStepsMax = 200;
constexpr std::int64_t kContextTokensMin = 1'000;
constexpr std::int64_t kContextTokensMax = 2'000'000;

constexpr InGroups kInGroups[] = {InGroups::addressed, InGroups::named, InGroups::never};

Result<> whole(const json::Fields& fields, std::string_view name, std::int64_t least, std::int64_t most,
               std::int64_t& into) {
  BELFRY_CHECK(fields.whole(name, into));
  if (into < least || into > most)
    return fail(Errc::invalid_argument, fmt::format("{} is {}; {} to {} are possible", name, into, least, most));
  return {};
}

Result<> read_groups(const json::Fields& fields, InGroups& into) {
  std::string text(word(into));
  BELFRY_CHECK(fields.text("groups", text));
  const auto* const found = std::ranges::find_if(kInGroups, [&text](InGroups when) { return word(when) == text; });
  if (found == std::end(kInGroups))
    return fail(Errc::invalid_argument,
                fmt::format("groups is \"{}\"; addressed, named and never are possible", text.substr(0, 40)));
  into = *found;
  return {};
}

Result<> read_tools(const json::Fields& fields, Profile& profile) {
  if (!fields.find("tools")) return {};
  std::vector<std::string> tools;
  BELFRY_CHECK(fields.texts("tools", kToolsMax, tools));
  for (const std::string& tool : tools)
    if (tool.empty() || tool.size() > kIdBytesMax)
      return fail(Errc::invalid_argument, "tools has a name that no tool can have");
  profile.tools = std::move(tools);
  return {};
}

Result<> check(const Profile& profile) {
  if (profile.prompt.size() > kPromptBytesMax)
    return fail(Errc::too_large,
                fmt::format("prompt has {} bytes; at most {} are taken", profile.prompt.size(), kPromptBytesMax));
  if (profile.model.size() > kModelBytesMax)
    return fail(Errc::invalid_argument, fmt::format("model is longer than {} bytes", kModelBytesMax));
  return check_prompt(profile.prompt);
}

Result<Profile> read(const json::Fields& fields, Profile profile) {
  std::int64_t settle = profile.settle.count();
  std::int64_t steps = profile.steps_max;
  std::int64_t tokens = profile.context_tokens;
  BELFRY_CHECK(fields.text("prompt", profile.prompt));
  BELFRY_CHECK(fields.text("model", profile.model));
  BELFRY_CHECK(read_tools(fields, profile));
  BELFRY_CHECK(read_groups(fields, profile.in_groups));
  BELFRY_CHECK(fields.flag("memory", profile.memory));
  BELFRY_CHECK(whole(fields, "settleMs", 0, kSettleMax, settle));
  BELFRY_CHECK(whole(fields, "stepsMax", 1, kStepsMax, steps));
  BELFRY_CHECK(whole(fields, "contextTokens", kContextTokensMin, kContextTokensMax, tokens));
  profile.settle = Millis{settle};
  profile.steps_max = static_cast<int>(steps);
  profile.context_tokens = static_cast<int>(tokens);
  BELFRY_CHECK(check(profile));
  return profile;
}

}  // namespace

std::string_view word(InGroups when) {
  switch (when) {
    case InGroups::addressed: return "addressed";
    case InGroups::named: return "named";
    case InGroups::never: return "never";
  }
  assertion_failed("a known way to be in groups", __FILE__, __LINE__);
}

bool Profile::may_use(std::string_view tool) const { return !tools || std::ranges::find(*tools, tool) != tools->end(); }

Result<Profile> read_profile(std::string_view body, Profile profile) {
  BELFRY_TRY(const json::Fields fields, json::Fields::read("an agent", body,
                                                           {"prompt", "model", "tools", "groups", "settleMs", "memory",
                                                            "stepsMax", "contextTokens"}));
  return read(fields, std::move(profile));
}

void write_profile(json::Writer& writer, const Profile& profile) {
  writer.field("prompt", profile.prompt);
  if (!profile.model.empty()) writer.field("model", profile.model);
  if (profile.tools) {
    writer.key("tools").array();
    for (const std::string& tool : *profile.tools) writer.value(tool);
    writer.end();
  }
  writer.field("groups", word(profile.in_groups)).field("settleMs", profile.settle.count());
  writer.field("memory", profile.memory).field("stepsMax", profile.steps_max);
  writer.field("contextTokens", profile.context_tokens);
  if (!profile.owner.empty()) writer.field("owner", profile.owner).field("depth", profile.depth);
}

std::string stored(const Profile& profile) {
  json::Writer writer;
  writer.object();
  write_profile(writer, profile);
  return writer.end().take();
}

Result<Profile> read_stored(std::string_view text) {
  BELFRY_TRY(const json::Fields fields, json::Fields::read("a stored agent", text,
                                                           {"prompt", "model", "tools", "groups", "settleMs", "memory",
                                                            "stepsMax", "contextTokens", "owner", "depth"}));
  BELFRY_TRY(Profile profile, read(fields, {}));
  std::int64_t depth = 0;
  BELFRY_CHECK(fields.text("owner", profile.owner));
  BELFRY_CHECK(fields.whole("depth", depth));
  profile.depth = static_cast<int>(depth);
  return profile;
}

}  // namespace belfry::agent
