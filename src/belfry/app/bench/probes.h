// What the machine itself does, measured in the same run: the figures beside which all others are read.
#pragma once

#include <filesystem>

#include "belfry/app/bench/report.h"

namespace belfry::app::bench {

// Overwrites of 4 KiB in a written file, each followed by fdatasync, for three seconds. Syncs a second.
double probe_fdatasync(const std::filesystem::path& folder);

// How late a thread wakes that sleeps on a timerfd.
Samples probe_timer();

}  // namespace belfry::app::bench
