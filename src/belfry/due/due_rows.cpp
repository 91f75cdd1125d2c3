#include "belfry/due/due_rows.h"

namespace belfry {
namespace {

constexpr Millis kTryAgain{1'000};

}  // namespace

DueRows::DueRows(asio::io_context& context, Clock& clock, Timekeeper& timekeeper, std::string name, Work work)
    : clock_(clock), timekeeper_(timekeeper), name_(std::move(name)), work_(std::move(work)), tasks_(context) {
  timekeeper_.add(*this);
}

void DueRows::note(std::int64_t ms) {
  if (next_ms_ && *next_ms_ <= ms) return;
  next_ms_ = ms;
  timekeeper_.look_again();
}

Task<void> DueRows::stop() {
  stopping_ = true;
  co_await tasks_.join();
}

std::optional<Due> DueRows::next_due(const Now& now) const {
  if (working_ || stopping_) return std::nullopt;
  if (not_before_ && *not_before_ > now.boot) return Due(*not_before_);
  if (pressing_ && pressing_(now)) return Due(now.boot);
  return next_ms_ ? std::optional(Due(wall_from_ms(*next_ms_))) : std::nullopt;
}

Task<int> DueRows::fire_due(Now now, int) {
  const bool due = (next_ms_ && wall_from_ms(*next_ms_) <= now.wall) || (pressing_ && pressing_(now));
  const bool pausing = not_before_ && *not_before_ > now.boot;
  if (!due || pausing || working_ || stopping_) co_return 0;
  working_ = true;
  tasks_.spawn(name_, run());
  co_return 1;
}

Task<void> DueRows::run() {
  // However it ends, with an exception too: what is due is looked at again.
  struct Finish {
    DueRows& rows;
    bool failed = true;
    ~Finish() {
      rows.working_ = false;
      rows.not_before_.reset();
      if (failed) {
        const Now now = rows.clock_.now();
        rows.not_before_ = now.boot + kTryAgain;
        rows.note(to_ms(round_down(now.wall)));
      }
      rows.timekeeper_.look_again();
    }
  } finish{*this};
  finish.failed = !co_await work_();
}

}  // namespace belfry
