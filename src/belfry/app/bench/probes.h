// What the machine itself does, measured in the same run: the figures beside which all others are read.
#pragma once

#include <filesystem>

#include "belfry/app/bench/report.h"

namespace belfry::app::bench {

// Overwrites of 4 KiB in a written file, each followed by fdatasync, for three seconds. Syncs a second.
double probe_fdatasync(const std::filesystem::path& folder);

// Rows of a message (200 bytes of text, and a narrow one in a calendar of 28 places) put into SQLite by nothing but two
// statements, in committed and synced groups of 1,000, for two seconds. Messages a second: what one thread and this disk do
// when they do nothing else. Where a disk syncs fast, this is the limit and not the disk.
double probe_store(const std::filesystem::path& folder);

// How late a thread wakes that sleeps on a timerfd.
Samples probe_timer();

// Time in which this machine's processors had work and their host ran something else, since it was started, all
// processors together. Zero where there is no host. A figure taken while much was stolen says little about Belfry.
double stolen_ms();

}  // namespace belfry::app::bench
