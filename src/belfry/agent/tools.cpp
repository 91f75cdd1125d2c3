#include "belfry/agent/tools.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/bus/recipients.h"
#include "belfry/bus/send_answer.h"

namespace belfry::agent {
namespace {

using tool::Definition;
using tool::ToolContext;

class AgentTool : public tool::Tool {
 public:
  AgentTool(ToolParts parts, Definition definition) : parts_(parts), definition_(std::move(definition)) {}
  const Definition& definition() const override { return definition_; }

 protected:
  ToolParts parts_;

 private:
  Definition definition_;
};

// A3
class Reply final : public AgentTool {
 public:
  explicit Reply(ToolParts parts)
      : AgentTool(parts, {.name = "reply",
                          .description = "在当前对话中回复。可以附带快速回复选项。Says something in this conversation, "
                                         "with quick replies if there are likely answers.",
                          .parameters = R"json({
  "type": "object",
  "properties": {
    "text": { "type": "string", "description": "回复的文本。What is said." },
    "quickReplies": {
      "type": "array", "items": { "type": "string" }, "maxItems": 10,
      "description": "可选。快速回复选项：字符串数组，最多 10 个。Optional: at most 10 strings to answer with at a press."
    }
  },
  "required": ["text"]
})json"}) {}

  std::vector<std::string_view> judged_by_itself() const override { return {"quickReplies"}; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("reply", arguments, {"text", "quickReplies"}));
    std::string text;
    BELFRY_CO_CHECK(fields.text("text", text));
    if (is_blank(text)) co_return fail(Errc::empty_text, "text is empty; a reply needs one");
    bus::Outgoing message{
        .from = context.agent_id, .task_id = context.task_id, .session_id = context.session_id, .once = context.once};
    if (const auto replies = fields.find("quickReplies")) {
      BELFRY_CO_TRY(message.quick_replies, bus::read_quick_replies(*replies));
    }
    BELFRY_CO_TRY(message.to, co_await recipient(context));
    json::Writer payload;
    payload.object().field("text", text);
    if (!context.in_reply_to.empty()) payload.field("inReplyTo", context.in_reply_to);
    message.payload = payload.end().take();
    BELFRY_CO_TRY(const bus::Sent sent, co_await parts_.bus.send(std::move(message)));
    co_return bus::sent(sent, {}, std::nullopt);
  }

 private:
  Task<Result<std::string>> recipient(ToolContext context) {
    if (!context.reply_to.empty()) co_return context.reply_to;
    if (context.session_id.empty())
      co_return fail(Errc::invalid_argument, "there is nobody to reply to here; send_message names whom it is for");
    BELFRY_CO_TRY(const chat::Session session, co_await parts_.chats.session(context.session_id));
    const auto people = session.people();
    if (people.size() != 1)
      co_return fail(Errc::invalid_argument, "there are several people here; send_message names whom it is for");
    co_return people.front();
  }
};

class StaySilent final : public AgentTool {
 public:
  explicit StaySilent(ToolParts parts)
      : AgentTool(parts,
                  {.name = "stay_silent", .description = "这一轮不说话。Says nothing this time.", .parameters = R"json({
  "type": "object",
  "properties": { "reason": { "type": "string", "description": "可选，供记录。Optional, for the record." } }
})json"}) {}

  Task<Result<std::string>> call(ToolContext, std::string) override { co_return std::string(R"({"result":"done"})"); }
};

// A4
class ToolSearch final : public AgentTool {
 public:
  explicit ToolSearch(ToolParts parts)
      : AgentTool(parts, {.name = "tool_search",
                          .description = "按关键词查找更多工具；找到的工具之后可以直接调用。Finds more tools by words; "
                                         "those that are found can be called from then on.",
                          .parameters = R"json({
  "type": "object",
  "properties": { "query": { "type": "string", "description": "关键词。Words of the name or the description." } },
  "required": ["query"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("tool_search", arguments, {"query"}));
    std::string query;
    BELFRY_CO_CHECK(fields.text("query", query));
    co_return found(context, words_of(query));
  }

 private:
  static constexpr std::size_t kFoundMax = 10;

  static std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
  }
  static std::vector<std::string> words_of(const std::string& query) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : lowered(query) + " ") {
      const bool separates = c == ' ' || c == ',' || c == '_' || c == '-' || c == '.' || c == '/' || c == '\n';
      if (!separates) word += c;
      if (separates && !word.empty()) words.push_back(std::exchange(word, {}));
    }
    return words;
  }
  // Words of the name count most. A text without blanks, as in Chinese, is found by its parts only if they stand alone.
  static int score(const Definition& definition, const std::vector<std::string>& words) {
    const std::string name = lowered(definition.name);
    const std::string description = lowered(definition.description);
    int sum = 0;
    for (const std::string& word : words) {
      if (name.find(word) != std::string::npos) sum += 3;
      if (description.find(word) != std::string::npos) sum += 1;
    }
    return sum;
  }

  std::string found(const ToolContext& context, const std::vector<std::string>& words) const {
    const auto profile = parts_.roster.find(context.agent_id);
    std::vector<std::pair<int, const Definition*>> ranked;
    for (const Definition* const definition : parts_.executor.definitions()) {
      const tool::Tool& tool = *parts_.executor.find(definition->name);
      const bool may = !profile || profile->may_use(definition->name);
      const int points = tool.is_deferred() && may ? score(*definition, words) : 0;
      if (points > 0) ranked.emplace_back(-points, definition);
    }
    std::ranges::sort(ranked, {}, [](const auto& one) { return std::pair(one.first, one.second->name); });
    json::Writer writer;
    writer.object().key("tools").array();
    for (std::size_t i = 0; i < std::min(ranked.size(), kFoundMax); ++i) {
      const Definition& definition = *ranked[i].second;
      writer.object().field("name", definition.name).field("description", definition.description);
      writer.key("parameters").raw(definition.parameters).end();
    }
    return writer.end().end().take();
  }
};

