// Checks data that no server uses: the file's own integrity, and that nothing vanished (G14).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/commands/commands.h"
#include "belfry/app/config.h"
#include "belfry/app/runtime.h"
#include "belfry/base/json.h"
#include "belfry/bus/message_tables.h"
#include "belfry/store/sqlite/sqlite_connection.h"

namespace belfry::app {
namespace {

struct Flags {
  std::string data;
  bool json = false;
};

struct Findings {
  std::vector<bus::RecipientRow> recipients;
  bool clean_stop = true;
  std::vector<std::string> problems;
};

std::int64_t live(const bus::RecipientRow& row) {
  return row.accepted - row.acked - row.cancelled - row.expired - row.dead;
}

Findings examine(const std::string& data) {
  auto connection = store::sqlite::open({.path = database_path(data), .read_only_check = true});
  bus::MessageTables::migrate(*connection);
  Findings findings;
  if (const std::string damage = connection->integrity_problem(); !damage.empty())
    findings.problems.push_back("the file is damaged: " + damage);
  for (std::string& problem : bus::MessageTables::conservation_problems(*connection))
    findings.problems.push_back(std::move(problem));
  bus::BusState state = bus::MessageTables::load(*connection);
  findings.clean_stop = state.clean_stop;
  findings.recipients = std::move(state.recipients);
  std::sort(findings.recipients.begin(), findings.recipients.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return findings;
}

void print_for_programs(const Findings& findings) {
  json::Writer writer;
  writer.object().field("clean", findings.problems.empty()).field("lastStopWasClean", findings.clean_stop);
  writer.key("problems").array();
  for (const std::string& problem : findings.problems) writer.value(problem);
  writer.end().key("recipients").array();
  for (const bus::RecipientRow& row : findings.recipients) {
    writer.object().field("id", row.name).field("removed", row.removed_ms.has_value());
    writer.field("accepted", row.accepted).field("live", live(row)).field("acked", row.acked);
    writer.field("cancelled", row.cancelled).field("expired", row.expired).field("dead", row.dead).end();
  }
  std::printf("%s\n", writer.end().end().str().c_str());
}

void print_for_people(const Findings& findings) {
  std::printf("%-32s %10s %10s %10s %10s %10s %10s\n", "recipient", "accepted", "live", "acked", "cancelled", "expired",
              "dead");
  for (const bus::RecipientRow& row : findings.recipients)
    std::printf(
        "%-32s %10lld %10lld %10lld %10lld %10lld %10lld\n", (row.name + (row.removed_ms ? " (removed)" : "")).c_str(),
        static_cast<long long>(row.accepted), static_cast<long long>(live(row)), static_cast<long long>(row.acked),
        static_cast<long long>(row.cancelled), static_cast<long long>(row.expired), static_cast<long long>(row.dead));
  std::printf("the last stop was %s\n", findings.clean_stop ? "clean" : "not clean");
  for (const std::string& problem : findings.problems) std::printf("problem: %s\n", problem.c_str());
  if (findings.problems.empty()) std::printf("clean\n");
}

void doctor(const Flags& flags) {
  std::string data = flags.data;
  if (data.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread is running
    const auto found = default_data_directory([](const char* name) { return std::getenv(name); });
    if (!found) refuse(found.error().detail);
    data = *found;
  }
  std::error_code ec;
  if (!std::filesystem::exists(database_path(data), ec)) refuse(fmt::format("there is no Belfry data in {}", data));
  Findings findings;
  try {
    findings = examine(data);
  } catch (const store::Fault& fault) {
    if (fault.kind() == store::FaultKind::in_use)
      refuse(fmt::format("a server is using the data in {}; stop it first (data_in_use)", data));
    refuse(fmt::format("cannot read the data in {}: {}", data, fault.what()));
  }
  if (flags.json) {
    print_for_programs(findings);
  } else {
    print_for_people(findings);
  }
  if (!findings.problems.empty()) throw CLI::RuntimeError(kExitRefused);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* const command = add_command(app, "doctor", "Check data that no server is using");
  auto flags = std::make_shared<Flags>();
  command->add_option("--data", flags->data, "Directory of the data [${XDG_DATA_HOME:-~/.local/share}/belfry]")
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "Print the findings as JSON");
  command->footer(
      "Ends with 0 and \"clean\" if the file is whole and every message that was ever accepted is accounted for.");
  command->callback([flags] { doctor(*flags); });
}

}  // namespace belfry::app
