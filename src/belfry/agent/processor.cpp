#include "belfry/agent/processor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "belfry/base/digest.h"
#include "belfry/base/log.h"

namespace belfry::agent {
namespace {

const store::Migration kMigrations[] = {
    {1, "CREATE TABLE agent_stopped(name TEXT PRIMARY KEY) WITHOUT ROWID"},
    {2, R"sql(
      CREATE TABLE stopped_agent(recipient INTEGER PRIMARY KEY);
      INSERT INTO stopped_agent(recipient)
        SELECT r.number FROM recipient r JOIN agent_stopped s ON s.name = r.name WHERE r.removed_ms IS NULL;
      DROP TABLE agent_stopped;
    )sql"},
};

// A lease is renewed when a third of it is gone: two renewals may fail.
constexpr Millis kLease = kLeaseDefault;
constexpr Millis kRenewEvery = kLease / 3;
// After a failure that passes by itself: long enough for a full disk, and well within a lease.
constexpr Millis kTryAgain{5'000};
// Messages of one agent that are in its hands at once, thought about or waiting for their conversation's turn. Each is a
// lease that is renewed.
constexpr std::size_t kTurnsMax = 1'000;

}  // namespace

struct Processor::Hosted {
  std::string name;
  std::string kind;
  Hosting hosting;
  std::shared_ptr<Agent> agent;  // shared with a handler that was given up and still uses it
  // Conversations that somebody works on, with the messages that wait for that to end.
  std::unordered_map<std::string, std::deque<std::shared_ptr<Turn>>> lanes;
  std::vector<std::weak_ptr<Turn>> at_work;  // in those
  std::size_t turns = 0;                     // messages in all of it
  bool waiting = false;                      // for its turn
  bool working = false;                      // on a message; with lanes: on getting one
  bool came_meanwhile = false;
  bool gone = false;  // removed; whoever has its name now is another
};

// One message in the hands of one agent. Shared by the handler and the one who watches it: a handler that hangs is left
// alone, and must find nothing of ours that is gone.
struct Processor::Turn {
  std::shared_ptr<Hosted> hosted;
  std::shared_ptr<Agent> agent;
  bus::Delivery message;
  BootTime began;
  std::string lane;
  bool has_slot = true;
  bool held = false;  // in a lane, for its conversation's turn
  bool abandoned = false;
  std::shared_ptr<Cancel> cancel = std::make_shared<Cancel>();
  bool done = false;
  std::optional<Millis> postponed;
  Result<> outcome;
  Wake wake;      // rung when it is done
  Wake released;  // rung when it is held no longer
};

class Processor::TurnHands final : public Hands {
 public:
  TurnHands(Processor& processor, Turn& turn) : processor_(processor), turn_(turn) {}

  std::string task_id() const override {
    const bus::Delivery& message = turn_.message;
    return message.task_id.empty() ? "t-" + bus::to_text(message.id) : message.task_id;
  }

  Task<Result<bus::Sent>> send(bus::Outgoing message) override {
    message.from = turn_.message.to;
    message.task_id = task_id();
    if (message.session_id.empty()) message.session_id = turn_.message.session_id;
    // The same in the same place of the same turn, taken again, is sent once; something else is sent.
    const Digest said = digest(fmt::format("{}\n{}", message.to, message.payload));
    message.once = fmt::format("turn {} {} {:x} {:x}", bus::to_text(turn_.message.id), ++sends_, said.high, said.low);
    co_return co_await processor_.bus_.send(std::move(message));
  }

  Task<Result<tool::CallOutcome>> use(ToolUse use) override {
    if (use.session.empty()) use.session = turn_.message.session_id;
    tool::CallRequest request{.tool = std::move(use.tool),
                              .arguments = std::move(use.arguments),
                              .context = {.agent_id = turn_.message.to,
                                          .session_id = std::move(use.session),
                                          .task_id = task_id(),
                                          .call_id = std::move(use.call_id),
                                          .reply_to = std::move(use.reply_to),
                                          .in_reply_to = std::move(use.in_reply_to),
                                          .in_turn = true},
                              .refusal = std::move(use.refusal)};
    co_return co_await processor_.executor_.call(std::move(request));
  }

  void step_aside() override {
    processor_.leave_slot(turn_);
    processor_.begin_turns();
  }

  std::shared_ptr<Cancel> cancel() override { return turn_.cancel; }
  bool abandoned() const override { return turn_.abandoned; }
  void postpone(Millis delay) override { turn_.postponed = delay; }

