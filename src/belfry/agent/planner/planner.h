// Agents that think: each message they are handed is a turn, in which a language model is asked, wants tools to be called,
// is told what they gave back, and at last answers.
//
// Every answer of the model is on the disk before anything is done about it, and every tool call has a name of its own. So a
// turn that is taken again after a crash repeats what it did up to there without a second effect, asks the model nothing that
// it has answered already, and goes on.
//
// One turn at a time in each conversation of an agent; conversations do not wait for each other, and none of them has a
// thread. What is said while a turn is thought about is read by the next one, all of it: a message that was read already
// wakes nobody. A turn whose model cannot be reached waits and is taken again; the person is told so once.
//
// Lives on the kernel's thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "belfry/agent/agent.h"
#include "belfry/agent/planner/context.h"
#include "belfry/agent/planner/turn_tables.h"
#include "belfry/agent/roster.h"
#include "belfry/base/limits.h"
#include "belfry/base/task_group.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/clock.h"
#include "belfry/llm/model.h"
#include "belfry/store/store.h"
#include "belfry/tool/executor.h"
#include "belfry/when/zone.h"

namespace belfry::agent {

struct PlannerOptions {
  // Of one task, however many agents have a part in it: two that answer each other for ever come to an end here, and one
  // that wakes itself for ever, too.
  Spend task_max{.turns = 100, .calls = 300, .tokens = 3'000'000};
  Millis give_up_after{24 * 3'600'000LL};  // how long a model may be unreachable before a turn ends
  Millis retention = kRetentionDefault;
  when::Zone zone = when::Zone::utc();  // where a session has none
};

class Planner {
 public:
  // What it works with; outlives it.
  struct Parts {
    asio::io_context& context;
    Clock& clock;
    store::Store& store;
    chat::Chats& chats;
    tool::Executor& tools;
    Roster& roster;
    llm::Model* model = nullptr;  // none: there is nobody to ask, and every agent says so
  };
  // After the roster, which has its tables made.
  explicit Planner(Parts parts, PlannerOptions options = {});
  ~Planner();

  // What the processor runs: one for each agent, all of them this planner.
  std::unique_ptr<Agent> make_agent();

  // Ends what is being thought about in a session, or waits there for a model, by one agent or (empty) by all. Returns
  // how many turns that were.
  Task<Result<int>> cancel(std::string session, std::string agent);
  std::size_t thinking() const { return thinking_; }
  std::size_t runtimes() const { return runtimes_.size(); }
  Task<Result<std::vector<Turn>>> turns(std::string agent, int limit);

  // For a stop: nobody is asked any more, and what is under way goes on after the next start.
  void close();
  Task<void> stop();

 private:
  friend class Thought;
  class Worker;

  // An agent in one of its conversations: made when something comes, and dropped when nothing has for a while. All that it
  // knows can be read from the disk again.
  struct Runtime {
    std::set<std::string> found_tools;  // by tool_search, in this conversation
    bool tools_read = false;
    std::shared_ptr<Cancel> cancel;  // of the turn that is thought about
    BootTime used;
  };
  using Key = std::pair<std::string, std::string>;  // agent, conversation

  Runtime& runtime(const std::string& agent, const std::string& conversation);
  void evict_idle();
  WallTime now() const { return round_down(parts_.clock.now().wall); }

  Parts parts_;
  PlannerOptions options_;
  std::map<Key, Runtime> runtimes_;
  std::size_t thinking_ = 0;
  BootTime evicted_;
  bool closed_ = false;
  TaskGroup tasks_;
};

}  // namespace belfry::agent
