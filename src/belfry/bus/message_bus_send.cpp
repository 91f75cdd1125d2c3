// Sending: check, place, store, and let it be seen once it is on the disk.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/bus/message_bus.h"
#include "belfry/bus/quick_replies.h"

namespace belfry::bus {
namespace {

// A body is kept in memory if its message is received or due within the time that the calendar is read ahead.
constexpr Millis kNear{15'000};

// What makes two sends under one key the same send: what was asked for. "In 5 minutes" is the same a second later.
std::int64_t body_fingerprint(const Outgoing& message) {
  const std::string time = message.schedule.empty() ? fmt::format("{}\n{}", message.delay.count(),
                                                                  message.deliver_at ? to_ms(*message.deliver_at) : -1)
                                                    : "schedule\n" + message.schedule;
  std::string all = fmt::format("{}\n{}\n{}\n{}\n{}", message.to, message.task_id, time,
                                message.expires_at ? to_ms(*message.expires_at) : -1,
                                message.session_id.empty() ? "" : message.session_id + "\n");
  all += message.payload;
  return digest(all).high;
}

// A sender's name has no control characters, so what stands under our own names cannot be met by a client's key.
ClientKey client_key(const Outgoing& message) {
  if (!message.once.empty()) return {.name = digest("\x01" + message.once), .body = 0};
  return {.name = digest(fmt::format("{}\n{}", message.from, message.key)), .body = body_fingerprint(message)};
}

Result<> check(const Outgoing& message) {
  BELFRY_CHECK(check_id("from", message.from));
  if (message.payload.size() > kBodyBytesMax)
    return fail(Errc::too_large,
                fmt::format("the payload has {} bytes; at most {} are taken", message.payload.size(), kBodyBytesMax));
  if (message.key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("key is longer than {} bytes", kKeyBytesMax));
  if (message.task_id.size() > kTaskIdBytesMax)
    return fail(Errc::invalid_argument, fmt::format("taskId is longer than {} bytes", kTaskIdBytesMax));
  if (!message.session_id.empty()) BELFRY_CHECK(check_id("sessionId", message.session_id));
  if (message.deliver_at && message.delay > Millis{0})
    return fail(Errc::invalid_argument, "delayMs and deliverAt were both given; one message has one time");
  return {};
}

}  // namespace

class MessageBus::SendWork final : public store::Work {
 public:
  SendWork(MessageBus& bus, MessageRow message) : bus_(bus), row(std::move(message)) {}

  void apply(store::Connection& connection) override {
    const std::int64_t not_before_ms = row.body.created_ms - bus_.options_.retention.count();
    outcome = refusal ? bus_.tables_.repeated(connection, row, not_before_ms).value_or(InsertOutcome{})
                      : bus_.tables_.insert(connection, row, not_before_ms);
  }
  void done(Result<> result) override { bus_.sent(*this, std::move(result)); }
  std::size_t bytes() const override { return row.body.payload.size() + 200; }

 private:
  MessageBus& bus_;

