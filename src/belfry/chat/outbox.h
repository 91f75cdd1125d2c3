// Sends what is said to people to their webhooks (P12, P13).
//
// Every attempt is three steps: a claim is committed, the request goes out beside the loop, and one transaction writes what
// came of it. What is claimed and has no result after a crash had no answer. One without an answer may have arrived: it is
// made again only where the receiver knows requests by their key, and else ends as `outcome_unknown`.
//
// A person's messages go out one after the other; who does not answer holds up nobody else. What waits is on the disk.
//
// Lives on the kernel's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/base/task_group.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/private_message.h"
#include "belfry/chat/webhook.h"
#include "belfry/clock/clock.h"
#include "belfry/clock/pauses.h"
#include "belfry/due/due_rows.h"
#include "belfry/net/web_client.h"
#include "belfry/store/store.h"

namespace belfry::chat {

// Attempts of one message, and the time in which all of them begin (P12).
inline constexpr int kSendAttemptsMax = 5;
inline constexpr Millis kSendWindow{600'000};
// The pauses after each attempt but the last; with the longest timeouts they stay within the window.
inline constexpr Millis kSendPauses[kSendAttemptsMax - 1] = {Millis{10'000}, Millis{30'000}, Millis{90'000},
                                                             Millis{240'000}};

// What an attempt means for its message.
struct Verdict {
  OutboxState state = OutboxState::failed;  // waiting: it is tried again
  WallTime again_at;
  std::string reason;  // `refused`, `channel_failed`, `outcome_unknown`
  bool unclear = false;
};
Verdict judge(const OutboxRow& row, const net::WebAnswer& answer, bool idempotent, WallTime now);

class Outbox {
 public:
  // After the conversations, which have its tables made. Ends what an earlier life left unanswered. Before store.start();
  // throws store::Fault.
  Outbox(asio::io_context& context, Clock& clock, store::Store& store, Chats& chats, Timekeeper& timekeeper,
         net::WebClient& client, Millis retention = kRetentionDefault);

  // Claims nothing more, for a stop.
  void close() { closed_ = true; }
  // What is under way may end until the deadline; then it counts as unanswered.
  Task<void> stop(BootTime deadline);

  // Something was put in, or its turn may have come.
  void look() { due_.note(to_ms(now())); }
  std::size_t under_way() const { return under_way_; }

 private:
  // A message that is ours to send.
  struct Claim {
    OutboxRow row;
    Webhook webhook;
  };
  // What a transaction has changed and others want to know.
  struct News {
    std::vector<Claim> claims;
    std::vector<Chats::Said> said;
    std::vector<OutboxRow> tried;  // with the state they have now
    std::vector<ScheduledMessage> tasks;
    std::optional<std::int64_t> next_ms;
  };

  Task<bool> send_due();
  Task<void> send(Claim claim);
  Task<net::WebAnswer> attempt(Claim claim);
  static News claim_some(store::Connection& connection, int room, WallTime now);
  static void settle(store::Connection& connection, OutboxRow row, const net::WebAnswer& answer, WallTime now,
                     News& news);
  static void end(store::Connection& connection, OutboxRow row, WallTime now, News& news);
  static void back_to_the_chat(store::Connection& connection, OutboxRow row, WallTime now, News& news);
  void tell(const News& news);
  WallTime now() const { return round_down(clock_.now().wall); }

  Clock& clock_;
  store::Store& store_;
  Chats& chats_;
  net::WebClient& client_;
  Millis retention_;
  std::size_t under_way_ = 0;
  bool closed_ = false;
  bool stopping_ = false;
  Pauses pauses_;
  Wake idle_;  // for a stop: one less is under way
  DueRows due_;
  TaskGroup tasks_;
};

}  // namespace belfry::chat
