// Where a host is found without asking anybody.
#pragma once

#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "belfry/net/url.h"

namespace belfry::net {

// An address is itself, and `localhost` is this machine whatever a hosts file or a name server says of it (RFC 6761), IPv4
// first. Empty for every other name.
std::vector<boost::asio::ip::tcp::endpoint> known_endpoints(const HostPort& server);

}  // namespace belfry::net
