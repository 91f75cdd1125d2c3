// The message bus: messages for named recipients, now or later, that survive anything and arrive on time.
//
// Life of a message: delayed -> pending -> leased -> acked; a lease that ends without an ack makes it pending again, and
// after the last attempt dead; delayed and pending ones can be cancelled or expire; a dead one can be retried. A call
// that returned success is on the disk.
//
// Lives on the kernel's thread; every public member is called there. Never early: the one place that makes a message
// visible asserts it. Order for a recipient is (deliverAt, order of sending) among what is visible together.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/base/random.h"
#include "belfry/base/task_group.h"
#include "belfry/bus/body_cache.h"
#include "belfry/bus/calendar.h"
#include "belfry/bus/envelope.h"
#include "belfry/bus/leases.h"
#include "belfry/bus/recipients.h"
#include "belfry/clock/clock.h"
#include "belfry/due/timekeeper.h"
#include "belfry/store/store.h"

namespace belfry::bus {

struct BusOptions {
  Millis retention = kRetentionDefault;
  int attempts_max = kAttemptsMax;

  // How much is kept in memory. Tests make these small, so that a few messages go through what else takes millions.
  int chunk_rows = kChunkRows;
  std::size_t calendar_entries_max = 400'000;  // past it only the next seconds stay in memory: 56 bytes each
  std::size_t mailbox_max = 200'000;           // a burst; 72 bytes each
  std::size_t mailbox_max_when_crowded = 256;  // when all mailboxes together hold
  std::size_t ready_max = 400'000;             // more than this
  int refill_rows = 1'000;
  std::size_t body_cache_bytes = 48u << 20;  // what a burst of a hundred thousand small messages needs
  std::size_t tally_bytes = 256u << 10;      // of changes of the counters, beside what says them all
};

// Lets whoever waits for messages leave before they come: nothing is handed out after that.
class Departure {
 public:
  void leave() {
    left_ = true;
    if (wake_) wake_->ring();
  }
  bool left() const { return left_; }
  // Whom to ring when the one who waits leaves; null once nobody sleeps any more.
  void rings(Wake* wake) { wake_ = wake; }

 private:
  Wake* wake_ = nullptr;
  bool left_ = false;
};

struct ReceiveRequest {
  std::string recipient;
  int max = 1;
  Millis wait{0};
  Millis lease = kLeaseDefault;
  std::shared_ptr<Departure> departure;  // none: the receiver stays to the end
};

// Serves many recipients, those of one kind. Both are called in the middle of the bus's work, so it only looks and notes
// down.
class Attendant {
 public:
  virtual ~Attendant() = default;
  // A recipient has something to receive.
  virtual void arrived(const std::string& recipient) = 0;
  // Something that it will get later came, or changed, or is gone.
  virtual void delayed_changed(const std::string& /*recipient*/) {}
  // It was removed; its name may soon be another's.
  virtual void left(const std::string& /*recipient*/) {}
  // Whether a message for one of them makes sense; a refusal is what its sender hears, whatever way it came. Quick replies
  // stand in the payload already.
  virtual Result<> admit(const Outgoing&) const { return {}; }
};

struct AckOutcome {
  int acked = 0;
  struct Refused {
    std::string name;  // the lease or the id, as the caller wrote it
    Error error;
  };
  std::vector<Refused> refused;
};

struct ListRequest {
  std::string to;
  std::string from;
  std::optional<MessageState> state;
  int limit = 100;
  std::string after;  // the cursor of the page before
};

struct ListResult {
  std::vector<MessageInfo> messages;
  std::string next;  // empty at the end. Few matches among very many messages: a page may be short and have a next one
};

// How late messages were, in powers of two of a microsecond: for /metrics.
struct LatenessHistogram {
  static constexpr int kBuckets = 32;
  std::int64_t counts[kBuckets] = {};
  std::int64_t total = 0;
  std::int64_t sum_micros = 0;
};

class MessageBus final : public DueSource {
 public:
  // Reads what a start needs (little, whatever the store holds). Before store.start(); throws store::Fault.
  MessageBus(asio::io_context& context, Clock& clock, Random& random, store::Store& store, Timekeeper& timekeeper,
             BusOptions options = {});
  ~MessageBus() override;

