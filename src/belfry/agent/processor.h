// The loop that has agents handle their messages.
//
// One message an agent at a time, at most `max_concurrent` agents at once, in turn: an agent with work waits for at most
// one message of each other agent (D19). A handler keeps its lease as long as it works. One that takes longer than
// `patience` no longer counts among the `max_concurrent`, and one that takes longer than `turn_max` is given up: its
// message comes again, and the agent is free for it. So a hung agent delays itself alone.
//
// Agents that spend their time waiting for others, as models do, may work on several conversations at once, each in its
// own lane: there it is one message at a time in each conversation.
//
// What an agent sends in a turn is sent once, though the turn is taken again after a crash. A turn that fails because
// the disk is full, or the server stops, is no attempt of the agent's: it is taken again when that has passed.
//
// Lives on the kernel's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "belfry/agent/agent.h"
#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/clock/clock.h"
#include "belfry/clock/pauses.h"
#include "belfry/tool/executor.h"

namespace belfry::agent {

struct ProcessorOptions {
  int max_concurrent = 3;
  Millis patience{10'000};   // as long as a quick answer takes
  Millis turn_max{600'000};  // as long as a model may think and call tools
  Millis retry_first{1'000};
  Millis retry_longest{60'000};
};

enum class Lanes { one, one_a_conversation };

struct Hosting {
  Lanes lanes = Lanes::one;
  std::optional<Millis> turn_max;  // another one than for all
};

class Processor final : public bus::Attendant {
 public:
  using Make = std::function<std::unique_ptr<Agent>()>;

  // Reads who was stopped. Before store.start(); throws store::Fault.
  Processor(asio::io_context& context, Clock& clock, store::Store& store, bus::MessageBus& bus,
            tool::Executor& executor, ProcessorOptions options = {});
  ~Processor() override;

  // Recipients of this kind are run here from now on; `make` makes one's agent when it gets its first message.
  void host(const std::string& kind, Make make, Hosting hosting = {});
  bool hosts(const std::string& kind) const { return kinds_.contains(kind); }

  // A stopped agent keeps its queue and gets nothing until it is started again, also after a restart.
  Task<Result<>> set_stopped(std::string name, bool stopped);
  bool is_stopped(const std::string& name) const;

  // No message is begun after this.
  void close();
  // The same, and waits for the agents at work, whose sends must still be taken; not past `deadline`,
  // and not for those that have lost their place: what they had comes again after the next start.
  Task<void> stop(BootTime deadline);

  void arrived(const std::string& name) override;
  void left(const std::string& name) override;

 private:
  struct Kind {
    Make make;
    Hosting hosting;
  };
  struct Hosted;
  struct Turn;
  class TurnHands;
  // Somebody who has work: a message in their hands already, or one to receive.
  struct Waiting {
    std::shared_ptr<Hosted> hosted;
    std::shared_ptr<Turn> turn;
  };

  void ready(const std::shared_ptr<Hosted>& hosted);
  void begin_turns();
  Task<void> take_turn(std::shared_ptr<Hosted> hosted);
  Task<void> enter_lane(std::shared_ptr<Turn> turn);
  Task<void> go_on(std::shared_ptr<Turn> turn);
  Task<void> hold(std::shared_ptr<Turn> turn);
  static void let_go(Turn& turn);
  static void abandon(Turn& turn);
  Task<void> release_held(std::string of);  // one agent's; empty: everybody's
  Task<void> work(std::shared_ptr<Turn> turn);
  Task<void> handle(std::shared_ptr<Turn> turn);
  Task<void> watch(std::shared_ptr<Turn> turn);
  Task<void> finish(std::shared_ptr<Turn> turn);
  void renew(const Turn& turn);
  void give_up_slot(Turn& turn);
  void leave_slot(Turn& turn);
  std::shared_ptr<Agent> agent_of(Hosted& hosted);
  void look_for_more(Hosted& hosted, bool got_one);
  Millis retry_after(int attempt) const;

  Clock& clock_;
  store::Store& store_;
  bus::MessageBus& bus_;
  tool::Executor& executor_;
  ProcessorOptions options_;
  std::unordered_map<std::string, Kind> kinds_;
  std::unordered_map<std::string, std::shared_ptr<Hosted>> hosted_;
  std::unordered_set<bus::RecipientNumber> stopped_;  // numbers: a name may become another's
  std::vector<std::shared_ptr<Turn>> unbegun_;        // in nobody's lane, to be given back
  std::deque<Waiting> waiting_;                       // in the order in which they get their turn
  int working_ = 0;                                   // count among max_concurrent
  Pauses pauses_;
  bool stopping_ = false;
  Wake all_done_;  // rung when a stop waits for the last one at work
  TaskGroup tasks_;
};

}  // namespace belfry::agent
