// Rows of a table that come due: the time of the earliest in memory, the rest on the disk.
//
// Working them off waits for the disk, and the loop that waits for time must not: it goes on beside it, one work at a time.
// A work that fails is tried again a little later, not at once.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "belfry/base/task_group.h"
#include "belfry/clock/clock.h"
#include "belfry/due/timekeeper.h"

namespace belfry {

class DueRows final : public DueSource {
 public:
  // Works off everything that is due and notes what comes next. False if that did not succeed.
  using Work = std::function<Task<bool>()>;

  DueRows(asio::io_context& context, Clock& clock, Timekeeper& timekeeper, std::string name, Work work);

  // There is a row that is due then.
  void note(std::int64_t ms);
  // What else is reason to work at once, also if no row is known; asked often.
  void look_also(std::function<bool(const Now&)> pressing) { pressing_ = std::move(pressing); }
  // The work is about to read: from here on rows are noted anew.
  void begin_reading() { next_ms_.reset(); }
  bool stopping() const { return stopping_; }
  Task<void> stop();

  std::optional<Due> next_due(const Now& now) const override;
  Task<int> fire_due(Now now, int limit) override;

 private:
  Task<void> run();

  Clock& clock_;
  Timekeeper& timekeeper_;
  std::string name_;
  Work work_;
  std::function<bool(const Now&)> pressing_;
  std::optional<std::int64_t> next_ms_;  // of the earliest
  std::optional<BootTime> not_before_;   // the last work failed
  bool working_ = false;
  bool stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace belfry
