#include "belfry/chat/private_message_json.h"
#include "belfry/server/routes.h"
#include "belfry/server/scheduled_wire.h"
#include "belfry/server/wire.h"

namespace belfry::server {

void ScheduledRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (ScheduledRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/v1/scheduled?", bound(&ScheduledRoutes::list));
  router.add(Method::post, "/v1/scheduled", bound(&ScheduledRoutes::create));
  router.add(Method::get, "/v1/scheduled/{}", bound(&ScheduledRoutes::get));
  router.add(Method::patch, "/v1/scheduled/{}", bound(&ScheduledRoutes::change));
  router.add(Method::remove, "/v1/scheduled/{}", bound(&ScheduledRoutes::cancel));
  router.add(Method::post, "/v1/scheduled/{}:send", bound(&ScheduledRoutes::send_now));
}

// In the zone of the session that it is said in.
Task<Result<when::Reading>> ScheduledRoutes::read_time(std::string session_id, std::string text) {
  BELFRY_CO_TRY(const chat::Session session, co_await chats_.session(session_id));
  co_return chat::read_send_at(times_, text, session.timezone);
}

Task<Response> ScheduledRoutes::create(Request request) {
  auto wanted = wire::read_scheduled(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto reading = co_await read_time(wanted->message.session, wanted->send_at);
  if (!reading) co_return error_response(reading.error());
  wanted->message.send_at = reading->at;
  const auto created = co_await scheduled_.create(std::move(wanted->message));
  if (!created) co_return error_response(created.error());
  co_return json_response(201, chat::created(*created, *reading, wanted->send_at));
}

Task<Response> ScheduledRoutes::list(Request request) {
  auto wanted = wire::read_scheduled_query(request.query);
  if (!wanted) co_return error_response(wanted.error());
  const auto page = co_await scheduled_.list(std::move(*wanted));
  if (!page) co_return error_response(page.error());
  co_return json_response(200, wire::scheduled_page(*page));
}

Task<Response> ScheduledRoutes::get(Request request) {
  const auto found = co_await scheduled_.get(request.parameter);
  if (!found) co_return error_response(found.error());
  co_return json_response(200, wire::scheduled(*found));
}

Task<Response> ScheduledRoutes::change(Request request) {
  const auto wanted = wire::read_scheduled_change(request.body);
  if (!wanted) co_return error_response(wanted.error());
  chat::ScheduledChange change{.text = wanted->text};
  std::optional<when::Reading> understood;
  if (!wanted->send_at.empty()) {
    const auto found = co_await scheduled_.get(request.parameter);
    if (!found) co_return error_response(found.error());
    auto reading = co_await read_time(found->session_id, wanted->send_at);
    if (!reading) co_return error_response(reading.error());
    change.send_at = reading->at;
    understood = std::move(*reading);
  }
  const auto changed = co_await scheduled_.change(request.parameter, "", std::move(change));
  if (!changed) co_return error_response(changed.error());
  co_return json_response(200, wire::scheduled(*changed, understood, wanted->send_at));
}

Task<Response> ScheduledRoutes::cancel(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto cancelled = co_await scheduled_.cancel(request.parameter, "", "");
  if (!cancelled) co_return error_response(cancelled.error());
  co_return json_response(200, wire::scheduled(*cancelled));
}

Task<Response> ScheduledRoutes::send_now(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto sent = co_await scheduled_.send_now(request.parameter);
  if (!sent) co_return error_response(sent.error());
  co_return json_response(200, wire::scheduled(*sent));
}

}  // namespace belfry::server
