// One turn of an agent that thinks, from the message that it was handed to its end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belfry/agent/planner/planner.h"

namespace belfry::agent {

class Thought {
 public:
  Thought(Planner& planner, std::shared_ptr<const Profile> profile, bus::Delivery message, Hands& hands);
  Task<Result<>> run();

 private:
  // What a transaction found when the turn began, or was taken up again.
  struct Begun {
    Turn turn;
    std::vector<Step> steps;
    Spend spend;
    std::optional<chat::Session> session;  // if the agent is in it
    Millis wait{0};
  };
  // How an answer was put into practice.
  struct Acted {
    std::vector<llm::ChatMessage> results;
    bool all_failed = false;
    bool only_talk = false;  // replies, or the decision to say nothing: there is nothing to go on with
  };
  struct Using;
  class DraftProgress;

  Task<Result<Begun>> begin();
  static Result<Begun> begin_in(store::Connection& connection, Turn turn, const bus::Delivery& message,
                                const Profile& profile, const PlannerOptions& options, WallTime now);
  Task<Result<>> think_and_act();
  Task<Result<>> read_material();
  Material material_from(store::Connection& connection) const;
  Task<Result<>> summarise(std::vector<Item> left_out);

  Task<Result<Step>> next_step(int number);
  Task<Result<llm::ChatAnswer>> ask(llm::ChatRequest request, llm::Progress& progress);
  llm::ChatRequest request() const;
  std::string offered_tools() const;
  std::optional<Error> refusal_of(const std::string& tool) const;

  Task<Result<Acted>> act(const Step& step, int number);
  Task<void> use(std::shared_ptr<Using> all, std::size_t index, ToolUse wanted);
  void remember_found(const std::string& tool, const std::string& result);
  Task<Result<>> say(std::string text, int number);
  std::string draft_id(int number) const;

  Task<Result<>> fail_with(Error error);
  Task<Result<>> wait_for_model(Error error);
  Task<Result<>> end(TurnState state, std::string why);
  Task<Result<>> notice(std::string suffix, std::string english, std::string chinese);
  Task<Result<>> store_turn();

  std::string counterpart() const;
  std::string person() const;
  bool over_budget() const;
  Planner::Runtime& runtime() { return planner_.runtime(message_.to, turn_.conversation); }
  const Planner::Parts& parts() const { return planner_.parts_; }

  Planner& planner_;
  std::shared_ptr<const Profile> profile_;
  bus::Delivery message_;
  Hands& hands_;
  Turn turn_;
  std::optional<chat::Session> session_;
  Spend spend_;
  std::vector<Step> steps_;                  // stored before this life, or in it
  std::vector<llm::ChatMessage> history_;    // up to this turn's message
  std::vector<llm::ChatMessage> this_turn_;  // answers and results since
  std::shared_ptr<Cancel> cancel_;
  std::string asked_in_;  // the text that it answers: for the language of notices
  bool said_something_ = false;
  int vain_steps_ = 0;  // in a row, in which every call failed
};

}  // namespace belfry::agent
