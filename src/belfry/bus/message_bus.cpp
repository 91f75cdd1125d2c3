#include "belfry/bus/message_bus.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <functional>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/bus/message_work.h"
#include "belfry/bus/pace.h"

namespace belfry::bus {
namespace {

// Bodies of what is due soon: more would not fit into the cache. Read a few at a time, since sends wait for it.
constexpr std::size_t kPrefetchMost = 120'000;
constexpr std::size_t kPrefetchRows = 500;
constexpr int kOverflowsAtOnce = 2;
constexpr std::size_t kRefillBytes = 4u << 20;

constexpr std::uint64_t kFirstSequenceMax = std::uint64_t{1} << 36;

constexpr std::int64_t kKeptLongerMs = 2 * 3'600'000;  // records are dropped by whole hours

constexpr Nanos kTick = std::chrono::seconds{1};
constexpr Nanos kHousekeeping = std::chrono::minutes{10};

std::unexpected<Error> already_exists(const std::string& name) {
  return fail(Errc::already_exists, fmt::format("\"{}\" exists already", name));
}

std::unexpected<Error> too_many_recipients() {
  return fail(Errc::limit_exceeded,
              fmt::format("there can be {} recipients, and this would be more; remove some first", kRecipientsMax));
}

}  // namespace

MessageBus::MessageBus(asio::io_context& context, Clock& clock, Random& random, store::Store& store,
                       Timekeeper& timekeeper, BusOptions options)
    : context_(context),
      clock_(clock),
      store_(store),
      timekeeper_(timekeeper),
      options_(options),
      tables_(options.tally_bytes),
      start_([&] {
        MessageTables::migrate(store.connection_before_start());
        tables_.prepare_to_write(store.connection_before_start());
        BusState state = MessageTables::load(store.connection_before_start());
        // New data begins anywhere, so that two servers, or one with new data, do not give out the same ids.
        if (state.last_sequence == 0) {
          state.last_sequence = static_cast<std::int64_t>(random.next() % kFirstSequenceMax) + 1;
          MessageTables::begin_after(store.connection_before_start(), state.last_sequence);
        }
        return state;
      }()),
      calendar_(clock, store,
                {.last_sequence = start_.last_sequence,
                 .ahead = Millis{start_.ahead_ms},
                 .forced = start_.forced,
                 .exempt = std::exchange(start_.exempt, {}),
                 .chunk_rows = options.chunk_rows,
                 .entries_max = options.calendar_entries_max}),
      leases_(random.next() >> 8),
      bodies_(options.body_cache_bytes),
      next_sequence_(start_.last_sequence),
      forced_(start_.forced),
      next_tick_(clock.now().boot),
      next_housekeeping_(clock.now().boot + kHousekeeping),
      tasks_(context) {
  store_.add_hook(tables_);
  for (RecipientRow& row : start_.recipients) {
    Recipient& recipient = recipients_.add(std::move(row));
    recipient.sweeping = forced_ && recipient.live() > 0;
  }
  start_.recipients.clear();
  timekeeper_.add(*this);
}

MessageBus::~MessageBus() = default;

void MessageBus::start() {
  // From here until note_clean_stop() an end of the process is a crash.
  tasks_.spawn("clean flag", [](MessageBus& bus) -> Task<void> {
    auto job = [](store::Connection& connection) -> Result<> {
      MessageTables::set_clean_stop(connection, false);
      return {};
    };
    co_await bus.store_.write<void>(std::move(job));
  }(*this));
  tasks_.spawn("calendar", calendar_.run([this] {
    timekeeper_.look_again();
    if (calendar_.caught_up() && !was_caught_up_) try_again();
  }));
  if (forced_) tasks_.spawn("sweep", sweep());
  recipients_.each([&](Recipient& recipient) {
    if (recipient.removed() && recipient.mailbox.unread > 0) to_bury_.insert(recipient.row.number);
    refill(recipient);
  });
  try_again();
}

Task<void> MessageBus::stop() {
  stopping_ = true;
  refuse_sends();
  flush_ends();
  calendar_.stop();
  co_await tasks_.join();
}

void MessageBus::refuse_sends() {
  refusing_ = true;
  recipients_.each([](Recipient& recipient) { recipient.mailbox.wake_all(); });
}

// --- time ---

std::optional<Due> MessageBus::next_due(const Now& now) const {
  BootTime next = next_tick_;
  if (const auto due = calendar_.next_due(now)) next = std::min(next, on_boot_clock(*due, now));
  if (const auto end = leases_.next_end()) next = std::min(next, *end);
  if (!expiries_.empty()) next = std::min(next, on_boot_clock(wall_from_ms(expiries_.begin()->expires_ms), now));
  return next;
}

Task<int> MessageBus::fire_due(Now now, int limit) {
  calendar_.timeline().observe(now);
  if (now.boot >= next_tick_) {
    next_tick_ = now.boot + kTick;
    calendar_.read_ahead();
    prefetch_bodies(now);
    try_again();
    if (now.boot >= next_housekeeping_ && !stopping_) {
      next_housekeeping_ = now.boot + kHousekeeping;
      tasks_.spawn("housekeeping", keep_house());
    }
  }
  std::vector<Entry> due;
  calendar_.take_due(now, limit, due);
  for (const Entry& entry : due) make_visible(entry, now);
  flush_overflow();
  log_unread_deliveries();
  end_leases(now, limit);
  expire_pending(now, limit);
  co_return static_cast<int>(due.size());
}

int MessageBus::deliver_due_messages() {
  const Now now = clock_.now();
  std::vector<Entry> due;
  calendar_.take_due(now, INT32_MAX, due);
  for (const Entry& entry : due) make_visible(entry, now);
  flush_overflow();
  log_unread_deliveries();
  return static_cast<int>(due.size());
}

// What the disk refused, and what waits for others to become known: once a second.
void MessageBus::try_again() {
  if (stopping_) return;
  flush_ends();
  for (const RecipientNumber number : std::exchange(to_bury_, {})) tasks_.spawn("bury", bury(number));
  if (std::exchange(sweep_again_, false)) tasks_.spawn("sweep", sweep());
  if (!std::exchange(expiring_backlog_, true)) tasks_.spawn("expire_backlog", expire_backlog());
  const bool caught_up = calendar_.caught_up();
  if (forced_ || !caught_up || !was_caught_up_ || refill_failed_) {
    refill_failed_ = false;
    was_caught_up_ = caught_up;
    recipients_.each([&](Recipient& recipient) {
      if (recipient.mailbox.unread == 0) return;
      recipient.mailbox.read_to_end = false;
      refill(recipient);
    });
  }
}

// The one place where a delayed message becomes visible by its time.
void MessageBus::make_visible(const Entry& entry, const Now& now) {
  if (const auto hidden = hidden_.find(entry.sequence); hidden != hidden_.end()) {
    hidden->second.entry = entry;
    return;
  }
  // In nanoseconds on the elapsed clock; in milliseconds, rounded down, on the wall.
  const Nanos late = entry.elapsed ? now.boot - BootTime{Nanos{entry.key}}
                                   : Nanos{std::min(round_down(now.wall) - wall_from_ms(entry.due_ms),
                                                    Millis{std::chrono::hours{24 * 365 * 200}})} +
                                         (now.wall - round_down(now.wall));
  BELFRY_ASSERT(late >= Nanos{0});
  note_lateness(late);

  Recipient& recipient = recipients_[entry.recipient];
  const Ready ready{.order = {entry.due_ms, entry.due_ms, entry.sequence},
                    .place = entry.bucket,
                    .delivered_ms = to_ms(round_down(now.wall)),
                    .expires_ms = entry.expires_ms,
                    .late_ms = static_cast<std::int32_t>(
                        std::min<std::int64_t>(std::chrono::floor<Millis>(late).count(), INT32_MAX))};
  if (recipient.removed()) return let_die(recipient, ready, "recipient_removed");
  if (entry.expires_ms != 0 && entry.expires_ms <= ready.delivered_ms) {
    return end({.sequence = entry.sequence,
                .recipient = entry.recipient,
                .state = MessageState::expired,
                .place = entry.bucket,
                .order = ready.order,
                .ended_ms = ready.delivered_ms,
                .by = "belfry",
                .reason = "expired"});
  }
  unlogged_.emplace_back(entry.recipient, ready);
  arrive(recipient, ready);
}

void MessageBus::note_lateness(Nanos late) {
  const std::int64_t micros = late.count() / 1000;
  const auto width = std::bit_width(static_cast<std::uint64_t>(micros));
  ++lateness_.counts[std::min(static_cast<int>(width), LatenessHistogram::kBuckets - 1)];
  ++lateness_.total;
  lateness_.sum_micros += micros;
}

void MessageBus::log_delivered(const Ready& ready, const Recipient& recipient, const Body& body) const {
  if (body.due_ms <= body.created_ms) return;  // it was not delayed: recovered after a restart
  log::info("bus.delivered", "延迟消息已投递",
            {{"id", to_text(MessageId{ready.order.sequence})},
             {"to", recipient.row.name},
             {"from", body.sender},
             {"createdAt", wall_from_ms(body.created_ms)},
             {"scheduledAt", wall_from_ms(ready.order.due_ms)},
             {"actualDeliveryAt", wall_from_ms(ready.delivered_ms)},
             {"delayDrift", ready.late_ms}});
}

// A delivery's log line names sender and times, which are in the body: from memory if it is there, else read afterwards.
void MessageBus::log_unread_deliveries() {
  if (unlogged_.empty()) return;
  auto deliveries = std::exchange(unlogged_, {});
  if (!log::enabled(log::Level::info)) return;
  std::vector<std::pair<RecipientNumber, Ready>> missing;
  for (const auto& [number, ready] : deliveries) {
    if (const Body* body = bodies_.find(ready.order.sequence)) {
      log_delivered(ready, recipients_[number], *body);
    } else {
      missing.emplace_back(number, ready);
    }
  }
  if (missing.empty()) return;
  auto bodies = std::make_shared<std::vector<std::optional<Body>>>();
  auto read = std::make_shared<std::vector<std::pair<RecipientNumber, Ready>>>(std::move(missing));
  store_.read_later(
      [bodies, read](store::Connection& connection) {
        for (const auto& [number, ready] : *read)
          bodies->push_back(
              MessageTables::read_body(connection, ready.order.sequence, MessageTables::Payload::left_out));
      },
      [this, bodies, read](const Result<>& outcome) {
        if (!outcome) return;
        for (std::size_t i = 0; i < read->size(); ++i) {
          const auto& [number, ready] = (*read)[i];
          if ((*bodies)[i]) log_delivered(ready, recipients_[number], *(*bodies)[i]);
        }
      });
}

// --- mailboxes and backlog ---

std::size_t MessageBus::mailbox_room() const {
  return ready_in_memory_ < options_.ready_max ? options_.mailbox_max : options_.mailbox_max_when_crowded;
}

void MessageBus::arrive(Recipient& recipient, const Ready& ready) {
  ++recipient.pending;
  settle_in(recipient, ready);
  if (ready.place == kInBacklog) refill(recipient);
}

void MessageBus::settle_in(Recipient& recipient, const Ready& ready) {
  Mailbox& mailbox = recipient.mailbox;
  if (recipient.removed()) {
    --recipient.pending;
    return let_die(recipient, ready, "recipient_removed");
  }
  if (mailbox.reading) {
    const bool is_new = mailbox.waiting.emplace(ready.order, ready).second;
    BELFRY_ASSERT(is_new);
    return;
  }
  if (ready.place == kInBacklog && ready.order > mailbox.read_up_to) {
    ++mailbox.unread;  // it lies in the unread part already
    mailbox.read_to_end = false;
    return;
  }
  if (mailbox.behind_backlog(ready.order)) return overflow(recipient, ready);
  if (mailbox.size() >= mailbox_room() && ready.place != kInBacklog && mailbox.unread + mailbox.writing == 0) {
    // The unread part begins behind everything that is in memory or was read before. After the clock was set back a
    // message may belong before that: then it stays in memory, however full that is.
    const Order last = mailbox.last().value_or(mailbox.read_up_to);
    const Order begin = std::max(mailbox.read_up_to, std::min(last, sweep_bound(recipient).value_or(last)));
    if (last < ready.order && begin < ready.order) {
      mailbox.read_up_to = begin;
      return overflow(recipient, ready);
    }
  }
  into_mailbox(recipient, ready);
}

void MessageBus::into_mailbox(Recipient& recipient, const Ready& ready) {
  recipient.mailbox.push(ready);
  ++ready_in_memory_;
  if (ready.expires_ms != 0) expiries_.insert({ready.expires_ms, ready.order, recipient.row.number});
  recipient.mailbox.wake_one();
  if (recipient.attendant) recipient.attendant->arrived(recipient.row.name);
}

void MessageBus::overflow(Recipient& recipient, const Ready& ready) {
  overflow_.emplace_back(recipient.row.number, ready);
  ++recipient.mailbox.writing;
  bodies_.drop(ready.order.sequence);
}

// Overflow shares its way to the disk with acks. When much more comes due than the disk takes, it waits here: an ack that
// had to wait for all of it would come after its lease has ended.
void MessageBus::flush_overflow() { submit_overflow(kOverflowsAtOnce); }

void MessageBus::submit_overflow(int at_once) {
  const auto rows_max = static_cast<std::size_t>(options_.chunk_rows / 2);
  while (!overflow_.empty() && overflows_writing_ < at_once) {
    const auto end = overflow_.begin() + static_cast<std::ptrdiff_t>(std::min(rows_max, overflow_.size()));
    auto work = std::make_unique<OverflowWork>(*this);
    work->rows_.assign(overflow_.begin(), end);
    overflow_.erase(overflow_.begin(), end);
    ++overflows_writing_;
    store_.submit(store::Lane::change, std::move(work));
  }
}

void MessageBus::overflowed(OverflowWork& work, const Result<>& outcome) {
  --overflows_writing_;
  for (const auto& [number, ready] : work.rows_) {
    Recipient& recipient = recipients_[number];
    Mailbox& mailbox = recipient.mailbox;
    --mailbox.writing;
    if (outcome) {
      ++mailbox.unread;
      mailbox.read_to_end = false;
      if (recipient.removed()) to_bury_.insert(number);
    } else if (recipient.removed()) {
      --recipient.pending;
      let_die(recipient, ready, "recipient_removed");
    } else {
      // The disk does not take it: better out of order in memory than not at all.
      into_mailbox(recipient, ready);
    }
  }
  for (const auto& [number, ready] : work.rows_) refill(recipients_[number]);
  flush_overflow();
}

// What a stop forced becomes visible in order of time: only as far as it has been swept up. What was due before the stop
// is swept up with it.
std::optional<Order> MessageBus::sweep_bound(const Recipient& recipient) const {
  if (!recipient.sweeping || !forced_) return std::nullopt;
  return Order{std::min(forced_->at_ms, swept_to_ms_), swept_to_ms_, INT64_MIN};
}

// How far the backlog may be read: behind it lie messages that belong before what comes then, and are not known yet.
std::optional<Order> MessageBus::refill_bound(const Recipient& recipient) const {
  std::optional<Order> bound = sweep_bound(recipient);
  if (!calendar_.caught_up()) {
    const Order read{calendar_.read_to_ms(), INT64_MIN, INT64_MIN};
    bound = std::min(bound.value_or(read), read);
  }
  return bound;
}

void MessageBus::refill(Recipient& recipient) {
  Mailbox& mailbox = recipient.mailbox;
  if (mailbox.unread == 0 || mailbox.reading || mailbox.writing > 0 || mailbox.read_to_end || recipient.removed() ||
      mailbox.size() >= std::min(static_cast<std::size_t>(options_.refill_rows), mailbox_room()))
    return;
  mailbox.reading = true;
  auto rows = std::make_shared<std::vector<BacklogRow>>();
  const std::optional<Order> before = refill_bound(recipient);
  store_.read_later(
      [rows, rows_max = options_.refill_rows, number = recipient.row.number, after = mailbox.read_up_to,
       before](store::Connection& connection) {
        *rows = MessageTables::read_backlog(connection, number, after, before, rows_max, kRefillBytes);
      },
      [this, rows, number = recipient.row.number, before](const Result<>& outcome) {
        // A page that ends early for its bytes has at least those; only an empty or short one ends the backlog, and
        // only if it might be read to its end.
        std::size_t bytes = 0;
        for (const BacklogRow& row : *rows) bytes += row.body.bytes();
        const bool filled = static_cast<int>(rows->size()) == options_.refill_rows || bytes >= kRefillBytes;
        const bool more = filled || before != refill_bound(recipients_[number]);
        if (!outcome) refill_failed_ = true;  // the next tick tries again
        refilled(recipients_[number], outcome ? std::move(*rows) : std::vector<BacklogRow>{}, outcome && more);
      });
}

void MessageBus::refilled(Recipient& recipient, std::vector<BacklogRow> rows, bool more) {
  Mailbox& mailbox = recipient.mailbox;
  mailbox.reading = false;
  mailbox.read_to_end = !more;
  // What was sent into the backlog while the page was read may be on it.
  for (const BacklogRow& row : rows) {
    const auto found = mailbox.waiting.find(row.order);
    if (found == mailbox.waiting.end() || found->second.place != kInBacklog) continue;
    mailbox.waiting.erase(found);
    ++mailbox.unread;  // counted like the rest of the page
  }
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  if (recipient.removed()) {
    rows.clear();
    if (mailbox.unread > 0) to_bury_.insert(recipient.row.number);
  }
  for (BacklogRow& row : rows) {
    mailbox.read_up_to = row.order;
    --mailbox.unread;
    const bool forced = row.order.order_ms < row.order.due_ms;
    const Ready ready{.order = row.order,
                      .place = kInBacklog,
                      .delivered_ms = forced ? row.order.order_ms : row.order.due_ms + row.late_ms.value_or(0),
                      .expires_ms = row.expires_ms.value_or(0),
                      .late_ms = static_cast<std::int32_t>(std::min<std::int64_t>(row.late_ms.value_or(0), INT32_MAX)),
                      .attempts = static_cast<std::int16_t>(row.body.attempts),
                      .forced = forced};
    if (ready.expires_ms != 0 && ready.expires_ms <= now_ms) {
      --recipient.pending;
      end({.sequence = row.order.sequence,
           .recipient = recipient.row.number,
           .state = MessageState::expired,
           .place = kInBacklog,
           .order = row.order,
           .ended_ms = now_ms,
           .by = "belfry",
           .reason = "expired"});
      continue;
    }
    bodies_.put(row.order.sequence, std::move(row.body));
    into_mailbox(recipient, ready);
  }
  for (const auto& [order, ready] : std::exchange(mailbox.waiting, {})) settle_in(recipient, ready);
  flush_overflow();
  refill(recipient);
}

void MessageBus::prefetch_bodies(const Now& now) {
  if (!to_prefetch_.empty()) return;
  calendar_.each_soon(now, [&](std::int64_t sequence) {
    if (to_prefetch_.size() >= kPrefetchMost || bodies_.contains(sequence)) return;
    bodies_.expect(sequence);
    to_prefetch_.push_back(sequence);
  });
  std::sort(to_prefetch_.begin(), to_prefetch_.end(), std::greater{});  // neighbours share pages
  prefetch_next();
}

// Reads the next of the bodies that have a place in the cache.
void MessageBus::prefetch_next() {
  if (to_prefetch_.empty()) return;
  using Bodies = std::vector<std::pair<std::int64_t, std::optional<Body>>>;
  auto bodies = std::make_shared<Bodies>();
  const std::size_t count = std::min(kPrefetchRows, to_prefetch_.size());
  for (std::size_t i = 0; i < count; ++i) bodies->emplace_back(to_prefetch_[to_prefetch_.size() - 1 - i], std::nullopt);
  store_.read_later(
      [bodies](store::Connection& connection) {
        std::size_t bytes = 0;
        for (auto& [sequence, body] : *bodies) {
          if (bytes >= kRefillBytes) return;  // large ones are read when they are wanted
          body = MessageTables::read_body(connection, sequence);
          if (body) bytes += body->bytes();
        }
      },
      [this, bodies](const Result<>&) {
        to_prefetch_.resize(to_prefetch_.size() - bodies->size());
        for (auto& [sequence, body] : *bodies) bodies_.fill(sequence, std::move(body));
        prefetch_next();
      });
}

// --- ends ---

void MessageBus::expire_pending(const Now& now, int limit) {
  const std::int64_t now_ms = to_ms(round_down(now.wall));
  for (int i = 0; i < limit && !expiries_.empty() && expiries_.begin()->expires_ms <= now_ms; ++i) {
    const Expiry expiry = *expiries_.begin();
    expiries_.erase(expiries_.begin());
    Recipient& recipient = recipients_[expiry.recipient];
    if (hidden_.contains(expiry.order.sequence)) {
      expiries_.insert({now_ms + 1'000, expiry.order, expiry.recipient});  // a change is on its way: look again
      continue;
    }
    const auto ready = recipient.mailbox.remove(expiry.order);
    if (!ready) continue;  // received meanwhile
    --ready_in_memory_;
    --recipient.pending;
    end({.sequence = expiry.order.sequence,
         .recipient = expiry.recipient,
         .state = MessageState::expired,
         .place = ready->place,
         .order = expiry.order,
         .attempts = ready->attempts,
         .delivered_ms = ready->delivered_ms,
         .late_ms = ready->late_ms,
         .ended_ms = now_ms,
         .by = "belfry",
         .reason = "expired"});
  }
}

void MessageBus::end(EndedRow row) {
  bodies_.drop(row.sequence);
  ends_.push_back(std::move(row));
  flush_soon();
}

void MessageBus::let_die(Recipient& recipient, const Ready& ready, std::string reason) {
  bodies_.drop(ready.order.sequence);
  log::warn("bus.died", "a message went to the dead letters",
            {{"id", to_text(MessageId{ready.order.sequence})}, {"to", recipient.row.name}, {"reason", reason}});
  deaths_.push_back({recipient.row.number, ready, std::move(reason)});
  flush_soon();
}

// When whoever ends messages now is through with it: many often end together.
void MessageBus::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  tasks_.spawn("flush", [](MessageBus& bus) -> Task<void> {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    bus.flush_posted_ = false;
    bus.flush_ends();
  }(*this));
}

void MessageBus::flush_ends() {
  const auto pieces = [rows_max = static_cast<std::size_t>(options_.chunk_rows)](auto items, auto submit) {
    for (std::size_t first = 0; first < items.size(); first += rows_max) {
      const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first);
      const auto count = static_cast<std::ptrdiff_t>(std::min(rows_max, items.size() - first));
      submit(std::vector(std::move_iterator(begin), std::move_iterator(begin + count)));
    }
  };
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  pieces(std::exchange(deaths_, {}), [&](std::vector<Death> deaths) {
    store_.submit(store::Lane::change, std::make_unique<DeathWork>(*this, std::move(deaths), now_ms));
  });
  pieces(std::exchange(ends_, {}), [&](std::vector<EndedRow> rows) {
    auto done = [this](std::vector<EndedRow> ended, const Result<>& outcome) {
      if (outcome) {
        for (const EndedRow& one : ended) ++recipients_[one.recipient].expired;
      } else {
        std::move(ended.begin(), ended.end(), std::back_inserter(ends_));
      }
    };
    store_.submit(store::Lane::change, std::make_unique<EndWork>(tables_, std::move(rows), std::move(done)));
  });
  pieces(std::exchange(attempts_, {}), [&](std::vector<std::pair<std::int64_t, int>> attempts) {
    tasks_.spawn("attempts", [](MessageBus& bus, std::vector<std::pair<std::int64_t, int>> rows) -> Task<void> {
      auto job = [&tables = bus.tables_, rows](store::Connection& connection) -> Result<> {
        for (const auto& [sequence, count] : rows) tables.set_attempts(connection, sequence, count);
        return {};
      };
      co_await bus.store_.write<void>(std::move(job), static_cast<int>(rows.size()));
    }(*this, std::move(attempts)));
  });
}

Task<void> MessageBus::keep_house() {
  while (!stopping_) {
    const std::int64_t before_ms = to_ms(round_down(clock_.now().wall) - options_.retention);
    auto job = [this, before_ms](store::Connection& connection) -> Result<bool> {
      return tables_.drop_old(connection, before_ms, kChunkRows);
    };
    const auto more = co_await store_.write<bool>(std::move(job), kChunkRows);
    if (!more) co_return;
    if (!*more) break;
  }
  // The records of a removed recipient's messages are gone by now.
  const std::int64_t before_ms = to_ms(round_down(clock_.now().wall) - options_.retention) - kKeptLongerMs;
  auto forget = [this, before_ms](store::Connection& connection) -> Result<std::vector<RecipientNumber>> {
    return tables_.forget_removed(connection, before_ms);
  };
  const auto numbers = co_await store_.write<std::vector<RecipientNumber>>(std::move(forget));
  if (!numbers) co_return;
  for (const RecipientNumber number : *numbers) recipients_.forget(number);
}

// What lies in a backlog and is past its `expiresAt` ends where it lies: nobody may ever read up to it (D23).
Task<void> MessageBus::expire_backlog() {
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  MessageTables::Overdue after{.expires_ms = INT64_MIN, .recipient = 0, .order = {}};
  while (!stopping_) {
    auto look = [after, now_ms, rows_max = options_.chunk_rows](
                    store::Connection& connection) -> Result<std::vector<MessageTables::Overdue>> {
      return MessageTables::read_expired(connection, after, now_ms, rows_max);
    };
    const auto expired = co_await store_.read<std::vector<MessageTables::Overdue>>(std::move(look));
    if (!expired || expired->empty()) break;
    after = expired->back();
    co_await suspend<int>([&](Resume<int> resume) {
      // One for each, side by side, so that they share a group commit.
      auto last = std::make_shared<Resume<int>>(std::move(resume));
      auto all = std::shared_ptr<void>(nullptr, [this, last](void*) { asio::post(context_, [last] { (*last)(0); }); });
      for (const MessageTables::Overdue& one : *expired)
        if (!recipients_[one.recipient].mailbox.find(one.order))  // else it expires from memory
          tasks_.spawn("expire", expire_in_backlog({one.order.sequence}, now_ms, all));
    });
  }
  expiring_backlog_ = false;
}

Task<void> MessageBus::expire_in_backlog(MessageId id, std::int64_t now_ms, std::shared_ptr<void> share) {
  ChangeJob job = [this, now_ms](store::Connection& connection, const FoundMessage& found,
                                 const Location& location) -> Result<std::optional<CalendarRow>> {
    tables_.end(connection, {.sequence = found.row.sequence,
                             .recipient = found.row.recipient,
                             .state = MessageState::expired,
                             .place = location.place,
                             .order = location.order,
                             .attempts = found.row.body.attempts,
                             .ended_ms = now_ms,
                             .by = "belfry",
                             .reason = "expired"});
    return std::nullopt;
  };
  const auto changed = co_await change(id, true, std::move(job));
  if (changed) ++recipients_[changed->recipient].expired;
  share.reset();
}

// Puts the messages of a removed recipient that lie in its backlog to the dead letters. Those in a receiver's hands go
// there when their lease ends.
Task<void> MessageBus::bury(RecipientNumber number) {
  Order after{INT64_MIN, 0, 0};
  while (!stopping_) {
    const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
    auto look = [number, after](store::Connection& connection) -> Result<std::vector<Order>> {
      return MessageTables::read_backlog_orders(connection, number, after, kChunkRows / 4);
    };
    const auto orders = co_await store_.read<std::vector<Order>>(std::move(look));
    if (!orders) {
      to_bury_.insert(number);
      co_return;
    }
    if (orders->empty()) co_return;
    after = orders->back();
    std::vector<Order> ours;
    for (const Order& order : *orders)
      if (!leases_.find(order.sequence) && !leaving_.contains(order.sequence)) ours.push_back(order);
    auto job = [this, ours, now_ms](store::Connection& connection) -> Result<int> {
      int died = 0;
      for (const Order& order : ours)
        died += tables_.die(connection, {.sequence = order.sequence,
                                         .place = kInBacklog,
                                         .order = order,
                                         .died_ms = now_ms,
                                         .reason = "recipient_removed"})
                    ? 1
                    : 0;
      return died;
    };
    const auto buried = co_await store_.write<int>(std::move(job), static_cast<int>(ours.size()));
    if (!buried) {
      to_bury_.insert(number);
      co_return;
    }
    Recipient& recipient = recipients_[number];
    recipient.pending -= *buried;
    recipient.mailbox.unread -= *buried;
    recipient.dead += *buried;
  }
}

// --- recipients ---

Result<> MessageBus::check_new(const std::string& name, const std::string& kind) const {
  BELFRY_CHECK(check_id("the id", name));
  if (kind.empty() || kind.size() > kIdBytesMax)
    return fail(Errc::invalid_argument, "kind is empty or too long; \"external\" is an agent that receives over HTTP");
  return {};
}

void MessageBus::added(const RecipientRow& row) {
  Recipient& recipient = recipients_.add(row);
  if (const auto found = attendants_.find(row.kind); found != attendants_.end()) recipient.attendant = found->second;
  log::info("bus.recipient_added", "", {{"id", row.name}, {"kind", row.kind}});
}

Task<Result<RecipientRow>> MessageBus::add_recipient(std::string name, std::string kind) {
  BELFRY_CO_CHECK(check_new(name, kind));
  if (recipients_.find(name)) co_return already_exists(name);
  if (recipients_.size() >= static_cast<std::size_t>(kRecipientsMax)) co_return too_many_recipients();
  RecipientRow row{.name = name, .kind = kind, .created_ms = to_ms(round_down(clock_.now().wall))};
  auto job = [row](store::Connection& connection) -> Result<RecipientNumber> {
    auto taken = connection.query("SELECT 1 FROM recipient WHERE name = ?1 AND removed_ms IS NULL", row.name);
    if (taken.next()) return already_exists(row.name);
    return MessageTables::add_recipient(connection, row);
  };
  BELFRY_CO_TRY(row.number, co_await store_.write<RecipientNumber>(std::move(job)));
  added(row);
  co_return row;
}

Task<Result<>> MessageBus::add_recipients(std::vector<std::string> names, std::string kind, Also also) {
  std::vector<RecipientRow> rows;
  for (const std::string& name : names) {
    BELFRY_CO_CHECK(check_new(name, kind));
    const Recipient* const known = recipients_.find(name);
    if (known && known->row.kind != kind) co_return already_exists(name);
    if (!known) rows.push_back({.name = name, .kind = kind, .created_ms = to_ms(round_down(clock_.now().wall))});
  }
  if (recipients_.size() + rows.size() > static_cast<std::size_t>(kRecipientsMax)) co_return too_many_recipients();
  const int count = static_cast<int>(rows.size());
  auto job = [rows = std::move(rows),
              also = std::move(also)](store::Connection& connection) -> Result<std::vector<RecipientRow>> {
    BELFRY_TRY(const bool go_on, also(connection));
    std::vector<RecipientRow> made;
    for (RecipientRow row : rows) {
      if (!go_on) break;
      auto known = connection.query("SELECT kind FROM recipient WHERE name = ?1 AND removed_ms IS NULL", row.name);
      if (known.next()) {  // somebody else adds it as well, and was first
        if (known.text(0) != row.kind) return already_exists(row.name);
        continue;
      }
      row.number = MessageTables::add_recipient(connection, row);
      made.push_back(std::move(row));
    }
    return made;
  };
  constexpr int kRowsOfOthers = 16;
  BELFRY_CO_TRY(const std::vector<RecipientRow> made,
                co_await store_.write<std::vector<RecipientRow>>(std::move(job), count + kRowsOfOthers));
  for (const RecipientRow& row : made) added(row);
  co_return Result<>{};
}

void MessageBus::attend(const std::string& kind, Attendant& attendant) {
  attendants_[kind] = &attendant;
  recipients_.each([&](Recipient& recipient) {
    if (recipient.row.kind != kind || recipient.removed()) return;
    recipient.attendant = &attendant;
    if (recipient.mailbox.size() > 0) attendant.arrived(recipient.row.name);
  });
}

Task<Result<>> MessageBus::remove_recipient(std::string name) {
  Recipient* found = recipients_.find(name);
  if (!found) co_return fail(Errc::not_found, fmt::format("there is no recipient \"{}\"", name));
  const RecipientNumber number = found->row.number;
  const std::int64_t now_ms = to_ms(round_down(clock_.now().wall));
  auto job = [number, now_ms](store::Connection& connection) -> Result<> {
    MessageTables::remove_recipient(connection, number, now_ms);
    return {};
  };
  BELFRY_CO_CHECK(co_await store_.write<void>(std::move(job)));
  Recipient& recipient = recipients_[number];
  if (recipient.removed()) co_return Result<>{};
  recipients_.remove(recipient, now_ms);
  if (Attendant* const attendant = std::exchange(recipient.attendant, nullptr)) attendant->left(name);
  recipient.mailbox.wake_all();
  while (const auto ready = recipient.mailbox.pop()) {
    --ready_in_memory_;
    --recipient.pending;
    let_die(recipient, *ready, "recipient_removed");
  }
  for (const auto& [order, ready] : std::exchange(recipient.mailbox.waiting, {})) {
    --recipient.pending;
    let_die(recipient, ready, "recipient_removed");
  }
  // Whoever holds one can ack it no more: nobody has to wait for that.
  for (const Lease& lease : leases_.take_of(number)) {
    --recipient.leased;
    let_die(recipient, lease.ready, "recipient_removed");
  }
  wake_idle_waiters();
  if (recipient.mailbox.unread > 0 && !stopping_) tasks_.spawn("bury", bury(number));
  log::info("bus.recipient_removed", "", {{"id", name}});
  co_return Result<>{};
}

std::vector<RecipientRow> MessageBus::recipients() const {
  std::vector<RecipientRow> rows;
  recipients_.each([&](const Recipient& recipient) {
    if (!recipient.removed()) rows.push_back(recipient.row);
  });
  std::sort(rows.begin(), rows.end(), [](const RecipientRow& a, const RecipientRow& b) { return a.name < b.name; });
  return rows;
}

Result<RecipientRow> MessageBus::recipient(const std::string& name) const {
  const Recipient* found = recipients_.find(name);
  if (!found) return fail(Errc::not_found, fmt::format("there is no recipient \"{}\"", name));
  return found->row;
}

// --- counts ---

Result<Counts> MessageBus::counts(const std::string& recipient) const {
  const Recipient* found = recipients_.find(recipient);
  if (!found) return fail(Errc::unknown_recipient, fmt::format("there is no recipient \"{}\"", recipient));
  return Counts{found->pending, found->delayed(), found->leased};
}

Totals MessageBus::totals() const {
  const Sums& sums = recipients_.sums();
  const std::int64_t live = sums.accepted - sums.acked - sums.cancelled - sums.expired - sums.dead;
  return {.accepted = sums.accepted,
          .acked = sums.acked,
          .cancelled = sums.cancelled,
          .expired = sums.expired,
          .dead = sums.dead,
          .live = {.pending = sums.pending, .delayed = live - sums.pending - sums.leased, .in_flight = sums.leased}};
}

std::int64_t MessageBus::delayed_count() const { return totals().live.delayed; }

std::int64_t MessageBus::delayed_count(const std::string& recipient) const {
  const Recipient* found = recipients_.find(recipient);
  return found ? found->delayed() : 0;
}

// --- forced delivery ---

bool MessageBus::was_forced(std::int64_t sequence, std::int64_t due_ms) const {
  return forced_ && sequence <= forced_->up_to && due_ms > forced_->at_ms && !calendar_.exempt(sequence);
}

Task<Result<std::int64_t>> MessageBus::mark_all_delayed_as_forced() {
  deliver_due_messages();
  const std::int64_t count = delayed_count();
  if (count == 0) co_return 0;
  submit_overflow(INT_MAX);  // or the sweep would find it where it lay, and take it for delayed
  ++forcings_;
  // What is sent while this is written comes after it.
  const Forced forced{calendar_.last_done(), to_ms(round_down(clock_.now().wall))};
  forced_ = forced;
  swept_to_ms_ = INT64_MIN;
  calendar_.hand_over_to_sweep(forced);
  recipients_.each([](Recipient& recipient) { recipient.sweeping = recipient.live() > 0; });
  auto job = [forced](store::Connection& connection) -> Result<> {
    MessageTables::set_forced(connection, forced);
    return {};
  };
  const auto stored = co_await store_.write<void>(std::move(job));
  if (!stored) {
    // They are out of the calendar already: the sweep brings them, whether it is on the disk or not.
    sweep_again_ = !sweep_running_;
    co_return std::unexpected(stored.error());
  }
  log::info("bus.forced", "强制投递所有延迟消息", {{"count", count}});
  co_return count;
}

Task<Result<std::int64_t>> MessageBus::force_deliver_all_delayed() {
  BELFRY_CO_TRY(const std::int64_t count, co_await mark_all_delayed_as_forced());
  if (count == 0) co_return 0;
  if (!sweep_running_) tasks_.spawn("sweep", sweep());
  co_await suspend<int>([this](Resume<int> resume) { sweep_waiters_.push_back(std::move(resume)); });
  co_return count;
}

// True if a receiver has it, or can have it, already: the sweep must not put it into the backlog as well.
bool MessageBus::handed_out(Recipient& recipient, std::int64_t sequence, std::int64_t due_ms) {
  if (leases_.find(sequence) || leaving_.contains(sequence) || calendar_.exempt(sequence)) return true;
  if (const auto hidden = hidden_.find(sequence);
      hidden != hidden_.end() && (hidden->second.ready || hidden->second.entry))
    return true;
  const Order order{due_ms, due_ms, sequence};
  return recipient.mailbox.find(order) || recipient.mailbox.waiting.contains(order);
}

// Puts what a stop made pending into the backlogs, in order of time and a page at a time.
Task<void> MessageBus::sweep() {
  sweep_running_ = true;
  while (forced_ && !stopping_) {
    const int forcing = forcings_;
    const bool finished = co_await sweep_once(*forced_);
    if (!finished) break;
    if (forcings_ != forcing) continue;
    const bool noted = co_await end_sweep();
    if (!noted) break;
  }
  sweep_running_ = false;
  if (forced_ && !stopping_) {
    sweep_again_ = true;  // the disk refused: the next tick goes on
    co_return;
  }
  for (Resume<int>& resume : std::exchange(sweep_waiters_, {}))
    asio::post(context_, [resume = std::move(resume)]() mutable { resume(0); });
}

// As the backlog has a message that a stop forced.
Ready MessageBus::swept(const CalendarRow& row, const Forced& forced) {
  const std::int64_t order_ms = std::min(forced.at_ms, row.due_ms);
  return {.order = {order_ms, row.due_ms, row.sequence},
          .place = kInBacklog,
          .delivered_ms = order_ms,
          .expires_ms = row.expires_ms.value_or(0),
          .forced = order_ms < row.due_ms};
}

Task<bool> MessageBus::sweep_once(Forced forced) {
  struct Swept {
    std::vector<CalendarRow> rows;
    Nanos took{0};  // without the commit and without waiting for others: what depends on the number of rows
  };
  CalendarLook look;
  std::fill(std::begin(look.until_ms), std::end(look.until_ms), (std::int64_t{1} << kStartBits) - 1);
  look.sequence_up_to = forced.up_to;
  look.split_crowded = false;
  Pace pace(options_.chunk_rows);
  const int forcing = forcings_;  // when all is forced again, the sweep begins anew
  while (!stopping_) {
    look.rows_max = pace.rows();
    auto job = [look](store::Connection& connection) -> Result<CalendarPage> {
      return MessageTables::read_calendar(connection, look);
    };
    auto page = co_await store_.read<CalendarPage>(std::move(job));
    if (!page) co_return false;
    if (forcings_ != forcing) co_return true;
    std::erase_if(page->rows, [&](const CalendarRow& row) {
      return handed_out(recipients_[row.recipient], row.sequence, row.due_ms);
    });
    auto move = [this, candidates = page->rows, forced](store::Connection& connection) -> Result<Swept> {
      const BootTime begun = clock_.now().boot;
      Swept moved;
      for (const CalendarRow& row : candidates) {
        const Order order = swept(row, forced).order;
        if (tables_.move_to_backlog(connection, row.bucket, row.recipient, order, std::nullopt, row.expires_ms))
          moved.rows.push_back(row);
      }
      moved.took = clock_.now().boot - begun;
      return moved;
    };
    const auto moved = co_await store_.write<Swept>(std::move(move), static_cast<int>(page->rows.size()));
    if (!moved) co_return false;
    pace.took(moved->took);
    std::copy(std::begin(page->from_ms), std::end(page->from_ms), look.from_ms);
    look.partial = page->partial;
    look.partial_after = page->last_sequence;
    if (forcings_ == forcing)
      swept_to_ms_ =
          *std::min_element(std::begin(look.from_ms), std::end(look.from_ms)) - calendar_.timeline().ahead().count();
    // Most of them lie in the unread part now. One that the calendar had too late, for clocks were set around a crash, may
    // lie before it: that one goes to memory.
    for (const CalendarRow& row : moved->rows) {
      Recipient& recipient = recipients_[row.recipient];
      ++recipient.pending;
      settle_in(recipient, swept(row, forced));
    }
    for (const CalendarRow& row : moved->rows) refill(recipients_[row.recipient]);
    if (page->finished || forcings_ != forcing) co_return true;
  }
  co_return false;
}

Task<bool> MessageBus::end_sweep() {
  const int forcing = forcings_;
  auto job = [](store::Connection& connection) -> Result<> {
    MessageTables::forced_swept(connection);
    return {};
  };
  const auto stored = co_await store_.write<void>(std::move(job));
  if (!stored) co_return false;
  if (forcings_ != forcing) co_return true;
  forced_.reset();
  calendar_.sweep_finished();
  recipients_.each([&](Recipient& recipient) {
    if (!std::exchange(recipient.sweeping, false)) return;
    recipient.mailbox.read_to_end = false;
    refill(recipient);
    if (recipient.removed() && recipient.mailbox.unread > 0) to_bury_.insert(recipient.row.number);
  });
  co_return true;
}

Task<Result<>> MessageBus::note_clean_stop() {
  auto job = [](store::Connection& connection) -> Result<> {
    MessageTables::set_clean_stop(connection, true);
    return {};
  };
  co_return co_await store_.write<void>(std::move(job));
}

}  // namespace belfry::bus
