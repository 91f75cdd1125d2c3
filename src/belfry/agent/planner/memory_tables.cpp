#include "belfry/agent/planner/memory_tables.h"

namespace belfry::agent {
namespace {

using store::Connection;

const store::Migration kMigrations[] = {
    {1, R"sql(
      CREATE TABLE fact(
        number INTEGER PRIMARY KEY AUTOINCREMENT, person TEXT NOT NULL, text TEXT NOT NULL, session TEXT NOT NULL,
        learnt_ms INTEGER NOT NULL);
      CREATE UNIQUE INDEX fact_text ON fact(person, text);
      CREATE TABLE memory_looked(session TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
    )sql"},
};

}  // namespace

void MemoryTables::migrate(Connection& connection) {
  store::migrate(connection, "memory", std::begin(kMigrations), std::end(kMigrations));
}

std::vector<Fact> MemoryTables::list(Connection& connection, const std::string& person, int limit) {
  std::vector<Fact> facts;
  auto rows = connection.query(
      "SELECT number, person, text, session, learnt_ms FROM fact WHERE person = ?1 ORDER BY number DESC LIMIT ?2",
      person, limit);
  while (rows.next())
    facts.push_back({rows.integer(0), std::string(rows.text(1)), std::string(rows.text(2)), std::string(rows.text(3)),
                     wall_from_ms(rows.integer(4))});
  return facts;
}

bool MemoryTables::add(Connection& connection, const Fact& fact) {
  const bool is_new = connection.run("INSERT OR IGNORE INTO fact(person, text, session, learnt_ms) VALUES(?1,?2,?3,?4)",
                                     fact.person, fact.text, fact.session, to_ms(fact.learnt_at)) > 0;
  connection.run(
      "DELETE FROM fact WHERE person = ?1 AND number NOT IN"
      " (SELECT number FROM fact WHERE person = ?1 ORDER BY number DESC LIMIT ?2)",
      fact.person, kFactsMax);
  return is_new;
}

bool MemoryTables::remove(Connection& connection, const std::string& person, std::int64_t number) {
  return connection.run("DELETE FROM fact WHERE person = ?1 AND number = ?2", person, number) > 0;
}

std::int64_t MemoryTables::remove_all(Connection& connection, const std::string& person) {
  return connection.run("DELETE FROM fact WHERE person = ?1", person);
}

std::int64_t MemoryTables::looked_to(Connection& connection, const std::string& session) {
  auto rows = connection.query("SELECT seq FROM memory_looked WHERE session = ?1", session);
  return rows.next() ? rows.integer(0) : 0;
}

void MemoryTables::set_looked_to(Connection& connection, const std::string& session, std::int64_t seq) {
  connection.run("INSERT OR REPLACE INTO memory_looked(session, seq) VALUES(?1, ?2)", session, seq);
}

}  // namespace belfry::agent
