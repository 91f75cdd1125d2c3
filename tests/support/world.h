// The whole kernel (bus, conversations, tools, agents) on simulated time and a simulated disk, that can be stopped,
// killed and started again.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belfry/agent/concierge/concierge.h"
#include "belfry/agent/planner/memory.h"
#include "belfry/agent/planner/planner.h"
#include "belfry/agent/processor.h"
#include "belfry/agent/tools.h"
#include "belfry/app/examination.h"
#include "belfry/base/assert.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/outbox.h"
#include "belfry/chat/private_messages.h"
#include "belfry/chat/webhooks.h"
#include "belfry/clock/simulated_clock.h"
#include "belfry/run/runs.h"
#include "belfry/run/tools.h"
#include "belfry/tool/builtin/builtin.h"
#include "belfry/tool/executor.h"
#include "tests/support/scripted_client.h"
#include "tests/support/scripted_host.h"
#include "tests/support/scripted_model.h"
#include "tests/support/simulated_store.h"

namespace belfry::testing {

using namespace std::chrono_literals;

inline const WallTime kNoon = round_down(SimulatedClock::noon().wall);
inline constexpr const char* kWorker = "worker";

class World {
 public:
  struct Options {
    std::uint64_t seed = 1;
    store::Options store;
    store::sqlite::Synchronous synchronous = store::sqlite::Synchronous::full;
    bus::BusOptions bus;
    agent::ProcessorOptions agents;
    std::function<void(agent::Processor&)> host;  // who runs agents, in every life
    agent::PlannerOptions planner;
    std::function<std::vector<std::unique_ptr<tool::Tool>>()> more_tools;
    run::RunsOptions runs;
    Millis calls_retention{0};  // of records of tool calls; 0: they stay
    std::vector<std::shared_ptr<const plugin::Plugin>> plugins;
    bool drafts = false;  // progress texts are written by the model
    std::size_t reserve = 0;
  };

  struct NotStarted {};

  World() : World(Options()) {}
  World(Options options, NotStarted)
      : options_(std::move(options)), random_(options_.seed), disk_(random_), now_(SimulatedClock::noon()) {}
  explicit World(Options options) : World(std::move(options), NotStarted{}) {
    start();
    add(kWorker);
  }
  ~World() {
    if (life_) crash();
  }

  bus::MessageBus& bus() { return life_->bus; }
  chat::Chats& chats() { return life_->chats; }
  chat::PrivateMessages& scheduled() { return life_->scheduled; }
  chat::Outbox& outbox() { return life_->outbox; }
  chat::Webhooks& webhooks() { return life_->webhooks; }
  ScriptedReceiver& receiver() { return receiver_; }
  tool::Executor& tools() { return life_->tools; }
  agent::Processor& agents() { return life_->agents; }
  agent::Roster& roster() { return life_->roster; }
  agent::Planner& planner() { return life_->planner; }
  agent::Memory& memory() { return life_->memory; }
  ModelScript& model() { return model_; }
  run::Runs& runs() { return life_->runs; }
  HostScript& host() { return host_; }
  // Other plugins, as if somebody had changed the folder.
  void set_plugins(std::vector<std::shared_ptr<const plugin::Plugin>> plugins) {
    options_.plugins = std::move(plugins);
    life_->offer.set(options_.plugins);
  }
  SimulatedClock& clock() { return life_->clock; }
  asio::io_context& context() { return life_->context; }
  Disk& disk() { return disk_; }
  Random& random() { return random_; }
  store::Store& store() { return life_->store; }
  bool alive() const { return life_ != nullptr; }
  bool broken() const { return life_->store.broken(); }
  WallTime now() { return round_down(clock().now().wall); }
  WallTime now_when_stopped() const { return round_down(now_.wall); }

  void advance(Nanos duration) { life_->clock.advance(duration); }

