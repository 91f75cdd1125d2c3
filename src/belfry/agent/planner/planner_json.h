// What thinking agents did and know, as HTTP shows it. The server does not know agents, so this is not in its wire.
#pragma once

#include <string>
#include <vector>

#include "belfry/agent/planner/context.h"
#include "belfry/agent/planner/turn_tables.h"

namespace belfry::agent {

std::string turns_json(const std::vector<Turn>& turns);
std::string facts_json(const std::vector<Fact>& facts);

}  // namespace belfry::agent