  // Starts the loop that reads the calendar ahead; after store.start().
  void start();
  // False if the life before this one ended without note_clean_stop().
  bool started_clean() const { return start_.clean_stop; }
  // Ends the loops; what is on the disk stays as it is. Await it before destroying the bus.
  Task<void> stop();

  // --- sending ---
  Task<Result<Sent>> send(Outgoing message);
  // As many sends in one go: they share group commits, and the answers come in the same order.
  Task<std::vector<Result<Sent>>> send_many(std::vector<Outgoing> messages);

  // Sends that stand or fall with a change of other tables: one transaction. `also` runs first, perhaps more than once;
  // if it refuses, or says false, nothing is sent. Refused as a whole if one of the messages is; no keys here.
  using Also = std::function<Result<bool>(store::Connection&)>;
  Task<Result<std::vector<Sent>>> send_together(std::vector<Outgoing> messages, Also also);

  // --- receiving (D18) ---
  // From here on `attendant` hears of every recipient of this kind; of those with messages, soon. It ends its own work,
  // which needs the bus, before the bus stops, and may still be told of messages until the bus has stopped.
  void attend(const std::string& kind, Attendant& attendant);
  Task<Result<std::vector<Delivery>>> receive(ReceiveRequest request);
  Task<Result<AckOutcome>> ack_leases(std::string recipient, std::vector<std::string> leases, std::string by);
  Task<Result<AckOutcome>> ack_ids(std::string recipient, std::vector<std::string> ids, std::string by);
  Result<AckOutcome> extend(const std::string& recipient, const std::vector<std::string>& leases, Millis lease);
  // Gives messages back before their lease ends, to be redelivered after `delay`. An attempt that failed through no
  // fault of the receiver's need not count.
  Task<Result<AckOutcome>> release(std::string recipient, std::vector<std::string> leases, Millis delay,
                                   bool counts = true);

  // --- looking, changing (D16) ---
  Task<Result<MessageInfo>> get(MessageId id);
  Task<Result<ListResult>> list(ListRequest request);
  Task<Result<>> cancel(MessageId id, std::string by);
  Task<Result<MessageInfo>> reschedule(MessageId id, WallTime deliver_at);
  Task<Result<MessageInfo>> reschedule_after(MessageId id, Millis delay);
  Task<Result<>> deliver_now(MessageId id);
  Task<Result<>> retry(MessageId id);
  Task<Result<>> drop(MessageId id, std::string by);

  // --- recipients ---
  Task<Result<RecipientRow>> add_recipient(std::string name, std::string kind);
  // Those of them that are missing, together with a change of other tables, as in send_together: one transaction. Refused
  // as a whole if one of the names belongs to another kind.
  Task<Result<>> add_recipients(std::vector<std::string> names, std::string kind, Also also);
  Task<Result<>> remove_recipient(std::string name);
  std::vector<RecipientRow> recipients() const;
  Result<RecipientRow> recipient(const std::string& name) const;

  // --- counting: from memory, at once (D11) ---
  Result<Counts> counts(const std::string& recipient) const;
  Totals totals() const;
  const LatenessHistogram& lateness() const { return lateness_; }
  // How long ended messages and the keys of sends are remembered.
  Millis retention() const { return options_.retention; }
  // False while the calendar of a long stop is still being read: until then overdue messages count as delayed.
  bool caught_up() const { return calendar_.caught_up() && !forced_; }

  // --- by hand (D22) ---
  int deliver_due_messages();
  std::int64_t delayed_count() const;
  std::int64_t delayed_count(const std::string& recipient) const;
  // Makes everything pending that is delayed now, and waits until it can be received. Returns how many.
  Task<Result<std::int64_t>> force_deliver_all_delayed();
  // True when the recipient has a message to receive, false at the deadline.
  Task<bool> wait_for_message(std::string recipient, Millis wait);

