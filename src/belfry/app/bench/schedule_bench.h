// Scheduled private messages: what creating, listing and saying them costs with few and with many that wait.
#pragma once

#include <filesystem>

namespace belfry::app::bench {

// Prints one JSON object a line; writes into a folder of its own in `folder`.
void run_schedule_bench(const std::filesystem::path& folder);

}  // namespace belfry::app::bench
