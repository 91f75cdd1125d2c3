#include "belfry/run/tools.h"

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/run/run_json.h"

namespace belfry::run {
namespace {

using tool::Definition;
using tool::ToolContext;

NewRun on_behalf_of(const ToolContext& context) {
  return {.plan = {},
          .overlays = {},
          .agent = context.agent_id,
          .session = context.session_id,
          .task = context.task_id,
          .reply_to = context.reply_to,
          .timezone = context.timezone,
          .in_turn = context.in_turn,
          .once = context.once.empty() ? "" : "\x01" + context.once,
          .body = {}};
}

// What an agent needs to know now; the rest comes at its time.
std::string acknowledgement(const Run& run, const Readings& readings) {
  json::Writer writer;
  writer.object().field("runId", run.id).field("status", word(run.state)).key("steps").array();
  for (const Step& step : run.steps) {
    writer.object().field("stepIndex", step.index).field("aiName", step.plan.tool);
    if (step.feedback.feedback_at) writer.field("feedbackAt", to_iso(*step.feedback.feedback_at));
    if (step.feedback.past) writer.field("past", true);
    write_reading(writer, step, readings);
    writer.end();
  }
  writer.end();
  writer.field(
      "message",
      "已开始执行；结果会在约定的时间自动送达，无需等待或重复调用。It has begun. The results arrive by themselves at "
      "their times; do not wait and do not call it again.");
  return writer.end().take();
}

std::unexpected<Error> failure_of(const Step& step) {
  const auto error = json::parse(step.error);
  const std::string code = error ? json::text_in(*error, "code") : "";
  std::string message = error ? json::text_in(*error, "message") : "it has failed";
  if (const auto known = parse_errc(code); known && !is_passing(*known)) return fail(*known, std::move(message));
  return fail(Errc::plugin_failed, code == "plugin_failed" ? message : fmt::format("{}: {}", code, message));
}

class PluginTool final : public tool::Tool {
 public:
  PluginTool(Runs& runs, std::shared_ptr<const plugin::Plugin> plugin)
      : runs_(runs),
        plugin_(std::move(plugin)),
        definition_{.name = std::string(kLocalPrefix) + plugin_->name,
                    .description = plugin_->description,
                    .parameters = plugin_->parameters} {}

  const Definition& definition() const override { return definition_; }
  bool is_slow() const override { return true; }
  std::vector<std::string_view> judged_by_itself() const override {
    if (!plugin_->takes_schedule) return {};
    return {"schedule"};
  }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    const auto schedule = take_member(arguments, "schedule").member;
    const bool scheduled = plugin_->takes_schedule && schedule && *schedule != "null";
    NewRun wanted = on_behalf_of(context);
    wanted.plan.steps.push_back(
        {.tool = definition_.name, .arguments = std::move(arguments), .schedule = std::nullopt, .depends_on = {}});
    wanted.tells_agent = scheduled;
    // An agent that waits for it says itself what it has to say.
    wanted.quiet = !scheduled && context.in_turn;
    BELFRY_CO_TRY(const Runs::Created created, co_await runs_.create(std::move(wanted)));
    if (scheduled) co_return acknowledgement(created.run, runs_.readings(created.run));
    BELFRY_CO_TRY(const Run run, co_await runs_.finished(created.run.id));
    const Step& step = run.steps.front();
    if (step.feedback.state != StepState::reported) co_return failure_of(step);
    json::Writer writer;
    writer.object().field("runId", run.id).field("success", true).key("data").raw(step.result);
    co_return writer.end().take();
  }

 private:
  Runs& runs_;
  std::shared_ptr<const plugin::Plugin> plugin_;
  Definition definition_;
};

class RunPlan final : public tool::Tool {
 public:
  explicit RunPlan(Runs& runs) : runs_(runs) {}
  const Definition& definition() const override { return definition_; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Value value, json::parse(arguments));
    NewRun wanted = on_behalf_of(context);
    BELFRY_CO_TRY(wanted.plan, read_plan(value));
    wanted.tells_agent = true;
    BELFRY_CO_TRY(const Runs::Created created, co_await runs_.create(std::move(wanted)));
    co_return acknowledgement(created.run, runs_.readings(created.run));
  }

