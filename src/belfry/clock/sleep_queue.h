// Sleepers ordered by (due, arrival), shared by the real and the simulated clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "belfry/base/asio.h"
#include "belfry/base/time.h"

namespace belfry {

class SleepQueue;

// Ends one sleep before its time. Rung while nobody sleeps, it ends the next sleep at once: a ring is never lost.
class Wake {
 public:
  Wake() = default;
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring();

 private:
  friend class SleepQueue;
  using Key = std::pair<BootTime, std::uint64_t>;

  SleepQueue* queue_ = nullptr;  // set while its owner sleeps
  Key key_;
  bool rung_ = false;
};

class SleepQueue {
 public:
  explicit SleepQueue(asio::io_context& context) : context_(context) {}
  ~SleepQueue();
  SleepQueue(const SleepQueue&) = delete;
  SleepQueue& operator=(const SleepQueue&) = delete;

  Task<void> sleep(BootTime due, Wake& wake);
  std::optional<BootTime> earliest() const;
  // Resumes, in order, whoever is due; they run when the io_context gets to them.
  void wake_due(BootTime now);
  // Ends every sleeper's coroutine where it is.
  void clear();

 private:
  friend class Wake;
  struct Sleeper {
    Wake* wake;
    Resume<int> resume;
  };
  void resume(std::map<Wake::Key, Sleeper>::iterator sleeper);
  void forget(Wake& wake);

  asio::io_context& context_;
  std::map<Wake::Key, Sleeper> sleepers_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace belfry
