#include "belfry/server/run_wire.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "belfry/base/digest.h"
#include "belfry/base/fields.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/recipients.h"
#include "belfry/bus/send_request.h"
#include "belfry/run/run_json.h"
#include "belfry/server/http_message.h"
#include "belfry/server/query.h"

namespace belfry::server::wire {
namespace {

using json::Fields;

Result<> read_context(const Fields& fields, run::NewRun& wanted) {
  const auto context = fields.find("context");
  if (!context) return {};
  BELFRY_TRY(const Fields inner,
             Fields::read("context", context->raw, {"agentId", "sessionId", "taskId", "timezone", "replyTo"}));
  BELFRY_CHECK(inner.text("agentId", wanted.agent));
  BELFRY_CHECK(inner.text("sessionId", wanted.session));
  BELFRY_CHECK(inner.text("taskId", wanted.task));
  BELFRY_CHECK(inner.text("timezone", wanted.timezone));
  BELFRY_CHECK(inner.text("replyTo", wanted.reply_to));
  BELFRY_CHECK(bus::check_speaker("agentId", wanted.agent));
  if (!wanted.session.empty()) BELFRY_CHECK(bus::check_id("sessionId", wanted.session));
  if (wanted.task.size() > kTaskIdBytesMax)
    return fail(Errc::invalid_argument, fmt::format("taskId is longer than {} bytes", kTaskIdBytesMax));
  return {};
}

// What is asked for under a key is compared by its digest.
std::string fingerprint(std::string_view body) {
  const Digest digest = belfry::digest(body);
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(digest.high), static_cast<std::uint64_t>(digest.low));
}

}  // namespace

Result<run::NewRun> read_new_run(std::string_view body) {
  BELFRY_TRY(const Fields fields, Fields::read("a run", body, {"plan", "overlays", "context", "key"}));
  run::NewRun wanted;
  const auto plan = fields.find("plan");
  if (!plan) return fail(Errc::invalid_plan, "there is no plan; {\"plan\": {\"steps\": [{\"aiName\": …}]}} is one");
  BELFRY_TRY(wanted.plan, run::read_plan(*plan));
  if (const auto overlays = fields.find("overlays")) {
    BELFRY_TRY(wanted.overlays, run::read_overlays(*overlays));
  }
  BELFRY_CHECK(read_context(fields, wanted));
  wanted.tells_agent = !wanted.agent.empty();
  std::string key;
  BELFRY_CHECK(fields.text("key", key));
  if (key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("key is longer than {} bytes", kKeyBytesMax));
  if (!key.empty()) {
    wanted.once = "key\n" + key;
    wanted.body = fingerprint(body);
  }
  return wanted;
}

Result<RunsQuery> read_runs_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  RunsQuery wanted;
  for (const auto& [name, value] : pairs) {
    if (name == "session") {
      wanted.query.session = value;
    } else if (name == "agent") {
      wanted.query.agent = value;
    } else if (name == "state") {
      wanted.query.state = run::parse_run_state(value);
      if (!wanted.query.state)
        return fail(
            Errc::invalid_argument,
            fmt::format("state is \"{}\"; it is running, completed, failed or cancelled", shortened(value, 64)));
    } else if (name == "after") {
      wanted.after = value;
    } else if (name == "limit") {
      BELFRY_TRY(wanted.query.limit, read_limit(value));
    } else {
      return unknown_parameter(name, "session, agent, state, after, limit");
    }
  }
  return wanted;
}

std::string runs(const std::vector<run::Run>& runs, int limit) {
  json::Writer writer;
  writer.object().key("runs").array();
  for (const run::Run& one : runs) writer.raw(run::run_json(one, false));
  writer.end();
  if (static_cast<int>(runs.size()) == limit) writer.field("next", runs.back().id);
  return writer.end().take();
}

Result<bool> read_run_query(std::string_view query) {
  BELFRY_TRY(const auto pairs, query_pairs(query));
  bool with_results = true;
  for (const auto& [name, value] : pairs) {
    if (name != "results") return unknown_parameter(name, "results");
    if (value != "true" && value != "false")
      return fail(Errc::invalid_argument, fmt::format("results is \"{}\"; it is true or false", shortened(value, 64)));
    with_results = value == "true";
  }
  return with_results;
}

Result<EventsQuery> read_events_query(std::string_view query, const std::string& last_event_id) {
  EventsQuery wanted;
  if (!last_event_id.empty()) {
    BELFRY_TRY(wanted.after, read_number("Last-Event-ID", last_event_id));
  }
  BELFRY_TRY(const auto pairs, query_pairs(query));
  for (const auto& [name, value] : pairs) {
    if (name == "after") {
      // A browser that comes back sends both, and `after` stands in its address for ever: what it has read counts.
      BELFRY_TRY(const std::int64_t after, read_number(name, value));
      wanted.after = std::max(wanted.after, after);
    } else if (name == "waitMs") {
      BELFRY_TRY(const std::int64_t ms, read_number(name, value));
      if (ms > kReceiveWaitMax.count())
        return fail(Errc::invalid_argument,
                    fmt::format("waitMs is {}; 0 to {} are possible", ms, kReceiveWaitMax.count()));
      wanted.wait = Millis{ms};
    } else if (name == "format") {
      if (value != "json" && value != "sse")
        return fail(Errc::invalid_argument, fmt::format("format is \"{}\"; it is sse or json", shortened(value, 64)));
      wanted.as_json = value == "json";
    } else {
      return unknown_parameter(name, "after, format, waitMs");
    }
  }
  return wanted;
}

std::string events(const std::vector<run::Event>& events) {
  json::Writer writer;
  writer.object().key("events").array();
  for (const run::Event& one : events) writer.raw(one.json);
  return writer.end().end().take();
}

std::string server_sent(const run::Event& event) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", event.seq, event.type, event.json);
}

Result<FileName> read_file_name(std::string_view text) {
  const std::size_t first = text.find('.');
  const std::size_t second = first == std::string_view::npos ? first : text.find('.', first + 1);
  FileName name;
  const std::string_view step = second == std::string_view::npos ? "" : text.substr(first + 1, second - first - 1);
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), name.step);
  if (step.empty() || error != std::errc{} || end != step.data() + step.size() || name.step < 0)
    return fail(Errc::not_found, "there is no such file; one is called RUNID.STEP.NAME");
  name.run = text.substr(0, first);
  name.name = text.substr(second + 1);
  return name;
}

}  // namespace belfry::server::wire