 private:
  Processor& processor_;
  Turn& turn_;
  int sends_ = 0;
};

std::string conversation_of(const bus::Delivery& message) {
  return message.session_id.empty() ? "@" + message.from : message.session_id;
}

Processor::Processor(asio::io_context& context, Clock& clock, store::Store& store, bus::MessageBus& bus,
                     tool::Executor& executor, ProcessorOptions options)
    : clock_(clock), store_(store), bus_(bus), executor_(executor), options_(options), pauses_(clock), tasks_(context) {
  store::Connection& connection = store_.connection_before_start();
  store::migrate(connection, "agent", std::begin(kMigrations), std::end(kMigrations));
  connection.run(
      "DELETE FROM stopped_agent WHERE recipient NOT IN (SELECT number FROM recipient WHERE removed_ms IS NULL)");
  auto rows = connection.query("SELECT recipient FROM stopped_agent");
  while (rows.next()) stopped_.insert(static_cast<bus::RecipientNumber>(rows.integer(0)));
}

// What waits in a lane has its agent in hand, and the agent has its lanes.
Processor::~Processor() {
  for (const auto& [name, hosted] : hosted_) hosted->lanes.clear();
}

void Processor::host(const std::string& kind, Make make, Hosting hosting) {
  kinds_[kind] = {std::move(make), hosting};
  bus_.attend(kind, *this);
}

void Processor::close() {
  stopping_ = true;
  for (Waiting& one : waiting_)
    if (one.turn) unbegun_.push_back(std::move(one.turn));
  waiting_.clear();
  pauses_.end();
}

Task<void> Processor::stop(BootTime deadline) {
  close();
  co_await release_held("");
  while (working_ > 0 && clock_.now().boot < deadline) co_await clock_.sleep_until(deadline, all_done_);
}

Task<Result<>> Processor::set_stopped(std::string name, bool stopped) {
  BELFRY_CO_TRY(const bus::RecipientRow row, bus_.recipient(name));
  if (!kinds_.contains(row.kind))
    co_return fail(Errc::wrong_state, fmt::format("\"{}\" is not run by Belfry; whoever runs it can stop it", name));
  auto job = [number = row.number, stopped](store::Connection& connection) -> Result<> {
    if (stopped) {
      connection.run("INSERT OR IGNORE INTO stopped_agent(recipient) VALUES(?1)", number);
    } else {
      connection.run("DELETE FROM stopped_agent WHERE recipient = ?1", number);
    }
    return {};
  };
  BELFRY_CO_CHECK(co_await store_.write<void>(std::move(job)));
  if (stopped) {
    stopped_.insert(row.number);
    co_await release_held(name);
  } else if (stopped_.erase(row.number) > 0) {
    arrived(name);
  }
  log::info(stopped ? "agent.stopped" : "agent.started", "", {{"id", name}});
  co_return Result<>{};
}

bool Processor::is_stopped(const std::string& name) const {
  const auto row = bus_.recipient(name);
  return row && stopped_.contains(row->number);
}

void Processor::arrived(const std::string& name) {
  const auto row = bus_.recipient(name);
  if (stopping_ || !row || !kinds_.contains(row->kind) || stopped_.contains(row->number)) return;
  std::shared_ptr<Hosted>& hosted = hosted_[name];
  if (!hosted) {
    hosted = std::make_shared<Hosted>();
    hosted->name = name;
    hosted->kind = row->kind;
    hosted->hosting = kinds_.at(row->kind).hosting;
  }
  ready(hosted);
}

void Processor::left(const std::string& name) {
  const auto found = hosted_.find(name);
  if (found == hosted_.end()) return;
  Hosted& hosted = *found->second;
  hosted.gone = true;
  for (auto& [lane, turns] : hosted.lanes) {
    for (const std::shared_ptr<Turn>& turn : turns) let_go(*turn);
    turns.clear();
  }
  const auto at_work = hosted.at_work;  // one that is cancelled may leave the list
  for (const std::weak_ptr<Turn>& one : at_work)
    if (const auto turn = one.lock()) abandon(*turn);
  hosted_.erase(found);
}

void Processor::ready(const std::shared_ptr<Hosted>& hosted) {
  if (hosted->working) hosted->came_meanwhile = true;
  if (hosted->working || hosted->waiting || hosted->turns >= kTurnsMax) return;
  hosted->waiting = true;
  waiting_.push_back({hosted, nullptr});
  begin_turns();
}

void Processor::begin_turns() {
  while (working_ < options_.max_concurrent && !waiting_.empty() && !stopping_) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.turn && next.hosted->gone) {
      let_go(*next.turn);
      continue;
    }
    if (next.turn && is_stopped(next.hosted->name)) {
      unbegun_.push_back(std::move(next.turn));
      tasks_.spawn("messages of a stopped agent", release_held(next.hosted->name));
      continue;
    }
    if (next.turn) {
      ++working_;
      next.turn->has_slot = true;
      tasks_.spawn("an agent's turn", go_on(std::move(next.turn)));
      continue;
    }
    next.hosted->waiting = false;
    if (next.hosted->gone) continue;
    next.hosted->working = true;
    next.hosted->came_meanwhile = false;
    ++working_;
    tasks_.spawn("an agent's turn", take_turn(std::move(next.hosted)));
  }
}

