#include "belfry/when/resolve.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "belfry/when/holidays.h"
#include "belfry/when/lunar.h"
#include "belfry/when/rule.h"

namespace belfry::when {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr Seconds kDefaultHour = hours{9};  // of a day without a time

constexpr Date kEarliest = std::chrono::year{1} / 1 / 2;
constexpr Date kLatest = std::chrono::year{9999} / 12 / 31;

// One moment for each part of the day.
Seconds moment_of(Part part, int shade) {
  switch (part) {
    case Part::dawn:
    case Part::early_morning: return hours{6};
    case Part::morning: return shade < 0 ? hours{8} : shade > 0 ? hours{11} : hours{9};
    case Part::midmorning:
    case Part::forenoon: return hours{10};
    case Part::noon:
    case Part::lunch: return hours{12};
    case Part::afternoon: return shade < 0 ? hours{13} : shade > 0 ? hours{17} : hours{15};
    case Part::midafternoon: return hours{15};
    case Part::dusk: return hours{18};
    case Part::evening: return shade < 0 ? hours{18} : hours{20};
    case Part::night: return shade < 0 ? hours{20} : shade > 0 ? hours{22} : hours{21};
    case Part::late_night: return hours{22};
    case Part::tonight: return hours{20};
    case Part::midnight: return hours{shade < 0 ? 0 : 24};
    case Part::small_hours: return hours{3};
    case Part::end_of_day: return hours{17};
    case Part::off_work: return hours{18};
    case Part::daytime: return hours{12};
    case Part::breakfast: return hours{8};
    case Part::dinner: return hours{19};
  }
  return hours{9};
}

bool is_evening(Part part) {
  return part == Part::evening || part == Part::night || part == Part::late_night || part == Part::tonight ||
         part == Part::dusk || part == Part::dinner;
}

Result<> in_range(Resolved& resolved);

class Resolver {
 public:
  Resolver(Instant now, const Zone& zone) : now_(now), zone_(zone), ref_(zone.local(now)) {}

  struct Found {
    Local local;
    std::optional<Instant> exact;  // elapsed arithmetic: beyond local time
    bool day_only = false;
    bool given_day = false;
    std::optional<Local> other;  // the other reading
    Maybe zone_minutes;
    std::string_view region;
  };

  // The zone that the text names, if it does.
  std::optional<Zone> text_zone(const Found& found) const {
    if (found.zone_minutes) return Zone::fixed(*found.zone_minutes * 60);
    if (found.region.empty()) return std::nullopt;
    const auto zone = Zone::named(found.region);
    return zone ? std::optional(*zone) : std::nullopt;
  }

  Result<Found> moment(const Moment& m, std::optional<Date> base_day = std::nullopt) {
    if (m.offset) return shifted(m);
    Found found;
    found.zone_minutes = m.zone_minutes;
    found.region = m.region;
    if (m.now || m.reach) {
      found.local = ref_;
      found.exact = now_;
      return found;
    }
    std::optional<Date> date;
    if (m.has_day()) {
      BELFRY_TRY(date, day(m));
      found.given_day = true;
    } else if (base_day) {
      date = base_day;
    }
    if (m.same_time) {
      found.local = {date.value_or(ref_.date + Days{m.has_day() ? 0 : 1}), ref_.time};
      return found;
    }
    if (!m.has_time()) {
      found.day_only = true;
      found.local = {date.value_or(ref_.date), kDefaultHour};
      if (found.local.date == ref_.date && ref_.time > kDefaultHour) found.local.time = ref_.time;
      return found;
    }
    const Seconds time = time_of(m, found);
    if (date) {
      found.local = {*date, time};
      // Said in the small hours, "tonight at 3" is this night.
      if (!m.clock && *date == ref_.date && time < ref_.time && !part_is_over(*m.part, ref_.time) && m.day_offset)
        found.local.time = ref_.time;  // this afternoon, when it goes on already
      // "today at 4", said at three in the afternoon
      if (m.day_offset == 0 && !m.part && m.clock && found.other && time <= ref_.time && found.other->time > ref_.time)
        std::swap(found.local.time, found.other->time);
      const bool this_night = time > hours{24} && *date == ref_.date && ref_.time < hours{5};
      if (this_night && time - hours{24} > ref_.time) found.local.date -= Days{1};
    } else {
      found.local = {ref_.date, time};
      // A bare time of day is its next occurrence.
      const auto there = text_zone(found);
      const Local here = there ? there->local(now_) : ref_;
      const Seconds today = here.time;
      found.local.date = here.date;
      const bool gone = m.clock ? time <= today : part_is_over(*m.part, today);
      // At midnight itself, midnight is now.
      if (today == Seconds{0} && time % Days{1} == Seconds{0} && (!m.clock || m.clock->hour % 12 == 0)) {
        found.local.time = Seconds{0};
        return found;
      }
      const bool this_night = time > hours{24} && today < hours{5} && time - hours{24} > today;
      if (this_night)
        found.local.date -= Days{1};
      else if (gone)
        found.local.date += Days{1};
      else if (!m.clock && time < today)
        found.local.time = today;
      // Of an hour that comes twice, the second one may still be ahead.
      if (m.clock && !there && instant(found) <= now_ && zone_.later_instant(found.local) > now_)
        found.exact = zone_.later_instant(found.local);
      if (found.other) {
        found.other->date = ref_.date;
        if (found.other->time <= ref_.time) found.other->date += Days{1};
      }
    }
    if (date && found.other) found.other->date = *date;
    return found;
  }

