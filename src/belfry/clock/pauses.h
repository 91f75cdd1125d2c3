// Pauses that end early at a stop.
#pragma once

#include <vector>

#include "belfry/clock/clock.h"

namespace belfry {

class Pauses {
 public:
  explicit Pauses(Clock& clock) : clock_(clock) {}

  Task<void> pause(Millis duration);
  // Those under way are over, and there are no others.
  void end();

 private:
  Clock& clock_;
  std::vector<Wake*> under_way_;
  bool ended_ = false;
};

}  // namespace belfry
