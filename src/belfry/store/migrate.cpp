#include "belfry/store/connection.h"
#include "belfry/store/fault_words.h"

namespace belfry::store {

int version_of(Connection& connection, const std::string& part) {
  auto rows = connection.query("SELECT version FROM schema_version WHERE part = ?1", part);
  return rows.next() ? static_cast<int>(rows.integer(0)) : 0;
}

void migrate(Connection& connection, const std::string& part, const Migration* first, const Migration* last) {
  connection.execute(
      "CREATE TABLE IF NOT EXISTS schema_version(part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID");
  check_version(connection, part, last == first ? 0 : (last - 1)->version);
  int version = version_of(connection, part);
  // A step may rewrite gigabytes, and rolls no savepoint back.
  connection.allow_spill(true);
  connection.execute("BEGIN IMMEDIATE");
  for (const Migration* step = first; step != last; ++step) {
    if (step->version <= version) continue;
    connection.execute(step->sql);
    version = step->version;
  }
  connection.run(
      "INSERT INTO schema_version(part, version) VALUES(?1, ?2) ON CONFLICT(part) DO UPDATE SET version = ?2", part,
      version);
  connection.execute("COMMIT");
  connection.allow_spill(false);
}

}  // namespace belfry::store