  Instant instant(const Found& found) const {
    if (found.exact) return *found.exact;
    const auto zone = text_zone(found);
    return (zone ? *zone : zone_).instant(found.local);
  }

  // The first one behind now, and how it goes on.
  Result<> recurrence(const Expression& e, Resolved& out) {
    const Recurrence& r = e.recurrence;
    Rule rule;
    rule.unit = r.unit;
    double every = r.every;
    // Whole numbers of a smaller unit: every half an hour is every 30 minutes.
    if (every != std::floor(every) && rule.unit == Unit::hour) rule.unit = Unit::minute, every *= 60;
    if (every != std::floor(every) && rule.unit == Unit::minute) rule.unit = Unit::second, every *= 60;
    if (every != std::floor(every) && rule.unit == Unit::day) rule.unit = Unit::hour, every *= 24;
    if (every != std::floor(every) && rule.unit == Unit::year) rule.unit = Unit::month, every *= 12;
    if (every != std::floor(every) && rule.unit == Unit::month) rule.unit = Unit::day, every *= 30;
    if (every != std::floor(every) && rule.unit == Unit::week) rule.unit = Unit::day, every *= 7;
    rule.interval = std::max(1, static_cast<int>(std::lround(every)));
    if (rule.unit == Unit::second || rule.unit == Unit::minute || rule.unit == Unit::hour) {
      out.at = add(now_, Span({static_cast<double>(rule.interval), rule.unit}), 1);
      out.relative = true;
      out.rule = rule;
      return {};
    }
    for (const int weekday : r.weekdays) rule.weekdays.push_back({0, weekday});
    if (r.nth && r.nth->weekday != 0) rule.weekdays.push_back({r.nth->n, r.nth->weekday});
    rule.month_days = r.month_days;
    Found time;
    time.zone_minutes = e.start.zone_minutes;
    time.region = e.start.region;
    if (e.start.has_time()) rule.time = time_of(e.start, time);
    const Seconds at = rule.time.value_or(kDefaultHour);
    if (e.start.holiday || e.start.term || e.start.lunar) {
      BELFRY_TRY(const Found day, moment(e.start));
      rule.unit = Unit::year;
      time.local = {day.local.date, at};
      if (e.start.holiday && is_fixed_holiday(*e.start.holiday)) {
        rule.month = month_of(day.local.date);
        rule.month_days = {day_of(day.local.date)};
      }
      if (instant(time) <= now_) {
        Resolver later(now_ + Days{1}, zone_);
        BELFRY_TRY(const Found next, later.moment(e.start));
        time.local.date = next.local.date;
      }
    } else {
      if (e.start.month) {
        rule.month = *e.start.month;
        const bool in_month = rule.unit == Unit::day || rule.unit == Unit::week || !rule.weekdays.empty();
        if (!in_month || e.start.day) {
          rule.unit = Unit::year;
          rule.month_days = {e.start.day.value_or(1)};
        } else if (rule.unit == Unit::month) {
          rule.unit = Unit::year;  // the fourth Thursday of November
        }
      }
      // The night behind a day belongs to the next one.
      if (rule.time && *rule.time >= Days{1})
        for (Rule::Weekday& day : rule.weekdays) day.weekday = day.weekday % 7 + 1;
      const Local after = text_zone(time) ? text_zone(time)->local(now_) : ref_;
      const bool named = rule.month || !rule.month_days.empty() || !rule.weekdays.empty();
      if (!named && rule.interval > 1 && !rule.time) {  // every three months: in three months
        out.at = add(now_, Span({static_cast<double>(rule.interval), rule.unit}), 1);
        out.day_only = true;
        out.rule = std::move(rule);
        return in_range(out);
      }
      const auto next = next_occurrence(rule, after, at % Days{1});
      if (!next) return fail(Errc::impossible_time, "there is no such day");
      time.local = *next;
    }
    out.at = instant(time);
    if (out.at <= now_) return fail(Errc::impossible_time, "it does not come again");
    if (e.start.until_clock) BELFRY_CHECK(find_end(e, time, out));  // 9:00-18:00: of the next one
    if (rule.time) *rule.time %= Days{1};
    out.day_only = !rule.time;
    out.rule = std::move(rule);
    return {};
  }

  Instant start_of_day(Found found, Instant at) const {
    found.local = {zone_.local(at).date, Seconds{0}};
    found.exact.reset();
    return instant(found);
  }

