// Checks data that no server uses: the file's own integrity, and that nothing vanished (G14).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/commands/commands.h"
#include "belfry/app/config.h"
#include "belfry/app/examination.h"
#include "belfry/app/runtime.h"
#include "belfry/base/json.h"
#include "belfry/bus/message_tables.h"
#include "belfry/store/fault_words.h"
#include "belfry/store/folder_lock.h"
#include "belfry/store/sqlite/sqlite_connection.h"

namespace belfry::app {
namespace {

struct Flags {
  std::string data;
  std::string config_file;
  bool json = false;
};

struct Findings {
  std::vector<bus::RecipientRow> recipients;
  std::optional<bool> clean_stop;  // unknown if what tells it is damaged
  std::vector<std::string> problems;
  store::PageReport pages;
};

// A database as Belfry makes them, told by its first bytes: SQLite is not even asked about another program's file, for
// opening that could roll back what its owner has left unfinished.
bool looks_like_ours(const std::string& path) {
  static constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  static constexpr std::size_t kWriteVersion = 18;
  static constexpr char kLogged = 2;  // a write-ahead log
  std::ifstream file(path, std::ios::binary);
  std::string head(kWriteVersion + 2, '\0');
  if (!file.read(head.data(), static_cast<std::streamsize>(head.size()))) return false;
  return head.starts_with(kMagic) && head[kWriteVersion] == kLogged;
}

Findings examine(store::Connection& connection) {
  Findings findings;
  findings.problems = find_problems(connection);
  findings.pages = connection.examine_pages();
  try {
    bus::BusState state = bus::MessageTables::load(connection);
    findings.clean_stop = state.clean_stop;
    findings.recipients = std::move(state.recipients);
  } catch (const store::Fault& fault) {
    if (fault.kind() != store::FaultKind::corrupt || findings.problems.empty()) throw;  // else it is among them
  }
  std::sort(findings.recipients.begin(), findings.recipients.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return findings;
}

[[noreturn]] void refuse_no_data(const std::string& data) {
  refuse(Errc::not_found, fmt::format("there is no Belfry data in {}", data));
}

[[noreturn]] void refuse_in_use(const std::string& data) {
  refuse(Errc::data_in_use, fmt::format("a server is using the data in {}; stop it first", data));
}

Findings examine_directory(const std::string& data) {
  const std::string path = database_path(data);
  if (::access(path.c_str(), R_OK) != 0 && errno != ENOENT && errno != ENOTDIR)
    refuse(Errc::storage_failed,
           fmt::format("cannot read the data in {}: {}", data, std::generic_category().message(errno)));
  if (!looks_like_ours(path)) refuse_no_data(data);
  // Where a file system knows no locks, no server can have started either.
  const auto lock = store::FolderLock::take(data);
  if (!lock && lock.error().code == Errc::data_in_use) refuse_in_use(data);
  try {
    const auto connection = store::sqlite::open({.path = path, .read_only_check = true});
    if (!has_our_tables(*connection)) refuse_no_data(data);
    check_versions(*connection);
    return examine(*connection);
  } catch (const store::Fault& fault) {
    if (fault.kind() == store::FaultKind::in_use) refuse_in_use(data);
    refuse(Errc::storage_failed, fmt::format("cannot read the data in {}: {}", data, store::in_plain_words(fault)));
  }
}

void print_for_programs(const Findings& findings, const std::string& data) {
  json::Writer writer;
  writer.object().field("data", data).field("clean", findings.problems.empty());
  if (findings.clean_stop) writer.field("lastStopWasClean", *findings.clean_stop);
  writer.key("pages").object().field("all", findings.pages.pages).field("checked", findings.pages.covered).end();
  writer.key("problems").array();
  for (const std::string& problem : findings.problems) writer.value(problem);
  writer.end().key("recipients").array();
  for (const bus::RecipientRow& row : findings.recipients) {
    writer.object().field("id", row.name).field("removed", row.removed_ms.has_value());
    writer.field("accepted", row.sums.accepted).field("live", row.sums.live()).field("acked", row.sums.acked);
    writer.field("cancelled", row.sums.cancelled).field("expired", row.sums.expired).field("dead", row.sums.dead).end();
  }
  std::printf("%s\n", writer.end().end().str().c_str());
}

void print_for_people(const Findings& findings, const std::string& data) {
  std::printf("the data in %s\n", data.c_str());
  std::printf("%-32s %10s %10s %10s %10s %10s %10s\n", "recipient", "accepted", "live", "acked", "cancelled", "expired",
              "dead");
  for (const bus::RecipientRow& row : findings.recipients)
    std::printf("%-32s %10lld %10lld %10lld %10lld %10lld %10lld\n",
                (row.name + (row.removed_ms ? " (removed)" : "")).c_str(), static_cast<long long>(row.sums.accepted),
                static_cast<long long>(row.sums.live()), static_cast<long long>(row.sums.acked),
                static_cast<long long>(row.sums.cancelled), static_cast<long long>(row.sums.expired),
                static_cast<long long>(row.sums.dead));
  if (findings.clean_stop) std::printf("the last stop was %s\n", *findings.clean_stop ? "clean" : "not clean");
  if (findings.pages.covered < findings.pages.pages)
    std::printf(
        "%lld of %lld pages have no digest yet and could not be checked: they get one when they are written next\n",
        static_cast<long long>(findings.pages.pages - findings.pages.covered),
        static_cast<long long>(findings.pages.pages));
  for (const std::string& problem : findings.problems) std::printf("problem: %s\n", problem.c_str());
  if (findings.problems.empty()) std::printf("clean\n");
}

std::string chosen_directory(const Flags& flags) {
  if (!flags.data.empty()) return flags.data;
  const auto config = read_settings(flags.config_file);
  if (!config) refuse_usage(config.error().detail, config.error().code);
  const auto data = data_directory(*config);
  if (!data) refuse(data.error().code, data.error().detail);
  return *data;
}

void doctor(const Flags& flags) {
  const std::string data = chosen_directory(flags);
  const Findings findings = examine_directory(data);
  if (flags.json) {
    print_for_programs(findings, data);
  } else {
    print_for_people(findings, data);
  }
  if (!findings.problems.empty()) throw CLI::RuntimeError(kExitRefused);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* const command = add_command(app, "doctor", "Check data that no server is using");
  auto flags = std::make_shared<Flags>();
  command->add_option("--data", flags->data, "Directory of the data [${XDG_DATA_HOME:-~/.local/share}/belfry]")
      ->type_name("DIR");
  command->add_option("--config", flags->config_file, "Configuration file [belfry.toml here, if there is one]")
      ->type_name("FILE");
  command->add_flag("--json", flags->json, "Print the findings as JSON");
  command->footer(
      "Ends with 0 and \"clean\" if the file is whole and every message that was ever accepted is accounted for.\n"
      "Changes nothing. Without --data it looks where `belfry serve` would keep its data.");
  on_run(command, [flags] { doctor(*flags); });
}

}  // namespace belfry::app
