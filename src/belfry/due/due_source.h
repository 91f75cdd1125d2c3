// Whatever has something that comes due: the bus today, scheduled messages and tool feedback later.
#pragma once

#include <optional>
#include <variant>

#include "belfry/base/asio.h"
#include "belfry/base/time.h"

namespace belfry {

// A moment on the clock that the thing waits on.
using Due = std::variant<BootTime, WallTime>;

// When `due` comes on the elapsed clock, as far as one can tell now.
BootTime on_boot_clock(const Due& due, const Now& now);

class DueSource {
 public:
  virtual ~DueSource() = default;
  // What is due next; from memory, never from the disk.
  virtual std::optional<Due> next_due(const Now& now) const = 0;
  // Fires at most `limit` things that are due by `now`; returns how many. Called again while it fires `limit`.
  virtual Task<int> fire_due(Now now, int limit) = 0;
};

}  // namespace belfry