  // --- stopping (D12, G12) ---
  // From here on sends are refused and waiting receives return empty; acks are taken.
  void refuse_sends();
  // Notes durably that everything delayed is pending; the next start hands it out. Returns how many.
  Task<Result<std::int64_t>> mark_all_delayed_as_forced();
  Task<Result<>> note_clean_stop();
  std::int64_t in_flight() const { return static_cast<std::int64_t>(leases_.size()); }
  // Resumes when no message is in a receiver's hands, or at the deadline.
  Task<void> wait_until_idle(BootTime deadline);

  std::optional<Due> next_due(const Now& now) const override;
  Task<int> fire_due(Now now, int limit) override;

 private:
  class SendWork;
  class TogetherWork;
  class EndWork;
  class DeathWork;
  class OverflowWork;
  struct Death {  // on its way to the dead letters
    RecipientNumber recipient = 0;
    Ready ready;
    std::string reason;
  };
  struct Held {  // what came up while a change of the message was on its way to the disk
    std::optional<Entry> entry;
    std::optional<Ready> ready;
    RecipientNumber recipient = 0;  // whose `ready` it is
  };
  struct Changed {  // what a change found in the store
    RecipientNumber recipient = 0;
    Location from;
    std::optional<CalendarRow> calendar_row;  // where the calendar had it
    bool was_forced = false;                  // pending since a stop, and not swept yet
    std::optional<CalendarRow> next;          // where it is now
  };
  using ChangeJob =
      std::function<Result<std::optional<CalendarRow>>(store::Connection&, const FoundMessage&, const Location&)>;
  using SendDone = std::move_only_function<void(Result<Sent>)>;
  struct Taken {  // out of its mailbox, on its way to a receiver
    Ready ready;
    std::optional<Body> body;
  };

  // message_bus_send.cpp
  Result<std::unique_ptr<SendWork>> make_send(Outgoing message);
  void submit_send(Outgoing message, SendDone done);
  void sent(SendWork& work, Result<> outcome);
  Task<void> write_key_run();

  // message_bus.cpp
  Result<> check_new(const std::string& name, const std::string& kind) const;
  void added(const RecipientRow& row);
  void make_visible(const Entry& entry, const Now& now);
  void log_delivered(const Ready& ready, const Recipient& recipient, const Body& body) const;
  void log_unread_deliveries();
  void arrive(Recipient& recipient, const Ready& ready);
  // Where it belongs in its mailbox. What is to be read because of it is left to the caller: with many of them once.
  void settle_in(Recipient& recipient, const Ready& ready);
  void into_mailbox(Recipient& recipient, const Ready& ready);
  void overflow(Recipient& recipient, const Ready& ready);
  void overflowed(OverflowWork& work, const Result<>& outcome);
  void flush_overflow();
  void submit_overflow(int at_once);
  std::size_t mailbox_room() const;
  void refill(Recipient& recipient);
  void refilled(Recipient& recipient, std::vector<BacklogRow> rows, bool more);
  void prefetch_bodies(const Now& now);
  void prefetch_next();
  void expire_pending(const Now& now, int limit);
  void note_lateness(Nanos late);
  void end(EndedRow row);
  void let_die(Recipient& recipient, const Ready& ready, std::string reason);
  bool was_forced(std::int64_t sequence, std::int64_t due_ms) const;
  bool handed_out(Recipient& recipient, std::int64_t sequence, std::int64_t due_ms);
  std::optional<Order> sweep_bound(const Recipient& recipient) const;
  std::optional<Order> refill_bound(const Recipient& recipient) const;
  void try_again();
  void flush_soon();
  void flush_ends();
  Task<void> sweep();
  static Ready swept(const CalendarRow& row, const Forced& forced);
  Task<bool> sweep_once(Forced forced);
  Task<bool> end_sweep();
  Task<void> bury(RecipientNumber number);
  Task<void> keep_house();
  Task<void> expire_backlog();
  Task<void> expire_in_backlog(MessageId id, std::int64_t now_ms, std::shared_ptr<void> share);

