// Days with a name, in both cultures.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "belfry/when/civil.h"

namespace belfry::when {

struct HolidayName {
  std::string_view text;  // as token.h has words: lower case, simplified
  int holiday;
};
std::span<const HolidayName> holiday_names();
// Each year on the same day of the same month.
bool is_fixed_holiday(int holiday);

// The day of a holiday in a year of the Gregorian calendar; of a lunar one, the day that falls in that year. Nothing where
// the tables end.
std::optional<Date> holiday_date(int holiday, int year);

}  // namespace belfry::when
