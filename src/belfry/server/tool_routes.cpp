#include "belfry/server/routes.h"
#include "belfry/server/tool_wire.h"

namespace belfry::server {

void ToolRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (ToolRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/v1/tools?", bound(&ToolRoutes::list));
  router.add(Method::post, "/v1/tools/{}:call", bound(&ToolRoutes::call));
  router.add(Method::get, "/v1/calls?", bound(&ToolRoutes::calls));
}

Task<Response> ToolRoutes::list(Request request) {
  const auto session_id = wire::read_tools_query(request.query);
  if (!session_id) co_return error_response(session_id.error());
  if (session_id->empty()) co_return json_response(200, wire::tools(tools_.definitions()));
  const auto session = co_await chats_.session(*session_id);
  if (!session) co_return error_response(session.error());
  co_return json_response(200, wire::tools(tools_.definitions(&*session)));
}

Task<Response> ToolRoutes::call(Request request) {
  auto wanted = wire::read_call(request.body);
  if (!wanted) co_return error_response(wanted.error());
  wanted->tool = request.parameter;
  const auto outcome = co_await tools_.call(std::move(*wanted));
  if (!outcome) co_return error_response(outcome.error());
  if (!outcome->ok) co_return json_response(status_of(outcome->code), outcome->result);
  co_return json_response(200, wire::called(*outcome));
}

Task<Response> ToolRoutes::calls(Request request) {
  auto wanted = wire::read_calls_query(request.query);
  if (!wanted) co_return error_response(wanted.error());
  const auto page = co_await tools_.calls(std::move(*wanted));
  if (!page) co_return error_response(page.error());
  co_return json_response(200, wire::calls(*page));
}

}  // namespace belfry::server
