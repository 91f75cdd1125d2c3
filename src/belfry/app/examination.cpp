#include "belfry/app/examination.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/time.h"
#include "belfry/bus/message_tables.h"
#include "belfry/chat/chat_tables.h"
#include "belfry/chat/webhook_tables.h"
#include "belfry/run/run_tables.h"
#include "belfry/store/fault_words.h"

namespace belfry::app {
namespace {

// The bus counts in sequences; people and the other commands know messages by their ids.
std::string with_message_id(std::string problem) {
  static constexpr std::string_view kSequence = "for example sequence ";
  const std::size_t at = problem.find(kSequence);
  if (at == std::string::npos) return problem;
  const char* const end = problem.data() + problem.size();
  std::int64_t sequence = 0;
  const auto read = std::from_chars(problem.data() + at + kSequence.size(), end, sequence);
  if (read.ec != std::errc{} || read.ptr != end) return problem;
  return fmt::format("{}for example message {}", problem.substr(0, at), bus::to_text({sequence}));
}

}  // namespace

void check_versions(store::Connection& connection) {
  // The newest that this program makes of each part; a test compares them with what a start makes.
  static constexpr std::pair<const char*, int> kNewest[] = {
      {"agent", 2}, {"bus", 9},       {"chat", 3},  {"memory", 1}, {"planner", 1}, {"roster", 1},
      {"run", 3},   {"scheduled", 2}, {"store", 1}, {"tool", 1},   {"webhook", 1}};
  for (const auto& [part, newest] : kNewest) store::check_version(connection, part, newest);
  for (const auto& [part, newest] : kNewest) {
    const int version = store::version_of(connection, part);
    if (version > 0 && version < newest)
      throw store::NotOurs(fmt::format(
          "an older Belfry has written it (\"{}\" has version {}, this program makes {}); that one can check it, or "
          "this one once it has started with it",
          part, version, newest));
  }
}

bool has_our_tables(store::Connection& connection) {
  auto rows = connection.query(
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('schema_version', 'bus', 'recipient', "
      "'message', 'due', 'backlog', 'ended', 'dead')");
  return rows.next() && rows.integer(0) == 8;
}

std::string since_when(store::Connection& connection) {
  try {
    auto rows = connection.query("SELECT created_ms FROM message ORDER BY sequence DESC LIMIT 1");
    if (rows.next())
      return fmt::format("; the newest message that is left is of {}", to_iso(wall_from_ms(rows.integer(0))));
  } catch (const store::Fault&) {
    // A table that cannot be read is a problem of its own.
  }
  return "";
}

std::vector<std::string> find_problems(store::Connection& connection) {
  std::vector<std::string> found;
  if (const auto loss = connection.loss()) found.push_back(store::in_plain_words(*loss) + since_when(connection));
  const store::PageReport pages = connection.examine_pages();
  if (pages.harmed > 0)
    found.push_back(fmt::format("{} of the {} pages of belfry.db are not as they were written, for example page {}",
                                pages.harmed, pages.pages, pages.examples.front()));
  const auto look = [&](const auto& problems) {
    try {
      for (std::string& problem : problems()) found.push_back(std::move(problem));
    } catch (const store::Fault& fault) {
      if (fault.kind() != store::FaultKind::corrupt) throw;
      found.push_back(fmt::format("a table cannot be read: {}", store::in_plain_words(fault)));
    }
  };
  look([&] {
    const std::string damage = connection.integrity_problem();
    return damage.empty() ? std::vector<std::string>{} : std::vector{"the file is damaged: " + damage};
  });
  look([&] {
    std::vector<std::string> problems = bus::MessageTables::conservation_problems(connection);
    for (std::string& problem : problems) problem = with_message_id(std::move(problem));
    return problems;
  });
  for (const auto problems_of : {chat::ChatTables::problems, chat::WebhookTables::problems, run::RunTables::problems})
    look([&] { return problems_of(connection); });
  return found;
}

}  // namespace belfry::app
