// How many messages agents exchange through the loop that runs them, and how that grows with their number.
#pragma once

#include <filesystem>

namespace belfry::app::bench {

// Prints one JSON object a line; writes into a folder of its own in `folder`.
void run_agents_bench(const std::filesystem::path& folder);

}  // namespace belfry::app::bench
