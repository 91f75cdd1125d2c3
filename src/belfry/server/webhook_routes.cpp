#include "belfry/server/chat_wire.h"
#include "belfry/server/routes.h"
#include "belfry/server/webhook_wire.h"
#include "belfry/server/wire.h"

namespace belfry::server {
namespace {

// A long letter with its escapes. Whoever sends has proved nothing before the body is here, so it is less than elsewhere.
constexpr std::size_t kInboxBytesMax = 256u << 10;

}  // namespace

void WebhookRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (WebhookRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::put, "/v1/people/{}/webhook", bound(&WebhookRoutes::set));
  router.add(Method::get, "/v1/people/{}/webhook", bound(&WebhookRoutes::get));
  router.add(Method::remove, "/v1/people/{}/webhook", bound(&WebhookRoutes::remove));
  router.add(Method::get, "/v1/people/{}/outbox?", bound(&WebhookRoutes::outbox));
  router.add_signed(Method::post, "/v1/people/{}/inbox", bound(&WebhookRoutes::receive), kInboxBytesMax);
}

Task<Response> WebhookRoutes::set(Request request) {
  auto wanted = wire::read_webhook(request.body);
  if (!wanted) co_return error_response(wanted.error());
  wanted->person = request.parameter;
  const auto stored = co_await webhooks_.set(std::move(*wanted));
  if (!stored) co_return error_response(stored.error());
  co_return json_response(200, wire::webhook(*stored));
}

Task<Response> WebhookRoutes::get(Request request) {
  const auto found = co_await webhooks_.get(request.parameter);
  if (!found) co_return error_response(found.error());
  co_return json_response(200, wire::webhook(*found));
}

Task<Response> WebhookRoutes::remove(Request request) {
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto removed = co_await webhooks_.remove(request.parameter);
  if (!removed) co_return error_response(removed.error());
  co_return json_response(200, wire::webhook_removed(request.parameter));
}

Task<Response> WebhookRoutes::outbox(Request request) {
  auto wanted = wire::read_outbox_query(request.query);
  if (!wanted) co_return error_response(wanted.error());
  wanted->person = request.parameter;
  const auto page = co_await webhooks_.outbox(std::move(*wanted));
  if (!page) co_return error_response(page.error());
  co_return json_response(200, wire::outbox(*page));
}

// Nothing of the body is read before its signature was found to be right.
Task<Response> WebhookRoutes::receive(Request request) {
  const auto proved = co_await webhooks_.verify(request.parameter, request.signature, request.body);
  if (!proved) co_return error_response(proved.error());
  if (request.proved) request.proved();
  auto incoming = wire::read_incoming(request.body);
  if (!incoming) co_return error_response(incoming.error());
  incoming->person = request.parameter;
  const auto posted = co_await webhooks_.receive(std::move(*incoming));
  if (!posted) co_return error_response(posted.error());
  co_return json_response(201, wire::posted(*posted));
}

}  // namespace belfry::server
