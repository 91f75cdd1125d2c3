#include "belfry/clock/sleep_queue.h"

#include "belfry/base/assert.h"

namespace belfry {

Wake::~Wake() {
  if (queue_) queue_->forget(*this);
}

void Wake::ring() {
  if (!queue_) {
    rung_ = true;
    return;
  }
  queue_->resume(queue_->sleepers_.find(key_));
}

SleepQueue::~SleepQueue() { clear(); }

void SleepQueue::clear() {
  for (auto& [key, sleeper] : sleepers_) sleeper.wake->queue_ = nullptr;
  // Destroying a resumer destroys the coroutine that slept, and with it whatever it owns: take them out first.
  const auto ended = std::exchange(sleepers_, {});
}

Task<void> SleepQueue::sleep(BootTime due, Wake& wake) {
  if (std::exchange(wake.rung_, false)) co_return;
  BELFRY_ASSERT(!wake.queue_);
  co_await suspend<int>([this, due, &wake](Resume<int> resume) {
    wake.queue_ = this;
    wake.key_ = {due, ++arrivals_};
    sleepers_.emplace(wake.key_, Sleeper{&wake, std::move(resume)});
  });
}

std::optional<BootTime> SleepQueue::earliest() const {
  if (sleepers_.empty()) return std::nullopt;
  return sleepers_.begin()->first.first;
}

void SleepQueue::wake_due(BootTime now) {
  while (!sleepers_.empty() && sleepers_.begin()->first.first <= now) resume(sleepers_.begin());
}

void SleepQueue::resume(std::map<Wake::Key, Sleeper>::iterator sleeper) {
  BELFRY_ASSERT(sleeper != sleepers_.end());
  sleeper->second.wake->queue_ = nullptr;
  // Posted, not called: whoever rings is in the middle of something.
  asio::post(context_, [resume = std::move(sleeper->second.resume)]() mutable { resume(0); });
  sleepers_.erase(sleeper);
}

void SleepQueue::forget(Wake& wake) {
  const auto sleeper = sleepers_.find(wake.key_);
  wake.queue_ = nullptr;
  if (sleeper == sleepers_.end()) return;
  const Resume<int> ended = std::move(sleeper->second.resume);
  sleepers_.erase(sleeper);
}

}  // namespace belfry
