// Time expressions: any bytes are read or refused, with bounded work, and what was read can be said and read again.
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/when/sentence.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belfry;
  using namespace belfry::when;
  static const Zone zones[] = {Zone::named("Asia/Shanghai").value(), Zone::named("America/New_York").value(),
                               Zone::utc()};
  static const WallTime now = parse_iso("2026-11-18T15:20:00Z").value();
  if (size == 0) return 0;
  const Zone& zone = zones[data[0] % std::size(zones)];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  long steps = 0;
  const auto reading = read_counting(text, {.now = now, .zone = zone}, steps);
  BELFRY_ASSERT(steps <= kStepsPerByteMax * static_cast<long>(std::max<std::size_t>(text.size(), 1)));
  if (!reading) return 0;
  BELFRY_ASSERT(reading->begin_byte < reading->end_byte && reading->end_byte <= text.size());
  BELFRY_ASSERT(!reading->end || *reading->end >= reading->at);
  BELFRY_ASSERT(reading->kind != ReadingKind::recurrence || reading->at > now);
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string said = sentence(*reading, language);
    if (reading->kind != ReadingKind::instant) continue;
    const auto again = read(said, {.now = now, .zone = zone});
    BELFRY_ASSERT(again && again->at == std::chrono::floor<Seconds>(reading->at));
  }
  return 0;
}
