#include "belfry/agent/agent.h"
#include "belfry/base/json.h"
#include "belfry/chat/conversation.h"

namespace belfry::agent {
namespace {

class Echo final : public Agent {
 public:
  Task<Result<>> handle(bus::Delivery message, Hands& hands) override {
    const auto payload = json::parse(message.payload);
    // Two echoes would never stop.
    const bool from_echo = payload && payload->kind == json::Kind::object && json::find(*payload, "echo");
    if (from_echo) co_return Result<>{};
    const std::string text = chat::text_of(message.payload);
    json::Writer writer;
    writer.object().field("text", text.empty() ? message.payload : text).field("echo", true);
    bus::Outgoing reply{.to = message.from, .payload = writer.end().take()};
    const auto sent = co_await hands.send(std::move(reply));
    // Whoever cannot be answered was heard all the same.
    if (!sent && sent.error().code != Errc::unknown_recipient) co_return std::unexpected(sent.error());
    co_return Result<>{};
  }
};

}  // namespace

std::unique_ptr<Agent> make_echo() { return std::make_unique<Echo>(); }

}  // namespace belfry::agent
