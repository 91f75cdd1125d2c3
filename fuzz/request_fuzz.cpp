// The request parser: the same bytes in one piece and in many give the same request, or none. (What is malformed may be
// noticed a little later when it comes in pieces.)
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/base/limits.h"
#include "belfry/server/http_message.h"
#include "belfry/server/request_parser.h"

namespace {

using namespace belfry::server;

struct Outcome {
  bool refused = false;
  bool done = false;
  Method method = Method::other;
  std::string path;
  std::string query;
  std::string host;
  std::string body;

  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t piece) {
  RequestParser parser;
  bool limited = false;
  Outcome outcome;
  std::string pending;
  while (true) {
    const auto taken = parser.feed(pending);
    if (!taken) return {.refused = true};
    BELFRY_ASSERT(*taken <= pending.size());
    pending.erase(0, *taken);
    if (parser.head_done() && !limited) {
      parser.set_body_limit(1'000);
      limited = true;
      if (!parser.done()) continue;
    }
    if (parser.done() || bytes.empty()) break;
    pending += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (!parser.head_done()) return outcome;
  const Request& request = parser.request();
  outcome = {.done = parser.done(),
             .method = request.method,
             .path = request.path,
             .query = request.query,
             .host = request.host,
             .body = request.body};
  if (const auto pairs = query_pairs(request.query); !pairs) BELFRY_ASSERT(!pairs.error().detail.empty());
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0] % 16;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = parse(bytes, bytes.size() + 1);
  const Outcome pieces = parse(bytes, piece);
  if (whole.done || pieces.done) BELFRY_ASSERT(whole == pieces);
  return 0;
}
