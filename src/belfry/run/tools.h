// Runs as tools: each plugin is one, and plans are made and cancelled by others.
#pragma once

#include <memory>
#include <vector>

#include "belfry/run/runs.h"
#include "belfry/tool/executor.h"

namespace belfry::run {

// run_plan, cancel_run
std::vector<std::unique_ptr<tool::Tool>> make_run_tools(Runs& runs);

// Offers the plugins as local__NAME, and takes back those that are gone.
class PluginOffer {
 public:
  PluginOffer(tool::Executor& executor, Toolbox& toolbox, Runs& runs)
      : executor_(executor), toolbox_(toolbox), runs_(runs) {}
  void set(const std::vector<std::shared_ptr<const plugin::Plugin>>& plugins);

 private:
  tool::Executor& executor_;
  Toolbox& toolbox_;
  Runs& runs_;
  std::vector<std::string> offered_;
};

}  // namespace belfry::run
