#include "belfry/bus/time_reader.h"
#include "belfry/server/routes.h"
#include "belfry/server/wire.h"

namespace belfry::server {

void WhenRoutes::add_to(Router& router) {
  router.add(Method::post, "/v1/when", [this](Request request) { return read(std::move(request)); });
}

Task<Response> WhenRoutes::read(Request request) {
  const auto wanted = wire::read_when(request.body);
  if (!wanted) co_return error_response(wanted.error());
  const auto reading = times_.read(*wanted);
  if (!reading) co_return error_response(reading.error());
  co_return json_response(200, wire::reading(*reading, wanted->text));
}

}  // namespace belfry::server