  // The end of a range, whichever way it is said. The end of a day or of a longer period is the midnight behind it.
  Result<> find_end(const Expression& e, const Found& start, Resolved& out) {
    const Moment& m = e.start;
    if (m.reach) {
      reach(m, out);
    } else if (m.rest_of) {
      out.end = zone_.instant({end_of(*m.rest_of), Seconds{0}});
    } else if (m.length) {
      out.end = add(out.at, *m.length, 1);
    } else if (m.until_clock) {
      Moment end = m;
      end.clock = m.until_clock;
      Found found;
      found.zone_minutes = start.zone_minutes;
      found.region = start.region;
      const Seconds time = time_of(end, found);
      Local local{start.local.date, time};
      const bool other_half = time <= start.local.time && time + hours{12} > start.local.time &&
                              !m.until_clock->exact && !m.until_clock->meridiem && !m.part && m.until_clock->hour < 12;
      if (other_half) local.time += hours{12};
      if (local.time <= start.local.time) local.date += Days{1};
      found.local = local;
      out.end = instant(found);
    } else if (m.until_day || m.until_month || m.until_year) {
      Date last = start.local.date;
      if (m.until_day) {
        BELFRY_TRY(last, checked(year_of(last), month_of(last), *m.until_day));
        last += Days{1};
      } else if (m.until_month) {
        last = add_months(date_of(year_of(last), *m.until_month, 1), 1);
      } else {
        last = date_of(*m.until_year + 1, 1, 1);
      }
      Found end = start;
      end.local = m.clock ? Local{last - Days{1}, start.local.time} : Local{last, Seconds{0}};
      out.end = instant(end);
    } else if (e.end) {
      BELFRY_TRY(Found end, moment(*e.end, start.local.date));
      if (!end.exact && !e.end->has_day() && !e.end->offset && end.local <= start.local) end.local.date += Days{1};
      if (instant(end) < out.at) BELFRY_CHECK(put_in_order(e, start, end, out));
      out.end = end.day_only ? zone_.instant({behind(*e.end, end.local.date), Seconds{0}}) : instant(end);
    }
    return {};
  }

  // The first day behind a day or a longer period that begins with it: "to March" goes to its last day.
  static Date behind(const Moment& m, Date first) {
    const bool part_of_it = m.day || m.weekday || m.nth || m.edge || m.holiday || m.term || m.weekend || m.day_offset ||
                            m.shade != 0 || m.offset;
    if (part_of_it) return first + Days{1};
    if (m.week || m.iso_week) return first + Days{7};
    if (m.month || m.month_offset) return add_months(first, 1);
    if (m.quarter || m.quarter_offset) return add_months(first, 3);
    if (m.season || m.half_year) return add_months(first, m.season ? 3 : 6);
    if (m.year || m.year_offset) return add_months(first, 12);
    return first + Days{1};
  }

  // Each end by itself is the coming one; together they may say that the range has begun, or that it goes on further.
  Result<> put_in_order(const Expression& e, const Found& start, Found& end, Resolved& out) {
    const Moment& last = *e.end;
    if (last.weekday && !last.week && !end.exact) {
      while (instant(end) < out.at) end.local.date += Days{7};
    } else if (last.day && !last.month && !last.month_offset) {
      while (instant(end) < out.at) end.local.date = add_months(end.local.date, 1);
    } else if (e.start.month && !e.start.year && !e.start.year_offset && !start.exact &&
               year_of(start.local.date) > year_of(ref_.date)) {
      Moment earlier = e.start;
      earlier.year = year_of(start.local.date) - 1;
      BELFRY_TRY(const Found before, moment(earlier));
      out.at = instant(before);
    } else if (!e.start.has_day() && e.start.clock && !start.exact) {
      Found before = start;
      before.local.date -= Days{1};
      out.at = instant(before);
    }
    if (instant(end) < out.at) return fail(Errc::impossible_time, "the range ends before it begins");
    return {};
  }

  Instant add(Instant start, const Span& span, int direction) const {
    Local local = zone_.local(start);
    bool calendar = false;
    double seconds = 0;
    for (const Amount& amount : span) {
      const double n = amount.count * direction;
      switch (amount.unit) {
        case Unit::second: seconds += n; break;
        case Unit::minute: seconds += n * 60; break;
        case Unit::quarter_hour: seconds += n * 900; break;
        case Unit::hour: seconds += n * 3600; break;
        default: {
          calendar = true;
          double rest = 0;
          local.date = add_calendar(local.date, amount.unit, n, rest);
          seconds += rest * 86400;
        }
      }
    }
    const Instant base = calendar ? zone_.instant(local) : start;
    return base + Seconds{static_cast<std::int64_t>(std::llround(std::clamp(seconds, -1e12, 1e12)))};
  }

 private:
  // The next three days begin tomorrow, the next three hours now; the last ones end now.
  void reach(const Moment& m, Resolved& out) const {
    const Unit unit = m.reach->front().unit;
    const bool days = m.reach->size() == 1 && (unit == Unit::day || unit == Unit::business_day);
    if (m.direction < 0) {
      out.at = add(now_, *m.reach, -1);
      out.end = now_;
    } else if (days) {
      out.at = zone_.instant({ref_.date + Days{1}, Seconds{0}});
      out.end = add(out.at, *m.reach, 1);
    } else {
      out.at = now_;
      out.end = add(now_, *m.reach, 1);
    }
    out.day_only = days;
    out.relative = !days;
    out.relative_end = !days || m.direction < 0;
  }

