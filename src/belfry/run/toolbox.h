// The tools that steps can use: plugins, and those of Belfry's own that make sense in a plan. Tools of MCP servers will
// join them here.
//
// Lives on the kernel's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "belfry/plugin/host.h"
#include "belfry/run/run.h"
#include "belfry/run/slots.h"
#include "belfry/tool/executor.h"

namespace belfry::run {

inline constexpr std::string_view kLocalPrefix = "local__";

// What a run must know about a tool.
struct Ability {
  bool takes_schedule = false;    // `schedule` is Belfry's; otherwise it is an argument like others
  bool refuses_schedule = false;  // it is not even that
  bool idempotent = false;
  bool is_plugin = false;  // a process, which may outlive the server for as long as its guard needs to end it
  Appetite appetite;
  Millis timeout = plugin::kTimeoutDefault;
};

// One use of a tool.
struct Order {
  std::string tool;
  std::string arguments;
  std::string run_id;
  int step = 0;
  Owner owner;
  std::string output_dir{};
  std::string language{};  // that of the person who asks
  Millis timeout{0};
};

class Toolbox {
 public:
  Toolbox(tool::Executor& executor, plugin::Host& host) : executor_(executor), host_(host) {}

  // From here on these are the plugins. What is under way goes on with what it began with.
  void set_plugins(const std::vector<std::shared_ptr<const plugin::Plugin>>& plugins);

  // `unknown_tool` if there is none of that name, or none for plans.
  Result<Ability> find(const std::string& tool) const;
  // Those that pause between two uses.
  std::vector<Appetite> pausing() const;
  // Those whose process stays between two uses.
  std::vector<Ability> lasting() const;
  // Whether the arguments fit the tool's schema.
  Result<> check(const std::string& tool, const std::string& arguments) const;
  Task<plugin::Outcome> perform(Order order, plugin::Host::Progress progress, std::shared_ptr<Cancel> cancel);

 private:
  Task<plugin::Outcome> perform_builtin(Order order);
  std::string names() const;

  tool::Executor& executor_;
  plugin::Host& host_;
  std::map<std::string, std::shared_ptr<const plugin::Plugin>, std::less<>> plugins_;  // by the tool's name
};

}  // namespace belfry::run
