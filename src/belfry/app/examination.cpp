#include "belfry/app/examination.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

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
      {"agent", 2},  {"bus", 8}, {"chat", 3},      {"memory", 1}, {"planner", 1},
      {"roster", 1}, {"run", 3}, {"scheduled", 2}, {"tool", 1},   {"webhook", 1}};
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

std::vector<std::string> find_problems(store::Connection& connection) {
  std::vector<std::string> found;
  if (const std::string damage = connection.integrity_problem(); !damage.empty())
    found.push_back("the file is damaged: " + damage);
  for (std::string& problem : bus::MessageTables::conservation_problems(connection))
    found.push_back(with_message_id(std::move(problem)));
  for (const auto problems_of : {chat::ChatTables::problems, chat::WebhookTables::problems, run::RunTables::problems})
    for (std::string& problem : problems_of(connection)) found.push_back(std::move(problem));
  return found;
}

}  // namespace belfry::app
