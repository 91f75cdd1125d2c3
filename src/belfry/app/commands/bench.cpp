#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
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

void check_space(const std::filesystem::path& base, std::uintmax_t needed) {
  const std::uintmax_t available = std::filesystem::space(base).available;
  if (available < needed)
    refuse(Errc::disk_full, fmt::format("{} has {} MB free and the benchmark needs {}; --data names another folder",
                                        base.string(), available >> 20, needed >> 20));
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) refuse_usage(fmt::format("{} cannot be read", path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  if (lines.empty()) refuse_usage(fmt::format("{} has no lines", path));
  return lines;
}

std::filesystem::path base_folder(const std::string& data) {
  const std::filesystem::path base = data.empty() ? std::filesystem::current_path() : std::filesystem::path(data);
  if (!std::filesystem::is_directory(base)) refuse_usage(fmt::format("--data: {} is not a folder", base.string()));
  return base;
}

// A folder of its own, in the one that was named or the current one; gone afterwards.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& base) : path_(base / fmt::format("belfry-bench-{}", getpid())) {
    std::error_code ec;
    std::filesystem::create_directory(path_, ec);
    if (ec)
      refuse(Errc::storage_failed,
             fmt::format("cannot make a folder in {}: {}; --data names another", base.string(), ec.message()));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

using Work = std::function<bool(const std::filesystem::path& folder)>;

int outcome_of(const Work& work, const std::filesystem::path& folder) {
  try {
    const bool done = work(folder);
    if (!done) std::fprintf(stderr, "error: a part of the benchmark failed\n");
    return done && all_printed() ? kExitDone : kExitRefused;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return kExitRefused;
  }
}

// Until the child has ended, or a signal ends it with everything that it has started. The exit code.
int wait_for(pid_t child, const sigset_t& signals) {
  while (true) {
    int number = 0;
    int status = 0;
    sigwait(&signals, &number);
    if (number == SIGCHLD) {
      if (::waitpid(child, &status, WNOHANG) != child) continue;
      return WIFEXITED(status) ? WEXITSTATUS(status) : kExitRefused;
    }
    ::kill(-child, SIGKILL);
    ::waitpid(child, &status, 0);
    return 128 + number;  // as a shell reports it
  }
}

// In a process of its own, so that nothing of it is left however it ends: not its folder, and not the servers it starts.
void measure(const std::filesystem::path& base, const Work& work) {
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  std::signal(SIGCHLD, SIG_DFL);  // whoever started us may ignore it, and then nobody would hear of an end
  int code = kExitDone;
  {
    const Folder folder(base);
    const pid_t child = ::fork();
    if (child < 0) refuse(Errc::unavailable, "no process could be started");
    if (child == 0) {
      ::setpgid(0, 0);
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      ::_exit(outcome_of(work, folder.path()));
    }
    ::setpgid(child, child);  // both do it: nobody knows who is first
    code = wait_for(child, signals);
  }
  if (code != kExitDone) throw CLI::RuntimeError(code);
}

// What is measured is printed as JSON in any case.
void add_json(CLI::App* command) {
  command->add_flag_callback("--json", [] {}, "Print JSON, as without it");
}

// One that takes nothing but a folder.
void add_plain_bench(CLI::App& command, const char* name, const char* what, void (*run)(const std::filesystem::path&)) {
  CLI::App* const one = add_command(command, name, what);
  auto data = std::make_shared<std::string>();
  one->add_option("--data", *data, "Where to write; a folder of its own is made in it (default: the current one)")
      ->type_name("DIR");
  add_json(one);
  on_run(one, [data, run] {
    measure(base_folder(*data), [run](const std::filesystem::path& folder) {
      run(folder);
      return true;
    });
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
  add_json(when);
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
  add_json(bus);
  on_run(bus, [flags] {
    const std::filesystem::path base = base_folder(flags->data);
    check_space(base, flags->options.full ? kBytesNeededFull : kBytesNeeded);
    measure(base, [flags](const std::filesystem::path& folder) {
      flags->options.folder = folder;
      return bench::run_bus_bench(flags->options);
    });
  });
}

}  // namespace belfry::app
