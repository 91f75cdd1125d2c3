// The table of scheduled private messages, and every statement on it. All of it runs on the store's thread.
//
// A change names the state that it leaves: what says false found another one, and has changed nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/chat/private_message.h"
#include "belfry/store/connection.h"

namespace belfry::chat {

class PrivateMessageTables {
 public:
  static void migrate(store::Connection& connection);

  // Under `once` the same message is found again.
  static void insert(store::Connection& connection, const ScheduledMessage& message, const std::string& once);
  static std::optional<ScheduledMessage> find(store::Connection& connection, const std::string& id);
  static std::optional<ScheduledMessage> find_once(store::Connection& connection, const std::string& once);
  static std::vector<ScheduledMessage> pending_of(store::Connection& connection, const std::string& session);
  static Result<ScheduledPage> list(store::Connection& connection, const ScheduledQuery& query);

  static std::vector<ScheduledMessage> due(store::Connection& connection, std::int64_t now_ms, int limit);
  static std::optional<std::int64_t> next_due(store::Connection& connection);

  static bool cancel(store::Connection& connection, const std::string& id, const std::string& reason,
                     const std::string& call, std::int64_t now_ms);
  static bool change(store::Connection& connection, const std::string& id, const std::string& text,
                     std::int64_t send_at_ms, std::int64_t now_ms);
  static bool mark_sent(store::Connection& connection, const std::string& id, const std::string& message, int attempts,
                        std::int64_t now_ms);
  static bool mark_failed(store::Connection& connection, const std::string& id, const std::string& reason,
                          const std::string& error, std::int64_t now_ms);
  // Whether the outbox has it: then its time does not come again.
  static bool set_in_outbox(store::Connection& connection, const std::string& id, bool in_outbox);
  static bool note_attempt(store::Connection& connection, const std::string& id, int attempts, const std::string& error,
                           std::int64_t now_ms);
  // Drops a few that ended before this; called with every new one, so that each makes room.
  static void drop_old(store::Connection& connection, std::int64_t before_ms);
};

}  // namespace belfry::chat
