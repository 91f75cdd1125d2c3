#include "belfry/when/rule.h"

#include <fmt/format.h>

namespace belfry::when {
namespace {

constexpr const char* kDays[] = {"", "MO", "TU", "WE", "TH", "FR", "SA", "SU"};

// 29 February comes again after eight years at the latest.
constexpr int kDaysAhead = 366 * 8 + 2;

const char* frequency(Unit unit) {
  switch (unit) {
    case Unit::second: return "SECONDLY";
    case Unit::minute: return "MINUTELY";
    case Unit::hour: return "HOURLY";
    case Unit::week: return "WEEKLY";
    case Unit::month: return "MONTHLY";
    case Unit::year: return "YEARLY";
    default: return "DAILY";
  }
}

bool falls_on(const Rule::Weekday& wanted, Date date) {
  if (weekday_of(date) != wanted.weekday) return false;
  if (wanted.nth == 0) return true;
  const int from_front = (day_of(date) - 1) / 7 + 1;
  const int from_end = -((days_in_month(year_of(date), month_of(date)) - day_of(date)) / 7 + 1);
  return wanted.nth == from_front || wanted.nth == from_end;
}

bool falls_on(const Rule& rule, Date date, Date today) {
  if (rule.month && *rule.month != month_of(date)) return false;
  if (!rule.month_days.empty()) {
    bool found = false;
    for (const int day : rule.month_days)
      found =
          found || day == day_of(date) || (day == -1 && day_of(date) == days_in_month(year_of(date), month_of(date)));
    if (!found) return false;
  }
  if (!rule.weekdays.empty()) {
    bool found = false;
    for (const Rule::Weekday& wanted : rule.weekdays) found = found || falls_on(wanted, date);
    if (!found) return false;
  }
  // "every month" without a day: the day of today, or the last one of a shorter month.
  const bool named = rule.month || !rule.month_days.empty() || !rule.weekdays.empty();
  if (named || rule.unit == Unit::day) return true;
  if (rule.unit == Unit::week) return weekday_of(date) == weekday_of(today);
  if (rule.unit == Unit::year && month_of(date) != month_of(today)) return false;
  return day_of(date) == std::min(day_of(today), days_in_month(year_of(date), month_of(date)));
}

}  // namespace

bool Rule::operator==(const Rule& other) const { return to_text(*this) == to_text(other); }

std::string to_text(const Rule& rule) {
  std::string text = fmt::format("FREQ={}", frequency(rule.unit));
  if (rule.interval != 1) text += fmt::format(";INTERVAL={}", rule.interval);
  if (rule.month) text += fmt::format(";BYMONTH={}", *rule.month);
  for (std::size_t i = 0; i < rule.month_days.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? ";BYMONTHDAY=" : ",", rule.month_days[i]);
  for (std::size_t i = 0; i < rule.weekdays.size(); ++i) {
    const Rule::Weekday& day = rule.weekdays[i];
    text += fmt::format("{}{}{}", i == 0 ? ";BYDAY=" : ",", day.nth == 0 ? "" : fmt::format("{}", day.nth),
                        kDays[day.weekday]);
  }
  if (rule.time) {
    const auto seconds = rule.time->count() % 86'400;
    text += fmt::format(";BYHOUR={};BYMINUTE={}", seconds / 3600, seconds / 60 % 60);
    if (seconds % 60 != 0) text += fmt::format(";BYSECOND={}", seconds % 60);
  }
  return text;
}

std::optional<Local> next_occurrence(const Rule& rule, const Local& after, Seconds time_of_day) {
  const bool named = rule.month || !rule.month_days.empty() || !rule.weekdays.empty() || rule.unit == Unit::day;
  for (int ahead = named ? 0 : 1; ahead < kDaysAhead; ++ahead) {
    const Local candidate{after.date + Days{ahead}, time_of_day};
    if (candidate > after && falls_on(rule, candidate.date, after.date)) return candidate;
  }
  return std::nullopt;
}

}  // namespace belfry::when
