#include "belfry/store/fault_words.h"

#include <fmt/format.h>

#include "belfry/base/time.h"

namespace belfry::store {

LostCommits::LostCommits(const Loss& loss) : Fault(FaultKind::lost, in_plain_words(loss)), loss_(loss) {}

std::string in_plain_words(const Loss& loss) {
  const std::string when = loss.last_ms > 0 ? fmt::format(", the last of {}", to_iso(wall_from_ms(loss.last_ms))) : "";
  if (loss.other_data)
    return fmt::format(
        "belfry.db is not the database that belfry.db-witness belongs to: {} commits that were acknowledged{} "
        "are not in it",
        loss.commits, when);
  return fmt::format("the log ends before what was acknowledged: {} {} missing{}", loss.commits,
                     loss.commits == 1 ? "commit is" : "commits are", when);
}

std::string in_plain_words(const Fault& fault) {
  if (dynamic_cast<const NotOurs*>(&fault) || dynamic_cast<const LostCommits*>(&fault) ||
      dynamic_cast<const NotAsWritten*>(&fault))
    return fault.what();
  switch (fault.kind()) {
    case FaultKind::full: return "the disk is full";
    case FaultKind::in_use: return "another program is using it";
    case FaultKind::io: return "the disk or the file's permissions do not allow it";
    case FaultKind::corrupt: return "the file is damaged, or is no database";
    default: return "its tables are not those of this version of Belfry";
  }
}

void check_version(Connection& connection, const std::string& part, int newest) {
  const int version = version_of(connection, part);
  if (version > newest)
    throw NotOurs(fmt::format("a newer Belfry has written it (\"{}\" has version {}, this program knows {})", part,
                              version, newest));
}

void check_program(Connection& connection) {
  auto rows = connection.query(
      "SELECT count(*), count(*) FILTER (WHERE name = 'schema_version') FROM sqlite_master WHERE type = 'table'");
  rows.next();
  if (rows.integer(0) > 0 && rows.integer(1) == 0)
    throw NotOurs("belfry.db is another program's database; --data names a directory of Belfry's own");
}

}  // namespace belfry::store
