#include "belfry/net/url.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace belfry::net {
namespace {

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;

Result<int> parse_port(std::string_view text, std::string_view whole) {
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end || port < 0 || port > 65'535)
    return fail(Errc::invalid_argument, fmt::format("\"{}\": the port is a number from 0 to 65535", whole));
  return port;
}

bool is_host(std::string_view host) {
  return !host.empty() && host.find_first_of(" \t\r\n/\\?#@\"<>") == std::string_view::npos;
}

Result<int> parse_port_to_call(std::string_view text, std::string_view whole) {
  BELFRY_TRY(const int port, parse_port(text, whole));
  if (port == 0) return fail(Errc::invalid_argument, fmt::format("\"{}\": nobody answers at port 0", whole));
  return port;
}

// The host in front, and what follows it: nothing, or a colon and a port.
Result<std::pair<std::string_view, std::string_view>> split_host(std::string_view text) {
  std::string_view host;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos)
      return fail(Errc::invalid_argument, fmt::format("\"{}\": the ] of the IPv6 address is missing", text));
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else {
    const std::size_t colon = text.find(':');
    host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos)
      return fail(Errc::invalid_argument,
                  fmt::format("\"{}\": an IPv6 address stands in brackets, as in [::1]:7171", text));
  }
  if (!is_host(host)) return fail(Errc::invalid_argument, fmt::format("\"{}\" names no host", text));
  return std::pair(host, rest);
}

}  // namespace

std::string HostPort::bracketed_host() const {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

std::string HostPort::text() const { return fmt::format("{}:{}", bracketed_host(), port); }

Result<HostPort> parse_host_port(std::string_view text) {
  BELFRY_TRY(const auto parts, split_host(text));
  if (!parts.second.starts_with(':'))
    return fail(Errc::invalid_argument, fmt::format("\"{}\": a port is missing, as in 127.0.0.1:7171", text));
  BELFRY_TRY(const int port, parse_port(parts.second.substr(1), text));
  return HostPort{std::string(parts.first), port};
}

Result<Url> parse_url(std::string_view text) {
  static constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://"))
    return fail(Errc::unsupported, fmt::format("\"{}\": Belfry's commands speak http:// only", text));
  if (!text.starts_with(kScheme))
    return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a URL like http://127.0.0.1:7171", text));
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  BELFRY_TRY(const auto parts, split_host(rest.substr(0, slash)));
  Url url{{std::string(parts.first), kHttpPort}, {}};
  if (!parts.second.empty()) {
    if (!parts.second.starts_with(':'))
      return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a URL like http://127.0.0.1:7171", text));
    BELFRY_TRY(url.server.port, parse_port_to_call(parts.second.substr(1), text));
  }
  if (slash != std::string_view::npos) url.path = rest.substr(slash);
  if (url.path.find_first_of("?# ") != std::string::npos)
    return fail(Errc::invalid_argument, fmt::format("\"{}\": a server's address has no query", text));
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

std::string WebUrl::host() const {
  return server.port == (tls ? kHttpsPort : kHttpPort) ? server.bracketed_host() : server.text();
}

Result<WebUrl> parse_web_url(std::string_view text) {
  WebUrl url{.tls = text.starts_with("https://")};
  if (!url.tls && !text.starts_with("http://"))
    return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a URL like https://example.org/path", text));
  // What is sent is what stands here: a blank or a line break would end the request line early.
  for (const char c : text)
    if (c <= ' ' || c > '~')
      return fail(Errc::invalid_argument, "a URL has printable ASCII letters only; others are written as %41");
  if (text.find('#') != std::string_view::npos)
    return fail(Errc::invalid_argument, fmt::format("\"{}\": what stands behind # is not sent; leave it out", text));
  const std::string_view rest = text.substr(url.tls ? 8 : 7);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  BELFRY_TRY(const auto parts, split_host(rest.substr(0, end)));
  url.server = {std::string(parts.first), url.tls ? kHttpsPort : kHttpPort};
  if (!parts.second.empty()) {
    if (!parts.second.starts_with(':'))
      return fail(Errc::invalid_argument, fmt::format("\"{}\" is not a URL like https://example.org/path", text));
    BELFRY_TRY(url.server.port, parse_port_to_call(parts.second.substr(1), text));
  }
  url.target = rest.substr(end);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace belfry::net
