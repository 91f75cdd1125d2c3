#include "belfry/server/guard.h"

#include <algorithm>

#include <fmt/format.h>

namespace belfry::server {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// The name in front of the port; a colon inside brackets belongs to an IPv6 address.
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.find(']', colon) != std::string_view::npos) return host;
  return host.substr(0, colon);
}

std::string_view shown(std::string_view text) { return text.substr(0, 100); }

// Somebody follows a link, and sees in the whole of a tab what is here.
bool is_link(const Request& request) {
  const bool reads = request.method == Method::get || request.method == Method::head;
  return reads && request.fetch_mode == "navigate" && request.fetch_dest == "document";
}

}  // namespace

Guard::Guard(const Options& options) : port_(options.port), token_(options.token) {
  for (const std::string_view name : {std::string_view(options.listen_host), std::string_view("localhost"),
                                      std::string_view("127.0.0.1"), std::string_view("[::1]")})
    own_.push_back(fmt::format("{}:{}", lower(name), options.port));
  for (const std::string& name : options.allow_hosts) allowed_.push_back(lower(name));
}

// A name without a port is good for every port.
bool Guard::allows(std::string_view host) const {
  const std::string wanted = lower(host);
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [&](const std::string& name) { return name == wanted || name == without_port(wanted); });
}

bool Guard::knows(std::string_view host) const {
  const std::string wanted = lower(host);
  if (allows(wanted) || std::find(own_.begin(), own_.end(), wanted) != own_.end()) return true;
  // Clients leave the port out where it is the usual one.
  return port_ == 80 && without_port(wanted).size() == wanted.size() && knows(fmt::format("{}:80", wanted));
}

Result<> Guard::check(const Request& request) const {
  BELFRY_CHECK(check_place(request));
  return check_authorization(request.authorization);
}

Result<> Guard::check_place(const Request& request) const {
  if (request.hosts != 1)
    return fail(Errc::forbidden_host, fmt::format("one Host header is needed, {} came", request.hosts));
  if (request.host.empty())
    return fail(Errc::forbidden_host, fmt::format("the Host header is empty; it names this server: {}", own_.front()));
  BELFRY_CHECK(check_host(request.host));
  if (request.has_authority) BELFRY_CHECK(check_host(request.authority));
  if (request.has_origin) return check_origin(request.origin);
  if (request.fetch_site == "cross-site" && !is_link(request))
    return fail(Errc::forbidden_origin, "pages of other sites may link to this server, and load nothing from it");
  return {};
}

Result<> Guard::check_host(std::string_view host) const {
  if (knows(host)) return {};
  return fail(Errc::forbidden_host,
              fmt::format("this server is not \"{}\"; start it with --allow-host {} if it should be", shown(host),
                          shown(without_port(host))));
}

Result<> Guard::check_origin(std::string_view origin) const {
  bool known = false;
  for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view host = origin.substr(scheme.size());
    // We speak no TLS ourselves; a name that was allowed by hand may stand before a proxy that does.
    known = scheme == "http://" ? knows(host) : allows(host) || allows(fmt::format("{}:443", host));
  }
  if (known) return {};
  return fail(Errc::forbidden_origin, fmt::format("pages of \"{}\" may not talk to this server", shown(origin)));
}

Result<> Guard::check_authorization(std::string_view authorization) const {
  if (token_.empty()) return {};
  static constexpr std::string_view kScheme = "bearer ";
  const bool bearer = lower(authorization.substr(0, kScheme.size())) == kScheme;
  if (!bearer)
    return fail(Errc::unauthorized,
                "a token is needed: Authorization: Bearer TOKEN (commands: BELFRY_TOKEN or --token-file)");
  return check_token(authorization.substr(kScheme.size()));
}

Result<> Guard::check_token(std::string_view token) const {
  if (token_.empty() || equal_in_constant_time(token, token_)) return {};
  return fail(Errc::unauthorized, "the token is not the one this server was started with");
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  // The length of the token is no secret; its letters are.
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto other = static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ other);
  }
  return difference == 0;
}

}  // namespace belfry::server
