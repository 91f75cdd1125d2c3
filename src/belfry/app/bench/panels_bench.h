// Panels that look at one chat: how soon all of them have what is said, beside what the loopback itself takes.
#pragma once

#include <filesystem>

namespace belfry::app::bench {

// Prints one JSON object a line; writes into a folder of its own in `folder`.
void run_panels_bench(const std::filesystem::path& folder);

}  // namespace belfry::app::bench
