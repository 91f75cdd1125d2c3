// The tables of webhooks, and every statement on them. All of it runs on the store's thread.
//
//   webhook   one row a person who has one
//   outbox    what goes to them. Of each person's rows the oldest that has not ended is the one whose turn it is, and the
//             only one with a time (`next_ms`): a backlog costs nobody else anything
//   inbox     which session a person's own message went into: a repeat finds the same one
//
// A change names the state that it leaves: what says false found another one, and has changed nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/chat/webhook.h"
#include "belfry/store/connection.h"

namespace belfry::chat {

class WebhookTables {
 public:
  static void migrate(store::Connection& connection);

  // --- webhooks ---
  static void set(store::Connection& connection, const Webhook& webhook);
  static std::optional<Webhook> find(store::Connection& connection, const std::string& person);
  static bool has(store::Connection& connection, const std::string& person);
  static bool remove(store::Connection& connection, const std::string& person);

  // --- outbox ---
  // A line that was just said, if the person whom it is for has a webhook. False if not, or if it is there already.
  static bool add_line(store::Connection& connection, const std::string& session, const Line& line);
  static bool add(store::Connection& connection, const OutboxRow& row);
  static std::optional<OutboxRow> find_row(store::Connection& connection, const std::string& id);
  static Result<OutboxPage> list(store::Connection& connection, const OutboxQuery& query);
  static std::vector<OutboxRow> due(store::Connection& connection, std::int64_t now_ms, int limit);
  static std::optional<std::int64_t> next_due(store::Connection& connection);
  // Those that an earlier life was sending when it ended.
  static std::vector<OutboxRow> sending(store::Connection& connection);

  // waiting -> sending: before anything leaves.
  static bool claim(store::Connection& connection, OutboxRow& row, std::int64_t now_ms);
  // sending -> waiting
  static bool wait(store::Connection& connection, const OutboxRow& row, std::int64_t next_ms);
  // waiting, sending -> sent, failed; the next of this person has its turn.
  static bool end(store::Connection& connection, const OutboxRow& row, std::int64_t now_ms);
  // Takes one back that is waiting and cannot have arrived; with `untried`, only before its first attempt.
  static bool withdraw(store::Connection& connection, const OutboxRow& row, bool untried, std::int64_t now_ms);
  // The one whose turn it is, if it waits for its time, need not wait any longer.
  static void hurry(store::Connection& connection, const std::string& person, std::int64_t now_ms);
  // This message, if it is the next one of its person's.
  static void hurry_next(store::Connection& connection, const OutboxRow& row, std::int64_t now_ms);
  // Drops a few that ended before this; called with every new one, so that each makes room.
  static void drop_old(store::Connection& connection, std::int64_t before_ms);

  // --- inbox ---
  static std::optional<std::string> inbox_session(store::Connection& connection, const std::string& person,
                                                  const std::string& id);
  static void note_inbox(store::Connection& connection, const std::string& person, const std::string& id,
                         const std::string& session, std::int64_t now_ms, std::int64_t forget_before_ms);
  static void forget_inbox(store::Connection& connection, const std::string& person, const std::string& id);

  // What must hold between the tables, for `doctor`: one line a problem.
  static std::vector<std::string> problems(store::Connection& connection);
};

}  // namespace belfry::chat
