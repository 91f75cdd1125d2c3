// ask: a question to a person with buttons and a deadline (Q9).
#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/bus/send_answer.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/question.h"
#include "belfry/tool/builtin/builtin.h"

namespace belfry::tool {
namespace {

constexpr const char* kParameters = R"json({
  "type": "object",
  "properties": {
    "to": { "type": "string", "description": "向谁提问（人的 id）。The person to ask." },
    "text": { "type": "string", "description": "问题。The question." },
    "quickReplies": {
      "type": "array",
      "items": { "type": "string" },
      "minItems": 1,
      "maxItems": 10,
      "description": "可点选的回答，1 到 10 个字符串。The answers to choose from: 1 to 10 strings."
    },
    "answerBy": {
      "type": "string",
      "description": "可选。最晚回答时间，例如“10分钟后”或 ISO 8601。Optional: the latest time to answer, like \"in 10 minutes\"."
    },
    "onTimeout": {
      "type": "object",
      "description": "可选，需要 answerBy。到时仍未回答：{\"action\":\"default\",\"index\":0} 采用该选项；{\"action\":\"remind\",\"text\":\"…\",\"every\":600000,\"times\":1} 提醒；{\"action\":\"expire\"} 作废（默认）。Optional, with answerBy: what happens when nobody answered by then."
    }
  },
  "required": ["to", "text", "quickReplies"]
})json";

class Ask final : public Tool {
 public:
  explicit Ask(Surroundings around) : around_(around) {}

  const Definition& definition() const override { return definition_; }
  bool in_plans() const override { return true; }
  std::vector<std::string_view> judged_by_itself() const override { return {"quickReplies", "onTimeout"}; }

  Task<Result<std::string>> call(ToolContext context, std::string arguments) override {
    BELFRY_CO_TRY(Question question, read(context, arguments));
    BELFRY_CO_TRY(const bus::Sent sent, co_await around_.bus.send(std::move(question.message)));
    json::Writer writer;
    writer.object().field("messageId", bus::to_text(sent.id));
    if (question.reading) {
      writer.field("answerBy", to_iso(question.reading->at));
      bus::write_understood(writer, bus::Understood{*question.reading, question.answer_by});
    }
    co_return writer.end().take();
  }

 private:
  struct Question {
    bus::Outgoing message;
    std::string answer_by;
    std::optional<when::Reading> reading;
  };

  Result<Question> read(const ToolContext& context, const std::string& arguments) const {
    BELFRY_TRY(const json::Fields fields,
               json::Fields::read("ask", arguments, {"to", "text", "quickReplies", "answerBy", "onTimeout"}));
    if (context.agent_id.empty())
      return fail(Errc::invalid_argument, "agentId is missing; the answer to a question goes to whoever asks it");
    Question question;
    bus::Outgoing& message = question.message;
    std::string text;
    BELFRY_CHECK(fields.text("to", message.to));
    BELFRY_CHECK(fields.text("text", text));
    BELFRY_CHECK(fields.text("answerBy", question.answer_by));
    BELFRY_CHECK(check_person(message.to));
    if (is_blank(text)) return fail(Errc::invalid_argument, "text is empty; a question needs one");
    const auto replies = fields.find("quickReplies");
    if (replies) {
      BELFRY_TRY(message.quick_replies, bus::read_quick_replies(*replies));
    }
    if (message.quick_replies.empty())
      return fail(Errc::invalid_argument, "quickReplies is empty; a question needs answers to choose from");
    BELFRY_TRY(question.reading, read_answer_by(question.answer_by, context));

    json::Writer payload;
    payload.object().field("text", text);
    if (question.reading) payload.field("answerBy", to_iso(question.reading->at));
    if (const auto late = fields.find("onTimeout")) {
      if (!question.reading) return fail(Errc::invalid_argument, "onTimeout stands without answerBy; say until when");
      BELFRY_TRY(const chat::OnTimeout on_timeout,
                 chat::read_on_timeout(*late, static_cast<int>(message.quick_replies.size())));
      payload.key("onTimeout");
      chat::write_on_timeout(payload, on_timeout);
    }
    message.payload = payload.end().take();
    message.from = context.agent_id;
    message.task_id = context.task_id;
    message.session_id = context.session_id;
    message.once = context.once;
    return question;
  }

  Result<> check_person(const std::string& name) const {
    BELFRY_CHECK(bus::check_id("to", name));
    const auto known = around_.bus.recipient(name);
    if (!known) return fail(Errc::unknown_recipient, fmt::format("there is no person \"{}\"", name));
    if (known->kind != chat::kPersonKind)
      return fail(
          Errc::invalid_argument,
          fmt::format("\"{}\" is an agent; questions are for people, and send_message takes quickReplies", name));
    return {};
  }

  Result<std::optional<when::Reading>> read_answer_by(const std::string& text, const ToolContext& context) const {
    if (text.empty()) return std::optional<when::Reading>();
    BELFRY_TRY(auto reading, around_.times.read_moment({.text = text, .timezone = context.timezone}, "answerBy"));
    if (reading.at <= round_down(around_.clock.now().wall))
      return fail(Errc::invalid_time, fmt::format("answerBy is {}, which is past", to_iso(reading.at)));
    return std::optional(std::move(reading));
  }

  Surroundings around_;
  Definition definition_{
      .name = "ask",
      .description =
          "向一个人提问，附带可点选的回答，可限定回答时间。回答会作为消息送达。Asks a person a question with answers "
          "to choose from, if you like with a deadline. The answer arrives as a message.",
      .parameters = kParameters,
  };
};

}  // namespace

std::unique_ptr<Tool> make_ask(Surroundings around) { return std::make_unique<Ask>(around); }

}  // namespace belfry::tool
