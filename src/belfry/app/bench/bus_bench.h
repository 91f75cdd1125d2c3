// The benchmarks of `belfry bench bus`. Each part runs in a process of its own, so that none inherits another's memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace belfry::app::bench {

struct Options {
  std::filesystem::path folder;    // where data is written; emptied afterwards
  bool full = false;               // the parts with ten million messages
  std::vector<std::string> parts;  // none: all
};

std::vector<std::string> part_names();
// False if a part failed.
bool run_bus_bench(const Options& options);

}  // namespace belfry::app::bench
