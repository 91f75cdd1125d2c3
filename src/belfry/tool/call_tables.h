// The record of every tool call (A5), and every statement on it. All of it runs on the store's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/time.h"
#include "belfry/store/connection.h"
#include "belfry/tool/tool.h"

namespace belfry::tool {

enum class CallState { running, done, failed, interrupted };
std::string_view word(CallState state);

struct CallRecord {
  std::int64_t number = 0;
  std::string tool;
  ToolContext context;
  std::string arguments;
  CallState state = CallState::running;
  std::string result;  // JSON: what the tool gave back, or {"error", "message", …}
  std::string error;   // the word, if it failed
  WallTime started_at;
  std::optional<WallTime> ended_at;
};

class CallTables {
 public:
  static void migrate(store::Connection& connection);
  // What ran when the last life ended did not end well. Before the first call.
  static int mark_interrupted(store::Connection& connection);

  static std::int64_t begin(store::Connection& connection, const CallRecord& record);
  // A call that did not come to its end is taken up again; it keeps the time at which it was first made.
  static void begin_again(store::Connection& connection, std::int64_t number);
  // Drops the one of this name and the few oldest ones if they began before this, so that each new call makes room.
  static void drop_old(store::Connection& connection, const ToolContext& context, std::int64_t before_ms);
  static void end(store::Connection& connection, const CallRecord& record);
  static std::optional<CallRecord> find(store::Connection& connection, const ToolContext& context);

  struct Query {
    std::string session;
    std::string agent;
    std::int64_t before = INT64_MAX;  // newest first, behind the page before
    int limit = 100;
  };
  struct Page {
    std::vector<CallRecord> records;
    std::optional<std::int64_t> next;  // `before` of the next page
  };
  static Page list(store::Connection& connection, const Query& query);
};

}  // namespace belfry::tool
