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
  router.add(Method::get, "/v1/agents?", bound(&AgentRoutes::list));
  router.add(Method::post, "/v1/agents", bound(&AgentRoutes::add));
  router.add(Method::get, "/v1/agents/{}", bound(&AgentRoutes::get));
  router.add(Method::patch, "/v1/agents/{}", bound(&AgentRoutes::change));
  router.add(Method::remove, "/v1/agents/{}", bound(&AgentRoutes::remove));
  router.add(Method::get, "/v1/agents/{}/turns?", bound(&AgentRoutes::turns));
  router.add(Method::post, "/v1/sessions/{}:cancel", bound(&AgentRoutes::cancel));
  router.add(Method::get, "/v1/people/{}/facts", bound(&AgentRoutes::facts));
  router.add(Method::remove, "/v1/people/{}/facts?", bound(&AgentRoutes::forget));
  router.add(Method::post, "/v1/agents/{}:stop",
             [this](Request request) { return set_stopped(std::move(request), true); });
  router.add(Method::post, "/v1/agents/{}:start",
             [this](Request request) { return set_stopped(std::move(request), false); });
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
  auto wanted = wire::read_agent(request.body, control_.thinking_kind);
  if (!wanted) co_return error_response(wanted.error());
  if (wanted->kind != "external" && !control_.runs(wanted->kind))
    co_return error_response({Errc::invalid_argument,
                              fmt::format("kind \"{}\" is not known; \"external\" is an agent that receives over HTTP,"
                                          " \"model\" one that thinks with a language model, \"echo\" one that says"
                                          " back what it is told, \"concierge\" one that reminds",
                                          wanted->kind.substr(0, 40))});
  if (const auto meaning = meaning_of_reserved(wanted->id); !meaning.empty())
    co_return error_response(
        {Errc::invalid_id, fmt::format("\"{}\" is {}; an agent needs another id", wanted->id, meaning)});
  Result<bus::RecipientRow> row = fail(Errc::unavailable, "");
  if (wanted->kind == control_.thinking_kind) {
    row = co_await add_thinking(std::move(wanted->id), std::move(wanted->profile));
  } else {
    row = co_await bus_.add_recipient(std::move(wanted->id), std::move(wanted->kind));
  }
  if (!row) co_return error_response(row.error());
  co_return json_response(201, written(*row));
}

Task<Result<bus::RecipientRow>> AgentRoutes::add_thinking(std::string name, std::string profile) {
  BELFRY_CO_CHECK(bus::check_id("id", name));
  BELFRY_CO_CHECK(co_await control_.add(name, std::move(profile)));
  co_return bus_.recipient(name);
}

Task<Response> AgentRoutes::change(Request request) {
  const auto row = find(request.parameter);
  if (!row) co_return error_response(row.error());
  if (row->kind != control_.thinking_kind)
    co_return error_response({Errc::wrong_state, fmt::format("\"{}\" is of the kind {}, which has nothing to change",
                                                             row->name, row->kind)});
  const auto changed = co_await control_.change(row->name, request.body);
  if (!changed) co_return error_response(changed.error());
  co_return json_response(200, written(*row));
}

Task<Response> AgentRoutes::turns(Request request) {
  if (const auto row = find(request.parameter); !row) co_return error_response(row.error());
  const auto limit = wire::read_limit_query(request.query);
  if (!limit) co_return error_response(limit.error());
  auto turns = co_await control_.turns(request.parameter, *limit);
  if (!turns) co_return error_response(turns.error());
  co_return json_response(200, std::move(*turns));
}

Task<Response> AgentRoutes::cancel(Request request) {
  const auto agent = wire::read_cancel(request.body);
  if (!agent) co_return error_response(agent.error());
  const auto cancelled = co_await control_.cancel(request.parameter, *agent);
  if (!cancelled) co_return error_response(cancelled.error());
  co_return json_response(200, wire::counted("cancelled", *cancelled));
}

Task<Response> AgentRoutes::facts(Request request) {
  auto facts = co_await control_.facts(request.parameter);
  if (!facts) co_return error_response(facts.error());
  co_return json_response(200, std::move(*facts));
}

Task<Response> AgentRoutes::forget(Request request) {
  const auto number = wire::read_number_query(request.query);
  if (!number) co_return error_response(number.error());
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto forgotten = co_await control_.forget(request.parameter, *number);
  if (!forgotten) co_return error_response(forgotten.error());
  co_return json_response(200, wire::counted("forgotten", *forgotten));
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
  const std::string profile = row.kind == control_.thinking_kind ? control_.profile(row.name) : "";
  return wire::agent(row, bus_.counts(row.name).value_or(bus::Counts{}), control_.is_stopped(row.name), profile);
}

Task<Response> AgentRoutes::set_stopped(Request request, bool stopped) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const std::string name = request.parameter;
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
  const auto known = find(id);
  if (!known) co_return error_response(known.error());
  if (known->kind == control_.thinking_kind) {
    const auto removed = co_await control_.remove(id);
    if (!removed) co_return error_response(removed.error());
    co_return json_response(200, wire::removed_agent(id, *removed));
  }
  const auto removed = co_await bus_.remove_recipient(id);
  if (!removed) co_return error_response(removed.error());
  co_return json_response(200, wire::removed_agent(id, {}));
}

}  // namespace belfry::server
