#include "belfry/run/run_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/bus/send_answer.h"

namespace belfry::run {
namespace {

// As much of a result as a person reads in a conversation, an agent in a message, a panel in a line.
constexpr std::size_t kShownBytesMax = 1'000;
constexpr std::size_t kToldBytesMax = 16'000;
constexpr std::size_t kLineBytesMax = 64'000;

void time_field(json::Writer& writer, std::string_view name, const std::optional<WallTime>& time) {
  if (time) writer.field(name, to_iso(*time));
}

// As it was written: a plain text if that is all.
void schedule_field(json::Writer& writer, const Step& step) {
  if (!step.plan.schedule) return;
  const Schedule& schedule = *step.plan.schedule;
  writer.key("schedule");
  if (schedule == Schedule{.when = schedule.when}) {
    writer.value(schedule.when);
  } else {
    writer.raw(schedule_json(schedule));
  }
}

std::int64_t held_ms(const Step& step) {
  if (!step.ended_at || !step.reported_at || !step.feedback.ending) return 0;
  return std::max<std::int64_t>(0, (*step.reported_at - *step.ended_at).count());
}

// One that is too large is shown as a text that breaks off.
void data_field(json::Writer& writer, const Step& step, std::size_t most) {
  if (step.result.empty()) return;
  if (step.result.size() <= most) {
    writer.key("data").raw(step.result);
  } else {
    writer.field("data", shortened(step.result, most)).field("truncated", true);
  }
}

void result_fields(json::Writer& writer, const Step& step, std::size_t most) {
  const bool success = step.feedback.state == StepState::reported;
  writer.field("success", success);
  if (!success && !step.error.empty()) writer.key("error").raw(step.error);
  if (success) data_field(writer, step, most);
}

bool has_gone_on(const Step& step) { return step.notified_at.has_value(); }

std::string_view exposed_state(const Step& step) { return step.feedback.late() ? "late" : word(step.feedback.state); }

void step_fields(json::Writer& writer, const Step& step, bool with_results) {
  writer.field("stepIndex", step.index).field("aiName", step.plan.tool).field("state", exposed_state(step));
  schedule_field(writer, step);
  writer.key("dependsOn").array();
  for (const int one : step.plan.depends_on) writer.value(one);
  writer.end();
  if (step.timeout > Millis{0}) writer.field("timeoutMs", step.timeout.count());
  time_field(writer, "feedbackAt", step.feedback.feedback_at);
  time_field(writer, "startedAt", step.started_at);
  time_field(writer, "endedAt", step.ended_at);
  time_field(writer, "notifiedAt", step.notified_at);
  time_field(writer, "reportedAt", step.reported_at);
  if (step.feedback.past) writer.field("past", true);
  if (!step.progress.empty() && step.progress.size() <= kLineBytesMax) writer.key("progress").raw(step.progress);
  // What is held is nobody's yet.
  if (is_final(step.feedback.state) && !step.error.empty()) writer.key("error").raw(step.error);
  if (!with_results) return;
  writer.key("draftArgs").raw(step.plan.arguments);
  if (step.arguments.size() > kLineBytesMax) {
    writer.field("args", shortened(step.arguments, kLineBytesMax)).field("argsTruncated", true);
  } else if (!step.arguments.empty()) {
    writer.key("args").raw(step.arguments);
  }
  if (step.feedback.state == StepState::reported) data_field(writer, step, kLineBytesMax);
}

// The text that a tool gave for people, if it gave one.
std::string text_in_result(const std::string& result) {
  const auto value = json::parse(result);
  if (!value) return {};
  if (value->kind == json::Kind::string) return json::text(*value);
  if (value->kind != json::Kind::object) return {};
  for (const std::string_view name : {"text", "message", "summary"})
    if (std::string text = json::text_in(*value, name); !is_blank(text)) return text;
  return {};
}

// What can be looked at stays, however large the rest is.
std::string files_only(const std::string& result) {
  json::Writer writer;
  writer.object().key("files").array();
  std::size_t room = kLineBytesMax;
  for (const json::Value file : json::elements(*json::find(*json::parse(result), "files"))) {
    if (file.raw.size() > room) break;
    room -= file.raw.size();
    writer.raw(file.raw);
  }
  return writer.end().end().take();
}

std::string error_message(const Step& step) {
  const auto value = json::parse(step.error);
  return value && value->kind == json::Kind::object ? json::text_in(*value, "message") : "";
}

}  // namespace

std::string_view plain_name(std::string_view tool) {
  constexpr std::string_view kLocal = "local__";
  if (tool.starts_with(kLocal)) tool.remove_prefix(kLocal.size());
  return tool;
}

std::string start_members(const Run& run) {
  json::Writer writer;
  writer.object().field("steps", run.steps.size());
  if (!run.title.empty()) writer.field("title", run.title);
  if (!run.owner.session.empty()) writer.field("sessionId", run.owner.session);
  if (!run.owner.agent.empty()) writer.field("agentId", run.owner.agent);
  if (!run.owner.task.empty()) writer.field("taskId", run.owner.task);
  return writer.end().take();
}

std::string plan_members(const Run& run) {
  json::Writer writer;
  writer.object().key("plan").object().key("steps").array();
  for (const Step& step : run.steps) {
    writer.object().field("stepIndex", step.index).field("aiName", step.plan.tool);
    writer.key("draftArgs").raw(step.plan.arguments);
    schedule_field(writer, step);
    time_field(writer, "feedbackAt", step.feedback.feedback_at);
    writer.key("dependsOn").array();
    for (const int one : step.plan.depends_on) writer.value(one);
    writer.end().field("onFailure", word(step.plan.on_failure)).end();
  }
  return writer.end().end().end().take();
}

std::string args_members(const Step& step) {
  json::Writer writer;
  writer.object().key("args").raw(step.arguments);
  schedule_field(writer, step);
  time_field(writer, "feedbackAt", step.feedback.feedback_at);
  if (step.feedback.past) writer.field("past", true);
  return writer.end().take();
}

std::string result_members(const Step& step) {
  json::Writer writer;
  writer.object();
  result_fields(writer, step, SIZE_MAX);
  time_field(writer, "startedAt", step.started_at);
  time_field(writer, "endedAt", step.ended_at);
  writer.field("heldMs", held_ms(step)).field("late", has_gone_on(step)).field("past", step.feedback.past);
  return writer.end().take();
}

std::string done_members(const Run& run) {
  json::Writer writer;
  return writer.object().field("status", word(run.state)).end().take();
}

std::string event_json(const Run& run, const Event& event, const Step* step, WallTime now, std::string_view members) {
  json::Writer writer;
  writer.object().field("type", event.type).field("runId", run.id).field("seq", event.seq).field("time", to_iso(now));
  if (step) {
    writer.field("stepIndex", step->index).field("aiName", step->plan.tool);
  } else {
    writer.key("stepIndex").null().key("aiName").null();
  }
  // Not read again: what is in them may be nested as deeply as a text can be.
  std::string json = writer.end().take();
  if (members.size() > 2) {
    json.back() = ',';
    json += members.substr(1);
  }
  return json;
}

void write_reading(json::Writer& writer, const Step& step, const Readings& readings) {
  if (const auto found = readings.find(step.index); found != readings.end())
    bus::write_understood(writer, bus::Understood{found->second, step.plan.schedule->when});
}

std::string run_json(const Run& run, bool with_results, const Readings& readings) {
  json::Writer writer;
  writer.object().field("runId", run.id).field("state", word(run.state));
  if (!run.title.empty()) writer.field("title", run.title);
  if (!run.owner.session.empty()) writer.field("sessionId", run.owner.session);
  if (!run.owner.agent.empty()) writer.field("agentId", run.owner.agent);
  if (!run.owner.task.empty()) writer.field("taskId", run.owner.task);
  writer.field("createdAt", to_iso(run.created_at));
  time_field(writer, "endedAt", run.ended_at);
  writer.field("lastEvent", run.last_event);
  if (!run.owner.session.empty()) writer.field("afterSeq", run.after_seq);
  writer.key("steps").array();
  for (const Step& step : run.steps) {
    writer.object();
    step_fields(writer, step, with_results);
    write_reading(writer, step, readings);
    writer.end();
  }
  return writer.end().end().take();
}

Tongue tongue_of(const Step& step) {
  if (step.plan.schedule) {
    const std::string& language = step.plan.schedule->language;
    if (language.starts_with("zh")) return Tongue::chinese;
    if (language.starts_with("en")) return Tongue::english;
    if (tongue_of(step.plan.schedule->when) == Tongue::chinese) return Tongue::chinese;
  }
  return tongue_of(step.plan.arguments);
}

bool has_files(const Step& step) {
  const auto value = json::parse(step.result);
  if (!value || value->kind != json::Kind::object) return false;
  const auto files = json::find(*value, "files");
  return files && files->kind == json::Kind::array && !json::elements(*files).empty();
}

bool is_shown(const Run& run, const Step& step) {
  if (run.owner.session.empty() || run.owner.person.empty()) return false;
  // What was given up because of others has no end of its own, and what was cancelled nobody wants to hear of.
  if (!step.feedback.ending || !is_final(step.feedback.state) || step.feedback.state == StepState::cancelled)
    return false;
  // What an agent waits for, it says itself; and what a tool of Belfry's own did, everybody has seen.
  if (run.quiet) return has_files(step);
  const bool is_own = plain_name(step.plan.tool) == step.plan.tool;
  return step.feedback.state != StepState::reported || !is_own;
}

std::string result_text(const Step& step) {
  const bool chinese = tongue_of(step) == Tongue::chinese;
  const std::string_view name = plain_name(step.plan.tool);
  if (step.feedback.state != StepState::reported) {
    const std::string why = shortened(error_message(step), kShownBytesMax);
    return chinese ? fmt::format("{} 没有成功：{}", name, why) : fmt::format("{} did not succeed: {}", name, why);
  }
  if (std::string text = text_in_result(step.result); !text.empty()) return shortened(text, kLineBytesMax);
  std::string done = chinese ? fmt::format("{} 已完成。", name) : fmt::format("{} is done.", name);
  if (step.result.empty() || step.result == "null" || step.result == "{}") return done;
  return fmt::format("{}\n\n```json\n{}\n```", done, shortened(step.result, kShownBytesMax));
}

std::string saying_payload(const Run& run, const Step& step, const std::string& text, bool with_result) {
  json::Writer writer;
  writer.object().field("text", text).key("run").object();
  writer.field("runId", run.id).field("stepIndex", step.index).field("aiName", step.plan.tool);
  writer.field("type", with_result ? "tool_result" : "tool_choice");
  if (with_result) {
    if (step.result.size() > kLineBytesMax && has_files(step)) {
      writer.field("success", true).key("data").raw(files_only(step.result)).field("truncated", true);
    } else {
      result_fields(writer, step, kLineBytesMax);
    }
  } else {
    writer.field("status", "in_progress");
  }
  return writer.end().end().take();
}

std::string ended_payload(const Run& run) {
  json::Writer writer;
  std::string text = fmt::format("[run {} {}]", run.id, word(run.state));
  for (const Step& step : run.steps)
    text += fmt::format("\n{}: {}", plain_name(step.plan.tool), word(step.feedback.state));
  writer.object()
      .field("type", "run_ended")
      .field("text", text)
      .field("runId", run.id)
      .field("status", word(run.state));
  // The person has read it in the conversation: it need not be told again.
  writer.field("shownToPerson",
               std::ranges::any_of(run.steps, [&run](const Step& step) { return is_shown(run, step); }));
  writer.key("results").array();
  std::size_t room = kToldBytesMax * 8;
  for (const Step& step : run.steps) {
    const std::size_t most = std::min(kToldBytesMax, room);
    room -= std::min(room, step.result.size());
    writer.object().field("stepIndex", step.index).field("aiName", step.plan.tool);
    writer.field("state", word(step.feedback.state));
    result_fields(writer, step, most);
    writer.end();
  }
  return writer.end().end().take();
}

}  // namespace belfry::run
