#include "belfry/store/fault_words.h"

#include <fmt/format.h>

namespace belfry::store {

std::string in_plain_words(const Fault& fault) {
  if (dynamic_cast<const NotOurs*>(&fault)) return fault.what();
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
