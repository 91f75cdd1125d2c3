// Dates and times of day without a zone: arithmetic as a calendar on the wall does it.
#pragma once

#include <algorithm>
#include <chrono>

namespace belfry::when {

using Days = std::chrono::days;
using Date = std::chrono::sys_days;  // a day, nowhere in particular
using Seconds = std::chrono::seconds;
using Instant = std::chrono::sys_seconds;

// A reading of a clock on a wall.
struct Local {
  Date date;
  Seconds time{0};  // since midnight; 24 hours and more belong to the days after

  bool operator==(const Local&) const = default;
  auto operator<=>(const Local&) const = default;
};

inline int year_of(Date date) { return static_cast<int>(std::chrono::year_month_day{date}.year()); }
inline int month_of(Date date) {
  return static_cast<int>(static_cast<unsigned>(std::chrono::year_month_day{date}.month()));
}
inline int day_of(Date date) {
  return static_cast<int>(static_cast<unsigned>(std::chrono::year_month_day{date}.day()));
}
// Monday is 1, Sunday is 7.
inline int weekday_of(Date date) { return static_cast<int>(std::chrono::weekday{date}.iso_encoding()); }

inline int days_in_month(int year, int month) {
  using namespace std::chrono;
  return static_cast<int>(
      static_cast<unsigned>((std::chrono::year{year} / std::chrono::month{static_cast<unsigned>(month)} / last).day()));
}

inline bool is_date(int year, int month, int day) {
  return month >= 1 && month <= 12 && day >= 1 && day <= days_in_month(year, month);
}

// The day must exist.
inline Date date_of(int year, int month, int day) {
  return std::chrono::sys_days{std::chrono::year{year} / std::chrono::month{static_cast<unsigned>(month)} /
                               std::chrono::day{static_cast<unsigned>(day)}};
}

// The last of the month if the month is too short: 31 January and a month is 28 February.
inline Date clamped_date(int year, int month, int day) {
  return date_of(year, month, std::min(day, days_in_month(year, month)));
}

inline Date add_months(Date date, int months) {
  const int total = year_of(date) * 12 + month_of(date) - 1 + months;
  const int year = total >= 0 ? total / 12 : (total - 11) / 12;
  return clamped_date(year, total - year * 12 + 1, day_of(date));
}

inline Date monday_of(Date date) { return date - Days{weekday_of(date) - 1}; }

// The n-th such weekday of a month, from its end if n is negative; nothing if the month has no such day.
inline bool nth_weekday(int year, int month, int n, int weekday, Date& out) {
  if (n > 0) {
    const Date first = date_of(year, month, 1);
    out = first + Days{(weekday - weekday_of(first) + 7) % 7 + 7 * (n - 1)};
  } else {
    const Date last = date_of(year, month, days_in_month(year, month));
    out = last - Days{(weekday_of(last) - weekday + 7) % 7 + 7 * (-n - 1)};
  }
  return month_of(out) == month;
}

}  // namespace belfry::when
