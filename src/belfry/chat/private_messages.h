// Scheduled private messages: written now, said at their time, without waking anybody to think (P1 to P11).
//
// Every change is one transaction that names the state it leaves, so of those who race for one message (its own time,
// a cancel, a move, a replacement) one wins and the others are told. Saying it and noting that it was said are one
// transaction, too: a crash neither loses nor doubles it.
//
// For a person with a webhook, being due means to go into the outbox: the message stays pending until it has arrived and is
// said then. While a request is under way, or if one may have arrived, it is too late for a change (`being_sent`).
//
// Lives on the kernel's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/outbox.h"
#include "belfry/chat/private_message.h"
#include "belfry/clock/clock.h"
#include "belfry/due/due_rows.h"
#include "belfry/store/store.h"

namespace belfry::chat {

struct PrivateMessagesOptions {
  std::optional<Millis> max_late;        // for those that do not say it themselves
  Millis retention = kRetentionDefault;  // how long those that have ended can be read
};

class PrivateMessages {
 public:
  // Makes or reads its table. Before store.start(); throws store::Fault.
  PrivateMessages(asio::io_context& context, Clock& clock, store::Store& store, Chats& chats, Outbox& outbox,
                  Timekeeper& timekeeper, PrivateMessagesOptions options = {});

  // Await it before the conversations stop.
  Task<void> stop() { return due_.stop(); }

  struct Created {
    ScheduledMessage message;
    std::vector<std::string> cancelled;  // those that it replaces (P6)
    bool repeated = false;
  };
  Task<Result<Created>> create(NewScheduledMessage wanted);
  Task<Result<ScheduledMessage>> get(std::string id);
  Task<Result<ScheduledPage>> list(ScheduledQuery query);

  // Of one that is not pending any more these say what became of it: `already_sent`, `already_cancelled`, …
  // Where `session` is given, a message of another one does not exist.
  Task<Result<ScheduledMessage>> cancel(std::string id, std::string session, std::string call);
  Task<Result<ScheduledMessage>> change(std::string id, std::string session, ScheduledChange change);
  // For a person with a webhook it is pending still when this returns.
  Task<Result<ScheduledMessage>> send_now(std::string id);

  // The one place where a scheduled message is said, in the transaction that ends it (P7).
  static std::optional<Chats::Said> say(store::Connection& connection, const ScheduledMessage& message, int attempts,
                                        WallTime now);
  static void log_end(const ScheduledMessage& message);

 private:
  struct Sent {
    std::vector<Chats::Said> said;
    std::vector<ScheduledMessage> touched;  // as they are now
    std::optional<std::int64_t> next_ms;
    bool more = false;
  };

  Result<> check_text(const std::string& text) const;
  Result<WallTime> check_time(WallTime at) const;
  Task<bool> send_due();
  Sent send_some(store::Connection& connection, const std::vector<std::string>& ids, WallTime now) const;
  static void hand_over(store::Connection& connection, const ScheduledMessage& message, std::optional<Millis> max_late,
                        WallTime now);
  void tell(const Sent& sent);
  WallTime now() const { return round_down(clock_.now().wall); }

  Clock& clock_;
  store::Store& store_;
  Chats& chats_;
  Outbox& outbox_;
  PrivateMessagesOptions options_;
  DueRows due_;
};

}  // namespace belfry::chat