  // The day behind the period that goes on.
  Date end_of(Unit unit) const {
    switch (unit) {
      case Unit::week: return monday_of(ref_.date) + Days{7};
      case Unit::month: return add_months(first_of_month(ref_.date), 1);
      case Unit::quarter: return add_months(date_of(year_of(ref_.date), (month_of(ref_.date) - 1) / 3 * 3 + 1, 1), 3);
      case Unit::year: return date_of(year_of(ref_.date) + 1, 1, 1);
      default: return ref_.date + Days{1};
    }
  }

  static Date add_calendar(Date date, Unit unit, double n, double& rest_days) {
    const double whole = std::trunc(n);
    const double part = n - whole;
    const int k = static_cast<int>(std::clamp(whole, -4e6, 4e6));
    switch (unit) {
      case Unit::day: rest_days = part; return date + Days{k};
      case Unit::week: rest_days = part * 7; return date + Days{std::clamp(k, -500'000, 500'000) * 7};
      case Unit::fortnight: rest_days = part * 14; return date + Days{std::clamp(k, -200'000, 200'000) * 14};
      case Unit::month: rest_days = part * 30; return add_months(date, std::clamp(k, -90'000, 90'000));
      case Unit::quarter: rest_days = part * 90; return add_months(date, std::clamp(k, -30'000, 30'000) * 3);
      case Unit::year:
        return add_months(date, std::clamp(k, -8'000, 8'000) * 12 + static_cast<int>(std::lround(part * 12)));
      case Unit::decade:
        return add_months(date, std::clamp(k, -800, 800) * 120 + static_cast<int>(std::lround(part * 120)));
      case Unit::century: return add_months(date, std::clamp(k, -80, 80) * 1200);
      case Unit::weekend: return monday_of(date) + Days{5 + std::clamp(k, -500'000, 500'000) * 7};
      case Unit::business_day: {
        int left = std::clamp(k, -10'000, 10'000);
        const int step = left < 0 ? -1 : 1;
        while (left != 0) {
          date += Days{step};
          if (weekday_of(date) <= 5) left -= step;
        }
        return date;
      }
      default: return date;
    }
  }

  static bool calendar_only(const Span& span) {
    return std::all_of(span.begin(), span.end(), [](const Amount& a) {
      return a.unit != Unit::second && a.unit != Unit::minute && a.unit != Unit::hour && a.unit != Unit::quarter_hour;
    });
  }

  Result<Found> shifted(const Moment& m) {
    Found found;
    found.zone_minutes = m.zone_minutes;
    found.region = m.region;
    Instant start = now_;
    bool anchor_day_only = false;
    if (m.anchor) {
      BELFRY_TRY(const Found anchor, moment(*m.anchor));
      start = instant(anchor);
      anchor_day_only = anchor.day_only;
      if (anchor.day_only && !calendar_only(*m.offset)) start = anchor.local.date == ref_.date ? now_ : start;
    } else if (m.has_day() && !(m.day_offset == 0 && !calendar_only(*m.offset))) {
      // "Thursday, two years from now", "november 10th in a year"
      const Instant there = add(now_, *m.offset, m.direction);
      Resolver later(there, zone_);
      Moment rest = m;
      rest.offset = nullptr;
      const bool weeks = m.offset->size() == 1 && m.offset->front().unit == Unit::week;
      if (weeks && m.weekday && !m.week) rest.week = 0, rest.of_that_week = true;  // two weeks from now, on Friday
      return later.moment(rest);
    }
    const Instant at = add(start, *m.offset, m.direction);
    const Local local = zone_.local(at);
    if (m.clock || m.part) {
      Moment rest = m;
      rest.offset = nullptr;
      rest.anchor = nullptr;
      const Seconds time = time_of(rest, found);
      found.local = {local.date, time};
      if (found.other) found.other->date = local.date;
      found.given_day = true;
      return found;
    }
    found.local = local;
    found.exact = at;
    found.given_day = true;
    found.day_only = anchor_day_only && calendar_only(*m.offset);
    return found;
  }

  static bool part_is_over(Part part, Seconds time) {
    switch (part) {
      case Part::dawn:
      case Part::early_morning:
      case Part::small_hours: return time >= hours{6};
      case Part::morning:
      case Part::forenoon:
      case Part::midmorning:
      case Part::breakfast: return time >= hours{12};
      case Part::noon:
      case Part::lunch: return time >= hours{13};
      case Part::afternoon:
      case Part::midafternoon: return time >= hours{16};
      case Part::dusk: return time >= hours{19};
      default: return false;
    }
  }

