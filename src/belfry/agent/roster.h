// The thinking agents that there are, and what each is like.
//
// An agent and its profile are made in one transaction. Whoever made an agent owns it; an owner takes its own along when it
// is removed (A9).
//
// Lives on the kernel's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "belfry/agent/profile.h"
#include "belfry/base/asio.h"
#include "belfry/bus/message_bus.h"
#include "belfry/store/store.h"

namespace belfry::agent {

class Roster {
 public:
  // Reads who there is. Before store.start(); throws store::Fault.
  Roster(store::Store& store, bus::MessageBus& bus);

  // None if there is no such agent, or it is of another kind.
  std::shared_ptr<const Profile> find(const std::string& name) const;
  std::vector<std::string> owned_by(const std::string& name) const;
  // With those that are being made, so that a limit holds for what is made at once.
  std::size_t count_owned_by(const std::string& name) const;

  Task<Result<>> add(std::string name, Profile profile);
  Task<Result<>> change(std::string name, Profile profile);
  // Makes it like this, whether it is there or not: for agents that stand in the settings.
  Task<Result<>> put(std::string name, Profile profile);
  // With those that it owns. Returns their names.
  Task<Result<std::vector<std::string>>> remove(std::string name);

 private:
  Task<Result<>> write(std::string name, Profile profile);

  store::Store& store_;
  bus::MessageBus& bus_;
  std::map<std::string, std::shared_ptr<const Profile>> profiles_;
  std::map<std::string, std::string> being_made_;  // and their owners
};

}  // namespace belfry::agent
