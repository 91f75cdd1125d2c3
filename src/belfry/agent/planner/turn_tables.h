// What thinking agents have done: their turns, each answer of the model before it is acted on, what they have read, and what
// it cost. All of it runs on the store's thread.
//
//   turn        one row a message that an agent was handed: what came of it, and the message itself where no log has it
//   turn_step   the model's answers of a turn, in order
//   read_to     how far an agent has read a conversation: what it has read wakes it no more
//   summary     what was said so long ago that it is not told word by word
//   task_spend  turns, calls of the model and tokens of a task, however many agents have a part in it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/time.h"
#include "belfry/llm/model.h"
#include "belfry/store/connection.h"

namespace belfry::agent {

enum class TurnState {
  waiting,    // the gate says: later
  open,       // thought about
  done,       // came to its end
  silent,     // the gate says: nothing to say
  merged,     // an earlier turn had read the message already
  cancelled,  // somebody pressed stop
  failed,     // it says why
};
std::string_view word(TurnState state);
TurnState parse_turn_state(std::string_view text);

struct Turn {
  std::string agent;
  std::string message;  // the id of what it was handed
  std::string conversation;
  std::string from;
  std::string payload;  // empty if the conversation's log has it
  std::string task;
  std::int64_t up_to = 0;  // the last line of the log that it knows of
  TurnState state = TurnState::open;
  std::string why;  // what the gate said, or what went wrong
  WallTime written_at;
  WallTime due_at;
  WallTime began_at;
  std::optional<WallTime> ended_at;
  int failures = 0;                       // times in a row that no model could be asked
  std::optional<WallTime> failing_since;  // the first of these
  std::string answered;                   // what it said to another agent's question
};

// An answer of the model, as it is kept.
struct Step {
  std::string text;
  std::vector<llm::ToolCall> calls;
};

struct Spend {
  std::int64_t turns = 0;
  std::int64_t calls = 0;
  std::int64_t tokens = 0;
};

struct Summary {
  WallTime up_to;
  std::string text;
};

class TurnTables {
 public:
  static void migrate(store::Connection& connection);
  // A new agent of an old name knows nothing of what the other one did.
  static void forget_agent(store::Connection& connection, const std::string& agent);
  // Drops some of the oldest turns and accounts if they are older than this, so that each new one makes room.
  static void drop_old(store::Connection& connection, std::int64_t before_ms);

  static std::optional<Turn> find(store::Connection& connection, const std::string& agent, const std::string& message);
  static void put(store::Connection& connection, const Turn& turn);
  // The latest turns of a conversation, in order.
  static std::vector<Turn> latest(store::Connection& connection, const std::string& agent,
                                  const std::string& conversation, int limit);
  static std::vector<Turn> list(store::Connection& connection, const std::string& agent, int limit);

  // Whether another turn of the conversation waits for its model already.
  static bool another_fails(store::Connection& connection, const Turn& turn);
  // Ends those of a conversation that wait for something. Returns their messages.
  static std::vector<std::string> cancel_open(store::Connection& connection, const std::string& agent,
                                              const std::string& conversation, std::int64_t now_ms);

  static std::vector<Step> steps(store::Connection& connection, const std::string& agent, const std::string& message);
  // False if that step has an answer already.
  static bool add_step(store::Connection& connection, const Turn& turn, int step, const Step& answer);

  static std::int64_t read_to(store::Connection& connection, const std::string& agent, const std::string& conversation);
  static void set_read_to(store::Connection& connection, const std::string& agent, const std::string& conversation,
                          std::int64_t seq);

  static std::optional<Summary> summary(store::Connection& connection, const std::string& agent,
                                        const std::string& conversation);
  static void set_summary(store::Connection& connection, const std::string& agent, const std::string& conversation,
                          const Summary& summary);

  static Spend spent(store::Connection& connection, const std::string& task);
  // It begins anew.
  static void forgive(store::Connection& connection, const std::string& task);
  // Adds to what a task has cost, and says what that makes.
  static Spend spend(store::Connection& connection, const std::string& task, const Spend& more, std::int64_t now_ms);
};

}  // namespace belfry::agent
