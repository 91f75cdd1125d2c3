// SQLite behind the store's interface. No SQLite type leaves this folder.
#pragma once

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
  // For looking at data: makes none and changes not a byte of it. Locks like any other where a log stands beside the file.
  bool read_only_check = false;
};

// Opens and locks the database; throws Fault (in_use when another process has it).
std::unique_ptr<Connection> open(const Options& options);

}  // namespace belfry::store::sqlite
