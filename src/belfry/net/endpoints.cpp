#include "belfry/net/endpoints.h"

#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

namespace belfry::net {

namespace ip = boost::asio::ip;

std::vector<ip::tcp::endpoint> known_endpoints(const HostPort& server) {
  const auto port = static_cast<unsigned short>(server.port);
  if (boost::beast::iequals(server.host, "localhost"))
    return {{ip::address_v4::loopback(), port}, {ip::address_v6::loopback(), port}};
  boost::system::error_code ec;
  const auto address = ip::make_address(server.host, ec);
  if (ec) return {};
  return {{address, port}};
}

}  // namespace belfry::net