  // Seconds since midnight of the day that is meant; more than a day for the night after it.
  Seconds time_of(const Moment& m, Found& found) const {
    if (!m.clock) {
      const Seconds time = moment_of(*m.part, m.part_shade);
      return time;
    }
    const Clock& c = *m.clock;
    int hour = c.hour;
    const Seconds rest = minutes{c.minute} + Seconds{c.second};
    if (c.meridiem) {
      if (hour <= 12) hour = hour % 12 + (*c.meridiem == 1 ? 12 : 0);
      if (m.part && (is_evening(*m.part)) && hour < 5 && *c.meridiem == 0) hour += 24;  // tonight at 1am
      return hours{hour} + rest;
    }
    if (m.part) {
      const Part part = *m.part;
      if (is_evening(part)) {
        if ((hour == 12 || hour == 0) && part != Part::dusk)
          hour = 24;
        else if (hour < 5 && part != Part::dusk && hour > 0)
          hour += 24;
        else if (hour < 12)
          hour += 12;
      } else if (part == Part::afternoon || part == Part::midafternoon) {
        if (hour < 12) hour += 12;
      } else if (part == Part::noon || part == Part::lunch) {
        if (hour <= 4) hour += 12;
      } else if (part == Part::midnight) {
        if (hour == 12)
          hour = 24;
        else if (hour < 6)
          hour += 24;
        else if (hour < 12)
          hour += 12;
      } else if (part == Part::small_hours || part == Part::early_morning || part == Part::dawn) {
        if (hour == 12) hour = 0;
      } else if (part == Part::morning) {
        if (hour == 12 && m.part_shade < 0) hour = 0;
      }
      return hours{hour} + rest;
    }
    if (hour >= 1 && hour <= 11 && !c.exact) found.other = Local{ref_.date, hours{hour + 12} + rest};
    return hours{hour} + rest;
  }

  // --- days ---

  Result<Date> checked(int year, int month, int day) const {
    if (year < 1 || year > 9999)
      return fail(Errc::impossible_time, fmt::format("the year {} is not in 1 to 9999", year));
    if (!is_date(year, month, day))
      return fail(Errc::impossible_time, fmt::format("{:04}-{:02} has no day {}", year, month, day));
    return date_of(year, month, day);
  }

  int base_year(const Moment& m) const { return m.year ? *m.year : year_of(ref_.date) + m.year_offset.value_or(0); }

  Result<Date> lunar_day(const Moment& m) const {
    const int month = m.month.value_or(1);
    const int day = m.day.value_or(1);
    if (m.year || m.year_offset) {
      const auto date = lunar_date(base_year(m), month, day);
      if (!date) return fail(Errc::impossible_time, "there is no such lunar date");
      return *date;
    }
    for (int year = lunar_year_of(ref_.date); year <= lunar_year_of(ref_.date) + 2; ++year)
      for (int any = m.month ? month : 1; any <= (m.month ? month : 12); ++any)  // 初七 alone: of the coming month
        if (const auto date = lunar_date(year, any, day); date && *date >= ref_.date) return *date;
    return fail(Errc::impossible_time, "there is no such lunar date");
  }

  Result<Date> named_day(const Moment& m) const {
    const auto in_year = [&](int year) -> std::optional<Date> {
      if (year < 1 || year > 9999) return std::nullopt;
      return m.holiday ? holiday_date(*m.holiday, year) : std::optional(solar_term(year, *m.term));
    };
    if (m.year || m.year_offset) {
      const auto date = in_year(base_year(m));
      if (!date) return fail(Errc::impossible_time, "the date of this day is not known for that year");
      return *date;
    }
    if (m.last_occurrence) {
      for (int year = year_of(ref_.date); year > year_of(ref_.date) - 3; --year)
        if (const auto date = in_year(year); date && *date < ref_.date) return *date;
    }
    for (int year = year_of(ref_.date); year < year_of(ref_.date) + 3; ++year)
      if (const auto date = in_year(year); date && *date >= ref_.date) return *date;
    return fail(Errc::impossible_time, "the date of this day is not known for that year");
  }

  Result<Date> nth_day(const Moment& m) const {
    const Nth nth = *m.nth;
    int year = base_year(m);
    int month = 0;
    if (m.month) {
      month = *m.month;
      if (!m.year && !m.year_offset && month < month_of(ref_.date)) ++year;
    } else if (m.month_offset) {
      const Date there = add_months(date_of(year_of(ref_.date), month_of(ref_.date), 1), *m.month_offset);
      year = year_of(there);
      month = month_of(there);
    } else if (m.quarter || m.quarter_offset) {
      BELFRY_TRY(const Date first_day, quarter_day(m));
      year = year_of(first_day);
      month = month_of(first_day);
    }
    if (nth.weekday != 0) {
      Date date;
      if (month == 0) {
        const Date first = nth.n > 0 ? date_of(year, 1, 1) : date_of(year, 12, 31);
        return nth.n > 0 ? first + Days{(nth.weekday - weekday_of(first) + 7) % 7 + 7 * (nth.n - 1)}
                         : first - Days{(weekday_of(first) - nth.weekday + 7) % 7 + 7 * (-nth.n - 1)};
      }
      if (!nth_weekday(year, month, nth.n, nth.weekday, date))
        return fail(Errc::impossible_time, "that month has no such day");
      if (date < ref_.date && m.next_occurrence && !m.year) {
        const Date next = add_months(date_of(year, month, 1), 1);
        nth_weekday(year_of(next), month_of(next), nth.n, nth.weekday, date);
      } else if (date < ref_.date && m.month && !m.year && !m.year_offset) {
        if (!nth_weekday(year + 1, month, nth.n, nth.weekday, date))
          return fail(Errc::impossible_time, "that month has no such day");
      }
      return date;
    }
    const Date first = month == 0 ? date_of(year, 1, 1) : date_of(year, month, 1);
    const bool quarter = m.quarter || m.quarter_offset;
    const Date last = month == 0 ? date_of(year, 12, 31) : add_months(first, quarter ? 3 : 1) - Days{1};
    if (nth.unit == Unit::business_day) {
      Date date = nth.n > 0 ? first : last;
      for (int left = std::abs(nth.n); left > 0;) {
        if (weekday_of(date) <= 5 && --left == 0) break;
        date += Days{nth.n > 0 ? 1 : -1};
      }
      if (date < first || date > last) return fail(Errc::impossible_time, "there is no such working day in it");
      return date;
    }
    if (nth.unit == Unit::week) {
      if (nth.n < 0) return monday_of(last) + Days{7 * (nth.n + 1)};
      // Of a year: as ISO counts them. Of a month: those that begin in it.
      const int behind = month == 0 ? (weekday_of(first) > 4 ? 7 : 0) : weekday_of(first) > 1 ? 7 : 0;
      return monday_of(first) + Days{7 * (nth.n - 1) + behind};
    }
    if (nth.unit == Unit::month) {
      if (nth.n < 1 || nth.n > 12) return fail(Errc::impossible_time, "a year has 12 months");
      return date_of(year, nth.n, 1);
    }
    const Date date = nth.n > 0 ? first + Days{nth.n - 1} : last + Days{nth.n + 1};
    if (date > last || date < first) return fail(Errc::impossible_time, "there is no such day in it");
    return date;
  }