  // Starts a coroutine and says when it has ended.
  template <class T>
  struct Pending {
    std::shared_ptr<std::optional<T>> result = std::make_shared<std::optional<T>>();
    bool done() const { return result->has_value(); }
    const T& value() const { return result->value(); }
  };
  template <class T>
  Pending<T> start_task(Task<T> task) {
    Pending<T> pending;
    asio::co_spawn(life_->context, std::move(task), [result = pending.result](std::exception_ptr failure, T value) {
      if (failure) std::rethrow_exception(failure);
      result->emplace(std::move(value));
    });
    return pending;
  }
  // Runs a coroutine that needs no time.
  template <class T>
  T run(Task<T> task) {
    auto pending = start_task(std::move(task));
    life_->clock.settle();
    BELFRY_ASSERT(pending.done());
    return std::move(**pending.result);
  }

  void add(const std::string& name, const std::string& kind = "external") {
    BELFRY_ASSERT(run(bus().add_recipient(name, kind)).has_value());
  }
  Result<bus::Sent> try_send(bus::Outgoing message) {
    if (message.to.empty()) message.to = kWorker;
    if (message.payload.empty()) message.payload = "{}";
    return run(bus().send(std::move(message)));
  }
  bus::Sent send(bus::Outgoing message = {}) {
    auto sent = try_send(std::move(message));
    BELFRY_ASSERT(sent.has_value());
    return std::move(*sent);
  }
  std::vector<bus::Delivery> receive(const std::string& recipient = kWorker, int max = kReceiveMax,
                                     Millis lease = kLeaseDefault) {
    auto got = run(bus().receive({.recipient = recipient, .max = max, .lease = lease}));
    BELFRY_ASSERT(got.has_value());
    return std::move(*got);
  }
  int ack(const std::vector<bus::Delivery>& deliveries) {
    if (deliveries.empty()) return 0;
    std::vector<std::string> leases;
    for (const bus::Delivery& delivery : deliveries) leases.push_back(delivery.lease);
    auto outcome = run(bus().ack_leases(deliveries.front().to, leases, "test"));
    return outcome ? outcome->acked : -1;
  }
  // Everything the recipient can receive now, acked.
  std::vector<bus::Delivery> drain(const std::string& recipient = kWorker) {
    std::vector<bus::Delivery> all;
    while (true) {
      auto some = receive(recipient);
      if (some.empty()) return all;
      ack(some);
      all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
  }
  bus::MessageInfo get(bus::MessageId id) {
    auto info = run(bus().get(id));
    BELFRY_ASSERT(info.has_value());
    return std::move(*info);
  }
  bus::Counts counts(const std::string& recipient = kWorker) { return *bus().counts(recipient); }

  // The process dies; what was written stays on the disk.
  void crash() {
    if (disk_.running()) disk_.halt();
    end_life();
    disk_.reboot();
  }
  // A graceful end of the process as the server makes it, without waiting for leases. False if the disk failed.
  bool try_stop(bool deliver) {
    bus().refuse_sends();
    if (deliver && !run(bus().mark_all_delayed_as_forced())) return false;
    if (!run(bus().note_clean_stop())) return false;
    bool stopped = false;
    asio::co_spawn(life_->context, stop_parts(), [&stopped](std::exception_ptr) { stopped = true; });
    clock().settle();
    BELFRY_ASSERT(stopped);
    end_life();
    return true;
  }
  void stop(bool deliver) { BELFRY_ASSERT(try_stop(deliver)); }
  void start() {
    life_ = std::make_unique<Life>(*this);
    life_->store.start();
    life_->bus.start();
    life_->chats.start();
    life_->agents.host(agent::kConcierge,
                       [life = life_.get()] { return agent::make_concierge(life->chats, life->times); });
    life_->agents.host(agent::kModelKind, [life = life_.get()] { return life->planner.make_agent(); },
                       {.lanes = agent::Lanes::one_a_conversation, .turn_max = 1h});
    if (options_.host) options_.host(life_->agents);
    life_->runs.start();
    life_->tasks.spawn("timekeeper", life_->timekeeper.run());
    life_->clock.settle();
  }
  void restart() {
    crash();
    start();
  }
  // Time passes while nothing runs.
  void pass(Nanos duration) {
    now_.wall += duration;
    now_.boot += duration;
  }

  // What must add up (G14): empty if it does.
  std::vector<std::string> problems() {
    auto job = [](store::Connection& connection) -> Result<std::vector<std::string>> {
      return app::find_problems(connection);
    };
    auto found = run(store().read<std::vector<std::string>>(std::move(job)));
    return found ? *found : std::vector<std::string>{found.error().detail};
  }

 private:
  struct Life {
    explicit Life(World& world)
        : clock(context, world.now_),
          store(context,
                store::sqlite::open({.path = "belfry.db",
                                     .vfs = world.disk_.vfs_name(),
                                     .synchronous = world.options_.synchronous,
                                     .cache_kib = 4096}),
                inline_mode(world.options_.store),
                world.options_.reserve > 0 ? std::make_unique<DiskReserve>(world.disk_, world.options_.reserve)
                                           : nullptr),
          timekeeper(clock),
          bus(context, clock, world.random_, store, timekeeper, world.options_.bus),
          chats(context, clock, world.random_, store, bus, timekeeper),
          client(clock, world.receiver_),
          outbox(context, clock, store, chats, timekeeper, client),
          webhooks(clock, store, chats, outbox),
          scheduled(context, clock, store, chats, outbox, timekeeper),
          times(clock, {}),
          tools(clock, store, chats, world.options_.calls_retention),
          roster(store, bus),
          model(clock, world.model_),
          planner({.context = context,
                   .clock = clock,
                   .store = store,
                   .chats = chats,
                   .tools = tools,
                   .roster = roster,
                   .model = &model},
                  world.options_.planner),
          memory(context, clock, store, chats, roster, &model, world.options_.planner.task_max.calls),
          agents(context, clock, store, bus, tools, world.options_.agents),
          host(clock, world.host_),
          toolbox(tools, host),
          runs({.context = context,
                .clock = clock,
                .store = store,
                .bus = bus,
                .chats = chats,
                .timekeeper = timekeeper,
                .times = times,
                .tools = toolbox,
                .model = world.options_.drafts ? &model : nullptr},
               world.options_.runs),
          offer(tools, toolbox, runs),
          tasks(context) {
      offer.set(world.options_.plugins);
      for (auto& tool : run::make_run_tools(runs)) tools.add(std::move(tool));
      for (auto& tool : agent::make_agent_tools({.bus = bus, .chats = chats, .executor = tools, .roster = roster}))
        tools.add(std::move(tool));
      if (world.options_.more_tools)
        for (auto& tool : world.options_.more_tools()) tools.add(std::move(tool));
      for (auto& tool : tool::make_builtin_tools({.clock = clock, .bus = bus, .times = times, .scheduled = scheduled}))
        tools.add(std::move(tool));
    }
    static store::Options inline_mode(store::Options options) {
      options.mode = store::Mode::inline_groups;
      return options;
    }
    asio::io_context context;
    SimulatedClock clock;
    store::Store store;
    Timekeeper timekeeper;
    bus::MessageBus bus;
    chat::Chats chats;
    ScriptedClient client;
    chat::Outbox outbox;
    chat::Webhooks webhooks;
    chat::PrivateMessages scheduled;
    bus::TimeReader times;
    tool::Executor tools;
    agent::Roster roster;
    ScriptedModel model;
    agent::Planner planner;
    agent::Memory memory;
    agent::Processor agents;
    ScriptedHost host;
    run::Toolbox toolbox;
    run::Runs runs;
    run::PluginOffer offer;
    TaskGroup tasks;
  };

  Task<void> stop_parts() {
    planner().close();
    memory().close();
    runs().close();
    co_await agents().stop(clock().now().boot);
    co_await runs().stop(clock().now().boot);
    co_await planner().stop();
    co_await memory().stop();
    co_await outbox().stop(clock().now().boot);
    co_await scheduled().stop();
    co_await chats().stop();
    co_await bus().stop();
  }

  // With the disk halted, whoever waits for it hears an error; whoever waits for time is gone.
  void end_life() {
    life_->clock.settle();
    now_ = life_->clock.now();
    // A coroutine that is dropped is unwound by the loop, while its parts are still there; and one whose write fails for the
    // last time may go to sleep once more.
    for (int i = 0; i < 3; ++i) {
      life_->clock.drop_sleepers();
      life_->clock.settle();
    }
    life_.reset();
  }

  Options options_;
  SeededRandom random_;
  Disk disk_;
  Now now_;
  ScriptedReceiver receiver_;
  ModelScript model_;
  HostScript host_;
  std::unique_ptr<Life> life_;
};

}  // namespace belfry::testing
