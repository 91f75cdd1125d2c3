// How `delayMs` is read, alike through every door (D2–D5): models send numbers, strings and nonsense, and a message is
// never refused for its delay.
#pragma once

#include <string>

#include "belfry/base/json.h"
#include "belfry/base/time.h"

namespace belfry::bus {

struct DelayReading {
  Millis delay{0};
  std::string warning;  // why it is not what was written; empty if it is
};

// Numbers and numeric strings count, fractions round up, negative is none; anything else is none, with a warning.
DelayReading read_delay(json::Value value);

}  // namespace belfry::bus
