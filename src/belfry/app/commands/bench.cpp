#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/bench/agents_bench.h"
#include "belfry/app/bench/bus_bench.h"
#include "belfry/app/bench/panels_bench.h"
#include "belfry/app/bench/schedule_bench.h"
#include "belfry/app/bench/when_bench.h"
#include "belfry/app/commands/commands.h"

namespace belfry::app {
namespace {

// Ten million messages of 200 bytes lie in about 4 GB; the rest is room for the log and the probes.
constexpr std::uintmax_t kBytesNeeded = 1u << 30;
constexpr std::uintmax_t kBytesNeededFull = std::uintmax_t{10} << 30;

void check_space(const bench::Options& options) {
  const std::uintmax_t needed = options.full ? kBytesNeededFull : kBytesNeeded;
  const std::uintmax_t available = std::filesystem::space(options.folder).available;
  if (available < needed)
    refuse(Errc::disk_full, fmt::format("{} has {} MB free and the benchmark needs {}; --data names another folder",
                                        options.folder.string(), available >> 20, needed >> 20));
}

}  // namespace

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse_usage(fmt::format("{} cannot be read", path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  if (lines.empty()) refuse_usage(fmt::format("{} has no lines", path));
  return lines;
}

// A folder of its own, in the one that was named or the current one.
std::filesystem::path own_folder(const std::string& data) {
  const std::filesystem::path base = data.empty() ? std::filesystem::current_path() : std::filesystem::path(data);
  if (!std::filesystem::is_directory(base)) refuse_usage(fmt::format("--data: {} is not a folder", base.string()));
  const std::filesystem::path folder = base / fmt::format("belfry-bench-{}", getpid());
  std::filesystem::create_directory(folder);
  return folder;
}

// One that takes nothing but a folder.
void add_plain_bench(CLI::App& command, const char* name, const char* what, void (*run)(const std::filesystem::path&)) {
  CLI::App* const one = add_command(command, name, what);
  auto data = std::make_shared<std::string>();
  one->add_option("--data", *data, "Where to write; a folder of its own is made in it (default: the current one)")
      ->type_name("DIR");
  on_run(one, [data, run] {
    const std::filesystem::path folder = own_folder(*data);
    run(folder);
    std::filesystem::remove_all(folder);
  });
}

void add_when_bench(CLI::App& command) {
  struct Flags {
    std::string file;
    std::string language = "en";
  };
  CLI::App* const when = add_command(command, "when", "The reader of time expressions, in expressions a CPU-second");
  auto flags = std::make_shared<Flags>();
  when->add_option("file", flags->file, "Texts, one a line")->required()->type_name("FILE");
  when->add_option("--lang", flags->language, "Their language")
      ->capture_default_str()
      ->check(CLI::IsMember({"en", "zh"}));
  on_run(when, [flags] { bench::run_when_bench(lines_of(flags->file), flags->language); });
}

}  // namespace

void add_bench(CLI::App& app) {
  struct Flags {
    bench::Options options;
    std::string data;
  };
  CLI::App* const command = add_command(app, "bench", "Measure this machine");
  command->require_subcommand(1);
  add_when_bench(*command);
  add_plain_bench(*command, "agents", "Agents that exchange messages: how many a second, and how it grows with them",
                  bench::run_agents_bench);
  add_plain_bench(*command, "schedule",
                  "Scheduled private messages: creating, listing and saying them, with few and a million waiting",
                  bench::run_schedule_bench);
  add_plain_bench(
      *command, "panels",
      "Panels that look at one chat: how soon a thousand of them have what is said, beside the raw loopback",
      bench::run_panels_bench);
  CLI::App* const bus =
      add_command(*command, "bus", "The bus: one JSON object a line, beside probes of the raw disk and timer");
  auto flags = std::make_shared<Flags>();
  bus->add_flag("--full", flags->options.full, "With ten million messages: about 10 GB and an hour");
  bus->add_option("--data", flags->data, "Where to write; a folder of its own is made in it (default: the current one)")
      ->type_name("DIR");
  bus->add_option("--part", flags->options.parts, "Only these parts")->check(CLI::IsMember(bench::part_names()));
  on_run(bus, [flags] {
    flags->options.folder = own_folder(flags->data);
    check_space(flags->options);
    const bool ok = bench::run_bus_bench(flags->options);
    std::filesystem::remove_all(flags->options.folder);
    if (!ok) refuse(Errc::unavailable, "a part of the benchmark failed");
  });
}

}  // namespace belfry::app
