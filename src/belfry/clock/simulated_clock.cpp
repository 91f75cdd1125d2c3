#include "belfry/clock/simulated_clock.h"

namespace belfry {

Now SimulatedClock::noon() {
  return {WallInstant{std::chrono::seconds{1'772'366'400}}, BootTime{std::chrono::hours{1}}};
}

SimulatedClock::SimulatedClock(asio::io_context& context, Now start)
    : context_(context), sleepers_(context), now_(start) {}

void SimulatedClock::settle() {
  while (true) {
    context_.restart();
    if (context_.poll() == 0) return;
  }
}

void SimulatedClock::advance(Nanos duration) {
  const BootTime target = now_.boot + duration;
  while (true) {
    sleepers_.wake_due(now_.boot);
    settle();
    const auto next = sleepers_.earliest();
    if (next && *next <= now_.boot) continue;
    if (!next || *next > target) break;
    now_.wall += *next - now_.boot;
    now_.boot = *next;
  }
  now_.wall += target - now_.boot;
  now_.boot = target;
  sleepers_.wake_due(now_.boot);
  settle();
}

void SimulatedClock::suspend(Nanos duration) {
  now_.wall += duration;
  now_.boot += duration;
  sleepers_.wake_due(now_.boot);
  settle();
}

void SimulatedClock::step_wall(Nanos change, bool told) {
  now_.wall += change;
  if (told && stepped_) stepped_();
  settle();
}

}  // namespace belfry
