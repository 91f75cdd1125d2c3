// What is to come in one conversation, whatever it is: delayed messages, scheduled ones, deadlines of questions, results of
// tools.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "belfry/bus/quick_replies.h"
#include "belfry/run/run_json.h"
#include "belfry/server/routes.h"
#include "belfry/server/socket_wire.h"

namespace belfry::server {
namespace {

using wire::ComingItem;

// More than anybody looks through.
constexpr std::size_t kItemsMax = 200;

ComingItem item_of(const bus::MessageInfo& message) {
  return {.kind = ComingItem::Kind::message,
          .id = bus::to_text(message.id),
          .from = message.from,
          .to = message.to,
          .text = chat::text_of(message.payload),
          .at = message.deliver_at,
          .created_at = message.created_at,
          .quick_replies = bus::quick_replies_of(message.payload)};
}

ComingItem item_of(const chat::ScheduledMessage& message) {
  return {.kind = ComingItem::Kind::scheduled,
          .id = message.id,
          .from = message.agent,
          .to = message.person,
          .text = message.text,
          .at = message.send_at,
          .created_at = message.created_at,
          .in_outbox = message.in_outbox};
}

ComingItem item_of(const chat::Chats::DeadlineOf& deadline) {
  return {.kind = ComingItem::Kind::question,
          .id = deadline.question.id,
          .from = deadline.question.asker,
          .to = deadline.question.person,
          .text = deadline.text,
          .at = wall_from_ms(deadline.question.answer_by_ms.value_or(0)),
          .seq = deadline.question.seq,
          .on_timeout = std::string(chat::word(deadline.question.on_timeout.action))};
}

ComingItem item_of(const run::RunTables::Coming& step) {
  return {.kind = ComingItem::Kind::run,
          .id = fmt::format("{}-{}", step.run_id, step.step),
          .from = step.tool,
          .to = step.person,
          .text = step.title.empty() ? std::string(run::plain_name(step.tool)) : step.title,
          .at = step.at,
          .created_at = step.created_at,
          .run = step.run_id,
          .step = step.step,
          .state = std::string(run::word(step.state))};
}

}  // namespace

void ComingRoutes::add_to(Router& router) {
  router.add(Method::get, "/v1/sessions/{}/coming", [this](Request request) { return coming(std::move(request)); });
}

Task<Response> ComingRoutes::coming(Request request) {
  const auto items = co_await collect(request.parameter);
  if (!items) co_return error_response(items.error());
  const bool more = items->size() > kItemsMax;
  const std::vector<ComingItem> shown(items->begin(),
                                      items->begin() + static_cast<std::ptrdiff_t>(std::min(items->size(), kItemsMax)));
  co_return json_response(200, wire::coming(shown, more, round_down(clock_.now().wall)));
}

Task<Result<std::vector<ComingItem>>> ComingRoutes::collect(std::string id) {
  constexpr int kLimit = static_cast<int>(kItemsMax) + 1;
  BELFRY_CO_TRY(const chat::Session session, co_await chats_.session(id));
  std::vector<ComingItem> items;
  BELFRY_CO_TRY(const auto deadlines, co_await chats_.deadlines(id, kLimit));
  for (const chat::Chats::DeadlineOf& deadline : deadlines) items.push_back(item_of(deadline));
  chat::ScheduledQuery query{.session = id, .status = chat::ScheduledStatus::pending, .limit = kLimit};
  BELFRY_CO_TRY(const auto scheduled, co_await scheduled_.list(std::move(query)));
  for (const chat::ScheduledMessage& message : scheduled.messages) items.push_back(item_of(message));
  BELFRY_CO_TRY(const auto steps, co_await runs_.coming_in(id, kLimit));
  for (const run::RunTables::Coming& step : steps) items.push_back(item_of(step));
  for (const std::string& person : session.people()) {
    BELFRY_CO_TRY(const auto delayed, co_await delayed_for(session, person));
    items.insert(items.end(), delayed.begin(), delayed.end());
  }
  std::sort(items.begin(), items.end(),
            [](const ComingItem& a, const ComingItem& b) { return std::tie(a.at, a.id) < std::tie(b.at, b.id); });
  co_return items;
}

// Those of a person's delayed messages that will be said here (A7).
Task<Result<std::vector<ComingItem>>> ComingRoutes::delayed_for(chat::Session session, std::string person) {
  bus::ListRequest wanted{.to = person, .state = bus::MessageState::delayed, .limit = static_cast<int>(kItemsMax)};
  BELFRY_CO_TRY(const auto page, co_await bus_.list(std::move(wanted)));
  std::vector<ComingItem> items;
  for (const bus::MessageInfo& listed : page.messages) {
    const auto whole = co_await bus_.get(listed.id);
    if (!whole || whole->state != bus::MessageState::delayed) continue;  // delivered or cancelled meanwhile
    BELFRY_CO_TRY(const bool here, co_await is_said_in(session, *whole));
    if (here) items.push_back(item_of(*whole));
  }
  co_return items;
}

Task<Result<bool>> ComingRoutes::is_said_in(chat::Session session, bus::MessageInfo message) {
  if (message.session_id == session.id) co_return true;
  if (session.kind != chat::SessionKind::private_chat) co_return false;
  const bool by_system = message.from == message.to || message.from == chat::kBelfry;
  const std::string speaker = by_system ? std::string(chat::kBelfry) : message.from;
  if (!session.has(speaker)) co_return false;
  // One that names another conversation is said there, if both are in it.
  if (!message.session_id.empty()) {
    const auto named = co_await chats_.session(message.session_id);
    if (named && named->has(message.to) && named->has(speaker)) co_return false;
  }
  BELFRY_CO_TRY(const std::optional<chat::Session> last, co_await chats_.find_private(message.to, speaker));
  co_return last && last->id == session.id;
}

}  // namespace belfry::server
