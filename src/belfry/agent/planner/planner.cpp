#include "belfry/agent/planner/planner.h"

#include "belfry/agent/planner/thought.h"

namespace belfry::agent {
namespace {

// A conversation in which nothing comes for this long is forgotten, and read again when something does.
constexpr Millis kIdleMax{600'000};
constexpr Millis kEvictEvery{60'000};

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

// Not at every look: it goes through all of them.
void Planner::evict_idle() {
  const BootTime now = parts_.clock.now().boot;
  if (now < evicted_ + kEvictEvery) return;
  evicted_ = now;
  std::erase_if(runtimes_,
                [now](const auto& entry) { return !entry.second.cancel && entry.second.used + kIdleMax <= now; });
}

Task<Result<int>> Planner::cancel(std::string session, std::string agent) {
  BELFRY_CO_TRY(const chat::Session found, co_await parts_.chats.session(session));
  std::vector<std::string> agents;
  for (std::string& one : found.agents())
    if (agent.empty() || one == agent) agents.push_back(std::move(one));
  int count = 0;
  for (const std::string& one : agents) {
    const auto thinking = runtimes_.find({one, session});
    if (thinking != runtimes_.end() && thinking->second.cancel) {
      const std::shared_ptr<Cancel> cancel = thinking->second.cancel;
      cancel->cancel();  // the turn says so itself
      ++count;
      continue;
    }
    auto job = [one, session, now = now()](store::Connection& connection) -> Result<std::vector<std::string>> {
      return TurnTables::cancel_open(connection, one, session, to_ms(now));
    };
    BELFRY_CO_TRY(const auto ended, co_await parts_.store.write<std::vector<std::string>>(std::move(job)));
    count += static_cast<int>(ended.size());
  }
  co_return count;
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
