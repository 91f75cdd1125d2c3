// What reaches people: one way for all of it (A8), and the bus's messages for people among it.
#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/question.h"

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
SessionRow conversation_for(store::Connection& connection, const Saying& saying, WallTime now,
                            const std::string& new_session) {
  if (!saying.session.empty()) {
    auto named = ChatTables::find(connection, saying.session);
    const bool fits =
        named && is_person_of(named->session, saying.to) && (saying.from == kBelfry || named->session.has(saying.from));
    if (fits) return std::move(*named);
  }
  if (auto known = ChatTables::find_private(connection, saying.to, saying.from)) return std::move(*known);
  Session session{.id = new_session, .kind = SessionKind::private_chat, .created_at = now, .last_at = now};
  session.members = {{saying.to, true}, {saying.from, false}};
  return ChatTables::create(connection, std::move(session), "");
}

}  // namespace

// Nothing if it was said before. A saying that offers quick replies is a question from here on.
Result<std::optional<Chats::Said>> Chats::write_saying(store::Connection& connection, const Saying& saying,
                                                       WallTime now, const std::string& session_id) const {
  if (ChatTables::session_of(connection, saying.id)) return std::optional<Said>();
  SessionRow session = conversation_for(connection, saying, now, session_id);
  Line line{.id = saying.id,
            .from = saying.from,
            .to = saying.to,
            .source = saying.source,
            .payload = saying.payload,
            .task_id = saying.task_id,
            .in_reply_to = saying.in_reply_to,
            .created_at = saying.created_at.value_or(now),
            .said_at = now};
  ChatTables::append(connection, session, line);
  const auto replies = bus::quick_replies_of(line.payload);
  if (!replies.empty()) {
    const Deadline deadline = read_deadline(line.payload, static_cast<int>(replies.size()));
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
  return std::optional(Said{session.session.id, std::move(line)});
}

Task<Result<Posted>> Chats::say(Saying saying) {
  const auto known = bus_.recipient(saying.to);
  if (!known || known->kind != kPersonKind)
    co_return fail(Errc::unknown_recipient, fmt::format("there is no person \"{}\"", saying.to));
  if (saying.id.empty()) saying.id = new_id();
  auto job = [this, saying, now = now(), made = new_id()](store::Connection& connection) {
    return write_saying(connection, saying, now, made);
  };
  BELFRY_CO_TRY(const std::optional<Said> said, co_await store_.write<std::optional<Said>>(std::move(job)));
  if (!said) co_return Posted{.id = saying.id, .repeated = true};
  tell(*said);
  co_return Posted{.id = said->line.id, .seq = said->line.seq};
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

void Chats::deliver_more() {
  while (!waiting_people_.empty() && deliveries_ < kPeopleAtOnce && !stopping_) {
    ++deliveries_;
    tasks_.spawn("deliver to a person", deliver(std::move(waiting_people_.front())));
    waiting_people_.pop_front();
  }
}

Task<void> Chats::deliver(std::string person) {
  // Not from inside the bus's own work.
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  bool more = true;
  while (more && !stopping_) {
    came_meanwhile_.erase(person);
    auto got = co_await bus_.receive({.recipient = person, .max = kDeliveriesMax});
    more = got && (!got->empty() || came_meanwhile_.contains(person));
    if (!got || got->empty()) continue;
    std::vector<std::string> leases;
    for (const bus::Delivery& delivery : *got) leases.push_back(delivery.lease);
    const bool written = co_await write_deliveries(person, leases, std::move(*got));
    if (written) co_await bus_.ack_leases(person, std::move(leases), kBelfry);
    more = written;
  }
  --deliveries_;
  delivering_.erase(person);
  came_meanwhile_.erase(person);
  deliver_more();
}

// A message that was written and not acked, because the process ended in between, is found by its id. While the disk
// refuses, the messages stay in our hands: a full disk is no reason for a dead letter. False at a stop.
Task<bool> Chats::write_deliveries(std::string person, std::vector<std::string> leases,
                                   std::vector<bus::Delivery> deliveries) {
  auto sayings = std::make_shared<std::vector<std::pair<Saying, std::string>>>();
  for (bus::Delivery& delivery : deliveries)
    sayings->emplace_back(Saying{.id = bus::to_text(delivery.id),
                                 .session = std::move(delivery.session_id),
                                 .from = std::move(delivery.from),
                                 .to = std::move(delivery.to),
                                 .source = Source::agent,
                                 .payload = std::move(delivery.payload),
                                 .task_id = std::move(delivery.task_id),
                                 .created_at = delivery.created_at},
                          new_id());
  const int rows = static_cast<int>(sayings->size()) * 4;
  while (true) {
    auto job = [this, sayings, now = now()](store::Connection& connection) {
      return write_sayings(connection, *sayings, now);
    };
    const auto all = co_await store_.write<std::vector<Said>>(std::move(job), rows);
    if (all) {
      for (const Said& said : *all) tell(said);
      co_return true;
    }
    log::warn("chat.delivery_failed", "messages for a person could not be stored; tried again soon",
              {{"to", person}, {"count", leases.size()}, {"what", all.error().detail}});
    if (stopping_) co_return false;
    co_await pause(kTryAgain);
    if (stopping_) co_return false;
    const auto renewed = bus_.extend(person, leases, kLeaseDefault);
    if (!renewed) co_return false;  // the person is gone
  }
}

Result<std::vector<Chats::Said>> Chats::write_sayings(store::Connection& connection,
                                                      const std::vector<std::pair<Saying, std::string>>& sayings,
                                                      WallTime now) const {
  std::vector<Said> all;
  for (const auto& [saying, session] : sayings) {
    BELFRY_TRY(std::optional<Said> said, write_saying(connection, saying, now, session));
    if (said) all.push_back(std::move(*said));
  }
  return all;
}

// Ends early at a stop.
Task<void> Chats::pause(Millis duration) {
  Wake wake;
  pauses_.push_back(&wake);
  struct Leave {
    std::vector<Wake*>& pauses;
    Wake& wake;
    ~Leave() { std::erase(pauses, &wake); }
  } leave{pauses_, wake};
  co_await clock_.sleep_until(clock_.now().boot + duration, wake);
}

}  // namespace belfry::chat
