// What the bus hands to the store on its hot paths: values, several in one.
#pragma once

#include <functional>
#include <iterator>

#include "belfry/bus/message_bus.h"

namespace belfry::bus {

// Messages that end: acked or expired. `done` gets, if it was written, those that had not ended before.
class MessageBus::EndWork final : public store::Work {
 public:
  using Done = std::move_only_function<void(std::vector<EndedRow>, Result<>)>;
  EndWork(MessageTables& tables, std::vector<EndedRow> rows, Done done)
      : tables_(tables), rows_(std::move(rows)), done_(std::move(done)) {}

  void apply(store::Connection& connection) override {
    ended_.clear();
    for (const EndedRow& row : rows_) ended_.push_back(tables_.end(connection, row));
  }
  void done(Result<> outcome) override {
    if (outcome) {
      std::size_t i = 0;
      std::erase_if(rows_, [&](const EndedRow&) { return !ended_[i++]; });
    }
    done_(std::move(rows_), std::move(outcome));
  }
  int rows() const override { return static_cast<int>(rows_.size()); }

 private:
  MessageTables& tables_;
  std::vector<EndedRow> rows_;
  std::vector<bool> ended_;
  Done done_;
};

// Messages that go to the dead letters.
class MessageBus::DeathWork final : public store::Work {
 public:
  DeathWork(MessageBus& bus, std::vector<Death> deaths, std::int64_t now_ms)
      : bus_(bus), deaths_(std::move(deaths)), now_ms_(now_ms) {}

  void apply(store::Connection& connection) override {
    died_.clear();
    for (const Death& death : deaths_) {
      const Ready& ready = death.ready;
      if (ready.attempts > 0) bus_.tables_.set_attempts(connection, ready.order.sequence, ready.attempts);
      if (bus_.tables_.die(connection,
                           {.sequence = ready.order.sequence,
                            .place = ready.place,
                            .order = ready.order,
                            .delivered_ms = ready.delivered_ms,
                            .late_ms = ready.forced ? std::nullopt : std::optional<std::int64_t>(ready.late_ms),
                            .died_ms = now_ms_,
                            .reason = death.reason}))
        died_.push_back(death.recipient);
    }
  }
  void done(Result<> outcome) override {
    if (outcome) {
      for (const RecipientNumber number : died_) ++bus_.recipients_[number].dead;
    } else {
      std::move(deaths_.begin(), deaths_.end(), std::back_inserter(bus_.deaths_));
    }
  }
  int rows() const override { return static_cast<int>(deaths_.size()); }

 private:
  MessageBus& bus_;
  std::vector<Death> deaths_;
  std::int64_t now_ms_;
  std::vector<RecipientNumber> died_;  // those that were still alive
};

// Pending messages that no longer fit into their mailbox's memory.
class MessageBus::OverflowWork final : public store::Work {
 public:
  explicit OverflowWork(MessageBus& bus) : bus_(bus) {}

  void apply(store::Connection& connection) override {
    for (const auto& [recipient, ready] : rows_)
      bus_.tables_.move_to_backlog(connection, ready.place, recipient, ready.order, ready.late_ms,
                                   ready.expires_ms != 0 ? std::optional(ready.expires_ms) : std::nullopt);
  }
  void done(Result<> outcome) override { bus_.overflowed(*this, outcome); }
  int rows() const override { return static_cast<int>(rows_.size()); }

  std::vector<std::pair<RecipientNumber, Ready>> rows_;

 private:
  MessageBus& bus_;
};

}  // namespace belfry::bus
