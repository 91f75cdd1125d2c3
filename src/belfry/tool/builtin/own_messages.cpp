// An agent's own delayed messages: looking, cancelling, moving (D16).
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/bus/delay.h"
#include "belfry/bus/send_answer.h"
#include "belfry/tool/builtin/builtin.h"

namespace belfry::tool {
namespace {

constexpr int kListedMax = 100;

// Whoever calls without being an agent is the person in front of the machine.
std::string sender_of(const ToolContext& context) { return context.agent_id.empty() ? "user" : context.agent_id; }

// A message of somebody else is none at all: its existence is not the caller's business.
Task<Result<bus::MessageId>> own_message(bus::MessageBus& bus, const ToolContext& context, std::string id_text) {
  BELFRY_CO_TRY(const bus::MessageId id, bus::parse_message_id(id_text));
  BELFRY_CO_TRY(const bus::MessageInfo info, co_await bus.get(id));
  if (info.from != sender_of(context))
    co_return fail(Errc::not_found, fmt::format("{} has sent no message {}", sender_of(context), id_text));
  co_return id;
}

void write_message(json::Writer& writer, const bus::MessageInfo& info) {
  writer.object().field("messageId", bus::to_text(info.id)).field("to", info.to);
  writer.field("state", bus::word(info.state)).field("createdAt", to_iso(info.created_at));
  writer.field("deliverAt", to_iso(info.deliver_at)).end();
}

std::string done(bus::MessageId id) {
  json::Writer writer;
  return writer.object().field("messageId", bus::to_text(id)).field("result", "done").end().take();
}

class ListMessages final : public Tool {
 public:
  explicit ListMessages(Surroundings around) : around_(around) {}
  const Definition& definition() const override { return definition_; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("list_messages", arguments, {"to", "limit", "after", "messageIds"}));
    if (const auto named = fields.find("messageIds")) co_return co_await only(std::move(context), ids_in(*named));
    bus::ListRequest request{.from = sender_of(context), .state = bus::MessageState::delayed, .limit = kListedMax};
    std::int64_t limit = kListedMax;
    BELFRY_CO_CHECK(fields.text("to", request.to));
    BELFRY_CO_CHECK(fields.text("after", request.after));
    BELFRY_CO_CHECK(fields.whole("limit", limit));
    request.limit = static_cast<int>(std::clamp<std::int64_t>(limit, 1, kListedMax));
    BELFRY_CO_TRY(const bus::ListResult page, co_await around_.bus.list(std::move(request)));
    json::Writer writer;
    writer.object().key("messages").array();
    for (const bus::MessageInfo& info : page.messages) write_message(writer, info);
    writer.end();
    if (!page.next.empty()) writer.field("next", page.next);
    co_return writer.end().take();
  }

 private:
  static std::vector<std::string> ids_in(json::Value named) {
    std::vector<std::string> ids;
    for (const json::Value id : json::elements(named)) ids.push_back(json::text(id));
    return ids;
  }

  // Those of them that are the caller's, and delayed.
  Task<Result<std::string>> only(ToolContext context, std::vector<std::string> ids) {
    json::Writer writer;
    writer.object().key("messages").array();
    for (const std::string& text : ids) {
      BELFRY_CO_TRY(const bus::MessageId id, bus::parse_message_id(text));
      const auto info = co_await around_.bus.get(id);
      if (!info && info.error().code != Errc::not_found) co_return std::unexpected(info.error());
      if (info && info->from == sender_of(context) && info->state == bus::MessageState::delayed)
        write_message(writer, *info);
    }
    co_return writer.end().end().take();
  }

  Surroundings around_;
  Definition definition_{
      .name = "list_messages",
      .description =
          "列出自己发送的、尚未投递的延迟消息。Lists the delayed messages that you sent and that are not delivered yet.",
      .parameters = R"json({
  "type": "object",
  "properties": {
    "to": { "type": "string", "description": "可选。只看给这个收件人的。Optional: only those for this recipient." },
    "messageIds": {
      "type": "array", "items": { "type": "string" }, "maxItems": 100,
      "description": "可选。只看这些消息。Optional: only these messages."
    },
    "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
    "after": { "type": "string", "description": "上一页的 next。The next of the page before." }
  }
})json"};
};

