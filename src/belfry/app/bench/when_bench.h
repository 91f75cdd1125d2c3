// How many time expressions are read in a second of CPU time.
#pragma once

#include <string>
#include <vector>

#include "belfry/when/when.h"

namespace belfry::app::bench {

// Prints one JSON object. `language` is en or zh.
void run_when_bench(const std::vector<std::string>& texts, const std::string& language);

}  // namespace belfry::app::bench
