#include "belfry/app/bench/kernel.h"

#include <boost/asio/executor_work_guard.hpp>

#include "belfry/base/assert.h"
#include "belfry/store/sqlite/sqlite_connection.h"

namespace belfry::app::bench {

using namespace std::chrono_literals;

Kernel::Kernel(const std::filesystem::path& folder, int agents_at_once)
    : clock(context),
      client(context, clock),
      store(context, store::sqlite::open({.path = (folder / "belfry.db").string()}), {}),
      timekeeper(clock),
      bus(context, clock, random, store, timekeeper),
      chats(context, clock, random, store, bus, timekeeper),
      outbox(context, clock, store, chats, timekeeper, client),
      scheduled(context, clock, store, chats, outbox, timekeeper),
      tools(clock, store, chats),
      agents(context, clock, store, bus, tools, {.max_concurrent = agents_at_once}),
      tasks(context) {
  store.start();
  bus.start();
  chats.start();
  tasks.spawn("timekeeper", timekeeper.run());
}

void Kernel::run(Task<void> task) {
  bool ended = false;
  asio::co_spawn(context, std::move(task), [&](std::exception_ptr failure) {
    ended = true;
    context.stop();
    if (failure) std::rethrow_exception(failure);
  });
  context.restart();
  const auto guard = asio::make_work_guard(context);
  while (!ended) context.run();
}

Task<void> Kernel::stop_parts() {
  co_await agents.stop(clock.now().boot + 10s);
  co_await outbox.stop(clock.now().boot + 10s);
  timekeeper.stop();
  co_await scheduled.stop();
  co_await client.stop();
  co_await chats.stop();
  co_await bus.stop();
  // The last write: when it is done, nothing of the bus is left in the store's queue.
  const auto noted = co_await bus.note_clean_stop();
  BELFRY_ASSERT(noted.has_value());
  co_await tasks.join();
}

void Kernel::stop() {
  run(stop_parts());
  clock.stop();
}

}  // namespace belfry::app::bench
