#include "belfry/server/chat_wire.h"
#include "belfry/server/routes.h"

namespace belfry::server {

void SessionRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (SessionRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/v1/people", bound(&SessionRoutes::people));
  router.add(Method::post, "/v1/sessions", bound(&SessionRoutes::open));
  router.add(Method::get, "/v1/sessions?", bound(&SessionRoutes::list));
  router.add(Method::get, "/v1/sessions/{}", bound(&SessionRoutes::get));
  router.add(Method::get, "/v1/sessions/{}/messages?", bound(&SessionRoutes::lines));
  router.add(Method::post, "/v1/sessions/{}/messages", bound(&SessionRoutes::post));
  router.add(Method::post, "/v1/sessions/{}/drafts", bound(&SessionRoutes::draft));
  router.add(Method::get, "/v1/sessions/{}/drafts", bound(&SessionRoutes::drafts));
}

Task<Response> SessionRoutes::people(Request) { co_return json_response(200, wire::people(chats_.people())); }

Task<Response> SessionRoutes::open(Request request) {
  auto wanted = wire::read_session(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto opened = co_await chats_.open(std::move(*wanted));
  if (!opened) co_return error_response(opened.error());
  co_return json_response(201, wire::session(opened->session));
}

Task<Response> SessionRoutes::list(Request request) {
  auto wanted = wire::read_sessions_query(request.query);
  if (!wanted) co_return error_response(wanted.error());
  const auto page = co_await chats_.sessions(wanted->member, wanted->after, wanted->limit);
  if (!page) co_return error_response(page.error());
  co_return json_response(200, wire::sessions(*page));
}

Task<Response> SessionRoutes::get(Request request) {
  const auto session = co_await chats_.session(request.parameter);
  if (!session) co_return error_response(session.error());
  co_return json_response(200, wire::session(*session));
}

Task<Response> SessionRoutes::lines(Request request) {
  auto query = wire::read_lines_query(request.query);
  if (!query) co_return error_response(query.error());
  auto* const wanted = &query->lines;
  wanted->session = request.parameter;
  if (!query->search.empty()) {
    chat::SearchRequest search{.session = wanted->session, .text = query->search, .limit = wanted->limit};
    if (wanted->before) search.before = *wanted->before;
    const auto found = co_await chats_.search(std::move(search));
    if (!found) co_return error_response(found.error());
    co_return json_response(200, wire::found(*found));
  }
  // Only a reader that has to wait is worth watching its client: one that is gone must not stand in anybody's way.
  const Millis wait = wanted->wait;
  if (wait >= Millis{0} && wait <= kReceiveWaitMax) wanted->wait = Millis{0};
  auto lines = co_await chats_.lines(*wanted);
  if (lines && lines->empty() && wait > Millis{0} && !wanted->before) {
    wanted->wait = wait;
    wanted->departure = std::make_shared<bus::Departure>();
    request.watch->begin(wanted->departure);
    lines = co_await chats_.lines(std::move(*wanted));
  }
  if (!lines) co_return error_response(lines.error());
  co_return json_response(200, wire::lines(*lines));
}

Task<Response> SessionRoutes::post(Request request) {
  auto wanted = wire::read_post(request.body);
  if (!wanted) co_return error_response(wanted.error());
  wanted->session = request.parameter;
  const auto posted = co_await chats_.post(std::move(*wanted));
  if (!posted) co_return error_response(posted.error());
  co_return json_response(201, wire::posted(*posted));
}

Task<Response> SessionRoutes::draft(Request request) {
  auto draft = wire::read_draft(request.body);
  if (!draft) co_return error_response(draft.error());
  const auto taken = co_await chats_.draft(request.parameter, std::move(*draft));
  if (!taken) co_return error_response(taken.error());
  co_return json_response(202, "{}");
}

Task<Response> SessionRoutes::drafts(Request request) {
  const auto session = co_await chats_.session(request.parameter);
  if (!session) co_return error_response(session.error());
  co_return json_response(200, wire::drafts(chats_.drafts(session->id)));
}

}  // namespace belfry::server
