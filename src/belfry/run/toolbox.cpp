#include "belfry/run/toolbox.h"

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::run {
namespace {

constexpr Millis kBuiltinTimeout{60'000};

std::string context_json(const Order& order) {
  json::Writer writer;
  writer.object().field("runId", order.run_id).field("stepIndex", order.step);
  // Made again after a crash, it is the same: whoever is asked twice can tell.
  writer.field("idempotencyKey", fmt::format("{}-{}", order.run_id, order.step));
  writer.field("timeoutMs", order.timeout.count()).field("language", order.language);
  if (!order.owner.agent.empty()) writer.field("agentId", order.owner.agent);
  if (!order.owner.session.empty()) writer.field("sessionId", order.owner.session);
  if (!order.owner.task.empty()) writer.field("taskId", order.owner.task);
  if (!order.output_dir.empty()) writer.field("outputDir", order.output_dir);
  return writer.end().take();
}

bool has_property(std::string_view schema, std::string_view name) {
  const auto value = json::parse(schema);
  const auto properties = value ? json::find(*value, "properties") : std::nullopt;
  return properties && properties->kind == json::Kind::object && json::find(*properties, name);
}

plugin::Outcome failure(std::string code, std::string message) {
  return {.success = false, .data = {}, .code = std::move(code), .message = std::move(message)};
}

}  // namespace

void Toolbox::set_plugins(const std::vector<std::shared_ptr<const plugin::Plugin>>& plugins) {
  plugins_.clear();
  for (const auto& plugin : plugins) plugins_.emplace(std::string(kLocalPrefix) + plugin->name, plugin);
}

std::string Toolbox::names() const {
  std::string all;
  for (const auto& [name, plugin] : plugins_) all += (all.empty() ? "" : ", ") + name;
  return all + (all.empty() ? "" : ", ") + "and send_message, ask, schedule_private_message";
}

Result<Ability> Toolbox::find(const std::string& tool) const {
  if (const auto found = plugins_.find(tool); found != plugins_.end()) {
    const plugin::Plugin& plugin = *found->second;
    return Ability{.takes_schedule = plugin.takes_schedule,
                   .refuses_schedule = !plugin.takes_schedule && !has_property(plugin.parameters, "schedule"),
                   .idempotent = plugin.idempotent,
                   .is_plugin = true,
                   .appetite = {.tool = tool,
                                .provider = plugin.provider.empty() ? tool : plugin.provider,
                                .at_once = plugin.persistent ? 1 : plugin.at_once,
                                .cooldown = plugin.cooldown},
                   .timeout = plugin.timeout};
  }
  const tool::Tool* const builtin = executor_.find(tool);
  if (builtin && builtin->in_plans())
    // What it does, it does once under its name: a crash in between is no reason to give up.
    return Ability{.idempotent = true, .appetite = {.tool = tool, .provider = "belfry"}, .timeout = kBuiltinTimeout};
  return fail(Errc::unknown_tool,
              fmt::format("there is no tool \"{}\" for a plan; there are: {}", shortened(tool, kIdBytesMax), names()));
}

std::vector<Appetite> Toolbox::pausing() const {
  std::vector<Appetite> all;
  for (const auto& [name, plugin] : plugins_)
    if (plugin->cooldown > Millis{0}) all.push_back(find(name)->appetite);
  return all;
}

std::vector<Ability> Toolbox::lasting() const {
  std::vector<Ability> all;
  for (const auto& [name, plugin] : plugins_)
    if (plugin->persistent) all.push_back(*find(name));
  return all;
}

Result<> Toolbox::check(const std::string& tool, const std::string& arguments) const {
  return executor_.check(tool, arguments);
}

Task<plugin::Outcome> Toolbox::perform(Order order, plugin::Host::Progress progress, std::shared_ptr<Cancel> cancel) {
  const auto found = plugins_.find(order.tool);
  if (found == plugins_.end()) co_return co_await perform_builtin(std::move(order));
  plugin::Job job{.plugin = found->second,
                  .arguments = order.arguments,
                  .context = context_json(order),
                  .output_dir = order.output_dir,
                  .timeout = order.timeout};
  co_return co_await host_.perform(std::move(job), std::move(progress), std::move(cancel));
}

Task<plugin::Outcome> Toolbox::perform_builtin(Order order) {
  tool::CallRequest request{.tool = order.tool, .arguments = order.arguments};
  request.context.agent_id = order.owner.agent;
  request.context.session_id = order.owner.session;
  request.context.task_id = order.owner.task;
  request.context.call_id = fmt::format("run-{}-{}", order.run_id, order.step);
  request.context.in_turn = true;
  const auto called = co_await executor_.call(std::move(request));
  if (!called) {
    plugin::Outcome outcome = failure(std::string(word(called.error().code)), called.error().detail);
    outcome.passing = is_passing(called.error().code);
    co_return outcome;
  }
  if (called->ok) co_return plugin::Outcome{.success = true, .data = called->result, .code = {}, .message = {}};
  const auto value = json::parse(called->result);
  plugin::Outcome outcome =
      failure(std::string(word(called->code)), value ? json::text_in(*value, "message") : called->result);
  outcome.passing = is_passing(called->code);
  co_return outcome;
}

}  // namespace belfry::run
