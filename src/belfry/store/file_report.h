// What can be told of a database's files, apart from what is in its tables (G22).
#pragma once

#include <cstdint>
#include <vector>

namespace belfry::store {

// Acknowledged commits that are not there.
struct Loss {
  std::int64_t commits = 0;    // how many, at least
  std::int64_t last_ms = 0;    // when the last of them was made; 0: unknown
  std::int64_t given_out = 0;  // no id above this one was given to anybody
  bool other_data = false;     // the witness belongs to other data, or these are not the files it saw
};

// What was found by reading every page of a database.
struct PageReport {
  std::int64_t pages = 0;
  std::int64_t covered = 0;  // by a digest, or by the log
  std::int64_t harmed = 0;
  std::vector<std::int64_t> examples;
};

}  // namespace belfry::store
