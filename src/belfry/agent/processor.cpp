#include "belfry/agent/processor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/log.h"

namespace belfry::agent {
namespace {

const store::Migration kMigrations[] = {
    {1, "CREATE TABLE agent_stopped(name TEXT PRIMARY KEY) WITHOUT ROWID"},
};

// A lease is renewed when a third of it is left: two renewals may fail.
constexpr Millis kLease = kLeaseDefault;
constexpr Millis kRenewEvery = kLease / 3;

}  // namespace

struct Processor::Hosted {
  std::string name;
  std::shared_ptr<Agent> agent;  // shared with a handler that was given up and still uses it
  bool waiting = false;          // for its turn
  bool working = false;
  bool came_meanwhile = false;
};

// One message in the hands of one agent. Shared by the handler and the one who watches it: a handler that hangs is left
// alone, and must find nothing of ours that is gone.
struct Processor::Turn {
  std::shared_ptr<Agent> agent;
  bus::Delivery message;
  BootTime began;
  bool has_slot = true;
  bool done = false;
  Result<> outcome;
  Wake wake;  // rung when it is done
};

class Processor::TurnHands final : public Hands {
 public:
  TurnHands(bus::MessageBus& bus, tool::Executor& executor, const bus::Delivery& message)
      : bus_(bus), executor_(executor), message_(message) {}

  Task<Result<bus::Sent>> send(bus::Outgoing message) override {
    message.from = message_.to;
    message.task_id = message_.task_id;
    if (message.session_id.empty()) message.session_id = message_.session_id;
    co_return co_await bus_.send(std::move(message));
  }

  Task<Result<tool::CallOutcome>> call(std::string tool, std::string arguments, std::string call_id) override {
    tool::CallRequest request{.tool = std::move(tool),
                              .arguments = std::move(arguments),
                              .context = {.agent_id = message_.to,
                                          .session_id = message_.session_id,
                                          .task_id = message_.task_id,
                                          .call_id = std::move(call_id)}};
    co_return co_await executor_.call(std::move(request));
  }

