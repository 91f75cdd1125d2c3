// The answers of other servers: the same bytes in one piece and in many give the same head and the same body. (What is
// malformed may be noticed a little later when it comes in pieces.) The first byte says how long the pieces are.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/net/answer_parser.h"

namespace {

struct Outcome {
  int status = 0;
  std::string body;
  bool complete = false;

  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t piece) {
  belfry::net::AnswerParser parser;
  Outcome outcome;
  while (!bytes.empty() && !parser.over()) {
    parser.feed(bytes.substr(0, piece));
    outcome.body += parser.take_body();
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  parser.end();
  if (parser.head()) outcome.status = parser.head()->status;
  outcome.complete = parser.complete();
  BELFRY_ASSERT(parser.over());
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome whole = parse(bytes, bytes.size() + 1);
  const Outcome pieces = parse(bytes, 1 + data[0] % 16);
  if (whole.complete || pieces.complete) BELFRY_ASSERT(whole == pieces);
  return 0;
}
