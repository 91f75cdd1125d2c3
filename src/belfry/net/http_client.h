// A small blocking HTTP client for the commands: one request, one answer, one connection. Not for the kernel's thread.
#pragma once

#include <string>
#include <string_view>

#include "belfry/base/result.h"
#include "belfry/base/time.h"
#include "belfry/net/url.h"

namespace belfry::net {

struct ClientRequest {
  std::string method = "GET";
  std::string target;  // behind the server's own path: /v1/messages
  std::string body;
  std::string content_type = "application/json";
  std::string token;           // empty: none
  Millis silence_max{30'000};  // the longest time in which nothing may come
};

struct ClientResponse {
  int status = 0;
  std::string body;
};

// `unavailable` if there is no server, `timed_out` if it falls silent.
Result<ClientResponse> call(const Url& server, const ClientRequest& request);

}  // namespace belfry::net
