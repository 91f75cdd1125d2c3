#include "belfry/due/timekeeper.h"

#include <algorithm>

namespace belfry {
namespace {

// How much one source may fire before the others and the network get their turn: about a millisecond's work.
constexpr int kSlice = 1'000;

// However the next due time was computed, look again after this long: it bounds what a lost wake-up or an unnoticed
// clock step can cost (D8).
constexpr Nanos kHeartbeat = std::chrono::seconds{1};

}  // namespace

BootTime on_boot_clock(const Due& due, const Now& now) {
  if (const auto* boot = std::get_if<BootTime>(&due)) return *boot;
  // In milliseconds first: the year 9999 does not fit into nanoseconds, and a century is as good as never for one sleep.
  static constexpr Millis kCentury = std::chrono::hours{24 * 365 * 100};
  const Millis wait = std::get<WallTime>(due) - round_down(now.wall);
  return now.boot + std::clamp(wait, -kCentury, kCentury) - (now.wall - round_down(now.wall));
}

Timekeeper::Timekeeper(Clock& clock) : clock_(clock) {
  clock_.on_step([this] { look_again(); });
}

Timekeeper::~Timekeeper() { clock_.on_step(nullptr); }

void Timekeeper::add(DueSource& source) { sources_.push_back(&source); }

Task<void> Timekeeper::run() {
  while (!stopping_) {
    const bool more = co_await fire_all();
    if (more) {
      // Let the network have its turn between two slices.
      co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      continue;
    }
    co_await clock_.sleep_until(next_look(), wake_);
  }
}

void Timekeeper::stop() {
  stopping_ = true;
  wake_.ring();
}

Task<bool> Timekeeper::fire_all() {
  bool more = false;
  for (DueSource* source : sources_) {
    const int fired = co_await source->fire_due(clock_.now(), kSlice);
    more = more || fired >= kSlice;
  }
  co_return more;
}

BootTime Timekeeper::next_look() const {
  const Now now = clock_.now();
  BootTime next = now.boot + kHeartbeat;
  for (const DueSource* source : sources_) {
    if (const auto due = source->next_due(now)) next = std::min(next, on_boot_clock(*due, now));
  }
  return next;
}

}  // namespace belfry
