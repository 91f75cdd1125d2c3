// The tables of runs, and every statement on them. All of it runs on the store's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/run/run.h"
#include "belfry/run/slots.h"
#include "belfry/store/connection.h"

namespace belfry::run {

// Something of a run that has a time.
enum class DueKind {
  feedback = 1,  // of a step
  draft = 2,     // of a step: a text for the case that it will not be done
};

// How much of a run is read: plans and results may be large.
enum class Detail { outline, arguments, beginnings, results };
// Of arguments and results, as much as is shown; and a little more, to see that there is more.
inline constexpr std::int64_t kBeginningBytesMax = 64'100;

struct DueRow {
  std::int64_t due_ms = 0;
  StepKey step;
  DueKind kind = DueKind::feedback;
  bool elapsed = false;
  std::int64_t set_ms = 0;  // by how much the clock on the wall had been set in this life, when it was written
};

class RunTables {
 public:
  static void migrate(store::Connection& connection);

  // Gives the run its number; steps and all. Under `once` the same run is found again; `body` says what was wanted.
  static void insert(store::Connection& connection, Run& run, const std::string& once, const std::string& body);
  struct Known {
    std::int64_t number = 0;
    std::string body;
  };
  static std::optional<Known> find_once(store::Connection& connection, const std::string& once);
  static std::optional<std::int64_t> number_of(store::Connection& connection, const std::string& id);
  static std::optional<Run> find(store::Connection& connection, std::int64_t number, Detail detail);
  // Of each result the beginning, for who shows no more.
  static void read_beginnings(store::Connection& connection, Run& run, std::size_t bytes);
  struct Query {
    std::string session;  // empty: all
    std::string agent;
    std::optional<RunState> state;
    std::int64_t before = INT64_MAX;  // its number
    int limit = 50;
  };
  // Newest first, without arguments and results.
  static std::vector<Run> list(store::Connection& connection, const Query& query);

  static void put_step(store::Connection& connection, std::int64_t run, const Step& step);
  static std::string result_of(store::Connection& connection, StepKey step);
  // As its tool got them; empty if it has not begun.
  static std::string arguments_of(store::Connection& connection, StepKey step);
  static void end_run(store::Connection& connection, const Run& run);
  static std::vector<StepKey> running_steps(store::Connection& connection);
  struct ReadyStep {
    StepKey step;
    std::string tool;
    int crashes = 0;
  };
  static std::vector<ReadyStep> ready_steps(store::Connection& connection);

  // When a tool was last at work; a step that was cancelled counts until then.
  static std::optional<WallTime> last_use(store::Connection& connection, const std::string& tool);

  static void add_event(store::Connection& connection, const Event& event);
  static std::vector<Event> events(store::Connection& connection, std::int64_t run, std::int64_t after, int limit,
                                   std::size_t bytes_max);

  static void add_due(store::Connection& connection, const DueRow& row);
  static void drop_due(store::Connection& connection, const DueRow& row);
  static std::vector<DueRow> due(store::Connection& connection, std::int64_t now_ms, int limit);
  static std::optional<std::int64_t> next_due(store::Connection& connection);
  // The clock on the wall has been set by so much in this life: what waits for elapsed time waits as long as before.
  static void shift_elapsed(store::Connection& connection, std::int64_t set_ms);
  // A new life: nothing is known of how long the machine was off, so the wall counts.
  static void begin_life(store::Connection& connection);

  // All of a run that has ended.
  static void drop(store::Connection& connection, std::int64_t number);
  // Drops a few that ended before this, and says which.
  static std::vector<std::string> drop_old(store::Connection& connection, std::int64_t before_ms);
  // Steps of a session that wait for their time, with the next one first.
  struct Coming {
    std::string run_id;
    std::string title;
    std::string person;
    WallTime created_at;
    int step = 0;
    std::string tool;
    StepState state = StepState::waiting;
    WallTime at;
  };
  static std::vector<Coming> coming_in(store::Connection& connection, const std::string& session, WallTime now,
                                       int limit);
  // Those that an agent (empty: any) waits for in a session.
  static std::vector<std::string> awaited_in(store::Connection& connection, const std::string& session,
                                             const std::string& agent);
  // Runs whose agents are to hear how they ended.
  static void add_tell(store::Connection& connection, std::int64_t run);
  static void drop_tell(store::Connection& connection, std::int64_t run);
  static std::vector<std::int64_t> to_tell(store::Connection& connection, int limit);
  static bool is_to_tell(store::Connection& connection, std::int64_t run);
  // What must hold between the tables, for `doctor`: one line a problem.
  static std::vector<std::string> problems(store::Connection& connection);
};

}  // namespace belfry::run
