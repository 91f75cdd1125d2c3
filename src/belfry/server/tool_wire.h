// JSON of tools and their calls to types and back: the part of wire for their routes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/tool/executor.h"

namespace belfry::server::wire {

// The tool's name is not part of the body.
Result<tool::CallRequest> read_call(std::string_view body);
// The session whose tools are asked for; empty: all.
Result<std::string> read_tools_query(std::string_view query);
Result<tool::CallTables::Query> read_calls_query(std::string_view query);

std::string tools(const std::vector<const tool::Definition*>& definitions);
std::string called(const tool::CallOutcome& outcome);
std::string calls(const tool::CallTables::Page& page);

}  // namespace belfry::server::wire
