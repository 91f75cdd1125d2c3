// How something comes again, in the words of iCalendar (RFC 5545): FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/when/civil.h"
#include "belfry/when/token.h"

namespace belfry::when {

struct Rule {
  Unit unit = Unit::day;  // second, minute, hour, day, week, month, year
  int interval = 1;
  std::optional<int> month;
  std::vector<int> month_days;  // -1: the last one
  struct Weekday {
    int nth = 0;  // of the month, from its end if negative; 0: each
    int weekday = 1;
  };
  std::vector<Weekday> weekdays;
  std::optional<Seconds> time;  // of the day

  bool operator==(const Rule&) const;
};

std::string to_text(const Rule& rule);

// The first one behind `after`, for rules of days and longer ones. An interval counts from there on.
std::optional<Local> next_occurrence(const Rule& rule, const Local& after, Seconds time_of_day);

}  // namespace belfry::when
