// JSON of runs to types and back: the part of wire for their routes. Their events are written by run/, which stores them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/run/runs.h"

namespace belfry::server::wire {

Result<run::NewRun> read_new_run(std::string_view body);

struct RunsQuery {
  run::RunTables::Query query;
  std::string after;  // the id of the last run of the page before
};
Result<RunsQuery> read_runs_query(std::string_view query);
std::string runs(const std::vector<run::Run>& runs, int limit);
// Whether arguments and results are wanted, too: ?results=false leaves them out.
Result<bool> read_run_query(std::string_view query);

struct EventsQuery {
  std::int64_t after = 0;
  Millis wait{0};
  bool as_json = false;  // one page instead of a stream
};
Result<EventsQuery> read_events_query(std::string_view query, const std::string& last_event_id);
std::string events(const std::vector<run::Event>& events);
// As a stream of server-sent events has it.
std::string server_sent(const run::Event& event);

// {runId}.{step}.{name}
struct FileName {
  std::string run;
  int step = 0;
  std::string name;
};
Result<FileName> read_file_name(std::string_view text);

}  // namespace belfry::server::wire
