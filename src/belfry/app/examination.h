// What can be told about data by looking at it: whether it is ours, and what does not add up (G14).
#pragma once

#include <string>
#include <vector>

#include "belfry/store/connection.h"

namespace belfry::app {

// Whether there is anything to examine: a first start that was cut may have left nothing yet.
bool has_our_tables(store::Connection& connection);

// Throws store::NotOurs for data of a newer Belfry, which a start would refuse, too: what it means is not known here. And
// for that of an older one, which a start brings up to date: only then there is what is examined.
void check_versions(store::Connection& connection);

// What is left where commits are missing, as the end of a sentence.
std::string since_when(store::Connection& connection);

// Parts whose tables are not there yet, because a start that was cut left them out, have no problems.
std::vector<std::string> find_problems(store::Connection& connection);

}  // namespace belfry::app
