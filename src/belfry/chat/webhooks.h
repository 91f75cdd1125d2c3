// Who is reached by a webhook, and what comes back from there (P13).
//
// Lives on the kernel's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "belfry/chat/chats.h"
#include "belfry/chat/outbox.h"
#include "belfry/chat/webhook.h"

namespace belfry::chat {

// What a person says by their own system.
struct Incoming {
  std::string person;
  std::string id;  // a repeat under it says nothing twice
  std::string text;
  std::string agent;    // whom it is for; empty: the only one they have a private session with
  std::string session;  // or the session itself
  std::string in_reply_to;
  std::optional<int> quick_reply_index;
};

class Webhooks {
 public:
  Webhooks(Clock& clock, store::Store& store, Chats& chats, Outbox& outbox, Millis retention = kRetentionDefault)
      : clock_(clock), store_(store), chats_(chats), outbox_(outbox), retention_(retention) {}

  // Without a secret, the one that is there stays.
  Task<Result<Webhook>> set(Webhook webhook);
  Task<Result<Webhook>> get(std::string person);
  // Back to the built-in chat; what has not left yet is said there.
  Task<Result<>> remove(std::string person);
  Task<Result<OutboxPage>> outbox(OutboxQuery query);

  // Whether `body` was signed with the person's secret. Who has none is answered like one who signed wrongly. `body` is not
  // copied, as anybody may send one: it lives until this returns.
  Task<Result<>> verify(std::string person, std::string signature, std::string_view body);
  // Says it in the session that it belongs to, which is opened if it is the first thing said to this agent.
  Task<Result<Posted>> receive(Incoming incoming);

 private:
  struct Place {
    std::string session;  // empty: it has to be opened
    bool is_new = false;  // chosen now, not by an earlier message of the same id
  };
  Task<Result<Place>> session_for(Incoming incoming);
  Task<void> forget(Incoming incoming);
  Result<> check_person(const std::string& person) const;
  WallTime now() const { return round_down(clock_.now().wall); }

  Clock& clock_;
  store::Store& store_;
  Chats& chats_;
  Outbox& outbox_;
  Millis retention_;
};

}  // namespace belfry::chat