  Result<Date> day(const Moment& m) {
    if (m.shade > 0) {  // the second half of a period
      Moment whole = m;
      whole.shade = 0;
      BELFRY_TRY(const Date first, day(whole));
      const Date half = m.week                          ? first + Days{3}
                        : m.month || m.month_offset     ? first + Days{15}
                        : m.quarter || m.quarter_offset ? first + Days{45}
                                                        : add_months(first, 6);
      return m.shade_from_today ? std::max(half, ref_.date) : half;
    }
    // this time next week, 明年今天: the same day, further on
    if ((m.same_time || m.day_offset == 0) && !m.day && !m.month && !m.weekday && !m.edge &&
        (m.week || m.month_offset || m.year_offset))
      return add_months(ref_.date, m.month_offset.value_or(0) + 12 * m.year_offset.value_or(0)) +
             Days{7 * m.week.value_or(0)};
    if (m.edge) return edge_day(m);
    if (m.nth) return nth_day(m);
    if (m.iso_week) {
      BELFRY_TRY(const Date fourth, checked(base_year(m), 1, 4));
      const Date first = monday_of(fourth);
      if (*m.iso_week == 53 && weekday_of(fourth) != 7 && !(weekday_of(fourth) == 6 && year_of(fourth) % 4 == 0) &&
          first + Days{52 * 7 + 3} > date_of(year_of(fourth), 12, 31))
        return fail(Errc::impossible_time, fmt::format("the year {} has no week 53", year_of(fourth)));
      return first + Days{7 * (*m.iso_week - 1) + m.weekday.value_or(1) - 1};
    }
    if (m.holiday || m.term) {
      BELFRY_TRY(const Date date, named_day(m));
      if (m.weekend) return date - Days{(weekday_of(date) - 6 + 7) % 7};
      return date;
    }
    if (m.lunar) return lunar_day(m);
    if (m.month && m.day) return month_and_day(m);
    if (m.day) return day_of_month(m);
    if (m.day_offset) return ref_.date + Days{*m.day_offset};
    if (m.weekend) return weekend_day(m);
    if (m.weekday) return weekday_day(m);
    if (m.quarter || m.quarter_offset) return quarter_day(m);
    if (m.season) return season_day(m);
    if (m.half_year) return date_of(base_year(m), *m.half_year == 1 ? 1 : 7, 1);
    if (m.week) return monday_of(ref_.date) + Days{7 * (*m.week + (m.after ? 1 : 0))};
    if (m.month) return month_day(m);
    const int after = m.after ? 1 : 0;
    if (m.month_offset) return first_of_month(add_months(ref_.date, *m.month_offset + after));
    if (m.decade_offset) return checked((year_of(ref_.date) / 10 + *m.decade_offset) * 10, 1, 1);
    if (m.year || m.year_offset) return checked(base_year(m) + after, 1, 1);
    return ref_.date;
  }

  // A season that is over is that of the next year, unless the text says which.
  Date season_day(const Moment& m) const {
    const Date first = date_of(base_year(m), *m.season == 3 ? 12 : 3 + 3 * *m.season, 1);
    const bool over = !m.year && !m.year_offset && add_months(first, 3) <= ref_.date;
    return over ? add_months(first, 12) : first;
  }

  static Date first_of_month(Date date) { return date_of(year_of(date), month_of(date), 1); }

  // The first day of a month that is named.
  Result<Date> month_day(const Moment& m) const {
    const int here = month_of(ref_.date);
    int year = base_year(m);
    if (!m.year && !m.year_offset) {
      if (m.last_occurrence) year -= *m.month >= here ? 1 : 0;
      if (!m.last_occurrence && (*m.month < here || (m.next_occurrence && *m.month == here))) ++year;
    }
    BELFRY_TRY(const Date first, checked(year, *m.month, 1));
    return m.after ? add_months(first, 1) : first;
  }

