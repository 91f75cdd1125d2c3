// Short facts about people, and how far each conversation was looked at for them (A6). Runs on the store's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "belfry/agent/planner/context.h"
#include "belfry/store/connection.h"

namespace belfry::agent {

// Of one person; when there are more, the oldest go.
inline constexpr int kFactsMax = 100;
inline constexpr std::size_t kFactBytesMax = 400;

class MemoryTables {
 public:
  static void migrate(store::Connection& connection);
  // The newest first.
  static std::vector<Fact> list(store::Connection& connection, const std::string& person, int limit);
  // False if it is known.
  static bool add(store::Connection& connection, const Fact& fact);
  static bool remove(store::Connection& connection, const std::string& person, std::int64_t number);
  static std::int64_t remove_all(store::Connection& connection, const std::string& person);

  static std::int64_t looked_to(store::Connection& connection, const std::string& session);
  static void set_looked_to(store::Connection& connection, const std::string& session, std::int64_t seq);
};

}  // namespace belfry::agent
