// The small readers: instants, durations, addresses, message ids. What they take they write back to the same value.
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/base/time.h"
#include "belfry/bus/message_id.h"
#include "belfry/net/url.h"
#include "belfry/server/http_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto time = parse_iso(text)) BELFRY_ASSERT(parse_iso(to_iso(*time)) == *time);
  if (const auto span = parse_duration(text)) BELFRY_ASSERT(span->count() >= 0);
  if (const auto id = bus::parse_message_id(text))
    BELFRY_ASSERT(bus::parse_message_id(bus::to_text(*id))->sequence == id->sequence);
  if (const auto server = net::parse_host_port(text)) {
    const auto again = net::parse_host_port(server->text());
    BELFRY_ASSERT(again && again->host == server->host && again->port == server->port);
  }
  if (const auto url = net::parse_url(text)) BELFRY_ASSERT(url->server.port > 0 && !url->path.ends_with('/'));
  if (const auto url = net::parse_web_url(text)) BELFRY_ASSERT(url->server.port > 0 && url->target.starts_with('/'));
  BELFRY_ASSERT(server::percent_decoded(net::percent_encoded(text), false) == text);
  return 0;
}
