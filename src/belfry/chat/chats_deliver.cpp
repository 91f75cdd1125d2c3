// What reaches people: one way for all of it (A8), and the bus's messages for people among it.
#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/question.h"
#include "belfry/chat/webhook_tables.h"

namespace belfry::chat {
namespace {

// Messages that go into the log together, and people who get theirs at the same time.
constexpr int kDeliveriesMax = 100;
constexpr std::size_t kPeopleAtOnce = 64;
constexpr Millis kTryAgain{1'000};

bool is_person_of(const Session& session, const std::string& name) {
  for (const Member& member : session.members)
    if (member.id == name) return member.person;
  return false;
}

// The conversation that a saying belongs to: the one it names if both are in it, else the private one of the two (A7).
// What no agent says belongs into the one with Belfry.
SessionRow conversation_for(store::Connection& connection, const Saying& saying, WallTime now) {
  if (!saying.session.empty()) {
    auto named = ChatTables::find(connection, saying.session);
    const bool fits =
        named && is_person_of(named->session, saying.to) && (saying.from == kBelfry || named->session.has(saying.from));
    if (fits) return std::move(*named);
  }
  const bool by_agent = saying.source != Source::system && saying.source != Source::user;
  const std::string other = by_agent ? saying.from : kBelfry;
  if (auto known = ChatTables::find_private(connection, saying.to, other)) return std::move(*known);
  Session session{.id = saying.new_session, .kind = SessionKind::private_chat, .created_at = now, .last_at = now};
  session.members = {{saying.to, true}, {other, false}};
  return ChatTables::create(connection, std::move(session), "");
}

}  // namespace

// The one place where something that reaches a person is written (A8). Nothing if it was said before. A saying that offers
// quick replies is a question from here on.
std::optional<Chats::Said> Chats::write_saying(store::Connection& connection, const Saying& saying, WallTime now) {
  if (ChatTables::session_of(connection, saying.id)) return std::nullopt;
  SessionRow session = conversation_for(connection, saying, now);
  Line line{.id = saying.id,
            .from = saying.from,
            .to = saying.to,
            .source = saying.source,
            .payload = saying.payload,
            .task_id = saying.task_id,
            .in_reply_to = saying.in_reply_to,
            .quick_reply_index = saying.quick_reply_index,
            .closes = saying.closes,
            .created_at = saying.created_at.value_or(now),
            .said_at = now,
            .due_at = saying.due_at};
  ChatTables::append(connection, session, line);
  const auto replies = bus::quick_replies_of(line.payload);
  if (!replies.empty()) {
    // One that makes no sense was refused when it was sent, or is older than that.
    const Deadline deadline = read_deadline(line.payload, static_cast<int>(replies.size())).value_or(Deadline{});
    std::optional<std::int64_t> by_ms;
    if (deadline.answer_by) by_ms = to_ms(*deadline.answer_by);
    ChatTables::ask(connection, {.id = line.id,
                                 .session = session.number,
                                 .seq = line.seq,
                                 .asker = line.from,
                                 .person = line.to,
                                 .answer_by_ms = by_ms,
                                 .next_ms = by_ms,
                                 .on_timeout = deadline.on_timeout});
    line.question = QuestionStatus{.answer_by = deadline.answer_by};
  }
  // What leaves by a webhook stands in the outbox from this transaction on.
  const bool outgoing = WebhookTables::add_line(connection, session.session.id, line);
  return Said{session.session.id, std::move(line), outgoing};
}

bool Chats::is_person(const std::string& name) const {
  const auto known = bus_.recipient(name);
  return known && known->kind == kPersonKind;
}

Result<> Chats::admit(const bus::Outgoing& message) const {
  if (message.from != message.to && is_person(message.from))
    return fail(Errc::wrong_state,
                fmt::format("\"{}\" and \"{}\" are people; people speak in a session: POST /v1/sessions makes one,"
                            " POST /v1/sessions/{{id}}/messages speaks in it. A program says who it is with from",
                            message.from, message.to));
  const auto replies = bus::quick_replies_of(message.payload);
  if (const auto deadline = read_deadline(message.payload, static_cast<int>(replies.size())); !deadline)
    return fail(deadline.error().code, "payload: " + deadline.error().detail);
  return {};
}

void Chats::arrived(const std::string& person) {
  if (delivering_.contains(person)) {
    came_meanwhile_.insert(person);
    return;
  }
  delivering_.insert(person);
  waiting_people_.push_back(person);
  deliver_more();
}

void Chats::delayed_changed(const std::string& person) {
  for (Listener* const listener : listeners_) listener->coming_for(person);
}

void Chats::deliver_more() {
  while (!waiting_people_.empty() && deliveries_ < kPeopleAtOnce && !stopping_) {
    ++deliveries_;
    tasks_.spawn("deliver to a person", deliver(std::move(waiting_people_.front())));
    waiting_people_.pop_front();
  }
}

// However it ends: who is not taken off these lists never gets a message again.
Task<void> Chats::deliver(std::string person) {
  try {
    // Not from inside the bus's own work.
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    bool more = true;
    while (more && !stopping_) {
      came_meanwhile_.erase(person);
      const bool some = co_await deliver_some(person);
      more = some || came_meanwhile_.contains(person);
    }
  } catch (const std::exception& e) {  // what it held comes again when the leases end
    log::error("chat.delivery_failed", "messages for a person were not delivered",
               {{"to", person}, {"what", e.what()}});
  }
  --deliveries_;
  delivering_.erase(person);
  came_meanwhile_.erase(person);
  deliver_more();
}

// False if there was nothing.
Task<bool> Chats::deliver_some(std::string person) {
  auto got = co_await bus_.receive({.recipient = person, .max = kDeliveriesMax});
  if (!got && got.error().code == Errc::unknown_recipient) co_return false;
  if (!got) {
    log::warn("chat.receive_failed", "messages for a person could not be read; tried again soon",
              {{"to", person}, {"what", got.error().detail}});
    co_await pauses_.pause(kTryAgain);
    co_return true;
  }
  if (got->empty()) co_return false;
  std::vector<std::string> leases;
  for (const bus::Delivery& delivery : *got) leases.push_back(delivery.lease);
  const bool written = co_await write_deliveries(person, leases, std::move(*got));
  if (!written) co_return false;
  // One that is refused comes again when its lease ends, and is found to have been said.
  const auto acked = co_await bus_.ack_leases(person, std::move(leases), kBelfry);
  if (!acked || !acked->refused.empty())
    log::warn("chat.ack_failed", "messages that were said to a person could not be acked; they come again",
              {{"to", person}, {"what", acked ? acked->refused.front().error.detail : acked.error().detail}});
  co_return true;
}

// Who speaks, as the log shows it. A program that does not say who it is writes to people in their own name: that is the
// system. A person to another one is refused at the send; one that became a person since is still heard.
Saying Chats::saying_of(bus::Delivery delivery) {
  Saying saying{.id = bus::to_text(delivery.id),
                .session = std::move(delivery.session_id),
                .from = std::move(delivery.from),
                .to = std::move(delivery.to),
                .payload = std::move(delivery.payload),
                .task_id = std::move(delivery.task_id),
                .created_at = delivery.created_at,
                .new_session = new_id()};
  if (delivery.deliver_at > delivery.created_at) saying.due_at = delivery.deliver_at;
  if (saying.from == saying.to) saying.from = kBelfry;
  if (saying.from == kBelfry) {
    saying.source = Source::system;
  } else if (is_person(saying.from)) {
    saying.source = Source::user;
  } else if (saying.due_at) {
    saying.source = Source::scheduled_send;
  }
  return saying;
}

// A message that was written and not acked, because the process ended in between, is found by its id. While the disk
// refuses, the messages stay in our hands: a full disk is no reason for a dead letter. False at a stop.
Task<bool> Chats::write_deliveries(std::string person, std::vector<std::string> leases,
                                   std::vector<bus::Delivery> deliveries) {
  auto sayings = std::make_shared<std::vector<Saying>>();
  for (bus::Delivery& delivery : deliveries) sayings->push_back(saying_of(std::move(delivery)));
  const int rows = static_cast<int>(sayings->size()) * 4;
  while (true) {
    auto job = [sayings, now = now()](store::Connection& connection) -> Result<std::vector<Said>> {
      std::vector<Said> all;
      for (const Saying& saying : *sayings)
        if (auto said = write_saying(connection, saying, now)) all.push_back(std::move(*said));
      return all;
    };
    const auto all = co_await store_.write<std::vector<Said>>(std::move(job), rows);
    if (all) {
      for (const Said& said : *all) tell(said);
      co_return true;
    }
    log::warn("chat.delivery_failed", "messages for a person could not be stored; tried again soon",
              {{"to", person}, {"count", leases.size()}, {"what", all.error().detail}});
    if (stopping_) co_return false;
    co_await pauses_.pause(kTryAgain);
    if (stopping_) co_return false;
    const auto renewed = bus_.extend(person, leases, kLeaseDefault);
    if (!renewed) co_return false;  // the person is gone
  }
}

}  // namespace belfry::chat
