// Time expressions in requests: read with the clock and the zone of this server, unless the request says otherwise.
#pragma once

#include <optional>
#include <string>

#include "belfry/clock/clock.h"
#include "belfry/when/when.h"

namespace belfry::bus {

// A time expression, and how it is to be read; what is empty is the server's.
struct TimeText {
  std::string text;
  std::string timezone;
  std::string language;
  std::optional<WallTime> now;
  bool strict = false;
};

// When a message is to be delivered, and by which clock.
struct Scheduled {
  when::Reading reading;
  std::optional<Millis> after;  // so long from now, however clocks are set: "in 5 minutes". None for a time of day
};

class TimeReader {
 public:
  struct Options {
    when::Zone zone = when::Zone::utc();
    when::ZoneSource zone_source = when::ZoneSource::server;
    when::Language language = when::Language::automatic;
  };
  TimeReader(Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {}

  Result<when::Reading> read(const TimeText& wanted) const;
  // One moment, as the named field gives it: something that comes again is refused.
  Result<when::Reading> read_moment(const TimeText& wanted, std::string_view field) const;
  // When a message is to be delivered.
  Result<Scheduled> read_schedule(TimeText wanted) const;

 private:
  Clock& clock_;
  Options options_;
};

}  // namespace belfry::bus
