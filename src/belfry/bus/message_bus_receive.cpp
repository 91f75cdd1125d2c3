// Receiving: leases, acks, and what happens when a lease ends without one (D18, G8, G11).
#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/bus/message_work.h"

namespace belfry::bus {
namespace {

std::unexpected<Error> unknown(std::string_view name) {
  return fail(Errc::unknown_recipient, fmt::format("there is no recipient \"{}\"", name));
}

}  // namespace

Task<Result<std::vector<Delivery>>> MessageBus::receive(ReceiveRequest request) {
  if (request.max < 1 || request.max > kReceiveMax)
    co_return fail(Errc::invalid_argument, fmt::format("max is {}; 1 to {} are possible", request.max, kReceiveMax));
  if (request.lease < kLeaseMin || request.lease > kLeaseMax)
    co_return fail(Errc::invalid_argument, fmt::format("leaseMs is {}; {} to {} are possible", request.lease.count(),
                                                       kLeaseMin.count(), kLeaseMax.count()));
  if (request.wait < Millis{0} || request.wait > kReceiveWaitMax)
    co_return fail(Errc::invalid_argument,
                   fmt::format("waitMs is {}; 0 to {} are possible", request.wait.count(), kReceiveWaitMax.count()));
  Recipient* found = recipients_.find(request.recipient);
  if (!found) co_return unknown(request.recipient);
  const RecipientNumber number = found->row.number;

  const BootTime deadline = clock_.now().boot + request.wait;
  std::vector<Taken> taken;
  while (true) {
    Recipient& recipient = recipients_[number];
    if (recipient.removed()) co_return unknown(request.recipient);
    if (request.departure && request.departure->left()) {
      if (recipient.mailbox.size() > 0) recipient.mailbox.wake_one();  // the news was for somebody who stays
      co_return std::vector<Delivery>{};
    }
    if (!refusing_) take_ready(recipient, request.max, taken);
    if (!taken.empty() || refusing_ || clock_.now().boot >= deadline) break;
    co_await await_mailbox(recipient, deadline, request.departure);
  }

  // Until they have their leases, nobody may cancel or move them (G10).
  struct Leaving {
    std::unordered_set<std::int64_t>& all;
    std::vector<std::int64_t> ours;
    ~Leaving() {
      for (const std::int64_t sequence : ours) all.erase(sequence);
    }
  } leaving{leaving_, {}};
  for (const Taken& one : taken) leaving.ours.push_back(one.ready.order.sequence);
  leaving_.insert(leaving.ours.begin(), leaving.ours.end());

  const auto loaded = co_await load_bodies(recipients_[number], taken);
  if (loaded && !start_.clean_stop) {
    const auto counted = co_await count_attempts_first(recipients_[number], taken);
    if (!counted) co_return std::unexpected(counted.error());
  }
  Recipient& recipient = recipients_[number];
  std::vector<Delivery> deliveries;
  const BootTime until = clock_.now().boot + request.lease;
  for (Taken& one : taken) {
    const std::int64_t sequence = one.ready.order.sequence;
    if (!loaded) {  // the disk failed: back to where it was
      --recipient.leased;
      arrive(recipient, one.ready);
      continue;
    }
    if (!one.body) {
      --recipient.leased;
      continue;  // it ended while we read it
    }
    const int attempt = std::max<int>(one.body->attempts, one.ready.attempts) + 1;
    deliveries.push_back({.id = {sequence},
                          .to = recipient.row.name,
                          .from = std::move(one.body->sender),
                          .payload = std::move(one.body->payload),
                          .task_id = std::move(one.body->task),
                          .session_id = std::move(one.body->session),
                          .created_at = wall_from_ms(one.body->created_ms),
                          .deliver_at = wall_from_ms(one.ready.order.due_ms),
                          .delivered_at = wall_from_ms(one.ready.delivered_ms),
                          .attempt = attempt,
                          .forced = one.ready.forced,
                          .lease = leases_.add(number, one.ready, attempt, until)});
  }
  if (!loaded) co_return std::unexpected(loaded.error());
  if (!deliveries.empty()) timekeeper_.look_again();
  refill(recipient);
  co_return deliveries;
}

// Takes what can be received out of the mailbox; it counts as leased from here on.
void MessageBus::take_ready(Recipient& recipient, int max, std::vector<Taken>& taken) {
  std::size_t bytes = 0;
  while (static_cast<int>(taken.size()) < max && bytes < kReceiveBytesMax) {
    const auto ready = recipient.mailbox.pop();
    if (!ready) break;
    --ready_in_memory_;
    if (ready->expires_ms != 0) expiries_.erase({ready->expires_ms, ready->order, recipient.row.number});
    if (const auto hidden = hidden_.find(ready->order.sequence); hidden != hidden_.end()) {
      hidden->second.ready = *ready;  // somebody is cancelling it right now
      hidden->second.recipient = recipient.row.number;
      continue;
    }
    --recipient.pending;
    ++recipient.leased;
    taken.push_back({*ready, bodies_.take(ready->order.sequence)});
    if (taken.back().body) bytes += taken.back().body->bytes();
  }
  refill(recipient);
}

// Reads the bodies that are not in memory; what would make the answer too large goes back to its place.
Task<Result<>> MessageBus::load_bodies(Recipient& recipient, std::vector<Taken>& taken) {
  std::vector<std::int64_t> missing;
  std::size_t bytes = 0;
  for (const Taken& one : taken) {
    if (one.body)
      bytes += one.body->bytes();
    else
      missing.push_back(one.ready.order.sequence);
  }
  if (missing.empty()) co_return Result<>{};
  auto job = [missing, bytes](store::Connection& connection) mutable -> Result<std::vector<std::optional<Body>>> {
    std::vector<std::optional<Body>> bodies;
    for (const std::int64_t sequence : missing) {
      if (bytes >= kReceiveBytesMax && !bodies.empty()) break;
      bodies.push_back(MessageTables::read_body(connection, sequence));
      if (bodies.back()) bytes += bodies.back()->bytes();
    }
    return bodies;
  };
  const RecipientNumber number = recipient.row.number;
  auto bodies = co_await store_.read<std::vector<std::optional<Body>>>(std::move(job));
  if (!bodies) co_return std::unexpected(bodies.error());
  std::size_t next = 0;
  std::size_t kept = 0;
  while (kept < taken.size() && (taken[kept].body || next < bodies->size())) {
    if (!taken[kept].body) taken[kept].body = std::move((*bodies)[next++]);
    ++kept;
  }
  Recipient& owner = recipients_[number];
  for (std::size_t i = kept; i < taken.size(); ++i) {
    --owner.leased;
    if (taken[i].body) bodies_.put(taken[i].ready.order.sequence, std::move(*taken[i].body));
    leaving_.erase(taken[i].ready.order.sequence);
    arrive(owner, taken[i].ready);
  }
  taken.resize(kept);
  flush_overflow();
  co_return Result<>{};
}

// After a crash, a message of the earlier life may be what caused it: its attempt is on the disk before it is handed out,
// so that one which kills the process each time ends as a dead letter (G11).
Task<Result<>> MessageBus::count_attempts_first(const Recipient& recipient, std::vector<Taken>& taken) {
  std::vector<std::pair<std::int64_t, int>> attempts;
  for (const Taken& one : taken) {
    if (one.ready.order.sequence > start_.last_sequence || !one.body) continue;
    attempts.emplace_back(one.ready.order.sequence, std::max<int>(one.body->attempts, one.ready.attempts) + 1);
  }
  if (attempts.empty()) co_return Result<>{};
  const RecipientNumber number = recipient.row.number;
  auto job = [this, attempts](store::Connection& connection) -> Result<> {
    for (const auto& [sequence, count] : attempts) tables_.set_attempts(connection, sequence, count);
    return {};
  };
  const auto stored = co_await store_.write<void>(std::move(job), static_cast<int>(attempts.size()));
  Recipient& owner = recipients_[number];
  if (!stored) {
    for (const Taken& one : taken) {
      --owner.leased;
      arrive(owner, one.ready);
    }
    co_return std::unexpected(stored.error());
  }
  // One that has used up its attempts is not handed out again.
  std::erase_if(taken, [&](Taken& one) {
    if (!one.body || one.ready.order.sequence > start_.last_sequence) return false;
    const int used = std::max<int>(one.body->attempts, one.ready.attempts);
    if (used < options_.attempts_max) return false;
    one.ready.attempts = static_cast<std::int16_t>(used);
    --owner.leased;
    let_die(owner, one.ready, fmt::format("{} attempts without an ack", used));
    return true;
  });
  co_return Result<>{};
}

Task<void> MessageBus::await_mailbox(Recipient& recipient, BootTime deadline, std::shared_ptr<Departure> departure) {
  Wake wake;
  if (departure) departure->rings(&wake);
  Mailbox& mailbox = recipient.mailbox;
  mailbox.waiters.push_back(&wake);
  // Woken by a message it is out of the list already; by the deadline, or ended with its connection, it is not.
  struct Leave {
    Mailbox& mailbox;
    Wake& wake;
    Departure* departure;
    ~Leave() {
      std::erase(mailbox.waiters, &wake);
      if (departure) departure->rings(nullptr);
    }
  } leave{mailbox, wake, departure.get()};
  co_await clock_.sleep_until(deadline, wake);
}

Task<bool> MessageBus::wait_for_message(std::string recipient, Millis wait) {
  const BootTime deadline = clock_.now().boot + wait;
  while (true) {
    Recipient* found = recipients_.find(recipient);
    if (!found) co_return false;
    if (found->mailbox.size() > 0) {
      found->mailbox.wake_one();  // we take nothing: pass the news on to who waits behind us
      co_return true;
    }
    if (refusing_ || clock_.now().boot >= deadline) co_return false;
    co_await await_mailbox(*found, deadline, nullptr);
  }
}

std::vector<Lease> MessageBus::find_leases(Recipient& recipient, const std::vector<std::string>& names,
                                           AckOutcome& outcome) const {
  std::vector<Lease> found;
  for (const std::string& name : names) {
    const Lease* lease = leases_.find(std::string_view(name));
    if (lease && lease->recipient == recipient.row.number) {
      found.push_back(*lease);
    } else {
      const std::string id = name.substr(0, name.find('-'));
      outcome.refused.push_back(
          {id,
           {Errc::lease_lost, "the lease has ended: it expired, was acked or released, or the server was restarted"}});
    }
  }
  return found;
}

Task<Result<AckOutcome>> MessageBus::ack_leases(std::string recipient, std::vector<std::string> leases,
                                                std::string by) {
  Recipient* found = recipients_.find(recipient);
  if (!found) co_return unknown(recipient);
  AckOutcome outcome;
  std::vector<Lease> held = find_leases(*found, leases, outcome);
  co_return co_await ack(*found, std::move(held), std::move(outcome), std::move(by));
}

Task<Result<AckOutcome>> MessageBus::ack_ids(std::string recipient, std::vector<std::string> ids, std::string by) {
  Recipient* found = recipients_.find(recipient);
  if (!found) co_return unknown(recipient);
  AckOutcome outcome;
  std::vector<Lease> held;
  for (std::string& id : ids) {
    const auto parsed = parse_message_id(id);
    if (!parsed) co_return std::unexpected(parsed.error());
    const Lease* lease = leases_.find(parsed->sequence);
    if (lease && lease->recipient == found->row.number) {
      held.push_back(*lease);
    } else {
      outcome.refused.push_back({std::move(id), {Errc::lease_lost, "nobody holds a lease on this message"}});
    }
  }
  co_return co_await ack(*found, std::move(held), std::move(outcome), std::move(by));
}

Task<Result<AckOutcome>> MessageBus::ack(Recipient& recipient, std::vector<Lease> leases, AckOutcome outcome,
                                         std::string by) {
  std::vector<EndedRow> rows;
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  std::vector<Lease> acked;
  for (const Lease& lease : leases) {
    // Out of the table at once, so that it cannot end while the ack is on its way; named twice it is acked once.
    if (!leases_.remove(lease.ready.order.sequence)) continue;
    acked.push_back(lease);
    rows.push_back({.sequence = lease.ready.order.sequence,
                    .recipient = lease.recipient,
                    .state = MessageState::acked,
                    .place = lease.ready.place,
                    .order = lease.ready.order,
                    .forced = lease.ready.forced,
                    .attempts = lease.attempt,
                    .delivered_ms = lease.ready.delivered_ms,
                    .late_ms = lease.ready.late_ms,
                    .ended_ms = now_ms,
                    .by = by});
  }
  if (rows.empty()) co_return outcome;
  const RecipientNumber number = recipient.row.number;
  const Result<> stored = co_await suspend<Result<>>([&](Resume<Result<>> resume) {
    auto done = [resume = std::move(resume)](std::vector<EndedRow>, Result<> result) mutable {
      resume(std::move(result));
    };
    store_.submit(store::Lane::change, std::make_unique<EndWork>(tables_, std::move(rows), std::move(done)));
  });
  Recipient& owner = recipients_[number];
  if (!stored) {
    for (const Lease& lease : acked) leases_.restore(lease);
    timekeeper_.look_again();
    co_return std::unexpected(stored.error());
  }
  outcome.acked = static_cast<int>(acked.size());
  owner.leased -= outcome.acked;
  owner.acked += outcome.acked;
  wake_idle_waiters();
  co_return outcome;
}

Result<AckOutcome> MessageBus::extend(const std::string& recipient, const std::vector<std::string>& leases,
                                      Millis lease) {
  if (lease < kLeaseMin || lease > kLeaseMax)
    return fail(Errc::invalid_argument, fmt::format("leaseMs is {}; {} to {} are possible", lease.count(),
                                                    kLeaseMin.count(), kLeaseMax.count()));
  Recipient* found = recipients_.find(recipient);
  if (!found) return unknown(recipient);
  AckOutcome outcome;
  for (const Lease& held : find_leases(*found, leases, outcome)) {
    leases_.extend(held.ready.order.sequence, clock_.now().boot + lease);
    ++outcome.acked;
  }
  timekeeper_.look_again();
  return outcome;
}

Task<Result<AckOutcome>> MessageBus::release(std::string recipient, std::vector<std::string> leases, Millis delay,
                                             bool counts) {
  Recipient* found = recipients_.find(recipient);
  if (!found) co_return unknown(recipient);
  AckOutcome outcome;
  for (Lease& held : find_leases(*found, leases, outcome)) {
    if (!leases_.remove(held.ready.order.sequence)) continue;
    if (!counts) --held.attempt;
    give_back(held, delay, "released");
    ++outcome.acked;
  }
  flush_overflow();
  wake_idle_waiters();
  co_return outcome;
}

void MessageBus::end_leases(const Now& now, int limit) {
  const auto ended = leases_.take_ended(now.boot, limit);
  if (ended.empty()) return;
  for (const Lease& lease : ended) give_back(lease, Millis{0}, "the lease ended");
  flush_overflow();
  wake_idle_waiters();
}

// A lease ended without an ack: back into the queue, or to the dead letters after the last attempt.
void MessageBus::give_back(const Lease& lease, Millis delay, std::string why) {
  Recipient& recipient = recipients_[lease.recipient];
  --recipient.leased;
  Ready ready = lease.ready;
  ready.attempts = static_cast<std::int16_t>(lease.attempt);
  if (lease.attempt >= options_.attempts_max)
    return let_die(recipient, ready, fmt::format("{} attempts without an ack; {}", lease.attempt, why));
  if (recipient.removed()) return let_die(recipient, ready, "recipient_removed");
  log::warn("bus.redelivered", "a message was not acked and is delivered again",
            {{"id", to_text(MessageId{ready.order.sequence})},
             {"to", recipient.row.name},
             {"attempt", lease.attempt},
             {"reason", why}});
  if (stopping_) return;  // the next start finds it where it lies
  Lease again = lease;
  again.ready = ready;
  if (delay > Millis{0}) {
    tasks_.spawn("release", give_back_later(std::move(again), delay));
    return;
  }
  arrive(recipient, ready);
  attempts_.emplace_back(ready.order.sequence, lease.attempt);
  flush_soon();
}

Task<void> MessageBus::give_back_later(Lease lease, Millis delay) {
  const std::int64_t sequence = lease.ready.order.sequence;
  const Now now = clock_.now();
  const WallTime due = saturating_add(round_up(now.wall), delay);
  const Calendar::Place place = calendar_.place(due, now);
  const Location from{lease.ready.place, lease.ready.order, std::nullopt};
  const CalendarRow target{
      place.bucket.key(), sequence,     to_ms(due),
      lease.recipient,    std::nullopt, lease.ready.expires_ms ? std::optional(lease.ready.expires_ms) : std::nullopt};
  const Move move{round_down(now.wall), "released", {}, due};
  auto job = [this, from, target, place, move, attempt = lease.attempt](store::Connection& connection) -> Result<> {
    tables_.set_attempts(connection, target.sequence, attempt);
    tables_.reschedule(connection, from, target, place.look_ms, move);
    return {};
  };
  const auto stored = co_await store_.write<void>(std::move(job));
  if (stored) {
    calendar_.add(target);
    timekeeper_.look_again();
  } else {
    arrive(recipients_[lease.recipient], lease.ready);
  }
}

void MessageBus::wake_idle_waiters() {
  if (leases_.size() > 0) return;
  for (Wake* wake : std::exchange(idle_waiters_, {})) wake->ring();
}

Task<void> MessageBus::wait_until_idle(BootTime deadline) {
  while (leases_.size() > 0 && clock_.now().boot < deadline) {
    Wake wake;
    idle_waiters_.push_back(&wake);
    co_await clock_.sleep_until(deadline, wake);
    std::erase(idle_waiters_, &wake);
  }
}

}  // namespace belfry::bus