  Result<Date> month_and_day(const Moment& m) const {
    if (m.year || m.year_offset) return checked(base_year(m), *m.month, *m.day);
    // "Thu Aug 10", said days after it, is the one that was a Thursday.
    if (m.weekday && is_date(year_of(ref_.date), *m.month, *m.day)) {
      const Date date = date_of(year_of(ref_.date), *m.month, *m.day);
      if (weekday_of(date) == *m.weekday && date < ref_.date && ref_.date - date <= Days{14}) return date;
    }
    if (m.last_occurrence) {
      for (int year = year_of(ref_.date); year >= year_of(ref_.date) - 8; --year)
        if (is_date(year, *m.month, *m.day) && date_of(year, *m.month, *m.day) < ref_.date)
          return date_of(year, *m.month, *m.day);
    }
    for (int year = year_of(ref_.date); year <= year_of(ref_.date) + 8; ++year) {
      if (!is_date(year, *m.month, *m.day)) continue;
      const Date date = date_of(year, *m.month, *m.day);
      if (date >= ref_.date) return date;
    }
    return fail(Errc::impossible_time, fmt::format("month {} has no day {}", *m.month, *m.day));
  }

  Result<Date> day_of_month(const Moment& m) const {
    Date first = date_of(year_of(ref_.date), month_of(ref_.date), 1);
    if (m.year_offset || m.year) first = date_of(base_year(m), month_of(ref_.date), 1);
    if (m.month_offset) {
      first = add_months(first, *m.month_offset);
      return checked(year_of(first), month_of(first), *m.day);
    }
    std::optional<Date> plain;
    for (int i = 0; i < 24; ++i) {
      const Date month = add_months(first, i);
      if (!is_date(year_of(month), month_of(month), *m.day)) continue;
      const Date date = date_of(year_of(month), month_of(month), *m.day);
      if (date < ref_.date) continue;
      if (!plain) plain = date;
      if (!m.weekday || weekday_of(date) == *m.weekday) return date;
    }
    if (plain) return *plain;
    return fail(Errc::impossible_time, fmt::format("no month has a day {}", *m.day));
  }

  Result<Date> weekday_day(const Moment& m) {
    if (m.beside != 0) {  // the Monday after Easter
      BELFRY_TRY(const Found anchor, moment(*m.anchor));
      const Date day = anchor.local.date;
      if (m.beside > 0) return day + Days{(*m.weekday - weekday_of(day) + 6) % 7 + 1};
      return day - Days{(weekday_of(day) - *m.weekday + 6) % 7 + 1};
    }
    if (m.week) {
      Date date = monday_of(ref_.date) + Days{7 * *m.week + *m.weekday - 1};
      if (*m.week == 0 && date < ref_.date && !m.of_that_week) date += Days{7};
      return date;
    }
    const int ahead = (*m.weekday - weekday_of(ref_.date) + 7) % 7;
    if (m.last_occurrence) return ref_.date - Days{(ahead == 0 ? 7 : 7 - ahead) - 7 * m.weekday_shift};
    if (ahead == 0 && !is_later_today(m)) return ref_.date + Days{7 + 7 * m.weekday_shift};
    return ref_.date + Days{ahead + 7 * m.weekday_shift};
  }

  // "Friday at 8pm", said on a Friday afternoon, is tonight; "Friday" alone is not today.
  bool is_later_today(const Moment& m) const {
    if (!m.clock && !m.part) return false;
    Found ignored;
    return time_of(m, ignored) > ref_.time;
  }

  Result<Date> weekend_day(const Moment& m) const {
    const Date saturday = monday_of(ref_.date) + Days{5 + 7 * m.week.value_or(0)};
    return saturday < ref_.date && m.week.value_or(0) == 0 ? ref_.date : saturday;
  }

  Result<Date> quarter_day(const Moment& m) const {
    const Date this_quarter = date_of(year_of(ref_.date), (month_of(ref_.date) - 1) / 3 * 3 + 1, 1);
    if (m.quarter_offset) return add_months(this_quarter, 3 * *m.quarter_offset);
    int year = base_year(m);
    if (!m.year && !m.year_offset && date_of(year, *m.quarter * 3 - 2, 1) < this_quarter) ++year;
    return date_of(year, *m.quarter * 3 - 2, 1);
  }

  Result<Date> edge_day(const Moment& m) const {
    Date first;
    Date last;
    switch (m.edge_unit) {
      case Unit::week:
        first = monday_of(ref_.date) + Days{7 * m.week.value_or(0)};
        last = first + Days{m.edge == Kind::end ? 4 : 6};
        break;
      case Unit::month: {
        int year = base_year(m);
        int month = m.month.value_or(month_of(ref_.date));
        if (m.month && !m.year && !m.year_offset && month < month_of(ref_.date)) ++year;
        first = add_months(date_of(year, month, 1), m.month_offset.value_or(0));
        // 月初 alone, when it has passed, is the coming one.
        if (m.coming_edge && !m.month && !m.month_offset && first < ref_.date) first = add_months(first, 1);
        last = add_months(first, 1) - Days{1};
        break;
      }
      case Unit::quarter: {
        if (m.quarter) {
          BELFRY_TRY(first, quarter_day(m));
          last = add_months(first, 3) - Days{1};
          break;
        }
        first = add_months(date_of(year_of(ref_.date), (month_of(ref_.date) - 1) / 3 * 3 + 1, 1),
                           3 * m.quarter_offset.value_or(0));
        last = add_months(first, 3) - Days{1};
        break;
      }
      default: {
        const int year = base_year(m);
        if (year < 1 || year > 9999) return fail(Errc::impossible_time, "the year is not in 1 to 9999");
        const bool gone = m.coming_edge && !m.year && !m.year_offset && date_of(year, 1, 1) < ref_.date;
        first = date_of(year + (gone ? 1 : 0), 1, 1);
        last = date_of(year, 12, 31);
      }
    }
    if (m.edge == Kind::end) return last;
    if (m.edge == Kind::begin) return first;
    if (m.edge_unit == Unit::month) return first + Days{14};
    return first + (last - first) / 2;
  }

