// The time zone of this machine.
#pragma once

#include <string>

#include "belfry/app/config.h"
#include "belfry/when/when.h"

namespace belfry::app {

// TZ, then /etc/timezone or what /etc/localtime points to; UTC if none of them names a zone.
when::Zone system_zone();

// As the variable TZ has it, for other programs. An offset has its sign turned round there: east is negative.
std::string tz_variable(const when::Zone& zone);

// What a server reads times with: the user's zone if the settings name one, else the machine's.
struct Locale {
  when::Zone zone;
  when::ZoneSource source;
  when::Language language;
};
Locale locale_of(const Config& config);

}  // namespace belfry::app
