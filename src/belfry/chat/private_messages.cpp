#include "belfry/chat/private_messages.h"

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/chat/private_message_tables.h"
#include "belfry/chat/webhook_tables.h"

namespace belfry::chat {
namespace {

// Said in one transaction: whoever else writes waits for at most that many.
constexpr int kSentAtOnce = 100;

std::unexpected<Error> no_task(const std::string& id) {
  return fail(Errc::not_found, fmt::format("there is no scheduled message \"{}\"", id.substr(0, kIdBytesMax)));
}

// Why nothing can be done with it any more (P10).
std::unexpected<Error> not_pending(const ScheduledMessage& message) {
  switch (message.status) {
    case ScheduledStatus::sent:
      return fail(Errc::already_sent,
                  fmt::format("it was sent at {}", to_iso(message.sent_at.value_or(message.send_at))));
    case ScheduledStatus::cancelled:
      return fail(Errc::already_cancelled, fmt::format("it was cancelled at {}", to_iso(message.updated_at)));
    default: return fail(Errc::wrong_state, fmt::format("it has failed: {}", message.reason));
  }
}

// One that is pending, and of this session if one is named.
Result<ScheduledMessage> find_pending(store::Connection& connection, const std::string& id,
                                      const std::string& session) {
  auto found = PrivateMessageTables::find(connection, id);
  if (!found || (!session.empty() && found->session_id != session)) return no_task(id);
  if (found->status != ScheduledStatus::pending) return not_pending(*found);
  return std::move(*found);
}

ScheduledMessage found_again(store::Connection& connection, const std::string& id) {
  auto found = PrivateMessageTables::find(connection, id);
  BELFRY_ASSERT(found.has_value());
  return std::move(*found);
}

// Its own id is the line's: said once, and sent once, whatever happens.
std::string line_id(const ScheduledMessage& message) { return "s" + message.id; }

std::unexpected<Error> being_sent(const OutboxRow& row) {
  if (row.state == OutboxState::sending)
    return fail(Errc::being_sent, fmt::format("it is being sent to the webhook of \"{}\" right now", row.person));
  if (row.unclear)
    return fail(Errc::being_sent, fmt::format("an attempt had no answer, so it may have arrived: {}", row.last_error));
  return fail(Errc::being_sent, fmt::format("it was tried {} time{} and stays as it is; it can be cancelled",
                                            row.attempts, row.attempts == 1 ? "" : "s"));
}

OutboxRow row_of(store::Connection& connection, const ScheduledMessage& message) {
  auto row = WebhookTables::find_row(connection, line_id(message));
  BELFRY_ASSERT(row.has_value());
  return std::move(*row);
}

// Out of the outbox again, if it was handed over and can still be kept from arriving. With `untried`, only before its first
// attempt: under one key the receiver sees one text.
Result<> take_back(store::Connection& connection, const ScheduledMessage& message, bool untried, std::int64_t now_ms) {
  if (!message.in_outbox) return {};
  const OutboxRow row = row_of(connection, message);
  if (!WebhookTables::withdraw(connection, row, untried, now_ms)) return being_sent(row);
  PrivateMessageTables::set_in_outbox(connection, message.id, false);
  return {};
}

// What the log has of it: the text as it was written, and since when it was meant for.
std::string payload_of(const ScheduledMessage& message, WallTime now) {
  json::Writer writer;
  writer.object().field("text", message.text).key("scheduled").object();
  writer.field("task_id", message.id).field("send_at", to_iso(message.send_at));
  if (now - message.send_at >= kLateFrom)
    writer.field("late_ms", std::chrono::duration_cast<Millis>(now - message.send_at).count());
  return writer.end().end().take();
}

std::string name_of(const NewScheduledMessage& wanted) {
  if (!wanted.once.empty()) return "\x01" + wanted.once;
  if (wanted.call.empty()) return {};
  return fmt::format("{}\n{}", wanted.session, wanted.call);
}

bool is_same(const ScheduledMessage& made, const NewScheduledMessage& wanted) {
  return made.session_id == wanted.session && made.text == wanted.text &&
         made.replace_existing == wanted.replace_existing;
}

}  // namespace

PrivateMessages::PrivateMessages(asio::io_context& context, Clock& clock, store::Store& store, Chats& chats,
                                 Outbox& outbox, Timekeeper& timekeeper, PrivateMessagesOptions options)
    : clock_(clock),
      store_(store),
      chats_(chats),
      outbox_(outbox),
      options_(options),
      due_(context, clock, timekeeper, "scheduled messages", [this] { return send_due(); }) {
  store::Connection& connection = store_.connection_before_start();
  PrivateMessageTables::migrate(connection);
  if (const auto next = PrivateMessageTables::next_due(connection)) due_.note(*next);
}

Result<> PrivateMessages::check_text(const std::string& text) const {
  if (is_blank(text)) return fail(Errc::empty_text, "the text is empty; a message needs one");
  if (text.size() > kScheduledTextBytesMax)
    return fail(Errc::too_large,
                fmt::format("the text has {} bytes; at most {} are taken", text.size(), kScheduledTextBytesMax));
  return {};
}

// The time as it counts: one that has just passed is now (P3).
Result<WallTime> PrivateMessages::check_time(WallTime at) const {
  if (at < now() - kPastTolerated)
    return fail(Errc::invalid_time, fmt::format("{} is past; it is {}", to_iso(at), to_iso(now())));
  return at;
}

Task<Result<PrivateMessages::Created>> PrivateMessages::create(NewScheduledMessage wanted) {
  BELFRY_CO_CHECK(check_text(wanted.text));
  if (wanted.max_late && *wanted.max_late < Millis{0})
    co_return fail(Errc::invalid_argument, "max_late_ms is negative; 0 or more is possible");
  ScheduledMessage message{.id = chats_.new_id(),
                           .session_id = wanted.session,
                           .text = wanted.text,
                           .send_at = wanted.send_at,
                           .created_at = now(),
                           .updated_at = now(),
                           .created_by_call = wanted.call,
                           .replace_existing = wanted.replace_existing,
                           .max_late = wanted.max_late};
  const auto in_time = check_time(wanted.send_at);
  auto job = [message, wanted, in_time,
              oldest_ms = to_ms(now() - options_.retention)](store::Connection& connection) mutable -> Result<Created> {
    const std::string once = name_of(wanted);
    if (auto made = PrivateMessageTables::find_once(connection, once)) {
      // Belfry's own name is enough: "in an hour" is another instant the second time.
      if (wanted.once.empty() && !is_same(*made, wanted))
        return fail(Errc::key_conflict, fmt::format("the call made another task, {}", made->id));
      return Created{.message = std::move(*made), .repeated = true};
    }
    const auto session = ChatTables::find(connection, wanted.session);
    if (!session) return fail(Errc::not_found, fmt::format("there is no session \"{}\"", wanted.session.substr(0, 64)));
    if (session->session.kind != SessionKind::private_chat)
      return fail(Errc::not_private_chat, "this is a group; messages are scheduled in private chats only");
    if (!in_time) return std::unexpected(in_time.error());
    message.person = session->session.people().front();
    message.agent = session->session.agents().front();
    if (!wanted.agent.empty() && wanted.agent != message.agent)
      return fail(Errc::invalid_argument, fmt::format("\"{}\" is not in the session {}", wanted.agent, wanted.session));
    Created created{.message = message};
    if (wanted.replace_existing) {
      for (const ScheduledMessage& old : PrivateMessageTables::pending_of(connection, wanted.session)) {
        if (!take_back(connection, old, false, to_ms(message.created_at))) continue;  // too late for that one
        PrivateMessageTables::cancel(connection, old.id, "replaced", wanted.call, to_ms(message.created_at));
        created.cancelled.push_back(old.id);
      }
    }
    PrivateMessageTables::drop_old(connection, oldest_ms);
    PrivateMessageTables::insert(connection, message, once);
    return created;
  };
  auto created = co_await store_.write_as_send<Created>(std::move(job), wanted.text.size());
  if (!created || created->repeated) co_return created;
  due_.note(to_ms(created->message.send_at));
  chats_.tell_coming(created->message.session_id);
  if (!created->cancelled.empty()) outbox_.look();
  log::info("scheduled.created", "",
            {{"task", created->message.id},
             {"session", created->message.session_id},
             {"sendAt", created->message.send_at},
             {"replaced", created->cancelled.size()}});
  co_return created;
}

Task<Result<ScheduledMessage>> PrivateMessages::get(std::string id) {
  auto job = [id](store::Connection& connection) -> Result<ScheduledMessage> {
    auto found = PrivateMessageTables::find(connection, id);
    if (!found) return no_task(id);
    return std::move(*found);
  };
  co_return co_await store_.read<ScheduledMessage>(std::move(job));
}

Task<Result<ScheduledPage>> PrivateMessages::list(ScheduledQuery query) {
  auto job = [query](store::Connection& connection) { return PrivateMessageTables::list(connection, query); };
  co_return co_await store_.read<ScheduledPage>(std::move(job));
}

Task<Result<ScheduledMessage>> PrivateMessages::cancel(std::string id, std::string session, std::string call) {
  auto job = [id, session, call, now_ms = to_ms(now())](store::Connection& connection) -> Result<ScheduledMessage> {
    BELFRY_TRY(const ScheduledMessage found, find_pending(connection, id, session));
    BELFRY_CHECK(take_back(connection, found, false, now_ms));
    PrivateMessageTables::cancel(connection, found.id, "", call, now_ms);
    return found_again(connection, id);
  };
  auto cancelled = co_await store_.write<ScheduledMessage>(std::move(job));
  if (cancelled) {
    outbox_.look();  // whoever stood behind it
    chats_.tell_coming(cancelled->session_id);
    log::info("scheduled.cancelled", "", {{"task", id}});
  }
  co_return cancelled;
}

Task<Result<ScheduledMessage>> PrivateMessages::change(std::string id, std::string session, ScheduledChange change) {
  if (change.text) BELFRY_CO_CHECK(check_text(*change.text));
  if (change.send_at) {
    const auto in_time = check_time(*change.send_at);
    if (!in_time) co_return std::unexpected(in_time.error());
  }
  auto job = [id, session, change, now_ms = to_ms(now())](store::Connection& connection) -> Result<ScheduledMessage> {
    BELFRY_TRY(const ScheduledMessage found, find_pending(connection, id, session));
    BELFRY_CHECK(take_back(connection, found, true, now_ms));
    PrivateMessageTables::change(connection, id, change.text.value_or(found.text),
                                 to_ms(change.send_at.value_or(found.send_at)), now_ms);
    return found_again(connection, id);
  };
  auto changed = co_await store_.write<ScheduledMessage>(std::move(job));
  if (changed) {
    due_.note(to_ms(changed->send_at));
    chats_.tell_coming(changed->session_id);
    outbox_.look();
    log::info("scheduled.changed", "", {{"task", id}, {"sendAt", changed->send_at}});
  }
  co_return changed;
}

Task<Result<ScheduledMessage>> PrivateMessages::send_now(std::string id) {
  // Its time is now: then it is said like any other that is due, in the same transaction.
  auto job = [this, id, now = now()](store::Connection& connection) -> Result<Sent> {
    BELFRY_TRY(const ScheduledMessage found, find_pending(connection, id, ""));
    if (found.in_outbox) {
      const OutboxRow row = row_of(connection, found);
      if (row.state == OutboxState::sending) return being_sent(row);
      WebhookTables::hurry_next(connection, row, to_ms(now));
      return Sent{.touched = {found}};
    }
    PrivateMessageTables::change(connection, id, found.text, to_ms(now), to_ms(now));
    return send_some(connection, {id}, now);
  };
  auto sent = co_await store_.write<Sent>(std::move(job));
  if (!sent) co_return std::unexpected(sent.error());
  tell(*sent);
  co_return std::move(sent->touched.front());
}

// --- when they are due ---

Task<bool> PrivateMessages::send_due() {
  bool more = true;
  while (more && !due_.stopping()) {
    due_.begin_reading();
    auto job = [this, now = now()](store::Connection& connection) -> Result<Sent> {
      std::vector<std::string> ids;
      for (const ScheduledMessage& one : PrivateMessageTables::due(connection, to_ms(now), kSentAtOnce))
        ids.push_back(one.id);
      Sent sent = send_some(connection, ids, now);
      sent.next_ms = PrivateMessageTables::next_due(connection);
      sent.more = ids.size() == static_cast<std::size_t>(kSentAtOnce);
      return sent;
    };
    const auto sent = co_await store_.write<Sent>(std::move(job), kSentAtOnce * 4);
    if (!sent) {
      log::warn("scheduled.send_failed", "scheduled messages could not be stored; tried again soon",
                {{"what", sent.error().detail}});
      co_return false;
    }
    tell(*sent);
    if (sent->next_ms) due_.note(*sent->next_ms);
    more = sent->more;
  }
  co_return true;
}

// Says those of them that are pending and due, in their order; too late for one that does not want to be late (P11).
PrivateMessages::Sent PrivateMessages::send_some(store::Connection& connection, const std::vector<std::string>& ids,
                                                 WallTime now) const {
  Sent sent;
  for (const std::string& id : ids) {
    const auto message = PrivateMessageTables::find(connection, id);
    if (!message || message->status != ScheduledStatus::pending || message->send_at > now) continue;
    const auto max_late = message->max_late ? message->max_late : options_.max_late;
    if (max_late && now - message->send_at > *max_late) {
      PrivateMessageTables::mark_failed(connection, id, "expired",
                                        fmt::format("it would have been {} ms late", (now - message->send_at).count()),
                                        to_ms(now));
    } else if (WebhookTables::has(connection, message->person)) {
      hand_over(connection, *message, max_late, now);
    } else if (auto said = say(connection, *message, 1, now)) {
      sent.said.push_back(std::move(*said));
    }
    sent.touched.push_back(found_again(connection, id));
  }
  return sent;
}

std::optional<Chats::Said> PrivateMessages::say(store::Connection& connection, const ScheduledMessage& message,
                                                int attempts, WallTime now) {
  auto said = Chats::write_saying(connection,
                                  {.id = line_id(message),
                                   .session = message.session_id,
                                   .from = message.agent,
                                   .to = message.person,
                                   .source = Source::scheduled_send,
                                   .payload = payload_of(message, now),
                                   .created_at = message.created_at,
                                   .due_at = message.send_at},
                                  now);
  PrivateMessageTables::mark_sent(connection, message.id, line_id(message), attempts, to_ms(now));
  return said;
}

void PrivateMessages::hand_over(store::Connection& connection, const ScheduledMessage& message,
                                std::optional<Millis> max_late, WallTime now) {
  const Line line{.id = line_id(message),
                  .from = message.agent,
                  .to = message.person,
                  .source = Source::scheduled_send,
                  .payload = payload_of(message, now),
                  .said_at = now};
  OutboxRow row{.id = line.id,
                .person = message.person,
                .task = message.id,
                .body = webhook_body(message.session_id, line),
                .created_ms = to_ms(now)};
  if (max_late) row.expires_ms = to_ms(saturating_add(message.send_at, *max_late));
  WebhookTables::add(connection, row);
  PrivateMessageTables::set_in_outbox(connection, message.id, true);
}

void PrivateMessages::tell(const Sent& sent) {
  for (const Chats::Said& said : sent.said) chats_.tell(said);
  for (const ScheduledMessage& message : sent.touched) {
    chats_.tell_coming(message.session_id);
    if (message.status == ScheduledStatus::pending) {
      outbox_.look();
    } else {
      log_end(message);
    }
  }
}

void PrivateMessages::log_end(const ScheduledMessage& message) {
  if (message.status == ScheduledStatus::sent) {
    log::info("scheduled.sent", message.late() ? "a scheduled message was said late" : "",
              {{"task", message.id}, {"session", message.session_id}, {"sendAt", message.send_at}});
  } else if (message.reason == "expired") {
    log::warn("scheduled.expired", "a scheduled message was not said: it would have been too late",
              {{"task", message.id}, {"session", message.session_id}, {"sendAt", message.send_at}});
  } else {
    log::warn("scheduled.failed", "a scheduled message did not reach its person",
              {{"task", message.id},
               {"session", message.session_id},
               {"sendAt", message.send_at},
               {"reason", message.reason},
               {"what", message.last_error}});
  }
}

}  // namespace belfry::chat