 private:
  Runs& runs_;
  Definition definition_{
      .name = "run_plan",
      .description =
          "提交一个多步骤计划：立即开始执行，各步骤可以依赖之前的步骤并引用其结果，结果自动送达。Carries out a plan of "
          "several tool calls: it begins at once, steps may depend on earlier ones and use their results as "
          "{{steps.0.result.path}}, and each result is shown at its own time. You are told when all of it has ended.",
      .parameters = R"json({
  "type": "object",
  "properties": {
    "title": { "type": "string", "maxLength": 200, "description": "可选。计划的名字。What it is about." },
    "onFailure": { "type": "string", "enum": ["skip", "fail", "continue"], "description": "可选。步骤失败时其后续步骤：跳过（默认）、失败或继续。What becomes of those that depend on a step that has failed; skip by default." },
    "steps": {
      "type": "array", "minItems": 1, "maxItems": 100,
      "items": {
        "type": "object",
        "properties": {
          "aiName": { "type": "string", "description": "工具名称，例如 local__image_draw。The tool's name." },
          "draftArgs": { "type": "object", "description": "参数；支持的工具可带 schedule，只控制反馈时间。Its arguments; with `schedule`, where the tool takes one, to report at a certain time." },
          "dependsOn": { "type": "array", "items": { "type": "integer", "minimum": 0 }, "description": "在哪些步骤的结果之后开始，从 0 计。Steps that come before it, counted from 0." },
          "onFailure": { "type": "string", "enum": ["skip", "fail", "continue"] }
        },
        "required": ["aiName"]
      }
    }
  },
  "required": ["steps"]
})json"};
};

class CancelRun final : public tool::Tool {
 public:
  explicit CancelRun(Runs& runs) : runs_(runs) {}
  const Definition& definition() const override { return definition_; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("cancel_run", arguments, {"runId"}));
    std::string id;
    BELFRY_CO_CHECK(fields.text("runId", id));
    BELFRY_CO_TRY(const Run known, co_await runs_.get(id, Detail::outline));
    if (!context.agent_id.empty() && known.owner.agent != context.agent_id)
      co_return fail(Errc::not_found, fmt::format("there is no run \"{}\" of {}", id, context.agent_id));
    // Asked for again after a crash, it is what it was to be.
    if (known.state == RunState::cancelled && context.again) co_return answer(known);
    BELFRY_CO_TRY(const Run run, co_await runs_.cancel(id));
    co_return answer(run);
  }

 private:
  static std::string answer(const Run& run) {
    json::Writer writer;
    return writer.object().field("runId", run.id).field("status", word(run.state)).end().take();
  }

  Runs& runs_;
  Definition definition_{
      .name = "cancel_run",
      .description =
          "取消一个正在执行的工具或计划（runId）。Ends a tool or a plan that is under way; nothing more of it is "
          "reported.",
      .parameters = R"json({
  "type": "object",
  "properties": { "runId": { "type": "string" } },
  "required": ["runId"]
})json"};
};

}  // namespace

std::vector<std::unique_ptr<tool::Tool>> make_run_tools(Runs& runs) {
  std::vector<std::unique_ptr<tool::Tool>> all;
  all.push_back(std::make_unique<RunPlan>(runs));
  all.push_back(std::make_unique<CancelRun>(runs));
  return all;
}

void PluginOffer::set(const std::vector<std::shared_ptr<const plugin::Plugin>>& plugins) {
  for (const std::string& name : offered_) executor_.remove(name);
  offered_.clear();
  toolbox_.set_plugins(plugins);
  for (const auto& plugin : plugins) {
    auto tool = std::make_unique<PluginTool>(runs_, plugin);
    offered_.push_back(tool->definition().name);
    executor_.add(std::move(tool));
  }
}

}  // namespace belfry::run
