// Messages that an agent writes now and says later, in a private chat (P1 to P4, P10).
#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/bus/send_answer.h"
#include "belfry/chat/private_message_json.h"
#include "belfry/tool/builtin/builtin.h"

namespace belfry::tool {
namespace {

// The session comes from the context, and only from there (P2).
Result<> check_session(const ToolContext& context) {
  if (!context.session_id.empty() && context.is_private) return {};
  return fail(Errc::not_private_chat, context.session_id.empty()
                                          ? "this call stands in no session; messages are scheduled in private chats"
                                          : "this is a group; messages are scheduled in private chats only");
}

class PrivateTool : public Tool {
 public:
  PrivateTool(Surroundings around, Definition definition) : around_(around), definition_(std::move(definition)) {}
  const Definition& definition() const override { return definition_; }
  bool in_private_chats_only() const override { return true; }

 protected:
  Surroundings around_;

 private:
  Definition definition_;
};

class Schedule final : public PrivateTool {
 public:
  bool in_plans() const override { return true; }
  explicit Schedule(Surroundings around)
      : PrivateTool(
            around,
            {.name = "schedule_private_message",
             .description = "为当前私聊创建一条未来发送任务：现在写好文本，到点直接发送，不再判断。可选择覆盖当前私聊中"
                            "尚未执行的旧任务。Writes now what is said in this private chat later, as it is.",
             .parameters = R"json({
  "type": "object",
  "properties": {
    "send_at": { "type": "string", "description": "发送时间：ISO 8601，或“明天早上9点”“in 20 minutes”。When: ISO 8601 or words; in the zone of this chat unless it says another." },
    "message_text": { "type": "string", "description": "到点时直接发送的文本。The text, sent as it is." },
    "replace_existing": { "type": "boolean", "default": false, "description": "是否覆盖当前私聊里尚未执行的旧任务，默认 false。Whether it cancels all that is still pending in this chat." }
  },
  "required": ["send_at", "message_text"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("schedule_private_message", arguments,
                                                                {"send_at", "message_text", "replace_existing"}));
    BELFRY_CO_CHECK(check_session(context));
    std::string send_at;
    chat::NewScheduledMessage wanted{
        .session = context.session_id, .agent = context.agent_id, .call = context.call_id, .once = context.once};
    BELFRY_CO_CHECK(fields.text("send_at", send_at));
    BELFRY_CO_CHECK(fields.text("message_text", wanted.text));
    BELFRY_CO_CHECK(fields.flag("replace_existing", wanted.replace_existing));
    BELFRY_CO_TRY(const when::Reading reading, chat::read_send_at(around_.times, send_at, context.timezone));
    wanted.send_at = reading.at;
    BELFRY_CO_TRY(const auto created, co_await around_.scheduled.create(std::move(wanted)));
    co_return chat::created(created, reading, send_at);
  }
};

class ListScheduled final : public PrivateTool {
 public:
  explicit ListScheduled(Surroundings around)
      : PrivateTool(around,
                    {.name = "list_scheduled_private_messages",
                     .description =
                         "列出当前私聊中尚未发送的定时消息，按时间排序。Lists what is still scheduled in this private "
                         "chat, the earliest first.",
                     .parameters = R"json({
  "type": "object",
  "properties": { "after": { "type": "string", "description": "上一页的 next。The next of the page before." } }
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("list_scheduled_private_messages", arguments, {"after"}));
    BELFRY_CO_CHECK(check_session(context));
    chat::ScheduledQuery query{.session = context.session_id, .status = chat::ScheduledStatus::pending};
    BELFRY_CO_CHECK(fields.text("after", query.after));
    BELFRY_CO_TRY(const chat::ScheduledPage page, co_await around_.scheduled.list(std::move(query)));
    json::Writer writer;
    writer.object().key("tasks").array();
    for (const chat::ScheduledMessage& one : page.messages) chat::write_scheduled(writer, one);
    writer.end();
    if (!page.next.empty()) writer.field("next", page.next);
    co_return writer.end().take();
  }
};

class CancelScheduled final : public PrivateTool {
 public:
  explicit CancelScheduled(Surroundings around)
      : PrivateTool(
            around,
            {.name = "cancel_scheduled_private_message",
             .description = "取消当前私聊中一条尚未发送的定时消息。Cancels one message that is still scheduled in this "
                            "private chat.",
             .parameters = R"json({
  "type": "object",
  "properties": { "task_id": { "type": "string" } },
  "required": ["task_id"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("cancel_scheduled_private_message", arguments, {"task_id"}));
    BELFRY_CO_CHECK(check_session(context));
    std::string id;
    BELFRY_CO_CHECK(fields.text("task_id", id));
    const auto cancelled = co_await around_.scheduled.cancel(id, context.session_id, context.call_id);
    const bool by_this_call = !cancelled && cancelled.error().code == Errc::already_cancelled && context.again;
    if (!cancelled && !by_this_call) co_return std::unexpected(cancelled.error());
    json::Writer writer;
    co_return writer.object().field("task_id", id).field("result", "done").end().take();
  }
};

class RescheduleScheduled final : public PrivateTool {
 public:
  explicit RescheduleScheduled(Surroundings around)
      : PrivateTool(around,
                    {.name = "reschedule_scheduled_private_message",
                     .description = "给当前私聊中一条尚未发送的定时消息换一个时间，文本不变。Gives one message that "
                                    "is still scheduled in this private chat another time.",
                     .parameters = R"json({
  "type": "object",
  "properties": {
    "task_id": { "type": "string" },
    "send_at": { "type": "string", "description": "新的发送时间：ISO 8601，或“明天早上9点”“in 20 minutes”。The new time: ISO 8601 or words; in the zone of this chat unless it says another." }
  },
  "required": ["task_id", "send_at"]
})json"}) {}

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("reschedule_scheduled_private_message", arguments, {"task_id", "send_at"}));
    BELFRY_CO_CHECK(check_session(context));
    std::string id;
    std::string send_at;
    BELFRY_CO_CHECK(fields.text("task_id", id));
    BELFRY_CO_CHECK(fields.text("send_at", send_at));
    BELFRY_CO_TRY(const when::Reading reading, chat::read_send_at(around_.times, send_at, context.timezone));
    BELFRY_CO_TRY(const chat::ScheduledMessage moved,
                  co_await around_.scheduled.change(id, context.session_id, {.send_at = reading.at}));
    json::Writer writer;
    writer.object().field("task_id", id).field("result", "done").field("send_at", to_iso(moved.send_at));
    bus::write_understood(writer, bus::Understood{reading, send_at});
    co_return writer.end().take();
  }
};

}  // namespace

std::unique_ptr<Tool> make_schedule_private_message(Surroundings around) { return std::make_unique<Schedule>(around); }
std::unique_ptr<Tool> make_list_scheduled_private_messages(Surroundings around) {
  return std::make_unique<ListScheduled>(around);
}
std::unique_ptr<Tool> make_cancel_scheduled_private_message(Surroundings around) {
  return std::make_unique<CancelScheduled>(around);
}
std::unique_ptr<Tool> make_reschedule_scheduled_private_message(Surroundings around) {
  return std::make_unique<RescheduleScheduled>(around);
}

}  // namespace belfry::tool