// A9
class SpawnAgent final : public AgentTool {
 public:
  explicit SpawnAgent(ToolParts parts)
      : AgentTool(parts,
                  {.name = "spawn_agent",
                   .description = "创建一个属于自己的智能体，之后用 send_message 给它发消息。Makes an agent of your "
                                  "own; send_message reaches it then. It can use no tool that you cannot.",
                   .parameters = R"json({
  "type": "object",
  "properties": {
    "id": { "type": "string", "description": "1–64 个字符：a-z 0-9 _ . -。Its name." },
    "prompt": { "type": "string", "description": "它是谁、要做什么。What it is and does." },
    "tools": { "type": "array", "items": { "type": "string" }, "description": "可选。可用的工具；不指定则与你相同。Optional: the tools that it may use." },
    "model": { "type": "string", "description": "可选。Optional: another model." }
  },
  "required": ["id", "prompt"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("spawn_agent", arguments, {"id", "prompt", "tools", "model"}));
    std::string id;
    BELFRY_CO_CHECK(fields.text("id", id));
    BELFRY_CO_CHECK(bus::check_id("id", id));
    // A call that is made again after a crash finds what it made.
    const auto before = parts_.roster.find(id);
    const bool made_by_this_call = before && context.again && before->owner == context.agent_id;
    if (!made_by_this_call) {
      BELFRY_CO_TRY(Profile profile, profile_for(context, fields));
      BELFRY_CO_CHECK(co_await parts_.roster.add(id, std::move(profile)));
    }
    json::Writer writer;
    co_return writer.object().field("id", id).field("result", "done").end().take();
  }

 private:
  Result<Profile> profile_for(const ToolContext& context, const json::Fields& fields) const {
    const auto owner = parts_.roster.find(context.agent_id);
    if (!owner) return fail(Errc::unsupported, "only an agent that thinks can have agents of its own");
    if (owner->depth >= kDepthMax)
      return fail(Errc::limit_exceeded, fmt::format("there are {} owners above you already", kDepthMax));
    if (parts_.roster.count_owned_by(context.agent_id) >= kOwnedMax)
      return fail(Errc::limit_exceeded,
                  fmt::format("you have {} agents; remove_agent makes room for another one", kOwnedMax));
    json::Writer writer;
    writer.object();
    for (const std::string_view name : {"prompt", "tools", "model"})
      if (const auto value = fields.find(name)) writer.key(name).raw(value->raw);
    BELFRY_TRY(Profile profile, read_profile(writer.end().take()));
    if (!profile.tools) profile.tools = owner->tools;
    for (const std::string& tool : profile.tools.value_or(std::vector<std::string>{}))
      if (!owner->may_use(tool))
        return fail(Errc::invalid_argument,
                    fmt::format("you cannot use \"{}\" yourself, and cannot give it away", tool));
    profile.owner = context.agent_id;
    profile.depth = owner->depth + 1;
    return profile;
  }
};

class RemoveAgent final : public AgentTool {
 public:
  explicit RemoveAgent(ToolParts parts)
      : AgentTool(parts,
                  {.name = "remove_agent",
                   .description = "移除一个属于自己的智能体，以及属于它的智能体。Removes an agent of your own, and "
                                  "those that it owns.",
                   .parameters = R"json({
  "type": "object",
  "properties": { "id": { "type": "string" } },
  "required": ["id"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("remove_agent", arguments, {"id"}));
    std::string id;
    BELFRY_CO_CHECK(fields.text("id", id));
    const auto profile = parts_.roster.find(id);
    std::vector<std::string> removed{id};
    if (profile || !context.again) {
      if (!profile || !is_owned(*profile, context.agent_id))
        co_return fail(Errc::not_found, fmt::format("you have no agent \"{}\"", id.substr(0, kIdBytesMax)));
      BELFRY_CO_TRY(removed, co_await parts_.roster.remove(id));
    }
    json::Writer writer;
    writer.object().field("result", "done").key("removed").array();
    for (const std::string& one : removed) writer.value(one);
    co_return writer.end().end().take();
  }

 private:
  bool is_owned(const Profile& profile, const std::string& by) const {
    std::string owner = profile.owner;
    for (int i = 0; i <= kDepthMax && !owner.empty(); ++i) {
      if (owner == by) return true;
      const auto above = parts_.roster.find(owner);
      owner = above ? above->owner : "";
    }
    return false;
  }
};

}  // namespace

std::vector<std::unique_ptr<tool::Tool>> make_agent_tools(ToolParts parts) {
  std::vector<std::unique_ptr<tool::Tool>> tools;
  tools.push_back(std::make_unique<Reply>(parts));
  tools.push_back(std::make_unique<StaySilent>(parts));
  tools.push_back(std::make_unique<ToolSearch>(parts));
  tools.push_back(std::make_unique<SpawnAgent>(parts));
  tools.push_back(std::make_unique<RemoveAgent>(parts));
  return tools;
}

}  // namespace belfry::agent
