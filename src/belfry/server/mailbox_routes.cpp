#include <fmt/format.h>

#include "belfry/server/routes.h"
#include "belfry/server/wire.h"

namespace belfry::server {
namespace {

// What nobody has seen is no attempt. What broke off may be too much for its receiver, and must come to an end.
Task<void> give_back(bus::MessageBus& bus, std::string recipient, std::vector<std::string> leases, bool attempted) {
  co_await bus.release(std::move(recipient), std::move(leases), Millis{0}, attempted);
}

}  // namespace

void MailboxRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (MailboxRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::post, "/v1/mailboxes/{}:receive", bound(&MailboxRoutes::receive));
  router.add(Method::post, "/v1/mailboxes/{}:ack", bound(&MailboxRoutes::ack));
  router.add(Method::post, "/v1/mailboxes/{}:extend", bound(&MailboxRoutes::extend));
  router.add(Method::post, "/v1/mailboxes/{}:release", bound(&MailboxRoutes::release));
  router.add(Method::get, "/v1/mailboxes/{}", bound(&MailboxRoutes::counts));
}

Task<Response> MailboxRoutes::counts(Request request) {
  const auto counts = bus_.counts(request.parameter);
  if (!counts) co_return error_response(counts.error());
  co_return json_response(200, wire::counts(request.parameter, *counts, bus_.caught_up()));
}

Task<Response> MailboxRoutes::receive(Request request) {
  auto wanted = wire::read_receive(request.body);
  if (!wanted) co_return error_response(wanted.error());
  wanted->recipient = request.parameter;
  if (const auto row = bus_.recipient(request.parameter); row && row->kind != "external")
    co_return error_response(
        {Errc::wrong_state, fmt::format("\"{}\" is {}; Belfry takes its messages itself", row->name,
                                        row->kind == chat::kPersonKind ? "a person" : "an agent that Belfry runs")});
  const Millis wait = wanted->wait;

  // Most receives find something: only one that has to wait is worth watching its client.
  if (wait >= Millis{0} && wait <= kReceiveWaitMax) wanted->wait = Millis{0};
  auto received = co_await bus_.receive(*wanted);
  if (received && received->empty() && wait > Millis{0} && !stopping_) {
    wanted->wait = wait;
    wanted->departure = std::make_shared<bus::Departure>();
    request.watch->begin(wanted->departure);
    received = co_await bus_.receive(*wanted);
  }
  if (!received) co_return error_response(received.error());
  Response response = json_response(200, wire::deliveries(*received, stopping_));
  if (!received->empty()) {
    std::vector<std::string> leases;
    for (bus::Delivery& one : *received) leases.push_back(std::move(one.lease));
    response.unsent = [this, recipient = std::move(wanted->recipient),
                       leases = std::move(leases)](bool partly) mutable {
      tasks_.spawn("give back", give_back(bus_, std::move(recipient), std::move(leases), partly));
    };
  }
  co_return response;
}

Task<Response> MailboxRoutes::ack(Request request) {
  auto wanted = wire::read_ack(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const std::string by = request.parameter;
  Result<bus::AckOutcome> outcome;
  if (wanted->ids.empty()) {
    outcome = co_await bus_.ack_leases(request.parameter, std::move(wanted->leases), by);
  } else {
    outcome = co_await bus_.ack_ids(request.parameter, std::move(wanted->ids), by);
  }
  if (!outcome) co_return error_response(outcome.error());
  co_return json_response(200, wire::outcome("acked", *outcome));
}

Task<Response> MailboxRoutes::extend(Request request) {
  const auto wanted = wire::read_extend(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto outcome = bus_.extend(request.parameter, wanted->leases, wanted->lease);
  if (!outcome) co_return error_response(outcome.error());
  co_return json_response(200, wire::outcome("extended", *outcome));
}

Task<Response> MailboxRoutes::release(Request request) {
  auto wanted = wire::read_release(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto outcome = co_await bus_.release(request.parameter, std::move(wanted->leases), wanted->delay);
  if (!outcome) co_return error_response(outcome.error());
  co_return json_response(200, wire::outcome("released", *outcome));
}

}  // namespace belfry::server
