// Looking at messages and changing them: read, list, cancel, move, deliver now, retry, drop (D16).
#include <algorithm>
#include <climits>
#include <iterator>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/bus/message_bus.h"

namespace belfry::bus {
namespace {

std::unexpected<Error> no_such_message(MessageId id) {
  return fail(Errc::not_found,
              fmt::format("there is no message {}, or it ended longer ago than records are kept", to_text(id)));
}

std::unexpected<Error> ended_already(MessageId id, MessageState state) {
  switch (state) {
    case MessageState::acked:
      return fail(Errc::already_delivered, fmt::format("message {} was delivered and acked", to_text(id)));
    case MessageState::cancelled:
      return fail(Errc::already_cancelled, fmt::format("message {} was cancelled before", to_text(id)));
    default: return fail(Errc::wrong_state, fmt::format("message {} is {}", to_text(id), word(state)));
  }
}

}  // namespace

// Runs `job` on a live message in the store, hidden from delivery meanwhile: it cannot fire between our look at it and
// the write, and what came up in that time is restored if the write fails (G10).
Task<Result<MessageBus::Changed>> MessageBus::change(MessageId id, bool also_pending, ChangeJob job) {
  const std::int64_t sequence = id.sequence;
  if (leases_.find(sequence) || leaving_.contains(sequence))
    co_return fail(Errc::already_delivered, fmt::format("message {} is in a receiver's hands", to_text(id)));
  if (!hidden_.try_emplace(sequence).second)
    co_return fail(Errc::wrong_state, fmt::format("message {} is being changed right now", to_text(id)));

  const Now now = clock_.now();
  const std::int64_t first_life_end = start_.last_sequence;
  auto in_store = [id, also_pending, job = std::move(job), now, first_life_end,
                   forced = calendar_.exempt(sequence) ? std::nullopt
                                                       : forced_](store::Connection& connection) -> Result<Changed> {
    const auto found = MessageTables::find(connection, id.sequence);
    if (!found) {
      const auto ended = MessageTables::find_ended(connection, id.sequence);
      if (!ended) return no_such_message(id);
      return ended_already(id, ended->row.state);
    }
    if (found->dead)
      return fail(Errc::wrong_state, fmt::format("message {} is a dead letter; retry or drop it", to_text(id)));
    const auto location = MessageTables::locate(connection, *found);
    if (!location) return fail(Errc::storage_failed, fmt::format("message {} lies nowhere", to_text(id)));

    Changed changed{.recipient = found->row.recipient, .from = *location};
    bool pending = location->place == kInBacklog;
    if (!pending) {
      changed.calendar_row = CalendarRow{location->place,      id.sequence,           found->row.body.due_ms,
                                         found->row.recipient, location->boot_due_ns, found->row.body.expires_ms};
      const bool elapsed = location->boot_due_ns && id.sequence > first_life_end;
      pending = elapsed ? BootTime{Nanos{*location->boot_due_ns}} <= now.boot
                        : found->row.body.due_ms <= to_ms(round_down(now.wall));
      changed.was_forced = !pending && forced && id.sequence <= forced->up_to;
      pending = pending || changed.was_forced;
    }
    if (pending && !also_pending)
      return fail(Errc::already_delivered, fmt::format("message {} was delivered to its mailbox", to_text(id)));
    auto next = job(connection, *found, *location);
    if (!next) return std::unexpected(std::move(next).error());
    changed.next = *next;
    return changed;
  };
  submit_overflow(INT_MAX);  // it may be among them: then it is in its backlog when the job looks for it
  auto changed = co_await store_.write<Changed>(std::move(in_store));

  const auto hidden = hidden_.find(sequence);
  BELFRY_ASSERT(hidden != hidden_.end());
  const Held held = hidden->second;
  hidden_.erase(hidden);
  if (!changed) {
    restore(held);
    co_return std::unexpected(std::move(changed).error());
  }
  bodies_.drop(sequence);
  forget_old_place(*changed, held);
  const Recipient& recipient = recipients_[changed->recipient];
  if (recipient.attendant) recipient.attendant->delayed_changed(recipient.row.name);
  co_return std::move(*changed);
}

void MessageBus::restore(const Held& held) {
  if (held.ready) {
    settle_in(recipients_[held.recipient], *held.ready);
    refill(recipients_[held.recipient]);
  }
  flush_overflow();
  if (!held.entry) return;
  calendar_.put_again(*held.entry);  // the clock may have been set back meanwhile
  timekeeper_.look_again();
}

void MessageBus::forget_old_place(const Changed& changed, const Held& held) {
  Recipient& recipient = recipients_[changed.recipient];
  Mailbox& mailbox = recipient.mailbox;
  const Order& order = changed.from.order;
  if (const auto ready = mailbox.remove(order)) {
    --ready_in_memory_;
    --recipient.pending;
    if (ready->expires_ms != 0) expiries_.erase({ready->expires_ms, order, changed.recipient});
    return;
  }
  if (held.ready) {
    --recipient.pending;
    return;
  }
  if (mailbox.waiting.erase(order) > 0) {
    --recipient.pending;
    return;
  }
  if (changed.from.place == kInBacklog) {
    --mailbox.unread;
    --recipient.pending;
    return;
  }
  if (!held.entry && changed.calendar_row && !changed.was_forced) calendar_.remove(*changed.calendar_row);
}

// A message that waits in its mailbox, as it was delivered there.
Task<std::optional<Ready>> MessageBus::waiting_delivery(MessageId id) {
  auto job = [id](store::Connection& connection) -> Result<std::optional<std::pair<RecipientNumber, Order>>> {
    const auto found = MessageTables::find(connection, id.sequence, MessageTables::Payload::left_out);
    if (!found || found->dead) return std::nullopt;
    const auto location = MessageTables::locate(connection, *found);
    if (!location) return std::nullopt;
    return std::pair(found->row.recipient, location->order);
  };
  const auto place = co_await store_.read<std::optional<std::pair<RecipientNumber, Order>>>(std::move(job));
  if (!place || !*place) co_return std::nullopt;
  const Ready* ready = recipients_[(*place)->first].mailbox.find((*place)->second);
  co_return ready ? std::optional(*ready) : std::nullopt;
}

Task<Result<>> MessageBus::cancel(MessageId id, std::string by) {
  const std::optional<Ready> waiting = co_await waiting_delivery(id);
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  ChangeJob job = [this, now_ms, waiting, by = std::move(by)](
                      store::Connection& connection, const FoundMessage& found,
                      const Location& location) -> Result<std::optional<CalendarRow>> {
    tables_.end(connection, {.sequence = found.row.sequence,
                             .recipient = found.row.recipient,
                             .state = MessageState::cancelled,
                             .place = location.place,
                             .order = location.order,
                             .forced = waiting && waiting->forced,
                             .attempts = found.row.body.attempts,
                             .delivered_ms = waiting ? std::optional(waiting->delivered_ms) : std::nullopt,
                             .late_ms = waiting ? std::optional<std::int64_t>(waiting->late_ms) : std::nullopt,
                             .ended_ms = now_ms,
                             .by = by});
    return std::nullopt;
  };
  BELFRY_CO_TRY(const Changed changed, co_await change(id, true, std::move(job)));
  ++recipients_[changed.recipient].cancelled;
  log::info("bus.cancelled", "", {{"id", to_text(id)}, {"to", recipients_[changed.recipient].row.name}});
  co_return Result<>{};
}

Task<Result<MessageInfo>> MessageBus::reschedule(MessageId id, WallTime deliver_at) {
  return move_to(id, deliver_at, "moved");
}

Task<Result<MessageInfo>> MessageBus::reschedule_after(MessageId id, Millis delay) {
  return move_to(id, saturating_add(round_up(clock_.now().wall), std::max(delay, Millis{0})), "moved");
}

Task<Result<>> MessageBus::deliver_now(MessageId id) {
  const auto moved = co_await move_to(id, round_down(clock_.now().wall), "delivered_now");
  if (!moved) co_return std::unexpected(moved.error());
  co_return Result<>{};
}

// The new time is an instant on the wall clock, also when it was given as a delay: which life the elapsed clock of an old
// message belongs to is told by its sequence, and that does not change.
Task<Result<MessageInfo>> MessageBus::move_to(MessageId id, WallTime deliver_at, std::string_view cause) {
  const Now now = clock_.now();
  const WallTime due = std::clamp(deliver_at, round_down(now.wall), kLatestTime);
  const Calendar::Place place = calendar_.place(due, now);
  const Move move{round_down(now.wall), cause, {}, due};
  ChangeJob job = [this, due, place, move](store::Connection& connection, const FoundMessage& found,
                                           const Location& location) -> Result<std::optional<CalendarRow>> {
    if (found.row.body.expires_ms && *found.row.body.expires_ms <= to_ms(due))
      return fail(Errc::invalid_argument, fmt::format("the message expires at {}, before the new time {}",
                                                      to_iso(wall_from_ms(*found.row.body.expires_ms)), to_iso(due)));
    const CalendarRow target{place.bucket.key(),  found.row.sequence, to_ms(due),
                             found.row.recipient, std::nullopt,       found.row.body.expires_ms};
    tables_.reschedule(connection, location, target, place.look_ms, move);
    return target;
  };
  BELFRY_CO_TRY(const Changed changed, co_await change(id, false, std::move(job)));
  calendar_.add(*changed.next);
  timekeeper_.look_again();
  log::info("bus.rescheduled", "", {{"id", to_text(id)}, {"deliverAt", due}});
  if (due <= round_down(clock_.now().wall)) deliver_due_messages();
  co_return co_await get(id);
}

Task<Result<>> MessageBus::retry(MessageId id) {
  const Now now = clock_.now();
  const std::int64_t now_ms = to_ms(round_down(now.wall));
  const Calendar::Place place = calendar_.place(wall_from_ms(now_ms), now);
  const Move move{wall_from_ms(now_ms), "retried", {}, wall_from_ms(now_ms)};
  auto job = [this, id, now_ms, place, move](store::Connection& connection) -> Result<CalendarRow> {
    const auto found = MessageTables::find(connection, id.sequence);
    if (!found) {
      const auto ended = MessageTables::find_ended(connection, id.sequence);
      return ended ? Result<CalendarRow>(ended_already(id, ended->row.state)) : no_such_message(id);
    }
    if (!found->dead) return fail(Errc::wrong_state, fmt::format("message {} is not a dead letter", to_text(id)));
    if (MessageTables::is_removed(connection, found->row.recipient))
      return fail(Errc::unknown_recipient,
                  fmt::format("the recipient of message {} was removed: send it anew, or drop it", to_text(id)));
    if (const auto expires_ms = found->row.body.expires_ms; expires_ms && *expires_ms <= now_ms)
      return fail(Errc::wrong_state, fmt::format("message {} was good until {} only: send it anew, or drop it",
                                                 to_text(id), to_iso(wall_from_ms(*expires_ms))));
    const CalendarRow target{place.bucket.key(),   id.sequence,  now_ms,
                             found->row.recipient, std::nullopt, found->row.body.expires_ms};
    tables_.revive(connection, *found, target, place.look_ms, move);
    return target;
  };
  BELFRY_CO_TRY(const CalendarRow row, co_await store_.write<CalendarRow>(std::move(job)));
  --recipients_[row.recipient].dead;
  calendar_.add(row);
  timekeeper_.look_again();
  deliver_due_messages();
  co_return Result<>{};
}

Task<Result<>> MessageBus::drop(MessageId id, std::string by) {
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  auto job = [this, id, now_ms, by = std::move(by)](store::Connection& connection) -> Result<RecipientNumber> {
    const auto found = MessageTables::find(connection, id.sequence);
    if (!found) {
      const auto ended = MessageTables::find_ended(connection, id.sequence);
      return ended ? Result<RecipientNumber>(ended_already(id, ended->row.state)) : no_such_message(id);
    }
    if (!found->dead) return fail(Errc::wrong_state, fmt::format("message {} is not a dead letter", to_text(id)));
    tables_.drop_dead(connection, *found, now_ms, by);
    return found->row.recipient;
  };
  BELFRY_CO_TRY(const RecipientNumber number, co_await store_.write<RecipientNumber>(std::move(job)));
  --recipients_[number].dead;
  ++recipients_[number].cancelled;
  co_return Result<>{};
}

// --- looking ---

MessageState MessageBus::state_of(const FoundMessage& found, const Location& location) const {
  if (found.dead) return MessageState::dead;
  if (leases_.find(found.row.sequence)) return MessageState::leased;
  if (location.place == kInBacklog || was_forced(found.row.sequence, found.row.body.due_ms))
    return MessageState::pending;
  if (recipients_[found.row.recipient].mailbox.find(location.order)) return MessageState::pending;
  const Now now = clock_.now();
  const bool elapsed = location.boot_due_ns && found.row.sequence > start_.last_sequence;
  const bool due = elapsed ? BootTime{Nanos{*location.boot_due_ns}} <= now.boot
                           : found.row.body.due_ms <= to_ms(round_down(now.wall));
  return due ? MessageState::pending : MessageState::delayed;
}

MessageInfo MessageBus::info_of(const FoundMessage& found, const Location& location) const {
  const Body& body = found.row.body;
  const Recipient& recipient = recipients_[found.row.recipient];
  MessageInfo info{.id = {found.row.sequence},
                   .state = state_of(found, location),
                   .to = recipient.row.name,
                   .from = body.sender,
                   .task_id = body.task,
                   .session_id = body.session,
                   .payload = body.payload,
                   .created_at = wall_from_ms(body.created_ms),
                   .deliver_at = wall_from_ms(body.due_ms),
                   .moves = found.moves,
                   .reason = found.reason,
                   .attempts = body.attempts};
  if (body.expires_ms) info.expires_at = wall_from_ms(*body.expires_ms);
  if (found.dead) {
    info.ended_at = wall_from_ms(found.died_ms);
    if (found.delivered_ms) info.delivered_at = wall_from_ms(*found.delivered_ms);
    if (found.late_ms) info.lateness = Millis{*found.late_ms};
  }
  info.forced = location.order.order_ms < location.order.due_ms || was_forced(found.row.sequence, body.due_ms);
  const auto add_delivery = [&](const Ready& ready) {
    info.delivered_at = wall_from_ms(ready.delivered_ms);
    if (!ready.forced) info.lateness = Millis{ready.late_ms};
    info.forced = ready.forced;
    info.attempts = std::max<int>(info.attempts, ready.attempts);
  };
  if (const Lease* lease = leases_.find(found.row.sequence)) {
    add_delivery(lease->ready);
    info.attempts = lease->attempt;
    const Now now = clock_.now();
    info.leased_until = round_down(now.wall + (lease->until - now.boot));
  } else if (const Ready* ready = recipient.mailbox.find(location.order)) {
    add_delivery(*ready);
  }
  return info;
}

MessageInfo MessageBus::info_of(const MessageTables::Ended& ended) const {
  const EndedRow& row = ended.row;
  MessageInfo info{.id = {row.sequence},
                   .state = row.state,
                   .to = recipients_.name_of(row.recipient),
                   .from = ended.sender,
                   .task_id = ended.task,
                   .created_at = wall_from_ms(ended.created_ms),
                   .deliver_at = wall_from_ms(row.order.due_ms),
                   .moves = ended.moves,
                   .ended_at = wall_from_ms(row.ended_ms),
                   .ended_by = row.by,
                   .reason = row.reason,
                   .attempts = row.attempts,
                   .forced = row.forced};
  if (row.delivered_ms) info.delivered_at = wall_from_ms(*row.delivered_ms);
  if (row.late_ms && !row.forced) info.lateness = Millis{*row.late_ms};
  return info;
}

Task<Result<MessageInfo>> MessageBus::get(MessageId id) {
  struct Look {
    std::optional<FoundMessage> found;
    Location location;
    std::optional<MessageTables::Ended> ended;
  };
  auto job = [id](store::Connection& connection) -> Result<Look> {
    Look look;
    look.found = MessageTables::find(connection, id.sequence);
    if (look.found) {
      look.location = MessageTables::locate(connection, *look.found).value_or(Location{});
    } else {
      look.ended = MessageTables::find_ended(connection, id.sequence);
    }
    return look;
  };
  BELFRY_CO_TRY(const Look look, co_await store_.read<Look>(std::move(job)));
  if (look.found) co_return info_of(*look.found, look.location);
  if (look.ended && look.ended->row.ended_ms >= to_ms(round_down(clock_.now().wall) - options_.retention))
    co_return info_of(*look.ended);
  co_return no_such_message(id);
}

Task<Result<ListResult>> MessageBus::list(ListRequest request) {
  if (request.limit < 1 || request.limit > kListPageMax)
    co_return fail(Errc::invalid_argument,
                   fmt::format("limit is {}; 1 to {} are possible", request.limit, kListPageMax));
  if (!MessageTables::is_cursor(request.after))
    co_return fail(Errc::invalid_argument,
                   fmt::format("after \"{}\" is not the `next` of another page", request.after.substr(0, 60)));
  MessageTables::ListQuery query{
      .sender = request.from, .cursor = request.after, .limit = request.limit, .examine_max = kListRowsExaminedMax};
  if (!request.to.empty()) {
    const Recipient* recipient = recipients_.find(request.to);
    if (!recipient) co_return fail(Errc::unknown_recipient, fmt::format("there is no recipient \"{}\"", request.to));
    query.recipient = recipient->row.number;
  }
  const auto state = request.state;
  const bool ended = state && *state >= MessageState::acked && *state != MessageState::dead;
  ListResult result;
  // A page of rows may have few that are wanted: go on until there are enough, and one more to know whether there is more.
  for (int round = 0; round < kListRoundsMax; ++round) {
    const int missing = request.limit - static_cast<int>(result.messages.size());
    query.limit = std::max(missing, 1);
    auto job = [query, state, ended](store::Connection& connection) -> Result<MessageTables::ListPage> {
      if (ended) return MessageTables::list_ended(connection, query, *state);
      if (state == MessageState::dead) return MessageTables::list_dead(connection, query);
      return MessageTables::list_live(connection, query);
    };
    BELFRY_CO_TRY(const MessageTables::ListPage page, co_await store_.read<MessageTables::ListPage>(std::move(job)));
    std::vector<MessageInfo> found;
    for (const auto& [row, location] : page.live) {
      MessageInfo info = info_of(row, location);
      if (!state || info.state == *state) found.push_back(std::move(info));
    }
    for (const MessageTables::Ended& row : page.ended) found.push_back(info_of(row));
    if (missing == 0 && !found.empty()) co_return result;  // there is more, behind the cursor that we have
    std::move(found.begin(), found.end(), std::back_inserter(result.messages));
    if (missing > 0 || page.next.empty()) result.next = page.next;
    if (page.next.empty()) break;
    query.cursor = page.next;
  }
  co_return result;
}

}  // namespace belfry::bus
