// Requests that Belfry makes of others, from the kernel's thread: one request, one answer, one connection.
//
// What matters to whoever asks is what a failure means: a request that was not sent can be made again; one that was sent and
// not answered may have been acted on. Redirects are answers like others and are not followed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/time.h"
#include "belfry/net/url.h"

namespace belfry::net {

struct WebRequest {
  std::string method = "POST";
  WebUrl url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Millis timeout{10'000};  // for all of it: name, connection, request and answer
  std::size_t answer_bytes_max = 64u << 10;
};

enum class Fate {
  not_sent,    // no byte of the request has left: no such name, refused, no trust in the certificate
  unanswered,  // some of it may have arrived, and no answer came
  answered,
};

struct WebAnswer {
  Fate fate = Fate::not_sent;
  int status = 0;
  std::string body;                   // as much of it as came, up to the limit
  std::optional<Millis> retry_after;  // when the other side wants to be asked again
  std::string what;                   // what went wrong, for people
};

class WebClient {
 public:
  virtual ~WebClient() = default;
  virtual Task<WebAnswer> call(WebRequest request) = 0;
  // Ends all calls that are under way, for a stop: they return what they have come to.
  virtual void abandon() = 0;
};

}  // namespace belfry::net
