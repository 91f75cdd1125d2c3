#include "belfry/run/slots.h"

#include <algorithm>
#include <utility>

#include "belfry/base/assert.h"

namespace belfry::run {

void Slots::wait(StepKey step, Appetite appetite) {
  if (running_.contains(step) || !waiting_.insert(step).second) return;
  Tool& tool = tools_[appetite.tool];
  tool.queue.push_back({step, std::move(appetite), ++orders_});
}

bool Slots::leave(StepKey step) {
  if (waiting_.erase(step) == 0) return false;
  for (auto& [name, tool] : tools_) {
    const auto found = std::ranges::find(tool.queue, step, &Waiting::step);
    if (found == tool.queue.end()) continue;
    tool.queue.erase(found);
    break;
  }
  return true;
}

bool Slots::may_run(const Tool& tool, BootTime now) const {
  if (tool.queue.empty() || tool.not_before > now) return false;
  const Appetite& next = tool.queue.front().appetite;
  if (tool.running >= (next.at_once > 0 ? next.at_once : limits_.per_tool)) return false;
  const auto provider = providers_.find(next.provider);
  return provider == providers_.end() || provider->second < limits_.per_provider;
}

std::optional<StepKey> Slots::take(BootTime now) {
  if (static_cast<int>(running_.size()) >= limits_.total) return std::nullopt;
  Tool* first = nullptr;
  for (auto& [name, tool] : tools_)
    if (may_run(tool, now) && (!first || tool.queue.front().order < first->queue.front().order)) first = &tool;
  if (!first) return std::nullopt;
  Waiting next = std::move(first->queue.front());
  first->queue.pop_front();
  waiting_.erase(next.step);
  ++first->running;
  ++providers_[next.appetite.provider];
  running_.emplace(next.step, std::move(next.appetite));
  return next.step;
}

void Slots::give_back(StepKey step, BootTime now, bool ran) {
  const auto found = running_.find(step);
  BELFRY_ASSERT(found != running_.end());
  const Appetite appetite = std::move(found->second);
  running_.erase(found);
  Tool& tool = tools_[appetite.tool];
  --tool.running;
  if (ran) tool.not_before = std::max(tool.not_before, now + appetite.cooldown);
  if (const auto provider = providers_.find(appetite.provider); --provider->second == 0) providers_.erase(provider);
  if (tool.running == 0 && tool.queue.empty() && tool.not_before <= now) tools_.erase(appetite.tool);
}

void Slots::pause(const std::string& tool, BootTime until) {
  Tool& one = tools_[tool];
  one.not_before = std::max(one.not_before, until);
}

std::optional<BootTime> Slots::next_look(BootTime now) const {
  std::optional<BootTime> next;
  for (const auto& [name, tool] : tools_)
    if (!tool.queue.empty() && tool.not_before > now && (!next || tool.not_before < *next)) next = tool.not_before;
  return next;
}

}  // namespace belfry::run
