// Addresses as people write them.
#pragma once

#include <string>
#include <string_view>

#include "belfry/base/result.h"

namespace belfry::net {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;

  // As it stands in a URL: [::1]:7171
  std::string text() const;
  std::string bracketed_host() const;
};

// `127.0.0.1:7171`, `[::1]:7171`, `localhost:7171`
Result<HostPort> parse_host_port(std::string_view text);

struct Url {
  HostPort server;
  std::string path;  // without the slash at its end: what stands before /v1
};

// `http://host[:port][/path]`
Result<Url> parse_url(std::string_view text);

// Where a request of ours goes: `http://` or `https://`, a host, and a path with a query if there is one.
struct WebUrl {
  bool tls = false;
  HostPort server;
  std::string target = "/";  // path and query, as they stand in the request

  // For the Host header: without the port where it is the usual one.
  std::string host() const;
};
Result<WebUrl> parse_web_url(std::string_view text);

// Text as it may stand in one segment of a path or in a query.
std::string percent_encoded(std::string_view text);

}  // namespace belfry::net
