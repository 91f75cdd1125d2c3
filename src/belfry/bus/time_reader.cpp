#include "belfry/bus/time_reader.h"

#include <fmt/format.h>

namespace belfry::bus {
namespace {

// What a text about time must do to be one about elapsed time: move with the clock.
constexpr Millis kNudge{61'000};

}  // namespace

Result<when::Reading> TimeReader::read(const TimeText& wanted) const {
  when::Zone zone = options_.zone;
  when::ZoneSource source = options_.zone_source;
  if (!wanted.timezone.empty()) {
    BELFRY_TRY(zone, when::Zone::named(wanted.timezone));
    source = when::ZoneSource::given;
  }
  when::Language language = options_.language;
  if (!wanted.language.empty()) {
    BELFRY_TRY(language, when::parse_language(wanted.language));
  }
  return when::read(wanted.text, {.now = wanted.now.value_or(round_down(clock_.now().wall)),
                                  .zone = zone,
                                  .language = language,
                                  .zone_source = source,
                                  .strict = wanted.strict});
}

Result<when::Reading> TimeReader::read_moment(const TimeText& wanted, std::string_view field) const {
  auto reading = read(wanted);
  if (!reading) return fail(reading.error().code, fmt::format("{}: {}", field, reading.error().detail));
  if (reading->kind == when::ReadingKind::recurrence)
    return fail(Errc::invalid_argument,
                fmt::format("{}: it happens once, and this comes again; name one time, like \"tomorrow at 9\"", field));
  return reading;
}

Result<Scheduled> TimeReader::read_schedule(TimeText wanted) const {
  const WallTime now = wanted.now.value_or(round_down(clock_.now().wall));
  wanted.now = now;
  BELFRY_TRY(when::Reading reading, read_moment(wanted, "schedule"));
  wanted.now = now + kNudge;
  const auto later = read_moment(wanted, "schedule");
  Scheduled scheduled{.reading = std::move(reading), .after = std::nullopt};
  const WallTime at = scheduled.reading.at;
  // "10 minutes ago" is an instant: whoever acts on it at once can say that it is past.
  if (at >= now && later && later->at - at == kNudge) scheduled.after = Millis{at - now};
  return scheduled;
}

}  // namespace belfry::bus
