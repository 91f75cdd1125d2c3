// What a start reads of the counters.
#include <cstdint>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/bus/tally.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry::bus;
  SumsByRecipient changes;
  if (!add_from_text({reinterpret_cast<const char*>(data), size}, changes)) return 0;
  SumsByRecipient again;
  BELFRY_ASSERT(add_from_text(to_text(changes), again));
  BELFRY_ASSERT(again == changes);
  return 0;
}
