// What the bus hands to the store on its hot paths: values, several in one.
#pragma once

#include <functional>

#include "belfry/bus/message_bus.h"

namespace belfry::bus {

// Messages that end: acked or expired.
class MessageBus::EndWork final : public store::Work {
 public:
  using Done = std::move_only_function<void(std::vector<EndedRow>, Result<>)>;
  EndWork(MessageTables& tables, std::vector<EndedRow> rows, Done done)
      : tables_(tables), rows_(std::move(rows)), done_(std::move(done)) {}

  void apply(store::Connection& connection) override {
    for (const EndedRow& row : rows_) tables_.end(connection, row);
  }
  void done(Result<> outcome) override { done_(std::move(rows_), std::move(outcome)); }
  int rows() const override { return static_cast<int>(rows_.size()); }

 private:
  MessageTables& tables_;
  std::vector<EndedRow> rows_;
  Done done_;
};

// One message that goes to the dead letters.
class MessageBus::DeathWork final : public store::Work {
 public:
  using Done = std::move_only_function<void(RecipientNumber, Result<>)>;
  DeathWork(MessageTables& tables, RecipientNumber recipient, Ready ready, std::string reason, std::int64_t now_ms,
            Done done)
      : tables_(tables),
        recipient_(recipient),
        ready_(ready),
        reason_(std::move(reason)),
        now_ms_(now_ms),
        done_(std::move(done)) {}

  void apply(store::Connection& connection) override {
    if (ready_.attempts > 0) tables_.set_attempts(connection, ready_.order.sequence, ready_.attempts);
    tables_.die(connection, ready_.order.sequence, ready_.place, ready_.order, now_ms_, reason_);
  }
  void done(Result<> outcome) override { done_(recipient_, std::move(outcome)); }

 private:
  MessageTables& tables_;
  RecipientNumber recipient_;
  Ready ready_;
  std::string reason_;
  std::int64_t now_ms_;
  Done done_;
};

// Pending messages that no longer fit into their mailbox's memory.
class MessageBus::OverflowWork final : public store::Work {
 public:
  explicit OverflowWork(MessageBus& bus) : bus_(bus) {}

  void apply(store::Connection& connection) override {
    for (const auto& [recipient, ready] : rows_)
      bus_.tables_.move_to_backlog(connection, ready.place, recipient, ready.order, ready.late_ms);
  }
  void done(Result<> outcome) override { bus_.overflowed(*this, outcome); }
  int rows() const override { return static_cast<int>(rows_.size()); }

  std::vector<std::pair<RecipientNumber, Ready>> rows_;

 private:
  MessageBus& bus_;
};

}  // namespace belfry::bus