 public:
  MessageRow row;
  bool immediate = true;
  Millis delay{0};  // as it was asked for
  std::vector<std::string> warnings;
  std::optional<Error> refusal;  // what a new message is refused for, while a repeat of one that was taken is not
  SendDone finish;
  InsertOutcome outcome;
};

Result<std::unique_ptr<MessageBus::SendWork>> MessageBus::make_send(Outgoing message) {
  if (refusing_) return fail(Errc::stopping, "the server is stopping and takes no more messages");
  BELFRY_TRY(message.payload, with_quick_replies(std::move(message.payload), message.quick_replies));
  BELFRY_CHECK(check(message));
  Recipient* const recipient = recipients_.find(message.to);
  if (!recipient)
    return fail(Errc::unknown_recipient,
                fmt::format("there is no recipient \"{}\"; an agent is added with POST /v1/agents or belfry agents add,"
                            " a person comes with their first session, POST /v1/sessions",
                            message.to));
  if (recipient->attendant) BELFRY_CHECK(recipient->attendant->admit(message));
  if (store_.overloaded())
    return fail(Errc::overloaded, "too many sends are waiting for the disk; send again in a moment");

  const Now now = clock_.now();
  Timeline& timeline = calendar_.timeline();
  timeline.observe(now);

  MessageRow row;
  std::vector<std::string> warnings;
  bool immediate = true;
  WallTime due = round_down(now.wall);
  const WallTime created = due;
  if (message.deliver_at) {
    if (*message.deliver_at > round_down(now.wall)) {
      due = std::min(*message.deliver_at, kLatestTime);
      immediate = false;
    } else {
      warnings.push_back(
          fmt::format("deliverAt {} is in the past; the message was delivered at once", to_iso(*message.deliver_at)));
    }
  } else if (message.delay > Millis{0}) {
    // Rounded up, so that not even a fraction of a millisecond is missing when it is delivered.
    const WallTime start = round_up(timeline.elapsed_as_wall(now.boot));
    due = saturating_add(start, message.delay);
    immediate = false;
    if (due == kLatestTime)
      warnings.push_back(fmt::format("the delay reaches past the end of the calendar; delivery is at {}", to_iso(due)));
    row.boot_due_ns = timeline.boot_due(due).time_since_epoch().count();
  }
  const bool keyed = !message.key.empty() || !message.once.empty();
  std::optional<Error> refusal;
  if (message.expires_at && *message.expires_at <= due) {
    refusal = Error{Errc::invalid_argument, fmt::format("expiresAt {} is not after the delivery at {}",
                                                        to_iso(*message.expires_at), to_iso(due))};
    if (!keyed) return std::unexpected(std::move(*refusal));
  }

  row.recipient = recipient->row.number;
  if (immediate && recipient->mailbox.unread > 0 &&
      recipient->mailbox.behind_backlog({to_ms(due), to_ms(due), next_sequence_ + 1})) {
    row.place = kInBacklog;  // it would have to be moved there at once
  } else {
    const Calendar::Place place = calendar_.place(due, now);
    row.place = place.bucket.key();
    row.look_ms = place.look_ms;
  }
  if (keyed) row.key = client_key(message);
  row.body = {.sender = std::move(message.from),
              .task = std::move(message.task_id),
              .session = std::move(message.session_id),
              .payload = std::move(message.payload),
              .created_ms = to_ms(created),
              .due_ms = to_ms(due),
              .expires_ms = message.expires_at ? std::optional(to_ms(*message.expires_at)) : std::nullopt};
  row.sequence = ++next_sequence_;
  auto work = std::make_unique<SendWork>(*this, std::move(row));
  work->immediate = immediate;
  work->delay = message.deliver_at ? due - created : message.delay;
  work->warnings = std::move(warnings);
  work->refusal = std::move(refusal);
  return work;
}

void MessageBus::submit_send(Outgoing message, SendDone done) {
  auto work = make_send(std::move(message));
  if (!work) return done(std::unexpected(std::move(work).error()));
  (*work)->finish = std::move(done);
  store_.submit(store::Lane::send, std::move(*work));
}

Task<Result<Sent>> MessageBus::send(Outgoing message) {
  auto work = make_send(std::move(message));
  if (!work) co_return std::unexpected(std::move(work).error());
  co_return co_await suspend<Result<Sent>>([this, &work](Resume<Result<Sent>> resume) {
    (*work)->finish = std::move(resume);
    store_.submit(store::Lane::send, std::move(*work));
  });
}

class MessageBus::TogetherWork final : public store::Work {
 public:
  TogetherWork(MessageBus& bus, std::vector<std::unique_ptr<SendWork>> sends, Also also,
               Resume<Result<std::vector<Sent>>> resume)
      : bus_(bus), sends_(std::move(sends)), also_(std::move(also)), resume_(std::move(resume)) {}

  void apply(store::Connection& connection) override {
    go_on_ = store::detail::under_savepoint<bool>(connection, also_);
    if (!go_on_ || !*go_on_) return;
    for (const auto& send : sends_) send->apply(connection);
  }
  void done(Result<> outcome) override {
    if (outcome && !go_on_) outcome = std::unexpected(go_on_.error());
    const bool sent = outcome && *go_on_;
    std::vector<Sent> all;
    for (const auto& send : sends_) {
      send->finish = [&all](Result<Sent> one) {
        if (one) all.push_back(std::move(*one));
      };
      bus_.sent(*send, sent ? Result<>{} : fail(Errc::cancelled, "not sent"));
    }
    if (!outcome) return resume_(std::unexpected(std::move(outcome).error()));
    resume_(std::move(all));
  }
  int rows() const override { return static_cast<int>(sends_.size()) + kRowsOfOthers; }
  std::size_t bytes() const override {
    std::size_t bytes = 0;
    for (const auto& send : sends_) bytes += send->bytes();
    return bytes;
  }

 private:
  static constexpr int kRowsOfOthers = 8;  // about what a line of a conversation touches