  Instant now_;
  const Zone& zone_;
  Local ref_;
};

std::string describe(const Wrong& wrong) {
  static constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                            "July",    "August",   "September", "October", "November", "December"};
  switch (wrong.what) {
    case Wrong::What::time_of_day:
      return fmt::format("there is no {}:{:02}: a day has the hours 0 to 24, an hour the minutes 0 to 59", wrong.first,
                         wrong.second);
    case Wrong::What::half_day_hour:
      return fmt::format("there is no hour {} with am or pm: those go from 1 to 12", wrong.first);
    case Wrong::What::month: return fmt::format("there is no month {}: a year has 12", wrong.first);
    case Wrong::What::day_of_month:
      if (wrong.first == 0) return fmt::format("no month has a day {}", wrong.second);
      if (wrong.first < 1 || wrong.first > 12) return fmt::format("there is no date {}/{}", wrong.first, wrong.second);
      return fmt::format("{} has no day {}", kMonths[wrong.first - 1], wrong.second);
    case Wrong::What::week: return fmt::format("there is no week {}: a year has 52 or 53", wrong.first);
    case Wrong::What::weekday: return fmt::format("there is no day {} of the week: it has 7", wrong.first);
    case Wrong::What::offset:
      return fmt::format("no zone is {:+}:{:02} from UTC: they go from -12:00 to +14:00", wrong.first, wrong.second);
    case Wrong::What::zone: return "the time zone is not known; write it like Europe/Paris, UTC+2 or \"London time\"";
    case Wrong::What::bounds:
      return "a rule that begins or ends some day, or leaves out other things than days of the week, is not read";
    case Wrong::What::anchor: return "it counts from something whose time is not said";
    case Wrong::What::vague: return "that is too vague; say the hour";
    case Wrong::What::second_time: return "a rule has one time of day; make two of it";
  }
  return "there is no such time";
}

// Years have four digits, here and in what is sent.
Result<> in_range(Resolved& resolved) {
  const auto fits = [](Instant instant) { return instant >= Instant{kEarliest} && instant <= Instant{kLatest}; };
  if (!fits(resolved.at) || (resolved.end && !fits(*resolved.end)))
    return fail(Errc::impossible_time, "the time is not in the years 1 to 9999");
  if (resolved.end && *resolved.end < resolved.at)
    return fail(Errc::impossible_time, "the range ends before it begins");
  std::erase_if(resolved.alternatives, [&](Instant other) { return !fits(other) || other == resolved.at; });
  return {};
}

}  // namespace

Result<> resolve(const Expression& e, Instant now, const Zone& zone, Resolved& out) {
  if (e.impossible) return fail(Errc::impossible_time, describe(*e.impossible));
  Resolver resolver(now, zone);
  if (e.shape == Shape::duration) {
    out.at = resolver.add(now, *e.start.offset, 1);
    out.relative = true;
    return in_range(out);
  }
  if (e.shape == Shape::recurrence) return resolver.recurrence(e, out);
  BELFRY_TRY(const Resolver::Found start, resolver.moment(e.start));
  out.at = resolver.instant(start);
  out.day_only = start.day_only;
  out.relative = start.exact && !e.start.anchor;
  if (start.other && !start.exact) {
    Resolver::Found other = start;
    other.local = *start.other;
    out.alternatives.push_back(resolver.instant(other));
  }
  if (e.start.day_first_possible) {  // 3/4: the fourth of March, or the third of April
    Moment swapped = e.start;
    std::swap(swapped.month, swapped.day);
    if (const auto other = resolver.moment(swapped)) out.alternatives.push_back(resolver.instant(*other));
  }
  // "Friday, November 19", which is a Thursday: the date counts, unless the Friday beside it was meant
  if (e.start.month && e.start.day && e.start.weekday && !e.start.week && !start.exact) {
    Resolver::Found beside = start;
    const int ahead = (*e.start.weekday - weekday_of(start.local.date) + 7) % 7;
    beside.local.date += Days{ahead > 3 ? ahead - 7 : ahead};
    if (ahead != 0) out.alternatives.push_back(resolver.instant(beside));
  }
  BELFRY_CHECK(resolver.find_end(e, start, out));
  // A range of days begins with its first one.
  if (e.shape == Shape::range && out.day_only && out.end && !e.start.reach)
    out.at = resolver.start_of_day(start, out.at);
  return in_range(out);
}

}  // namespace belfry::when
