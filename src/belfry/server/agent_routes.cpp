#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/server/routes.h"
#include "belfry/server/wire.h"

namespace belfry::server {

void AgentRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (AgentRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/v1/agents", bound(&AgentRoutes::list));
  router.add(Method::post, "/v1/agents", bound(&AgentRoutes::add));
  router.add(Method::get, "/v1/agents/{}", bound(&AgentRoutes::get));
  router.add(Method::remove, "/v1/agents/{}", bound(&AgentRoutes::remove));
}

Task<Response> AgentRoutes::list(Request request) {
  const auto page = wire::read_page_query(request.query);
  if (!page) co_return error_response(page.error());
  const std::vector<bus::RecipientRow> rows = bus_.recipients();
  auto at = std::upper_bound(rows.begin(), rows.end(), page->after,
                             [](const std::string& name, const bus::RecipientRow& row) { return name < row.name; });
  std::string agents;
  std::string last;
  int count = 0;
  for (; at != rows.end() && count < page->limit; ++at, ++count) {
    agents +=
        fmt::format("{}{}", agents.empty() ? "" : ",", wire::agent(*at, bus_.counts(at->name).value_or(bus::Counts{})));
    last = at->name;
  }
  co_return json_response(200, wire::agents(agents, at != rows.end() ? last : ""));
}

Task<Response> AgentRoutes::add(Request request) {
  auto wanted = wire::read_agent(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto row = co_await bus_.add_recipient(std::move(wanted->id), std::move(wanted->kind));
  if (!row) co_return error_response(row.error());
  co_return json_response(201, wire::agent(*row, {}));
}

Task<Response> AgentRoutes::get(Request request) {
  const auto row = bus_.recipient(request.parameter);
  if (!row) co_return error_response(row.error());
  co_return json_response(200, wire::agent(*row, bus_.counts(row->name).value_or(bus::Counts{})));
}

Task<Response> AgentRoutes::remove(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const std::string id = request.parameter;
  const auto removed = co_await bus_.remove_recipient(id);
  if (!removed) co_return error_response(removed.error());
  co_return json_response(200, wire::removed_agent(id));
}

}  // namespace belfry::server