  MessageBus& bus_;
  std::vector<std::unique_ptr<SendWork>> sends_;
  Also also_;
  Result<bool> go_on_ = fail(Errc::storage_failed, "it did not run");
  Resume<Result<std::vector<Sent>>> resume_;
};

Task<Result<std::vector<Sent>>> MessageBus::send_together(std::vector<Outgoing> messages, Also also) {
  if (refusing_) co_return fail(Errc::stopping, "the server is stopping and takes no more messages");
  std::vector<std::unique_ptr<SendWork>> sends;
  std::optional<Error> refusal;
  for (Outgoing& message : messages) {
    BELFRY_ASSERT(message.key.empty() && message.once.empty());
    auto send = make_send(std::move(message));
    if (!send) {
      refusal = std::move(send).error();
      break;
    }
    sends.push_back(std::move(*send));
  }
  if (refusal) {
    // Their sequences were given out; the calendar waits for word of each.
    for (const auto& send : sends) calendar_.note_sent(send->row.sequence);
    co_return std::unexpected(std::move(*refusal));
  }
  co_return co_await suspend<Result<std::vector<Sent>>>([&](Resume<Result<std::vector<Sent>>> resume) {
    store_.submit(store::Lane::send,
                  std::make_unique<TogetherWork>(*this, std::move(sends), std::move(also), std::move(resume)));
  });
}

Task<std::vector<Result<Sent>>> MessageBus::send_many(std::vector<Outgoing> messages) {
  struct Batch {
    std::vector<Result<Sent>> results;
    std::size_t left;
    Resume<int> resume;
  };
  if (messages.empty()) co_return std::vector<Result<Sent>>{};
  auto batch = std::make_shared<Batch>();
  batch->results.resize(messages.size(), fail(Errc::storage_failed, "not sent"));
  batch->left = messages.size();
  co_await suspend<int>([&](Resume<int> resume) {
    batch->resume = std::move(resume);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      submit_send(std::move(messages[i]), [batch, i, this](Result<Sent> result) {
        batch->results[i] = std::move(result);
        if (--batch->left > 0) return;
        // Posted: the last one may have been refused while we are still in the loop above.
        asio::post(context_, [batch] { std::exchange(batch->resume, nullptr)(0); });
      });
    }
  });
  co_return std::move(batch->results);
}

void MessageBus::sent(SendWork& work, Result<> outcome) {
  const std::int64_t sequence = work.row.sequence;
  calendar_.note_sent(sequence);
  if (tables_.keys().wants_run() && !writing_keys_ && !stopping_) {
    writing_keys_ = true;
    tasks_.spawn("client keys", write_key_run());
  }
  if (!outcome) return work.finish(std::unexpected(std::move(outcome).error()));
  if (work.refusal && !work.outcome.conflict && !work.outcome.repeated)
    return work.finish(std::unexpected(std::move(*work.refusal)));
  if (work.outcome.conflict)
    return work.finish(fail(Errc::key_conflict, fmt::format("the key was used for another message, {}",
                                                            to_text(MessageId{work.outcome.sequence}))));
  Sent result{.id = {work.outcome.sequence}};
  if (work.outcome.repeated) {
    result.repeated = true;  // what could be said against a message of now does not concern it
    if (work.outcome.scheduled_ms) result.scheduled_at = wall_from_ms(*work.outcome.scheduled_ms);
    return work.finish(std::move(result));
  }
  result.warnings = std::move(work.warnings);

  const Now now = clock_.now();
  Body& body = work.row.body;
  Recipient& recipient = recipients_[work.row.recipient];
  ++recipient.accepted;
  const WallTime due = wall_from_ms(body.due_ms);
  if (!work.immediate) {
    result.scheduled_at = due;
    log::info("bus.scheduled", "发送延迟消息",
              {{"id", to_text(result.id)},
               {"to", recipient.row.name},
               {"from", body.sender},
               {"delayMs", work.delay},
               {"deliverAt", due}});
    if (recipient.attendant) recipient.attendant->delayed_changed(recipient.row.name);
  }
  const Order order{body.due_ms, body.due_ms, sequence};
  if (work.row.place == kInBacklog) {
    arrive(
        recipient,
        {.order = order, .place = kInBacklog, .delivered_ms = body.due_ms, .expires_ms = body.expires_ms.value_or(0)});
  } else if (work.immediate) {
    const Ready ready{.order = order,
                      .place = work.row.place,
                      .delivered_ms = to_ms(round_down(now.wall)),
                      .expires_ms = body.expires_ms.value_or(0)};
    // A recipient that is this far behind does not receive right now: its bodies would only push out those of others.
    if (recipient.mailbox.size() < static_cast<std::size_t>(kReceiveMax)) bodies_.put(sequence, std::move(body));
    log::debug("bus.delivered", "消息已投递", {{"id", to_text(result.id)}, {"to", recipient.row.name}});
    calendar_.note_delivered({.bucket = work.row.place, .sequence = sequence});
    if (recipient.removed()) {
      let_die(recipient, ready, "recipient_removed");
    } else {
      arrive(recipient, ready);
      flush_overflow();
    }
  } else {
    const CalendarRow row{work.row.place,       sequence,       body.due_ms, recipient.row.number,
                          work.row.boot_due_ns, body.expires_ms};
    if (due < round_down(now.wall) + kNear) bodies_.put(sequence, std::move(body));
    calendar_.add(row);
    timekeeper_.look_again();
  }
  work.finish(std::move(result));
}

Task<void> MessageBus::write_key_run() {
  bool more = true;
  while (more && !stopping_) {
    auto job = [this](store::Connection& connection) -> Result<bool> {
      return tables_.keys().write_run_step(connection);
    };
    const auto stepped = co_await store_.write<bool>(std::move(job), kChunkRows / 4);
    more = stepped && *stepped;
  }
  writing_keys_ = false;
}

}  // namespace belfry::bus
