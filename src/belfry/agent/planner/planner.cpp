#include "belfry/agent/planner/planner.h"

#include "belfry/agent/planner/thought.h"

namespace belfry::agent {
namespace {

// A conversation in which nothing comes for this long is forgotten, and read again when something does.
constexpr Millis kIdleMax{600'000};

}  // namespace

class Planner::Worker final : public Agent {
 public:
  explicit Worker(Planner& planner) : planner_(planner) {}

  Task<Result<>> handle(bus::Delivery message, Hands& hands) override {
    auto profile = planner_.parts_.roster.find(message.to);
    if (!profile) co_return Result<>{};  // removed meanwhile
    Thought thought(planner_, std::move(profile), std::move(message), hands);
    co_return co_await thought.run();
  }

 private:
  Planner& planner_;
};

Planner::Planner(Parts parts, PlannerOptions options)
    : parts_(parts), options_(std::move(options)), tasks_(parts.context) {}

Planner::~Planner() = default;

std::unique_ptr<Agent> Planner::make_agent() { return std::make_unique<Worker>(*this); }

Planner::Runtime& Planner::runtime(const std::string& agent, const std::string& conversation) {
  evict_idle();
  Runtime& found = runtimes_[{agent, conversation}];
  found.used = parts_.clock.now().boot;
  return found;
}

void Planner::evict_idle() {
  const BootTime now = parts_.clock.now().boot;
  std::erase_if(runtimes_,
                [now](const auto& entry) { return !entry.second.cancel && entry.second.used + kIdleMax <= now; });
}

int Planner::cancel(const std::string& conversation, const std::string& agent) {
  std::vector<std::shared_ptr<Cancel>> found;
  for (const auto& [key, runtime] : runtimes_)
    if (key.second == conversation && (agent.empty() || key.first == agent) && runtime.cancel)
      found.push_back(runtime.cancel);
  for (const auto& one : found) one->cancel();  // may resume a turn, which changes the list
  return static_cast<int>(found.size());
}

void Planner::close() {
  closed_ = true;
  std::vector<std::shared_ptr<Cancel>> all;
  for (const auto& [key, runtime] : runtimes_)
    if (runtime.cancel) all.push_back(runtime.cancel);
  for (const auto& one : all) one->cancel();
}

Task<void> Planner::stop() { return tasks_.join(); }

Task<Result<std::vector<Turn>>> Planner::turns(std::string agent, int limit) {
  auto job = [agent, limit](store::Connection& connection) -> Result<std::vector<Turn>> {
    return TurnTables::list(connection, agent, limit);
  };
  co_return co_await parts_.store.read<std::vector<Turn>>(std::move(job));
}

}  // namespace belfry::agent
