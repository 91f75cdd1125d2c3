// The parser of Server-Sent Events: the same bytes in one piece and in many give the same events. The first byte says how
// long the pieces are.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/llm/sse.h"

namespace {

using belfry::llm::Event;
using belfry::llm::EventParser;

constexpr std::size_t kBytesMax = 200;

struct Outcome {
  std::vector<Event> events;
  bool too_long = false;

  bool operator==(const Outcome&) const = default;
};

Outcome parse(std::string_view bytes, std::size_t piece) {
  EventParser parser(kBytesMax);
  Outcome outcome;
  while (!bytes.empty()) {
    const auto events = parser.feed(bytes.substr(0, piece));
    outcome.events.insert(outcome.events.end(), events.begin(), events.end());
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (auto last = parser.finish()) outcome.events.push_back(std::move(*last));
  outcome.too_long = parser.too_long();
  for (const Event& event : outcome.events) {
    BELFRY_ASSERT(event.data.size() <= kBytesMax);
    BELFRY_ASSERT(event.data.find('\r') == std::string::npos && event.type.find('\n') == std::string::npos);
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  BELFRY_ASSERT(parse(bytes, bytes.size() + 1) == parse(bytes, 1 + data[0] % 16));
  return 0;
}
