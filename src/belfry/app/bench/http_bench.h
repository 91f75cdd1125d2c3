// The parts of the benchmark that go through a server in another process.
#pragma once

#include "belfry/app/bench/bus_bench.h"

namespace belfry::app::bench {

void bench_http(const Options& options);      // sends over 32 connections, and in batches
void bench_punctual(const Options& options);  // lateness at a separate consumer, with and without senders
void bench_burst(const Options& options);     // a hundred thousand due in the same millisecond
void bench_fair(const Options& options);      // a recipient that never receives, and what the others notice
void bench_year(const Options& options);
void bench_ten_minutes(const Options& options);  // ten million messages: memory, start, counts, stop

}  // namespace belfry::app::bench
