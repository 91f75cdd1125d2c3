// What stands behind the question mark of a request, read with refusals that name the parameter and what would be right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/limits.h"
#include "belfry/base/result.h"

namespace belfry::server::wire {

Result<std::int64_t> read_number(std::string_view name, const std::string& text);
// How many entries a page may have.
Result<int> read_limit(const std::string& text, int most = kListPageMax);
std::unexpected<Error> unknown_parameter(const std::string& name, std::string_view known);

}  // namespace belfry::server::wire
