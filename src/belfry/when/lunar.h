// The Chinese lunar calendar and the solar terms, from 1900 to 2100.
#pragma once

#include <optional>

#include "belfry/when/civil.h"

namespace belfry::when {

inline constexpr int kLunarFirstYear = 1900;
inline constexpr int kLunarLastYear = 2100;

// The day of a lunar date. `month` 12 and `day` 30 of a short month are its last day (除夕). Nothing outside the table, or
// if there is no such day.
std::optional<Date> lunar_date(int year, int month, int day, bool leap_month = false);

// The lunar year in which a day lies.
int lunar_year_of(Date date);

// The n-th solar term of a year in China, from 小寒 (0) to 冬至 (23); 清明 is 6.
Date solar_term(int year, int term);

}  // namespace belfry::when
