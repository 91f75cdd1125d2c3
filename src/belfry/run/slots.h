// Who may run now: limits in total, of each tool and of each provider, and pauses of a tool after each use (F14).
//
// Those that must wait keep their order, but nobody waits for somebody who could not start anyway. Only what runs takes a
// place: a result that waits for its time takes none (F2).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "belfry/base/time.h"

namespace belfry::run {

struct SlotLimits {
  int total = 3;
  int per_tool = 3;
  int per_provider = 4;
};

// A step, among all that there are.
struct StepKey {
  std::int64_t run = 0;
  int step = 0;
  auto operator<=>(const StepKey&) const = default;
};

// What a tool wants: 0 and nothing are the server's own limits.
struct Appetite {
  std::string tool;
  std::string provider;
  int at_once = 0;
  Millis cooldown{0};
};

class Slots {
 public:
  explicit Slots(SlotLimits limits) : limits_(limits) {}

  // Nothing happens if it waits or runs already.
  void wait(StepKey step, Appetite appetite);
  // It does not want to run any more. False if it does not wait.
  bool leave(StepKey step);
  // The next one that may run, which takes its place; nothing if nobody may.
  std::optional<StepKey> take(BootTime now);
  // Its place is free. Only a tool that ran pauses then: one that never began has used nothing.
  void give_back(StepKey step, BootTime now, bool ran = true);

  // A tool that was used before, and pauses still.
  void pause(const std::string& tool, BootTime until);

  // When to look again because of a pause; nothing if only an end can help.
  std::optional<BootTime> next_look(BootTime now) const;
  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }

 private:
  struct Waiting {
    StepKey step;
    Appetite appetite;
    std::uint64_t order = 0;
  };
  struct Tool {
    std::deque<Waiting> queue;
    int running = 0;
    BootTime not_before{};
  };
  bool may_run(const Tool& tool, BootTime now) const;

  SlotLimits limits_;
  std::map<std::string, Tool> tools_;  // those that run, wait or pause
  std::unordered_map<std::string, int> providers_;
  std::map<StepKey, Appetite> running_;
  std::set<StepKey> waiting_;
  std::uint64_t orders_ = 0;
};

}  // namespace belfry::run