  // message_bus_receive.cpp
  void take_ready(Recipient& recipient, int max, std::vector<Taken>& taken);
  Task<Result<>> load_bodies(Recipient& recipient, std::vector<Taken>& taken);
  Task<Result<>> count_attempts_first(const Recipient& recipient, std::vector<Taken>& taken);
  Task<void> await_mailbox(Recipient& recipient, BootTime deadline, std::shared_ptr<Departure> departure);
  Task<Result<AckOutcome>> ack(Recipient& recipient, std::vector<Lease> leases, AckOutcome outcome, std::string by);
  std::vector<Lease> find_leases(Recipient& recipient, const std::vector<std::string>& names,
                                 AckOutcome& outcome) const;
  void end_leases(const Now& now, int limit);
  void give_back(const Lease& lease, Millis delay, std::string why);
  Task<void> give_back_later(Lease lease, Millis delay);
  void wake_idle_waiters();

  // message_bus_change.cpp
  Task<Result<Changed>> change(MessageId id, bool also_pending, ChangeJob job);
  void forget_old_place(const Changed& changed, const Held& held);
  void restore(const Held& held);
  Task<Result<MessageInfo>> move_to(MessageId id, WallTime deliver_at, std::string_view cause);
  Task<std::optional<Ready>> waiting_delivery(MessageId id);
  MessageInfo info_of(const FoundMessage& found, const Location& location) const;
  MessageInfo info_of(const MessageTables::Ended& ended) const;
  MessageState state_of(const FoundMessage& found, const Location& location) const;

  asio::io_context& context_;
  Clock& clock_;  // Borrowed parts outlive the bus: whoever makes it declares them before it.
  store::Store& store_;
  Timekeeper& timekeeper_;
  BusOptions options_;

  MessageTables tables_;
  BusState start_;
  Calendar calendar_;
  Recipients recipients_;
  Leases leases_;
  BodyCache bodies_;
  std::unordered_map<std::int64_t, Held> hidden_;  // by sequence: a change is on its way to the disk (G10)
  std::unordered_set<std::int64_t> leaving_;       // taken by a receiver whose lease waits for a read or a write
  struct Expiry {
    std::int64_t expires_ms;
    Order order;
    RecipientNumber recipient;
    auto operator<=>(const Expiry&) const = default;
  };
  std::set<Expiry> expiries_;                               // of messages in the mailboxes
  std::deque<std::pair<RecipientNumber, Ready>> overflow_;  // what waits to be moved into a backlog
  int overflows_writing_ = 0;                               // pieces of it on their way to the disk
  // What ends without anybody waiting for it: written together, soon, and again a second later if the disk refuses.
  std::vector<Death> deaths_;
  std::vector<EndedRow> ends_;
  std::vector<std::pair<std::int64_t, int>> attempts_;  // sequence, how many were in vain
  bool flush_posted_ = false;
  std::set<RecipientNumber> to_bury_;  // removed ones with messages in the backlog
  bool was_caught_up_ = false;
  bool refill_failed_ = false;
  bool sweep_again_ = false;
  bool expiring_backlog_ = false;
  std::vector<std::pair<RecipientNumber, Ready>> unlogged_;  // delivered before their body was in memory
  std::size_t ready_in_memory_ = 0;
  std::int64_t next_sequence_;
  std::optional<Forced> forced_;
  std::int64_t swept_to_ms_ = INT64_MIN;  // forced messages due before this have been put into the backlog
  bool sweep_running_ = false;
  int forcings_ = 0;  // in this life: a sweep looks whether everything was forced again meanwhile
  std::vector<Resume<int>> sweep_waiters_;
  BootTime next_tick_;
  BootTime next_housekeeping_;
  std::vector<std::int64_t> to_prefetch_;  // the next one last
  bool writing_keys_ = false;
  bool refusing_ = false;
  bool stopping_ = false;
  std::vector<Wake*> idle_waiters_;
  std::unordered_map<std::string, Attendant*> attendants_;  // by kind
  LatenessHistogram lateness_;
  TaskGroup tasks_;
};

}  // namespace belfry::bus
