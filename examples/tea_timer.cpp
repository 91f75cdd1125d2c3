// The bus without the server: a message to ourselves that arrives in half a second, kept in a database meanwhile.
#include <cstdio>
#include <filesystem>

#include <belfry/belfry.h>

using namespace std::chrono_literals;
namespace bus = belfry::bus;

// The kernel is one thread: everything happens inside coroutines on its io_context.
static belfry::Task<void> make_tea(bus::MessageBus& messages) {
  co_await messages.add_recipient("kitchen", "external");

  bus::Outgoing reminder{.to = "kitchen", .from = "me", .payload = R"({"text":"tea is ready"})", .delay = 500ms};
  const auto sent = co_await messages.send(std::move(reminder));
  if (!sent) {
    std::printf("not sent: %s\n", sent.error().detail.c_str());
    co_return;
  }
  std::printf("message %s is due at %s\n", to_text(sent->id).c_str(), belfry::to_iso(*sent->scheduled_at).c_str());

  bus::ReceiveRequest request{.recipient = "kitchen", .max = 1, .wait = 5s};
  const auto received = co_await messages.receive(std::move(request));
  for (const bus::Delivery& delivery : *received) {
    std::printf("%s: %s\n", delivery.from.c_str(), delivery.payload.c_str());
    std::vector<std::string> leases{delivery.lease};
    co_await messages.ack_leases("kitchen", std::move(leases), "tea_timer");
  }
}

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "belfry-tea-timer";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);

  // The parts, lowest first. Clock, randomness and disk are parameters: a test passes simulated ones.
  belfry::asio::io_context context;
  belfry::RealClock clock(context);
  belfry::SystemRandom random;
  belfry::store::Store store(context, belfry::store::sqlite::open({.path = (folder / "belfry.db").string()}), {});
  belfry::Timekeeper timekeeper(clock);
  bus::MessageBus messages(context, clock, random, store, timekeeper);
  belfry::TaskGroup tasks(context);

  store.start();
  messages.start();
  tasks.spawn("timekeeper", timekeeper.run());
  tasks.spawn("tea", [](bus::MessageBus& m, belfry::Timekeeper& t, belfry::RealClock& c) -> belfry::Task<void> {
    co_await make_tea(m);
    // Stop in the order in which things depend on each other; then the context runs out of work.
    co_await m.stop();
    co_await m.note_clean_stop();
    t.stop();
    c.stop();
  }(messages, timekeeper, clock));
  context.run();

  std::filesystem::remove_all(folder);
}