 private:
  bus::MessageBus& bus_;
  tool::Executor& executor_;
  const bus::Delivery& message_;
};

Processor::Processor(asio::io_context& context, Clock& clock, store::Store& store, bus::MessageBus& bus,
                     tool::Executor& executor, ProcessorOptions options)
    : clock_(clock), store_(store), bus_(bus), executor_(executor), options_(options), tasks_(context) {
  store::Connection& connection = store_.connection_before_start();
  store::migrate(connection, "agent", std::begin(kMigrations), std::end(kMigrations));
  auto rows = connection.query("SELECT name FROM agent_stopped");
  while (rows.next()) stopped_.emplace(rows.text(0));
}

Processor::~Processor() = default;

void Processor::host(const std::string& kind, Make make) {
  kinds_[kind] = std::move(make);
  bus_.attend(kind, *this);
}

Task<void> Processor::stop(BootTime deadline) {
  stopping_ = true;
  waiting_.clear();
  while (working_ > 0 && clock_.now().boot < deadline) co_await clock_.sleep_until(deadline, all_done_);
}

Task<Result<>> Processor::set_stopped(std::string name, bool stopped) {
  BELFRY_CO_TRY(const bus::RecipientRow row, bus_.recipient(name));
  if (!kinds_.contains(row.kind))
    co_return fail(Errc::unsupported, fmt::format("\"{}\" is not run by Belfry; whoever runs it can stop it", name));
  auto job = [name, stopped](store::Connection& connection) -> Result<> {
    if (stopped) {
      connection.run("INSERT OR IGNORE INTO agent_stopped(name) VALUES(?1)", name);
    } else {
      connection.run("DELETE FROM agent_stopped WHERE name = ?1", name);
    }
    return {};
  };
  BELFRY_CO_CHECK(co_await store_.write<void>(std::move(job)));
  if (stopped) {
    stopped_.insert(name);
  } else if (stopped_.erase(name) > 0) {
    arrived(name);
  }
  log::info(stopped ? "agent.stopped" : "agent.started", "", {{"id", name}});
  co_return Result<>{};
}

void Processor::arrived(const std::string& name) {
  if (stopping_ || stopped_.contains(name)) return;
  std::unique_ptr<Hosted>& hosted = hosted_[name];
  if (!hosted) {
    hosted = std::make_unique<Hosted>();
    hosted->name = name;
  }
  ready(*hosted);
}

void Processor::ready(Hosted& hosted) {
  if (hosted.working) hosted.came_meanwhile = true;
  if (hosted.working || hosted.waiting) return;
  hosted.waiting = true;
  waiting_.push_back(hosted.name);
  begin_turns();
}

void Processor::begin_turns() {
  while (working_ < options_.max_concurrent && !waiting_.empty() && !stopping_) {
    Hosted& hosted = *hosted_.at(waiting_.front());
    waiting_.pop_front();
    hosted.waiting = false;
    hosted.working = true;
    hosted.came_meanwhile = false;
    ++working_;
    tasks_.spawn("an agent's turn", take_turn(hosted.name));
  }
}

Task<void> Processor::take_turn(std::string name) {
  // Not from inside the bus's own work.
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  auto turn = std::make_shared<Turn>();
  bool got_one = false;
  if (!stopped_.contains(name)) {
    auto got = co_await bus_.receive({.recipient = name, .max = 1, .lease = kLease});
    got_one = got && !got->empty();
    if (got_one) {
      turn->message = std::move(got->front());
      turn->agent = agent_of(name);
      turn->began = clock_.now().boot;
      tasks_.spawn("an agent's handler", handle(turn));
      co_await watch(turn);
      co_await finish(turn);
    }
  }
  leave_slot(*turn);
  turn_ended(name, got_one);
  begin_turns();
}

std::shared_ptr<Agent> Processor::agent_of(const std::string& name) {
  Hosted& hosted = *hosted_.at(name);
  if (!hosted.agent) {
    const auto row = bus_.recipient(name);
    const auto kind = kinds_.find(row ? row->kind : "");
    if (kind != kinds_.end()) hosted.agent = kind->second();
  }
  return hosted.agent;
}

Task<void> Processor::handle(std::shared_ptr<Turn> turn) {
  TurnHands hands(bus_, executor_, turn->message);
  try {
    turn->outcome = fail(Errc::unknown_recipient, "the agent is gone");
    if (turn->agent) turn->outcome = co_await turn->agent->handle(turn->message, hands);
  } catch (const std::exception& e) {
    turn->outcome = fail(Errc::storage_failed, fmt::format("the agent ended with an exception: {}", e.what()));
  }
  turn->done = true;
  turn->wake.ring();
}

// Keeps the lease while the handler works, and loses patience with it.
Task<void> Processor::watch(std::shared_ptr<Turn> turn) {
  const BootTime patience_ends = turn->began + options_.patience;
  const BootTime turn_ends = turn->began + options_.turn_max;
  BootTime renew_at = turn->began + kRenewEvery;
  while (!turn->done) {
    const BootTime now = clock_.now().boot;
    if (now >= turn_ends) co_return;
    if (now >= patience_ends && turn->has_slot) give_up_slot(*turn);
    if (now >= renew_at) {
      const auto renewed = bus_.extend(turn->message.to, {turn->message.lease}, kLease);
      if (!renewed || renewed->acked == 0)
        log::warn("agent.lease_lost", "an agent's message may be delivered again: its lease could not be renewed",
                  {{"id", turn->message.to}, {"message", bus::to_text(turn->message.id)}});
      renew_at = now + kRenewEvery;
    }
    BootTime next = std::min(renew_at, turn_ends);
    if (turn->has_slot) next = std::min(next, patience_ends);
    co_await clock_.sleep_until(next, turn->wake);
  }
}

void Processor::leave_slot(Turn& turn) {
  if (!std::exchange(turn.has_slot, false)) return;
  if (--working_ == 0) all_done_.ring();
}

void Processor::give_up_slot(Turn& turn) {
  leave_slot(turn);
  log::warn("agent.slow", "an agent has worked on a message for long; others go on beside it",
            {{"id", turn.message.to}, {"message", bus::to_text(turn.message.id)}});
  begin_turns();
}

Task<void> Processor::finish(std::shared_ptr<Turn> turn) {
  const bus::Delivery& message = turn->message;
  if (turn->done && turn->outcome) {
    co_await bus_.ack_leases(message.to, {message.lease}, message.to);
    co_return;
  }
  std::string why = "it took too long and was given up";
  if (turn->done) why = turn->outcome.error().detail;
  log::warn("agent.failed", "an agent did not get done with a message",
            {{"id", message.to}, {"message", bus::to_text(message.id)}, {"attempt", message.attempt}, {"what", why}});
  // A handler that was given up may still be at work: another agent of that kind takes over.
  if (!turn->done) hosted_.at(message.to)->agent.reset();
  co_await bus_.release(message.to, {message.lease}, retry_after(message.attempt));
}

void Processor::turn_ended(const std::string& name, bool got_one) {
  Hosted& hosted = *hosted_.at(name);
  hosted.working = false;
  const auto counts = bus_.counts(name);
  if (!counts) {  // removed: its messages have gone to the dead letters
    hosted_.erase(name);
    return;
  }
  if (hosted.came_meanwhile || (got_one && counts->pending > 0)) arrived(name);
}

Millis Processor::retry_after(int attempt) const {
  Millis wait = options_.retry_first;
  for (int i = 1; i < attempt && wait < options_.retry_longest; ++i) wait *= 2;
  return std::min(wait, options_.retry_longest);
}

}  // namespace belfry::agent
