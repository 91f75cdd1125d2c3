// Time expressions in requests: read with the clock and the zone of this server, unless the request says otherwise.
#pragma once

#include "belfry/clock/clock.h"
#include "belfry/server/wire.h"
#include "belfry/when/when.h"

namespace belfry::server {

class TimeReader {
 public:
  struct Options {
    when::Zone zone = when::Zone::utc();
    when::ZoneSource zone_source = when::ZoneSource::server;
    when::Language language = when::Language::automatic;
  };
  TimeReader(Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {}

  Result<when::Reading> read(const wire::TimeText& wanted) const;
  // When a message is to be delivered: something that comes again is refused.
  Result<when::Reading> read_schedule(const wire::TimeText& wanted) const;

 private:
  Clock& clock_;
  Options options_;
};

}  // namespace belfry::server