class CancelMessage final : public Tool {
 public:
  explicit CancelMessage(Surroundings around) : around_(around) {}
  const Definition& definition() const override { return definition_; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields, json::Fields::read("cancel_message", arguments, {"messageId"}));
    std::string id_text;
    BELFRY_CO_CHECK(fields.text("messageId", id_text));
    BELFRY_CO_TRY(const bus::MessageId id, co_await own_message(around_.bus, context, id_text));
    const auto cancelled = co_await around_.bus.cancel(id, sender_of(context));
    const bool by_this_call = !cancelled && cancelled.error().code == Errc::already_cancelled && context.again;
    if (!cancelled && !by_this_call) co_return std::unexpected(cancelled.error());
    co_return done(id);
  }

 private:
  Surroundings around_;
  Definition definition_{
      .name = "cancel_message",
      .description =
          "取消自己发送的、对方尚未收到的一条消息。Cancels a message that you sent and that was not received yet.",
      .parameters = R"json({
  "type": "object",
  "properties": { "messageId": { "type": "string" } },
  "required": ["messageId"]
})json"};
};

class RescheduleMessage final : public Tool {
 public:
  explicit RescheduleMessage(Surroundings around) : around_(around) {}
  const Definition& definition() const override { return definition_; }
  std::vector<std::string_view> judged_by_itself() const override { return {"delayMs", "schedule"}; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(const json::Fields fields,
                  json::Fields::read("reschedule_message", arguments, {"messageId", "delayMs", "schedule"}));
    std::string id_text;
    std::optional<bus::TimeText> schedule;
    BELFRY_CO_CHECK(fields.text("messageId", id_text));
    BELFRY_CO_CHECK(bus::read_schedule(fields, schedule));
    const auto delay = fields.find("delayMs");
    if (delay.has_value() == schedule.has_value())
      co_return fail(Errc::invalid_argument, "one of delayMs and schedule is needed, and only one");
    BELFRY_CO_TRY(const bus::MessageId id, co_await own_message(around_.bus, context, id_text));
    json::Writer writer;
    writer.object().field("messageId", bus::to_text(id)).field("result", "done");
    if (delay) {
      const bus::DelayReading reading = bus::read_delay(*delay);
      if (!reading.warning.empty())
        co_return std::unexpected(json::wrong_type("delayMs", *delay, "a number of milliseconds").error());
      BELFRY_CO_TRY(const bus::MessageInfo info, co_await around_.bus.reschedule_after(id, reading.delay));
      writer.field("scheduledDeliveryTime", to_iso(info.deliver_at));
      co_return writer.end().take();
    }
    if (schedule->timezone.empty()) schedule->timezone = context.timezone;
    BELFRY_CO_TRY(const bus::Scheduled scheduled, around_.times.read_schedule(*schedule));
    const when::Reading& reading = scheduled.reading;
    BELFRY_CO_TRY(const bus::MessageInfo info, scheduled.after
                                                   ? co_await around_.bus.reschedule_after(id, *scheduled.after)
                                                   : co_await around_.bus.reschedule(id, reading.at));
    writer.field("scheduledDeliveryTime", to_iso(info.deliver_at));
    bus::write_understood(writer, bus::Understood{reading, schedule->text});
    co_return writer.end().take();
  }

 private:
  Surroundings around_;
  Definition definition_{
      .name = "reschedule_message",
      .description = "给自己发送的一条延迟消息改时间。Gives a delayed message that you sent another time.",
      .parameters = R"json({
  "type": "object",
  "properties": {
    "messageId": { "type": "string" },
    "delayMs": { "type": "number", "description": "从现在起的毫秒数。Milliseconds from now." },
    "schedule": { "type": "string", "description": "新的时间，例如“明天早上9点”。The new time, like \"tomorrow at 9\"." }
  },
  "required": ["messageId"]
})json"};
};

}  // namespace

std::unique_ptr<Tool> make_list_messages(Surroundings around) { return std::make_unique<ListMessages>(around); }
std::unique_ptr<Tool> make_cancel_message(Surroundings around) { return std::make_unique<CancelMessage>(around); }
std::unique_ptr<Tool> make_reschedule_message(Surroundings around) {
  return std::make_unique<RescheduleMessage>(around);
}

}  // namespace belfry::tool
