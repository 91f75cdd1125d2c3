#include <algorithm>
#include <array>

#include "belfry/run/files.h"
#include "belfry/run/run_json.h"
#include "belfry/server/routes.h"
#include "belfry/server/run_wire.h"
#include "belfry/server/wire.h"

namespace belfry::server {
namespace {

// Something goes over the wire at least this often: whoever is between here and the client keeps the connection.
constexpr Millis kHeartbeat{15'000};
// Read ahead of a client that may not read.
constexpr std::size_t kStreamPageBytesMax = 64u << 10;

struct FileType {
  std::string_view ending;
  std::string_view type;
};
// What a browser may show by itself. Everything else is to be saved: a page of a tool's making must not run as one of ours.
constexpr std::array kShown = {FileType{".png", "image/png"},   FileType{".jpg", "image/jpeg"},
                               FileType{".jpeg", "image/jpeg"}, FileType{".gif", "image/gif"},
                               FileType{".webp", "image/webp"}, FileType{".txt", "text/plain; charset=utf-8"}};

// Cameras write PIC.JPG.
std::string_view type_of(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const FileType& one : kShown)
    if (name.ends_with(one.ending)) return one.type;
  return "application/octet-stream";
}

}  // namespace

void RunRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (RunRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::post, "/v1/runs", bound(&RunRoutes::create));
  router.add(Method::get, "/v1/runs?", bound(&RunRoutes::list));
  router.add(Method::get, "/v1/runs/{}?", bound(&RunRoutes::get));
  router.add(Method::post, "/v1/runs/{}:cancel", bound(&RunRoutes::cancel));
  router.add(Method::remove, "/v1/runs/{}", bound(&RunRoutes::remove));
  router.add_stream(
      Method::get, "/v1/runs/{}/events?",
      [this](Request request, Exchange& exchange) { return events(std::move(request), exchange); }, 0);
  router.add(Method::get, "/v1/files/{}", bound(&RunRoutes::file));
}

Task<Response> RunRoutes::create(Request request) {
  auto wanted = wire::read_new_run(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto created = co_await runs_.create(std::move(*wanted));
  if (!created) co_return error_response(created.error());
  co_return json_response(created->repeated ? 200 : 201,
                          run::run_json(created->run, false, runs_.readings(created->run)));
}

Task<Response> RunRoutes::list(Request request) {
  auto wanted = wire::read_runs_query(request.query);
  if (!wanted) co_return error_response(wanted.error());
  const int limit = wanted->query.limit;
  const auto runs = co_await runs_.list(std::move(wanted->query), std::move(wanted->after));
  if (!runs) co_return error_response(runs.error());
  co_return json_response(200, wire::runs(*runs, limit));
}

Task<Response> RunRoutes::get(Request request) {
  const auto with_results = wire::read_run_query(request.query);
  if (!with_results) co_return error_response(with_results.error());
  // gcc and clang disagree about co_await in a ?: expression; and it reads better so.
  auto run = Result<run::Run>(fail(Errc::not_found, ""));
  if (*with_results) {
    run = co_await runs_.get(request.parameter, run::Detail::beginnings);
  } else {
    run = co_await runs_.get(request.parameter, run::Detail::outline);
  }
  if (!run) co_return error_response(run.error());
  co_return json_response(200, run::run_json(*run, *with_results));
}

Task<Response> RunRoutes::cancel(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto run = co_await runs_.cancel(request.parameter);
  if (!run) co_return error_response(run.error());
  co_return json_response(200, run::run_json(*run, false));
}

Task<Response> RunRoutes::remove(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto removed = co_await runs_.remove(request.parameter);
  if (!removed) co_return error_response(removed.error());
  json::Writer writer;
  co_return json_response(200, writer.object().field("runId", request.parameter).field("result", "done").end().take());
}

Task<Response> RunRoutes::events(Request request, Exchange& exchange) {
  const auto wanted = wire::read_events_query(request.query, request.last_event_id);
  if (!wanted) co_return error_response(wanted.error());
  run::EventsRequest from{.id = request.parameter, .after = wanted->after, .wait = wanted->wait};
  const bool waits = !wanted->as_json || wanted->wait > Millis{0};
  if (waits && request.watch) {
    from.departure = std::make_shared<bus::Departure>();
    request.watch->begin(from.departure);
  }
  if (!wanted->as_json) co_return co_await stream(std::move(from), exchange);
  const auto events = co_await runs_.events(std::move(from));
  if (!events) co_return error_response(events.error());
  co_return json_response(200, wire::events(*events));
}

// Ends after the last event, and when the server does.
Task<Response> RunRoutes::stream(run::EventsRequest wanted, Exchange& exchange) {
  wanted.wait = Millis{0};
  wanted.bytes_max = kStreamPageBytesMax;
  auto events = co_await runs_.events(wanted);
  if (!events) co_return error_response(events.error());
  if (events->empty()) {
    const auto run = co_await runs_.get(wanted.id, run::Detail::outline);
    // All of it was read before. A browser connects again after each end, until it hears this.
    if (run && run->ended_at && run->last_event <= wanted.after) {
      Response nothing_more;
      nothing_more.status = 204;
      co_return nothing_more;
    }
  }
  exchange.set_content_type("text/event-stream");
  bool alive = (co_await exchange.write(": the events of a run\n\n")).has_value();
  wanted.wait = kHeartbeat;
  while (alive && events) {
    for (run::Event& event : *events) {
      if (!alive) break;
      std::string text = wire::server_sent(event);
      std::string().swap(event.json);  // what waits is there once
      alive = (co_await exchange.write(std::move(text))).has_value();
      wanted.after = event.seq;
    }
    if (alive) alive = (co_await exchange.drain()).has_value();
    const bool ended = !events->empty() && events->back().is_last();
    if (!alive || ended || runs_.closed() || (wanted.departure && wanted.departure->left())) break;
    events = co_await runs_.events(wanted);
    if (!events || !events->empty()) continue;
    // Nothing in all that time; or there is nothing to come any more.
    const auto run = co_await runs_.get(wanted.id, run::Detail::outline);
    if (!run || run->ended_at || runs_.closed()) break;
    alive = (co_await exchange.write(": still here\n\n")).has_value();
  }
  co_return Response{};
}

Task<Response> RunRoutes::file(Request request) {
  const auto wanted = wire::read_file_name(request.parameter);
  if (!wanted) co_return error_response(wanted.error());
  // What is held is nobody's yet, its files neither; and what was cancelled is never anybody's.
  const auto run = co_await runs_.get(wanted->run, run::Detail::outline);
  const bool exists = run && static_cast<std::size_t>(wanted->step) < run->steps.size();
  const auto state =
      exists ? run->steps[static_cast<std::size_t>(wanted->step)].feedback.state : run::StepState::waiting;
  const bool reported = run::is_final(state) && state != run::StepState::cancelled;
  if (!reported) co_return error_response({Errc::not_found, "there is no such file"});
  auto bytes = run::read_file(runs_.files(), wanted->run, wanted->step, wanted->name);
  if (!bytes) co_return error_response(bytes.error());
  Response response;
  response.body = std::move(*bytes);
  response.content_type = type_of(wanted->name);
  response.cache_control = "private, max-age=3600";
  response.headers.push_back({"Content-Security-Policy", "default-src 'none'; sandbox"});
  if (response.content_type == "application/octet-stream")
    response.headers.push_back({"Content-Disposition", "attachment"});
  co_return response;
}

}  // namespace belfry::server
