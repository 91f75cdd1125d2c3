#include "belfry/agent/roster.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/agent/planner/turn_tables.h"
#include "belfry/base/log.h"

namespace belfry::agent {
namespace {

const store::Migration kMigrations[] = {
    {1, "CREATE TABLE agent_profile(name TEXT PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID"},
};

void write_row(store::Connection& connection, const std::string& name, const std::string& profile) {
  connection.run("INSERT OR REPLACE INTO agent_profile(name, profile) VALUES(?1, ?2)", name, profile);
}

}  // namespace

Roster::Roster(store::Store& store, bus::MessageBus& bus) : store_(store), bus_(bus) {
  store::Connection& connection = store_.connection_before_start();
  TurnTables::migrate(connection);
  store::migrate(connection, "roster", std::begin(kMigrations), std::end(kMigrations));
  // One that was removed while nobody looked after its profile.
  connection.run(
      "DELETE FROM agent_profile WHERE name NOT IN (SELECT name FROM recipient WHERE removed_ms IS NULL AND kind = ?1)",
      kModelKind);
  auto rows = connection.query("SELECT name, profile FROM agent_profile");
  while (rows.next()) {
    auto profile = read_stored(rows.text(1));
    if (!profile) {
      log::error("agent.bad_profile", "an agent's profile cannot be read; it works with the default one",
                 {{"id", std::string(rows.text(0))}, {"what", profile.error().detail}});
      profile = Profile{};
    }
    profiles_[std::string(rows.text(0))] = std::make_shared<const Profile>(std::move(*profile));
  }
}

std::shared_ptr<const Profile> Roster::find(const std::string& name) const {
  const auto known = bus_.recipient(name);
  if (!known || known->kind != kModelKind) return nullptr;
  const auto found = profiles_.find(name);
  return found == profiles_.end() ? std::make_shared<const Profile>() : found->second;
}

std::vector<std::string> Roster::owned_by(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [id, profile] : profiles_)
    if (profile->owner == name && bus_.recipient(id)) names.push_back(id);
  return names;
}

std::size_t Roster::count_owned_by(const std::string& name) const {
  const auto made = std::ranges::count_if(being_made_, [&name](const auto& entry) { return entry.second == name; });
  return owned_by(name).size() + static_cast<std::size_t>(made);
}

Task<Result<>> Roster::write(std::string name, Profile profile) {
  auto also = [name, text = stored(profile)](store::Connection& connection) -> Result<bool> {
    TurnTables::forget_agent(connection, name);
    write_row(connection, name, text);
    return true;
  };
  BELFRY_CO_CHECK(co_await bus_.add_recipients({name}, kModelKind, std::move(also)));
  profiles_[name] = std::make_shared<const Profile>(std::move(profile));
  co_return Result<>{};
}

Task<Result<>> Roster::add(std::string name, Profile profile) {
  if (bus_.recipient(name) || !being_made_.emplace(name, profile.owner).second)
    co_return fail(Errc::already_exists, fmt::format("there is already an agent or a person \"{}\"", name));
  const auto written = co_await write(name, std::move(profile));
  being_made_.erase(name);
  co_return written;
}

Task<Result<>> Roster::change(std::string name, Profile profile) {
  if (!find(name)) co_return fail(Errc::not_found, fmt::format("\"{}\" is not an agent that thinks", name));
  auto job = [name, text = stored(profile)](store::Connection& connection) -> Result<> {
    write_row(connection, name, text);
    return {};
  };
  BELFRY_CO_CHECK(co_await store_.write<void>(std::move(job)));
  profiles_[name] = std::make_shared<const Profile>(std::move(profile));
  co_return Result<>{};
}

Task<Result<>> Roster::put(std::string name, Profile profile) {
  const auto before = find(name);
  if (before && stored(*before) == stored(profile)) co_return Result<>{};
  if (before) co_return co_await change(std::move(name), std::move(profile));
  co_return co_await write(std::move(name), std::move(profile));
}

Task<Result<std::vector<std::string>>> Roster::remove(std::string name) {
  std::vector<std::string> all{name};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::string& owned : owned_by(all[i])) all.push_back(std::move(owned));
  // Those at the bottom first: whoever is cut off in the middle leaves nobody without an owner.
  for (std::size_t i = all.size(); i-- > 0;) {
    const auto removed = co_await bus_.remove_recipient(all[i]);
    const bool gone_already = !removed && removed.error().code == Errc::not_found && i > 0;
    if (!removed && !gone_already) co_return std::unexpected(removed.error());
    profiles_.erase(all[i]);
  }
  co_return all;
}

}  // namespace belfry::agent
