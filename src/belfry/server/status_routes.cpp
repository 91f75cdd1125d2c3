#include "belfry/base/json.h"
#include "belfry/server/home_page.h"
#include "belfry/server/metrics.h"
#include "belfry/server/routes.h"

namespace belfry::server {
namespace {

// More rows help nobody; the commands and the API list all.
constexpr std::size_t kRecipientsShown = 50;

Response static_text(std::string_view content_type, std::string_view text) {
  Response response;
  response.content_type = content_type;
  response.body = text;
  return response;
}

}  // namespace

void StatusRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (StatusRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::get, "/healthz", bound(&StatusRoutes::health));
  router.add(Method::get, "/metrics", bound(&StatusRoutes::metrics));
  router.add(Method::get, "/about", bound(&StatusRoutes::home));
  router.add_public(Method::get, "/belfry.css",
                    [](Request) -> Task<Response> { co_return static_text("text/css; charset=utf-8", home_style()); });
  router.add_public(Method::get, "/belfry.svg",
                    [](Request) -> Task<Response> { co_return static_text("image/svg+xml", home_icon()); });
}

Task<Response> StatusRoutes::health(Request) {
  json::Writer writer;
  const auto damage = store_.damage();
  writer.object().field("status", stopping_ ? "stopping" : damage ? "degraded" : "ok");
  if (damage) writer.field("reason", *damage);
  writer.field("caughtUp", bus_.caught_up()).field("version", BELFRY_VERSION);
  co_return json_response(damage ? 503 : 200, writer.end().take());
}

Task<Response> StatusRoutes::metrics(Request) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = metrics_text(bus_.totals(), bus_.lateness(), store_.statistics(),
                               static_cast<int>(bus_.recipients().size()), connections_(), bus_.caught_up());
  if (more_metrics_) response.body += more_metrics_();
  co_return response;
}

Task<Response> StatusRoutes::home(Request request) {
  HomePage page;
  page.totals = bus_.totals();
  const std::vector<bus::RecipientRow> rows = bus_.recipients();
  page.recipients_in_all = rows.size();
  for (std::size_t i = 0; i < std::min(rows.size(), kRecipientsShown); ++i)
    page.recipients.push_back({rows[i].name, bus_.counts(rows[i].name).value_or(bus::Counts{})});
  page.address = request.host;
  page.stopping = stopping_;
  page.needs_token = needs_token_;

  Response response;
  response.content_type = "text/html; charset=utf-8";
  response.body = home_page(page, choose_language(request.query, request.accept_language));
  response.headers.push_back(
      {"Content-Security-Policy",
       "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'"});
  response.headers.push_back({"Referrer-Policy", "no-referrer"});
  response.headers.push_back({"Vary", "Accept-Language"});
  co_return response;
}

}  // namespace belfry::server
