#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/server/routes.h"
#include "belfry/server/wire.h"

namespace belfry::server {
namespace {

std::string_view meaning_of_reserved(const std::string& id) {
  if (id == chat::kDefaultPerson) return "the person that every Belfry has";
  if (id == chat::kBelfry) return "the name that Belfry itself speaks under";
  return {};
}

}  // namespace

void AgentRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (AgentRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/v1/agents", bound(&AgentRoutes::list));
  router.add(Method::post, "/v1/agents", bound(&AgentRoutes::add));
  router.add(Method::get, "/v1/agents/{}", bound(&AgentRoutes::get));
  router.add(Method::remove, "/v1/agents/{}", bound(&AgentRoutes::remove));
  router.add(Method::post, "/v1/agents/{}:stop",
             [this](Request request) { return set_stopped(request.parameter, true); });
  router.add(Method::post, "/v1/agents/{}:start",
             [this](Request request) { return set_stopped(request.parameter, false); });
}

Task<Response> AgentRoutes::list(Request request) {
  const auto page = wire::read_page_query(request.query);
  if (!page) co_return error_response(page.error());
  std::vector<bus::RecipientRow> rows = bus_.recipients();
  std::erase_if(rows, [](const bus::RecipientRow& row) { return row.kind == chat::kPersonKind; });
  auto at = std::upper_bound(rows.begin(), rows.end(), page->after,
                             [](const std::string& name, const bus::RecipientRow& row) { return name < row.name; });
  std::string agents;
  std::string last;
  int count = 0;
  for (; at != rows.end() && count < page->limit; ++at, ++count) {
    agents += fmt::format("{}{}", agents.empty() ? "" : ",", written(*at));
    last = at->name;
  }
  co_return json_response(200, wire::agents(agents, at != rows.end() ? last : ""));
}

Task<Response> AgentRoutes::add(Request request) {
  auto wanted = wire::read_agent(request.body);
  if (!wanted) co_return error_response(wanted.error());
  if (wanted->kind != "external" && !control_.runs(wanted->kind))
    co_return error_response(
        {Errc::unsupported, fmt::format("kind \"{}\" is not known; \"external\" is an agent that receives over HTTP,"
                                        " \"echo\" one that says back what it is told, \"concierge\" one that reminds",
                                        wanted->kind.substr(0, 40))});
  if (const auto meaning = meaning_of_reserved(wanted->id); !meaning.empty())
    co_return error_response(
        {Errc::invalid_id, fmt::format("\"{}\" is {}; an agent needs another id", wanted->id, meaning)});
  const auto row = co_await bus_.add_recipient(std::move(wanted->id), std::move(wanted->kind));
  if (!row) co_return error_response(row.error());
  co_return json_response(201, written(*row));
}

Result<bus::RecipientRow> AgentRoutes::find(const std::string& id) const {
  BELFRY_TRY(bus::RecipientRow row, bus_.recipient(id));
  if (row.kind == chat::kPersonKind)
    return fail(Errc::not_found, fmt::format("\"{}\" is a person, not an agent; GET /v1/people names the people", id));
  return row;
}

Task<Response> AgentRoutes::get(Request request) {
  const auto row = find(request.parameter);
  if (!row) co_return error_response(row.error());
  co_return json_response(200, written(*row));
}

std::string AgentRoutes::written(const bus::RecipientRow& row) const {
  return wire::agent(row, bus_.counts(row.name).value_or(bus::Counts{}), control_.is_stopped(row.name));
}

Task<Response> AgentRoutes::set_stopped(std::string name, bool stopped) {
  if (const auto known = find(name); !known) co_return error_response(known.error());
  const auto set = co_await control_.set_stopped(name, stopped);
  if (!set) co_return error_response(set.error());
  const auto row = bus_.recipient(name);
  if (!row) co_return error_response(row.error());
  co_return json_response(200, written(*row));
}

Task<Response> AgentRoutes::remove(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const std::string id = request.parameter;
  if (const auto known = find(id); !known) co_return error_response(known.error());
  const auto removed = co_await bus_.remove_recipient(id);
  if (!removed) co_return error_response(removed.error());
  co_return json_response(200, wire::removed_agent(id));
}

}  // namespace belfry::server