Task<void> Processor::take_turn(std::shared_ptr<Hosted> hosted) {
  // Not from inside the bus's own work.
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  auto turn = std::make_shared<Turn>();
  turn->hosted = hosted;
  bool got_one = false;
  if (!hosted->gone && !is_stopped(hosted->name)) {
    auto got = co_await bus_.receive({.recipient = hosted->name, .max = 1, .lease = kLease});
    got_one = got && !got->empty();
    if (got_one) {
      turn->message = std::move(got->front());
      if (hosted->hosting.lanes == Lanes::one_a_conversation) {
        co_await enter_lane(std::move(turn));
        co_return;
      }
      co_await work(turn);
    } else if (!got && is_passing(got.error().code)) {
      log::warn("agent.cannot_receive", "an agent's messages could not be read; they are read again in a moment",
                {{"id", hosted->name}, {"what", got.error().detail}});
      leave_slot(*turn);
      begin_turns();
      co_await pauses_.pause(kTryAgain);
      hosted->came_meanwhile = true;
    }
  }
  leave_slot(*turn);
  hosted->working = false;
  look_for_more(*hosted, got_one);
  begin_turns();
}

// The agent is free for what comes in other conversations; this one waits for those before it in its own.
Task<void> Processor::enter_lane(std::shared_ptr<Turn> turn) {
  const std::shared_ptr<Hosted> hosted = turn->hosted;
  if (stopping_) {
    leave_slot(*turn);
    co_await bus_.release(turn->message.to, {turn->message.lease}, Millis{0}, false);
    co_return;
  }
  turn->lane = conversation_of(turn->message);
  const auto [lane, is_free] = hosted->lanes.try_emplace(turn->lane);
  ++hosted->turns;
  if (!is_free) {
    turn->held = true;
    lane->second.push_back(turn);
    leave_slot(*turn);
    tasks_.spawn("a message that waits for its conversation", hold(turn));
  }
  hosted->working = false;
  look_for_more(*hosted, true);
  begin_turns();
  if (is_free) co_await go_on(std::move(turn));
}

Task<void> Processor::go_on(std::shared_ptr<Turn> turn) {
  const std::shared_ptr<Hosted> hosted = turn->hosted;
  let_go(*turn);
  hosted->at_work.push_back(turn);
  co_await work(turn);
  std::erase_if(hosted->at_work, [&turn](const std::weak_ptr<Turn>& one) { return one.lock() == turn; });
  leave_slot(*turn);
  --hosted->turns;
  const auto lane = hosted->lanes.find(turn->lane);
  if (lane == hosted->lanes.end()) {
    // Given back as a whole meanwhile.
  } else if (lane->second.empty()) {
    hosted->lanes.erase(lane);
  } else if (!stopping_) {
    waiting_.push_back({hosted, std::move(lane->second.front())});
    lane->second.pop_front();
  }
  look_for_more(*hosted, true);
  begin_turns();
}

Task<void> Processor::hold(std::shared_ptr<Turn> turn) {
  while (turn->held) {
    co_await clock_.sleep_until(clock_.now().boot + kRenewEvery, turn->released);
    if (turn->held) renew(*turn);
  }
}

// Nobody wants to know any more what comes of it.
void Processor::abandon(Turn& turn) {
  turn.abandoned = true;
  turn.cancel->cancel();
}

// It waits no longer for its conversation's turn.
void Processor::let_go(Turn& turn) {
  turn.held = false;
  turn.released.ring();
}

// What nobody has begun with is given back, and comes again when its agent is started, or with the next start.
Task<void> Processor::release_held(std::string of) {
  std::vector<std::shared_ptr<Turn>> all;
  for (const auto& [name, hosted] : hosted_) {
    if (!of.empty() && name != of) continue;
    for (auto& [lane, turns] : hosted->lanes) {
      all.insert(all.end(), turns.begin(), turns.end());
      turns.clear();
    }
  }
  for (const std::shared_ptr<Turn>& turn : unbegun_) {
    if (!of.empty() && turn->message.to != of) continue;
    all.push_back(turn);
    turn->hosted->lanes.erase(turn->lane);  // it was this one's turn there, and the others have been given back
  }
  std::erase_if(unbegun_, [&of](const auto& turn) { return of.empty() || turn->message.to == of; });
  for (const std::shared_ptr<Turn>& turn : all) {
    let_go(*turn);
    --turn->hosted->turns;
    co_await bus_.release(turn->message.to, {turn->message.lease}, Millis{0}, false);
  }
}

