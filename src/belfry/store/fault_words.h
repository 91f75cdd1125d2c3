// What keeps data from being opened, in words for people.
#pragma once

#include <string>

#include "belfry/store/connection.h"

namespace belfry::store {

// The data is whole, but not ours to touch: a newer Belfry wrote it, or another program. what() is for people already.
class NotOurs final : public Fault {
 public:
  explicit NotOurs(std::string what) : Fault(FaultKind::other, std::move(what)) {}
};

// A part of the data that is not what Belfry writes, by its name. what() is for people already.
class NotAsWritten final : public Fault {
 public:
  explicit NotAsWritten(std::string what) : Fault(FaultKind::corrupt, std::move(what)) {}
};

std::string in_plain_words(const Loss& loss);

// What other faults say is made for the log: it quotes statements.
std::string in_plain_words(const Fault& fault);

// Throws NotOurs if a newer program than this one, which knows the part's tables up to `newest`, has written them.
void check_version(Connection& connection, const std::string& part, int newest);
// Throws NotOurs if there are tables, but not the one that every Belfry makes first.
void check_program(Connection& connection);

}  // namespace belfry::store
