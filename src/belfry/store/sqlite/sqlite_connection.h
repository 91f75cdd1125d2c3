// SQLite behind the store's interface. No SQLite type leaves this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "belfry/store/connection.h"

namespace belfry::store::sqlite {

enum class Synchronous {
  full,
  normal
};  // `normal` loses messages at a power cut; only the crash tests' control uses it

struct Options {
  std::string path;
  std::string vfs;  // empty: the operating system's files
  Synchronous synchronous = Synchronous::full;
  int cache_kib = 24 * 1024;
  // Open data of which acknowledged commits are missing; refused where none are.
  bool accept_loss = false;
  std::function<std::int64_t()> now_ms;  // the wall clock, for the note of each commit; none: no time is noted
  // For looking at data: makes none and changes not a byte of it. Locks like any other where a log stands beside the file.
  bool read_only_check = false;
};

// Opens and locks the database; throws Fault (in_use when another process has it, LostCommits when the log ends before
// what was acknowledged).
std::unique_ptr<Connection> open(const Options& options);

}  // namespace belfry::store::sqlite
