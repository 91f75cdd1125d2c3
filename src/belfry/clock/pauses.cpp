#include "belfry/clock/pauses.h"

namespace belfry {

Task<void> Pauses::pause(Millis duration) {
  if (ended_) co_return;
  Wake wake;
  under_way_.push_back(&wake);
  // Also if the coroutine is dropped while it sleeps.
  struct Leave {
    std::vector<Wake*>& under_way;
    Wake& wake;
    ~Leave() { std::erase(under_way, &wake); }
  } leave{under_way_, wake};
  co_await clock_.sleep_until(clock_.now().boot + duration, wake);
}

void Pauses::end() {
  ended_ = true;
  for (Wake* const wake : under_way_) wake->ring();
}

}  // namespace belfry
