// Short facts about people, kept by agents whose profile has `memory` (A6).
//
// After each message that is said in a conversation of such an agent, its model is asked what is worth keeping; messages that
// come meanwhile are looked at together. How far a conversation was looked at is on the disk, so that a crash leaves nothing
// out. Whoever a fact is about can see it and have it forgotten.
//
// Lives on the kernel's thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "belfry/agent/planner/memory_tables.h"
#include "belfry/agent/roster.h"
#include "belfry/base/cancel.h"
#include "belfry/base/task_group.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/clock.h"
#include "belfry/llm/model.h"
#include "belfry/store/store.h"

namespace belfry::agent {

class Memory final : public chat::Listener {
 public:
  // Makes its tables. Before store.start(); throws store::Fault. Without a model nothing is learnt.
  Memory(asio::io_context& context, Clock& clock, store::Store& store, chat::Chats& chats, Roster& roster,
         llm::Model* model, std::int64_t task_calls_max);
  ~Memory() override;

  void said(const std::string& session, const chat::Line& line) override;

  Task<Result<std::vector<Fact>>> facts(std::string person);
  Task<Result<>> forget(std::string person, std::int64_t number);
  Task<Result<std::int64_t>> forget_all(std::string person);

  // For a stop: what was not looked at is looked at after the next message.
  void close();
  Task<void> stop() { return tasks_.join(); }

 private:
  // What is new in a conversation, and what is known of its people.
  struct Looked {
    std::string model;
    std::vector<std::string> people;
    std::vector<chat::Line> lines;
    std::vector<Fact> known;
  };
  struct Learnt {
    std::vector<Fact> facts;
    std::vector<std::int64_t> forget;
  };

  Task<void> look(std::string session);
  Task<Result<bool>> look_once(std::string session);
  Task<Result<std::optional<Looked>>> read(std::string session);
  Task<Result<>> write(std::string session, Looked looked, Learnt learnt);
  static llm::ChatRequest request(const Looked& looked);
  static Result<Learnt> read_answer(const std::string& text, const Looked& looked, const std::string& session);

  Clock& clock_;
  store::Store& store_;
  chat::Chats& chats_;
  Roster& roster_;
  llm::Model* model_;
  std::int64_t task_calls_max_;
  std::set<std::string> looking_;
  std::set<std::string> came_meanwhile_;
  std::set<std::shared_ptr<Cancel>> under_way_;  // requests to the model
  bool closed_ = false;
  TaskGroup tasks_;
};

}  // namespace belfry::agent
