// The one loop that waits for time. It asks every source what is due next, sleeps exactly until then, and fires it.
#pragma once

#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/due/due_source.h"

namespace belfry {

class Timekeeper {
 public:
  explicit Timekeeper(Clock& clock);
  ~Timekeeper();

  // The source outlives the loop: whoever owns both stops and joins run() first.
  void add(DueSource& source);
  // A source has something earlier than it said before, or its clock was set: look again.
  void look_again() { wake_.ring(); }

  Task<void> run();
  void stop();

 private:
  Task<bool> fire_all();
  BootTime next_look() const;

  Clock& clock_;
  std::vector<DueSource*> sources_;
  Wake wake_;
  bool stopping_ = false;
};

}  // namespace belfry