// The same message again, as long as what fails is not the agent: its lease is kept, so nobody else gets it.
Task<void> Processor::work(std::shared_ptr<Turn> turn) {
  while (true) {
    turn->agent = agent_of(*turn->hosted);
    turn->began = clock_.now().boot;
    turn->done = false;
    turn->postponed.reset();
    tasks_.spawn("an agent's handler", handle(turn));
    co_await watch(turn);
    const bool passes = turn->done && !turn->postponed && !turn->outcome && is_passing(turn->outcome.error().code);
    if (!passes || stopping_ || turn->hosted->gone) break;
    log::warn("agent.waits", "an agent could not do its work for a reason that passes; it tries again in a moment",
              {{"id", turn->message.to}, {"what", turn->outcome.error().detail}});
    leave_slot(*turn);
    begin_turns();
    co_await pauses_.pause(kTryAgain);
    renew(*turn);
  }
  co_await finish(turn);
}

std::shared_ptr<Agent> Processor::agent_of(Hosted& hosted) {
  if (!hosted.agent) hosted.agent = kinds_.at(hosted.kind).make();
  return hosted.agent;
}

Task<void> Processor::handle(std::shared_ptr<Turn> turn) {
  TurnHands hands(*this, *turn);
  try {
    turn->outcome = co_await turn->agent->handle(turn->message, hands);
  } catch (const std::exception& e) {
    turn->outcome = fail(Errc::unavailable, fmt::format("the agent ended with an exception: {}", e.what()));
  }
  turn->done = true;
  turn->wake.ring();
}

// Keeps the lease while the handler works, and loses patience with it.
Task<void> Processor::watch(std::shared_ptr<Turn> turn) {
  const BootTime patience_ends = turn->began + options_.patience;
  const BootTime turn_ends = turn->began + turn->hosted->hosting.turn_max.value_or(options_.turn_max);
  BootTime renew_at = turn->began + kRenewEvery;
  while (!turn->done) {
    const BootTime now = clock_.now().boot;
    if (now >= turn_ends) {
      abandon(*turn);
      co_return;
    }
    if (now >= patience_ends && turn->has_slot) give_up_slot(*turn);
    if (now >= renew_at) {
      renew(*turn);
      renew_at = now + kRenewEvery;
    }
    BootTime next = std::min(renew_at, turn_ends);
    if (turn->has_slot) next = std::min(next, patience_ends);
    co_await clock_.sleep_until(next, turn->wake);
  }
}

void Processor::renew(const Turn& turn) {
  const auto renewed = bus_.extend(turn.message.to, {turn.message.lease}, kLease);
  if (!renewed || renewed->acked == 0)
    log::warn("agent.lease_lost", "an agent's message may be delivered again: its lease could not be renewed",
              {{"id", turn.message.to}, {"message", bus::to_text(turn.message.id)}});
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
  if (turn->done && turn->postponed) {
    co_await bus_.release(message.to, {message.lease}, *turn->postponed, false);
    co_return;
  }
  if (turn->done && turn->outcome) {
    const auto acked = co_await bus_.ack_leases(message.to, {message.lease}, message.to);
    if (!acked || acked->acked == 0)
      log::warn("agent.not_acked", "an agent is done with a message, and that could not be stored: it may come again",
                {{"id", message.to}, {"message", bus::to_text(message.id)}});
    co_return;
  }
  std::string why = "it took too long and was given up";
  if (turn->done) why = turn->outcome.error().detail;
  log::warn("agent.failed", "an agent did not get done with a message",
            {{"id", message.to}, {"message", bus::to_text(message.id)}, {"attempt", message.attempt}, {"what", why}});
  // A handler that was given up may still be at work: another agent of that kind takes over.
  if (!turn->done) turn->hosted->agent.reset();
  const bool counts = !turn->done || !is_passing(turn->outcome.error().code);
  co_await bus_.release(message.to, {message.lease}, counts ? retry_after(message.attempt) : Millis{0}, counts);
}

void Processor::look_for_more(Hosted& hosted, bool got_one) {
  if (hosted.gone) return;  // its messages have gone to the dead letters
  const auto counts = bus_.counts(hosted.name);
  if (hosted.came_meanwhile || (got_one && counts && counts->pending > 0)) arrived(hosted.name);
}

Millis Processor::retry_after(int attempt) const {
  Millis wait = options_.retry_first;
  for (int i = 1; i < attempt && wait < options_.retry_longest; ++i) wait *= 2;
  return std::min(wait, options_.retry_longest);
}

}  // namespace belfry::agent
