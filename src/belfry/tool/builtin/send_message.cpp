// send_message: the tool that everything turns on (D15, Q1 to Q8, F15).
#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/bus/send_answer.h"
#include "belfry/chat/conversation.h"
#include "belfry/tool/builtin/builtin.h"

namespace belfry::tool {
namespace {

// `to`, `payload` and `delayMs` stand as the tool has always been described to models; the two behind them are optional
// extensions.
constexpr const char* kParameters = R"json({
  "type": "object",
  "properties": {
    "to": { "type": "string" },
    "payload": { "type": "object" },
    "delayMs": {
      "type": "number",
      "description": "延迟投递时间（毫秒），消息将在指定时间后才进入收件人队列。不指定或为0则立即投递。"
    },
    "quickReplies": {
      "type": "array",
      "items": { "type": "string" },
      "maxItems": 10,
      "description": "可选。快速回复选项：字符串数组，最多 10 个，收件方可点选其一作为回复，也可以自由回复。Optional: at most 10 strings that the recipient can answer with at a press; free replies stay possible."
    },
    "schedule": {
      "type": "string",
      "description": "可选。投递时间，例如“明天早上9点”或 ISO 8601；消息在该时间投递。不能与 delayMs 同时使用。Optional: when to deliver, like \"tomorrow at 9\" or ISO 8601; not together with delayMs."
    }
  },
  "required": ["to", "payload"]
})json";

// A model that sends a plain text means a message with that text (D15).
Result<> wrap_text(bus::Outgoing& message) {
  BELFRY_TRY(const json::Value payload, json::parse(message.payload));
  if (payload.kind == json::Kind::object) return {};
  if (payload.kind != json::Kind::string)
    return json::wrong_type("payload", payload, "an object, like {\"text\": \"…\"}");
  json::Writer writer;
  writer.object().key("text").raw(payload.raw).end();
  message.payload = writer.take();
  return {};
}

class SendMessage final : public Tool {
 public:
  explicit SendMessage(Surroundings around) : around_(around) {}

  const Definition& definition() const override { return definition_; }
  bool in_plans() const override { return true; }
  std::vector<std::string_view> judged_by_itself() const override {
    return {"to", "payload", "delayMs", "quickReplies", "schedule"};
  }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(bus::SendRequest request, read(context, arguments));
    if (request.to_is_list) co_return co_await send_to_each(std::move(request));
    bus::Outgoing message = std::move(request.message);
    message.to = std::move(request.to.front());
    BELFRY_CO_TRY(const bus::Sent sent, co_await around_.bus.send(std::move(message)));
    co_return bus::sent(sent, request.warnings, bus::understood(request));
  }

 private:
  Result<bus::SendRequest> read(const ToolContext& context, const std::string& arguments) const {
    BELFRY_TRY(const json::Fields fields,
               json::Fields::read("send_message", arguments, {"to", "payload", "delayMs", "quickReplies", "schedule"}));
    BELFRY_TRY(bus::SendRequest request, bus::read_send(fields));
    bus::Outgoing& message = request.message;
    BELFRY_CHECK(wrap_text(message));
    if (!context.agent_id.empty()) message.from = context.agent_id;
    message.task_id = context.task_id;
    message.session_id = context.session_id;
    message.once = context.once;
    if (request.schedule && request.schedule->timezone.empty()) request.schedule->timezone = context.timezone;
    BELFRY_CHECK(bus::resolve_schedule(request, around_.times));
    for (const std::string& name : request.to) BELFRY_CHECK(bus::check_id("to", name));
    return request;
  }

  // An unknown recipient fails its own entry only.
  Task<Result<std::string>> send_to_each(bus::SendRequest request) {
    std::vector<bus::Outgoing> messages;
    for (const std::string& name : request.to) messages.push_back(bus::message_for(request, name));
    const auto results = co_await around_.bus.send_many(std::move(messages));
    co_return bus::sent_to_each(request, results);
  }

  Surroundings around_;
  Definition definition_{
      .name = "send_message",
      .description = "发送异步消息。from 默认使用当前智能体 id。taskId 由系统自动处理，无需传入。",
      .parameters = kParameters,
  };
};

}  // namespace

std::unique_ptr<Tool> make_send_message(Surroundings around) { return std::make_unique<SendMessage>(around); }

}  // namespace belfry::tool
