#include "belfry/when/sentence.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace belfry::when {
namespace {

constexpr const char* kWeekdays[] = {"", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
constexpr const char* kWeekdaysZh[] = {"", "星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"};
constexpr const char* kShortWeekdaysZh[] = {"", "周一", "周二", "周三", "周四", "周五", "周六", "周日"};
constexpr const char* kMonths[] = {"",     "January", "February",  "March",   "April",    "May",     "June",
                                   "July", "August",  "September", "October", "November", "December"};
constexpr const char* kNth[] = {"", "first", "second", "third", "fourth", "fifth"};

Instant whole_seconds(WallTime at) { return std::chrono::floor<Seconds>(at); }

// Before clocks were set by the hour, zones were off by odd seconds: such a time is said in UTC.
Zone zone_to_say(const Zone& zone, Instant at) { return zone.offset_seconds(at) % 60 == 0 ? zone : Zone::utc(); }

std::string clock_text(Seconds time) {
  const auto s = time.count() % 86'400;
  if (s % 60 == 0) return fmt::format("{:02}:{:02}", s / 3600, s / 60 % 60);
  return fmt::format("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string offset_text(const Zone& zone, Instant at) {
  const int minutes = zone.offset_seconds(at) / 60;
  return fmt::format("UTC{}{:02}:{:02}", minutes < 0 ? '-' : '+', std::abs(minutes) / 60, std::abs(minutes) % 60);
}

// A year of three digits would be taken for something else: such a day is written as ISO 8601 has it.
bool is_ancient(Date date) { return year_of(date) < 1000; }

std::string date_text(Date date, bool chinese) {
  if (is_ancient(date)) return fmt::format("{:04}-{:02}-{:02}", year_of(date), month_of(date), day_of(date));
  if (chinese)
    return fmt::format("{:04}年{}月{}日{}", year_of(date), month_of(date), day_of(date), kWeekdaysZh[weekday_of(date)]);
  return fmt::format("{} {} {} {:04}", kWeekdays[weekday_of(date)], day_of(date), kMonths[month_of(date)],
                     year_of(date));
}

std::string moment_text(WallTime when, const Zone& zone, bool chinese) {
  const Instant at = whole_seconds(when);
  const Zone said = zone_to_say(zone, at);
  const Local local = said.local(at);
  if (is_ancient(local.date)) return said.iso(at);
  const std::string date = date_text(local.date, chinese);
  const std::string clock = clock_text(local.time);
  const std::string offset = offset_text(said, at);
  return chinese ? fmt::format("{} {}（{}）", date, clock, offset) : fmt::format("{} at {} ({})", date, clock, offset);
}

std::string range_text(const Reading& reading, bool chinese) {
  const auto one = [&](WallTime when) {
    if (reading.day_only) return date_text(reading.zone.local(whole_seconds(when)).date, chinese);
    return moment_text(when, reading.zone, chinese);
  };
  const WallTime last = reading.day_only ? *reading.end - Millis{1} : *reading.end;
  return chinese ? fmt::format("{}至{}", one(reading.at), one(last))
                 : fmt::format("from {} to {}", one(reading.at), one(last));
}

std::string joined(const std::vector<std::string>& words, bool chinese) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += chinese ? "、" : i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

const char* unit_text(Unit unit, bool chinese, bool many) {
  switch (unit) {
    case Unit::second: return chinese ? "秒" : many ? "seconds" : "second";
    case Unit::minute: return chinese ? "分钟" : many ? "minutes" : "minute";
    case Unit::hour: return chinese ? "小时" : many ? "hours" : "hour";
    case Unit::week: return chinese ? "周" : many ? "weeks" : "week";
    case Unit::month: return chinese ? "个月" : many ? "months" : "month";
    case Unit::year: return chinese ? "年" : many ? "years" : "year";
    default: return chinese ? "天" : many ? "days" : "day";
  }
}

std::string english_rule(const Rule& rule) {
  std::string text = rule.interval == 1 ? fmt::format("every {}", unit_text(rule.unit, false, false))
                                        : fmt::format("every {} {}", rule.interval, unit_text(rule.unit, false, true));
  std::vector<std::string> days;
  for (const Rule::Weekday& day : rule.weekdays) {
    const std::string nth = day.nth == 0 ? "" : day.nth < 0 ? "the last " : fmt::format("the {} ", kNth[day.nth]);
    days.push_back(nth + kWeekdays[day.weekday]);
  }
  if (rule.month) {
    days.push_back(fmt::format("{} {}", rule.month_days.empty() ? 1 : rule.month_days[0], kMonths[*rule.month]));
  } else {
    for (const int day : rule.month_days) {
      const char* const suffix = day % 10 == 1 && day != 11   ? "st"
                                 : day % 10 == 2 && day != 12 ? "nd"
                                 : day % 10 == 3 && day != 13 ? "rd"
                                                              : "th";
      days.push_back(day < 0 ? "the last day" : fmt::format("the {}{}", day, suffix));
    }
  }
  const bool weekly = rule.unit == Unit::week && rule.interval == 1 && !days.empty();
  if (weekly) {
    text = "every " + joined(days, false);
  } else if (!days.empty()) {
    text += " on " + joined(days, false);
  }
  if (rule.time) text += " at " + clock_text(*rule.time);
  return text;
}

std::string chinese_rule(const Rule& rule) {
  std::string text = "每";
  if (rule.interval != 1) text += fmt::format("{}", rule.interval);
  text += rule.interval == 1 && rule.unit == Unit::month ? "月" : unit_text(rule.unit, true, false);
  std::vector<std::string> days;
  for (const Rule::Weekday& day : rule.weekdays) {
    static constexpr const char* kNumbers[] = {"", "一", "二", "三", "四", "五"};
    const std::string nth = day.nth == 0 ? "" : day.nth < 0 ? "最后一个" : fmt::format("第{}个", kNumbers[day.nth]);
    days.push_back(nth + kShortWeekdaysZh[day.weekday]);
  }
  if (rule.month) {
    days.push_back(fmt::format("{}月{}日", *rule.month, rule.month_days.empty() ? 1 : rule.month_days[0]));
  } else {
    for (const int day : rule.month_days) days.push_back(day < 0 ? "最后一天" : fmt::format("{}日", day));
  }
  const bool weekly = rule.unit == Unit::week && rule.interval == 1 && !days.empty();
  text = weekly ? "每" + joined(days, true) : text + joined(days, true);
  if (rule.time) text += fmt::format(" {}", clock_text(*rule.time));
  return text;
}

}  // namespace

std::string sentence(const Reading& reading, Language language) {
  const bool chinese = language == Language::chinese;
  switch (reading.kind) {
    case ReadingKind::date: return date_text(reading.zone.local(whole_seconds(reading.at)).date, chinese);
    case ReadingKind::range:
      return reading.end ? range_text(reading, chinese) : moment_text(reading.at, reading.zone, chinese);
    case ReadingKind::recurrence: {
      std::string text = chinese ? chinese_rule(*reading.rule) : english_rule(*reading.rule);
      if (reading.zone_source == ZoneSource::text && reading.rule->time) {
        const std::string offset = offset_text(reading.zone, whole_seconds(reading.at));
        text += chinese ? fmt::format("（{}）", offset) : fmt::format(" ({})", offset);
      }
      return text;
    }
    default: return moment_text(reading.at, reading.zone, chinese);
  }
}

std::string distance(WallTime at, WallTime now, Language language) {
  const bool chinese = language == Language::chinese;
  const bool ahead = at >= now;
  auto left = std::chrono::round<Seconds>(ahead ? at - now : now - at).count();
  if (left == 0) return chinese ? "现在" : "now";
  struct Part {
    Unit unit;
    std::int64_t seconds;
  };
  constexpr std::array<Part, 4> kParts{
      {{Unit::day, 86'400}, {Unit::hour, 3'600}, {Unit::minute, 60}, {Unit::second, 1}}};
  // The two largest that count: a week ahead, nobody wants the seconds.
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kParts.size() && words.size() < 2; ++i) {
    const std::int64_t n = left / kParts[i].seconds;
    left %= kParts[i].seconds;
    if (n == 0) {
      if (!words.empty()) break;
      continue;
    }
    const char* const unit = unit_text(kParts[i].unit, chinese, n != 1);
    words.push_back(chinese ? fmt::format("{}{}", n, unit) : fmt::format("{} {}", n, unit));
  }
  if (chinese) return fmt::format("{}{}", fmt::join(words, ""), ahead ? "后" : "前");
  return ahead ? fmt::format("in {}", joined(words, false)) : fmt::format("{} ago", joined(words, false));
}

}  // namespace belfry::when
