// A run: a plan that is being carried out, and what has become of it. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/time.h"
#include "belfry/run/feedback.h"
#include "belfry/run/plan.h"
#include "belfry/run/progress_text.h"
#include "belfry/when/when.h"

namespace belfry::run {

enum class RunState { running, completed, failed, cancelled };
std::string_view word(RunState state);
std::optional<RunState> parse_run_state(std::string_view text);

struct Step {
  int index = 0;
  PlannedStep plan;
  Feedback feedback;
  Millis delay{0};       // from where its time counts to its time
  bool elapsed = false;  // its time is so long after something, not a time of day: clocks that are set do not move it
  std::int64_t set_ms = 0;  // by how much the clock had been set in this life, when its time was written
  Millis timeout{0};        // once it runs
  int crashes = 0;          // ends of the server that it was at work in
  std::optional<WallTime> started_at;
  std::optional<WallTime> ended_at;     // its tool
  std::optional<WallTime> notified_at;  // it was said that it is in progress
  std::optional<WallTime> reported_at;  // its final result was said
  std::string arguments;                // as the tool got them, references filled in
  std::string result;                   // JSON: what it gave back
  std::string error;                    // or {"code", "message"}
  std::string progress{};               // JSON: what its tool last said, while it works; stored nowhere

  bool succeeded() const { return feedback.ending == Ending::success; }
};

// On whose behalf, and where.
struct Owner {
  std::string agent;    // hears the end as a message, if it is told
  std::string session;  // where notices and results are said; empty: nowhere
  std::string speaker;  // in whose name, there
  std::string person;   // to whom
  std::string task;
};

struct Run {
  std::int64_t number = 0;
  std::string id;
  std::string title;
  RunState state = RunState::running;
  Owner owner;
  bool tells_agent = false;
  bool quiet = false;          // an agent waits for it and says what there is to say; only files are shown
  std::int64_t after_seq = 0;  // the last line of its session when it began
  Overlays overlays;
  WallTime created_at;
  std::optional<WallTime> ended_at;
  std::int64_t last_event = 0;
  std::vector<Step> steps;
};

// How the schedules of steps were read, by their numbers.
using Readings = std::map<int, when::Reading>;

// Something that happened in a run. Numbers are dense: 1, 2, 3, …
struct Event {
  std::int64_t run = 0;
  std::string run_id;
  std::int64_t seq = 0;
  std::string type;
  std::string json;  // all of it, as it is stored and streamed

  bool is_last() const { return type == "done"; }
};

}  // namespace belfry::run
