#include "belfry/server/router.h"

#include <fmt/format.h>

namespace belfry::server {
namespace {

Router::Route make_route(Method method, std::string_view pattern) {
  const bool reads_query = pattern.ends_with('?');
  if (reads_query) pattern.remove_suffix(1);
  Router::Route route{.method = method, .before = pattern, .after = "", .handler = {}, .stream = {}, .socket = {}};
  route.reads_query = reads_query;
  if (const std::size_t hole = pattern.find("{}"); hole != std::string_view::npos) {
    route.before = pattern.substr(0, hole);
    route.after = pattern.substr(hole + 2);
    route.has_parameter = true;
  }
  return route;
}

// The text in the place of {}; empty for a pattern without one.
std::optional<std::string_view> match(const Router::Route& route, std::string_view path) {
  if (!route.has_parameter) return path == route.before ? std::optional(std::string_view()) : std::nullopt;
  if (!path.starts_with(route.before)) return std::nullopt;
  path.remove_prefix(route.before.size());
  if (!path.ends_with(route.after)) return std::nullopt;
  path.remove_suffix(route.after.size());
  if (path.empty() || path.find_first_of("/:") != std::string_view::npos) return std::nullopt;
  return path;
}

// What somebody wrote there by mistake must not be dropped silently. Pages, probes and what other programs call by an
// address that they were given may be asked with anything.
Result<> check_query(const Router::Route& route, const Request& request) {
  if (route.reads_query || request.query.empty() || !route.needs_token || !request.path.starts_with("/v1/")) return {};
  const std::string_view query = request.query;
  return fail(Errc::unknown_field, fmt::format("{} {} takes nothing behind the question mark, and \"{}\" stands there",
                                               name(request.method), request.path.substr(0, 200),
                                               query.substr(0, std::min<std::size_t>(query.find_first_of("=&"), 100))));
}

bool serves(Method route, Method asked) { return route == asked || (route == Method::get && asked == Method::head); }

}  // namespace

void Router::add(Method method, std::string_view pattern, Handler handler) {
  Route route = make_route(method, pattern);
  route.handler = std::move(handler);
  routes_.push_back(std::move(route));
}

void Router::add_signed(Method method, std::string_view pattern, Handler handler, std::size_t body_bytes_max) {
  add(method, pattern, std::move(handler));
  routes_.back().needs_token = false;
  routes_.back().proves_itself = true;
  routes_.back().body_bytes_max = body_bytes_max;
}

void Router::add_public(Method method, std::string_view pattern, Handler handler) {
  add(method, pattern, std::move(handler));
  routes_.back().needs_token = false;
}

void Router::add_socket(std::string_view pattern, SocketHandler handler) {
  Route route = make_route(Method::get, pattern);
  route.socket = std::move(handler);
  route.needs_token = false;
  route.proves_itself = true;
  routes_.push_back(std::move(route));
}

void Router::add_stream(Method method, std::string_view pattern, StreamHandler handler, std::size_t body_bytes_max) {
  Route route = make_route(method, pattern);
  route.stream = std::move(handler);
  route.body_bytes_max = body_bytes_max;
  routes_.push_back(std::move(route));
}

Result<const Router::Route*> Router::find(Request& request, std::string& allow) const {
  for (const Route& route : routes_) {
    const auto parameter = match(route, request.path);
    if (!parameter) continue;
    if (serves(route.method, request.method)) {
      if (const auto right = check_query(route, request); !right) {
        allow.clear();
        return std::unexpected(right.error());
      }
      request.parameter = *parameter;
      return &route;
    }
    allow += fmt::format("{}{}", allow.empty() ? "" : ", ", name(route.method));
    if (route.method == Method::get) allow += ", HEAD";
  }
  if (!allow.empty())
    return fail(Errc::method_not_allowed, fmt::format("{} takes {}", request.path.substr(0, 200), allow));
  return fail(Errc::not_found,
              fmt::format("there is nothing at {}; docs/api.md lists the routes", request.path.substr(0, 200)));
}

}  // namespace belfry::server
