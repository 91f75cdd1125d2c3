// Runs and their events as JSON: what is stored, streamed and shown.
#pragma once

#include <string>
#include <string_view>

#include "belfry/base/json.h"
#include "belfry/run/run.h"

namespace belfry::run {

// The members of each kind of event, as an object.
std::string start_members(const Run& run);
std::string plan_members(const Run& run);
std::string args_members(const Step& step);
std::string result_members(const Step& step);
std::string done_members(const Run& run);
// {"type","runId","seq","time","stepIndex","aiName", …members}
std::string event_json(const Run& run, const Event& event, const Step* step, WallTime now, std::string_view members);

// How a run stands. With results: what each tool got and gave back, too.
std::string run_json(const Run& run, bool with_results, const Readings& readings = {});
// How a step's schedule was read, if it was.
void write_reading(json::Writer& writer, const Step& step, const Readings& readings);

// What a person reads of a result.
std::string result_text(const Step& step);
Tongue tongue_of(const Step& step);
// Whether a tool has left something that people can look at.
bool has_files(const Step& step);
// Whether the result of a step that has ended is said in the run's conversation.
bool is_shown(const Run& run, const Step& step);
// What stands in the conversation.
std::string saying_payload(const Run& run, const Step& step, const std::string& text, bool with_result);
// What an agent is told when a run of its own has ended.
std::string ended_payload(const Run& run);

// local__image_draw is called image_draw among people.
std::string_view plain_name(std::string_view tool);

}  // namespace belfry::run
