// Dates as they are written: 2026-05-01, May 1st, 5月1日.
#include <algorithm>
#include <cmath>

#include "belfry/when/grammar.h"

namespace belfry::when {

using enum Kind;

int Grammar::full_year(int two_digits) { return two_digits < 70 ? 2000 + two_digits : 1900 + two_digits; }

// A year behind a date: ", 2026", "2026", "'26", "in 2026", "2555 BE", "this year"
bool Grammar::year_behind(Moment& m) {
  const Back back(*this);
  accept(comma);
  accept(dash);
  accept(slash);
  accept(of);
  accept(in);
  if (is(next) && is(Kind::unit, 1) && peek(1).unit() == Unit::year) {
    m.year_offset = peek().whole();
    at_ += 2;
    return true;
  }
  const Token& t = peek();
  if (t.kind == Kind::number && t.digits == 4 && !(is(colon, 1)) && t.value >= 1000) {
    int year = t.whole();
    ++at_;
    if (accept_word("be"))
      year -= 543;
    else if (word("ad") || word("ce"))
      ++at_;
    m.year = year;
    return true;
  }
  // "April of 87", "Aug 9, 96": no day and no hour has such a number
  if (t.kind == Kind::number && t.digits == 2 && !t.han && t.value > 59 && !is(Kind::unit, 1) && !is(percent, 1) &&
      !is(other, 1)) {
    m.year = full_year(t.whole());
    ++at_;
    return true;
  }
  if (t.kind == Kind::number && t.by_word && !t.han && (t.value == 19 || t.value == 20)) {  // nineteen ninety nine
    const Back words_back(*this);
    ++at_;
    int rest = 0;
    if (is(Kind::number) && peek().by_word && whole(rest, 10, 99)) {
      m.year = t.whole() * 100 + rest;
      return true;
    }
    words_back();
  }
  if (t.kind == Kind::number && t.digits == 0 && t.by_word && !t.han) {
    double value = 0;
    if (number(value) && value >= 1900 && value < 2200) {
      m.year = static_cast<int>(value);
      return true;
    }
    return back();
  }
  if (t.kind == apostrophe && is(Kind::number, 1) && peek(1).digits == 2) {
    m.year = full_year(peek(1).whole());
    at_ += 2;
    return true;
  }
  return back();
}

bool Grammar::good_day(int month, int day) {
  if (month < 1 || month > 12) {
    impossible({Wrong::What::month, month});
    return false;
  }
  const int most = month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  if (day < 1 || day > most) {
    impossible({Wrong::What::day_of_month, month, day});
    return false;
  }
  return true;
}

// May 15th, 15 May, the 15th of May, May 2026, 15-May-2026, 2026 May 15
bool Grammar::named_month(Moment& m) {
  if (m.month || m.day || m.holiday) return false;
  const Back back(*this);
  const std::size_t first = at_;
  int day = 0;
  int year = 0;
  bool has_day = false;
  bool day_first = false;  // 15-May-26: only there a short year follows a dash
  const std::size_t gap = is(dash, 1) || is(slash, 1) ? 1 : 0;
  if (is(Kind::number) && peek().digits == 4 && is(Kind::month, 1 + gap)) {  // 2009 May 22nd, 2019/aug/01
    year = peek().whole();
    at_ += 1 + gap;
    accept(comma);
  } else {
    const bool article = accept(the);
    if (ordinal_number(day)) {
      has_day = true;
      if (is(Kind::unit) && peek().unit() == Unit::day) ++at_;
    } else if (is(Kind::number) && !peek().han && whole(day, 1, 31)) {
      has_day = true;
    } else if (is(Kind::number) && peek().digits > 0 && peek().digits <= 2 && is(Kind::month, 1)) {  // 32 December
      impossible({Wrong::What::day_of_month, peek(1).whole(), peek().whole()});
      m.month = peek(1).whole();
      m.day = 1;
      at_ += 2;
      sure(kStrong);
      return true;
    } else if (article) {
      return back();
    }
    day_first = has_day;
    if (has_day) {
      if (!accept(of)) accept(in);
      accept(dash);
      accept(slash);
      accept(dot);
      accept(comma);
      if (is(Kind::number) && peek().digits == 4 && (is(dash, 1) || is(slash, 1)) &&
          is(Kind::month, 2)) {  // 23-2020-September
        year = peek().whole();
        at_ += 2;
      }
    }
  }
  const bool relative = is(next) && is(Kind::month, 1);
  int which = 0;
  if (relative) {
    which = peek().whole();
    ++at_;
  }
  if (!is(Kind::month)) return back();
  const Token& name = peek();
  m.month = name.whole();
  ++at_;
  const bool ambiguous =
      name.word == "may" || name.word == "mar" || name.word == "march" || name.word == "dec" || name.word == "jan";
  if (relative && which != 0) m.year_offset.reset(), m.next_occurrence = which > 0, m.last_occurrence = which < 0;
  if (relative && which == 0) m.year_offset = 0;
  if (year != 0) m.year = year;
  if (!has_day) {
    const Back day_back(*this);
    accept(dash);
    accept(slash);
    accept(dot);
    accept(comma);
    accept(the);
    int n = 0;
    if (ordinal_number(n)) {
      if (n > 31) return back();
      day = n;
      has_day = true;
    } else if (is(Kind::number) && !peek().han && peek().digits == 4 && (is(dash, 1) || is(slash, 1)) &&
               is(Kind::number, 2)) {  // September-2020-23
      m.year = peek().whole();
      at_ += 2;
      if (!whole(day, 1, 31)) return back();
      has_day = true;
    } else if (is(Kind::number) && !peek().han && peek().digits <= 2 && !is(colon, 1) && !is(meridiem, 1) &&
               !(is(Kind::oclock, 1)) && !(is(an, 1) && peek(1).word == "a")) {
      const Back n_back(*this);
      double value = 0;
      if (number(value) && value == std::floor(value) && value >= 1 && value <= 31) {
        day = static_cast<int>(value);
        has_day = true;
        if (is(dot) && !is(Kind::number, 1)) ++at_;
      } else if ((value > 31 || value == 0) && value < 60 && value == std::floor(value)) {
        impossible({Wrong::What::day_of_month, *m.month, static_cast<int>(value)});
        m.day = 1;
        sure(kStrong);
        return true;
      } else {
        n_back();
        day_back();
      }
    } else {
      day_back();
    }
  }
  if (has_day) {
    good_day(*m.month, day);
    m.day = day;
    sure(kStrong);
  } else {
    // "April", "June" and "August" are people, too.
    const Kind before_it = first > 0 ? tokens_[first - 1].kind : end_of_text;
    const bool led = relative || before_it == in || before_it == of || before_it == by || before_it == until ||
                     before_it == since || before_it == Kind::before || before_it == Kind::after || before_it == from ||
                     before_it == early || before_it == late || before_it == every;
    // Some months are nothing else; the others are people and verbs.
    const bool certain = name.word == "january" || name.word == "february" || name.word == "july" ||
                         name.word == "september" || name.word == "october" || name.word == "november" ||
                         name.word == "december";
    const bool dated = year != 0 || (is(Kind::number) && peek().digits == 4) || (is(next) && word("year", 1));
    if (!led && !dated && !certain && (is(Kind::on) || is(by) || is(Kind::at) || is(other) || is(and_))) return back();
    sure((led && !ambiguous) || certain || dated ? kFair : kWeak);
  }
  if (!m.year) {
    year_behind(m);
    if (!m.year && has_day && is(Kind::number) && peek().digits == 2 && !is(colon, 1) && !is(meridiem, 1) &&
        !is(Kind::unit, 1) && !peek().han && !is(Kind::month, 1) && !is(dash, 1) && !is(Kind::oclock, 1) &&
        !is(slash, 1) && !(is(an, 1) && joined(1)) && !is(dot, 1)) {
      m.year = full_year(peek().whole());  // 14th April 15
      ++at_;
    } else if (!m.year && day_first && (is(dash) || is(slash)) && is(Kind::number, 1) && peek(1).digits == 2 &&
               joined() && joined(1) && !is(colon, 2)) {
      m.year = full_year(peek(1).whole());
      at_ += 2;
    }
  }
  if (m.year) sure(kStrong);
  return true;
}

// 2026-07-04, 7/4/2026, 25/05/2015, 2015.05.25, 7/4, 13/09, 5.12
bool Grammar::numeric_date(Moment& m) {
  if (m.month || m.day || m.year || m.holiday) return false;
  if (is(dash, 1) && (m.day_offset || in_recurrence_) && peek().digits <= 2) return false;  // tomorrow 9-5
  const Back back(*this);
  const auto plain = [&](std::size_t ahead) {
    return is(Kind::number, ahead) && peek(ahead).digits > 0 && (!peek(ahead).han);
  };
  const auto separator = [&](std::size_t ahead) {
    return is(slash, ahead) || is(dash, ahead) || is(dot, ahead) || is(colon, ahead);
  };
  if (is(next) && peek().word == "last" && plain(1) && is(slash, 2) && plain(3) && !is(slash, 4)) {  // last 9/11
    ++at_;
    if (!numeric_date(m)) return back();
    m.last_occurrence = true;
    m.explicit_past = true;
    return true;
  }
  if (!plain(0)) return false;
  // 20260501
  if (peek().digits == 8) {
    const int n = static_cast<int>(peek().value);
    const int month = n / 100 % 100;
    const int day = n % 100;
    if (n < 19000101 || month < 1 || month > 12 || day < 1 || day > 31) return back();
    ++at_;
    m.year = n / 10000;
    m.month = month;
    m.day = day;
    good_day(month, day);
    sure(kFair);
    iso_time(m);
    return true;
  }
  if (peek().digits == 7 && !is(Kind::unit, 1)) {  // 2026335
    const int n = static_cast<int>(peek().value);
    if (n / 1000 < 1900 || n / 1000 > 2200 || n % 1000 < 1 || n % 1000 > 366) return back();
    ++at_;
    m.year = n / 1000;
    m.nth = Nth{n % 1000, 0, Unit::day};
    sure(kWeak);
    iso_time(m);
    return true;
  }
  if (peek().digits == 4 && plain(1) && plain(2) && peek(1).digits == 2 && peek(2).digits == 2 && peek().value > 1900 &&
      peek().value < 2200 && peek(1).value >= 1 && peek(1).value <= 12 && peek(2).value >= 1 && peek(2).value <= 31 &&
      !is(colon, 3)) {  // 2016 10 16
    m.year = peek().whole(), m.month = peek(1).whole(), m.day = peek(2).whole();
    at_ += 3;
    good_day(*m.month, *m.day);
    sure(kFair);
    return true;
  }
  if (plain(1) && plain(2) && peek().digits <= 2 && peek(1).digits == 2 && peek(2).digits == 4 && peek().value >= 1 &&
      peek().value <= 12 && peek(1).value >= 1 && peek(1).value <= 31 && peek(2).value > 1900 && peek(2).value < 2200) {
    m.month = peek().whole(), m.day = peek(1).whole(), m.year = peek(2).whole();  // 10 31 1974
    at_ += 3;
    good_day(*m.month, *m.day);
    sure(kWeak);
    return true;
  }
  if (!separator(1) || !plain(2)) return back();
  if (is(slash, 1) && peek().value == 24 && peek(2).value == 7 && peek(2).digits == 1) return back();  // always
  const Kind sep = peek(1).kind;
  const bool spaced = !joined(1) || !joined(2);
  if (spaced && sep == dash && !is(dash, 3)) {  // 2016 - 11, 11 - 2016
    const Token& first = peek();
    const Token& second = peek(2);
    const auto year = [](const Token& t) { return t.digits == 4 && t.value >= 1900 && t.value <= 2200; };
    const auto month = [](const Token& t) { return t.digits <= 2 && t.value >= 1 && t.value <= 12; };
    if (!is(colon, 3) && !is(meridiem, 3) && ((year(first) && month(second)) || (month(first) && year(second)))) {
      m.year = year(first) ? first.whole() : second.whole();
      m.month = year(first) ? second.whole() : first.whole();
      at_ += 3;
      sure(kFair);
      return true;
    }
  }
  if (spaced && sep != slash) return back();
  const Token a = peek();
  const Token b = peek(2);
  // Not in the middle of a longer chain of numbers: 192.168.0.1, 133-03-03-2020.
  if (at_ > 0 && joined() &&
      (tokens_[at_ - 1].kind == sep || tokens_[at_ - 1].kind == Kind::number ||
       (tokens_[at_ - 1].kind == other && !tokens_[at_ - 1].han) || (tokens_[at_ - 1].kind == dash && !range_end_) ||
       tokens_[at_ - 1].kind == plus || tokens_[at_ - 1].kind == dot))
    return back();
  if (is(meridiem, 3)) return back();  // 8.30pm
  if (sep == dot && (m.has_day() || m.part || clock_expected_) && b.digits == 2 && a.value < 24 && b.value < 60 &&
      !(is(dot, 3) && joined(3) && is(Kind::number, 4)))
    return back();  // Friday 9.30, 明天8.30
  const bool three = is(sep, 3) && plain(4) && joined(3) == joined(1) && (joined(4) || spaced);
  if (three) {
    const Token c = peek(4);
    const bool time_behind = sep == dash && plain(6) && is(colon, 7);  // 2021-09-12-11:23
    if (is(sep, 5) && plain(6) && joined(5) && sep != colon && !time_behind) return back();
    at_ += 5;
    int year = 0;
    int month = 0;
    int day = 0;
    if (a.digits == 4 && b.digits <= 2 && c.digits <= 2) {
      year = a.whole(), month = b.whole(), day = c.whole();
      if (month > 12 && day <= 12 && sep == slash) std::swap(month, day);
    } else if (sep != colon && (c.digits == 4 || (c.digits == 2 && a.digits <= 2 && b.digits <= 2))) {
      if (a.digits > 2 || b.digits > 2) return back();
      year = c.digits == 4 ? c.whole() : full_year(c.whole());
      month = a.whole(), day = b.whole();
      const bool day_first = sep == dot ? (day <= 12 && !(month <= 12 && day > 12)) && month > 12 : false;
      if ((month > 12 && day <= 12) || day_first)
        std::swap(month, day);
      else if (month <= 12 && day <= 12 && month != day)
        m.day_first_possible = true;
      if (c.digits == 2 && sep == dot) return back();
      if (chinese_ && a.digits == 2 && c.digits == 2 && a.value > 31) return back();
    } else {
      return back();
    }
    if (year < 1 || year > 9999) return back();
    good_day(month, day);
    if (month < 1 || month > 12) month = 1;
    m.year = year, m.month = month, m.day = day;
    sure(kStrong);
    iso_time(m);
    return true;
  }
  if (sep == colon) return back();
  if (is(sep, 3) && joined(3)) return back();
  // 9/2012, 2012-09: a month
  if (a.digits <= 2 && b.digits == 4 && a.value >= 1 && a.value <= 12 && b.value > 1900) {
    at_ += 3;
    m.month = a.whole(), m.year = b.whole();
    sure(sep == dash ? kWeak : kFair);
    return true;
  }
  if (a.digits == 4 && b.digits <= 2 && (sep != dot || b.digits == 1) && !is(Kind::unit, 3) && b.value >= 1 &&
      b.value <= 12 && a.value > 1900) {
    at_ += 3;
    m.year = a.whole(), m.month = b.whole();
    sure(kFair);
    return true;
  }
  if (a.digits == 4 && b.digits == 3 && sep == dash && b.value >= 1 && b.value <= 366) {  // 2026-162
    at_ += 3;
    m.year = a.whole();
    m.nth = Nth{b.whole(), 0, Unit::day};
    sure(kFair);
    iso_time(m);
    return true;
  }
  if (a.digits > 2 || b.digits > 2) return back();
  int month = a.whole();
  int day = b.whole();
  if (month > 12 && day <= 12)
    std::swap(month, day);
  else if (month <= 12 && day <= 12 && month != day)
    m.day_first_possible = true;
  if (month < 1 || month > 12 || day < 1 || day > 31) {
    if (sep == slash) impossible({Wrong::What::day_of_month, month, day});
    return back();
  }
  at_ += 3;
  if (is(percent) || (is(Kind::unit) && sep != dash)) return back();
  if (is(dot) && is(Kind::number, 1) && joined(1)) return back();  // 8/1.5
  if (!good_day(month, day)) {
    if (sep != slash) return back();
    m.month = month, m.day = 1;  // 2/30
    sure(kFair);
    return true;
  }
  m.month = month, m.day = day;
  if (sep == slash && is(comma) && is(Kind::number, 1) && peek(1).digits == 4 && peek(1).value > 1900 &&
      peek(1).value < 2200) {  // 08/12,2015
    m.year = peek(1).whole();
    at_ += 2;
  }
  // 3/4 cup, in 4/4: a fraction where a noun follows or the text is about something else.
  const bool fraction = sep == slash && (is(other) || (a.value <= b.value && b.value <= 8)) && !m.year && !on_before_;
  sure((sep == slash && !fraction) || on_before_ ? kFair : kWeak);
  return true;
}

// T09:30:00Z behind an ISO date
void Grammar::iso_time(Moment& m) {
  if (!(word("t") && (joined() || at_ == 0) && is(Kind::number, 1))) return;
  const Back back(*this);
  ++at_;
  const Token& n = peek();
  if (n.digits == 6 || n.digits == 4) {  // T093000
    const int v = n.whole();
    ++at_;
    const int hour = n.digits == 6 ? v / 10000 : v / 100;
    const int minute = n.digits == 6 ? v / 100 % 100 : v % 100;
    set_clock(m, hour, minute, n.digits == 6 ? v % 100 : 0, std::nullopt, true);
  } else if (!digital_clock(m)) {
    if (n.digits == 2) {
      ++at_;
      set_clock(m, n.whole(), 0, 0, std::nullopt, true);
    } else {
      back();
      return;
    }
  }
  iso_ = true;
  zone_of_text(m);
  iso_ = false;
  sure(kStrong);
}

// 2026-W24-4
bool Grammar::iso_week_date(Moment& m) {
  const Back back(*this);
  if (!is(Kind::number) || peek().digits != 4) return false;
  const int year = peek().whole();
  ++at_;
  accept(dash);
  if (!(word("w") && joined())) return back();
  ++at_;
  if (!is(Kind::number) || !joined()) return back();
  if (peek().digits == 3 && tokens_[at_ - 2].kind == Kind::number && peek().whole() % 10 >= 1 &&
      peek().whole() % 10 <= 7) {  // 2026W492
    m.year = year;
    m.iso_week = peek().whole() / 10;
    m.weekday = peek().whole() % 10;
    ++at_;
    sure(kStrong);
    iso_time(m);
    return true;
  }
  if (peek().digits != 2 || peek().value < 1) return back();
  if (peek().value > 53) impossible({Wrong::What::week, peek().whole()});
  m.year = year;
  m.iso_week = std::min(peek().whole(), 53);
  ++at_;
  m.weekday = 1;
  if (is(dash) && is(Kind::number, 1) && peek(1).digits == 1 && peek(1).value >= 1 && peek(1).value <= 7) {
    m.weekday = peek(1).whole();
    at_ += 2;
  }
  sure(kStrong);
  iso_time(m);
  return true;
}

// 2026年5月1日, 5月1号, 15号, 5月, 2026年; 农历八月十五
bool Grammar::chinese_date(Moment& m) {
  if (m.day || m.holiday) return false;
  const Back back(*this);
  bool any = false;
  if (accept(lunar)) m.lunar = true, any = true;
  if (is(era) && is(Kind::number, 1) && is(year_mark, 2) && !m.year) {  // 民国三年
    m.year = peek().whole() + peek(1).whole();
    at_ += 3;
    any = true;
  }
  if (!m.year && !m.month && is(Kind::number) && is(year_mark, 1) && peek().digits >= 1 && peek().digits <= 4 &&
      peek().digits != 3 && peek().digits != 1) {
    const Token& y = peek();
    m.year = y.digits > 2 ? y.whole() : full_year(y.whole());
    at_ += 2;
    any = true;
    accept(comma);
    while (accept(of)) {
    }
    if (accept(lunar)) m.lunar = true;
  } else if (!m.year && !m.month && is(Kind::number) && is(year_mark, 1) && peek().han && peek().digits == 0 &&
             peek().value >= 1000 && peek().value < 3000) {  // 两千年
    m.year = peek().whole();
    at_ += 2;
    any = true;
  }
  if (is(lunar_month)) {
    m.month = peek().whole();
    m.lunar = true;
    ++at_;
    any = true;
  } else if (!m.month && is(Kind::number) && (is(dash, 1) || is(to, 1) || is(tilde, 1)) && is(Kind::number, 2) &&
             is(month_mark, 3) && peek().value >= 1 && peek(2).value > peek().value && peek(2).value <= 12) {  // 1-9月
    m.month = peek().whole();
    m.until_month = peek(2).whole();
    at_ += 4;
    sure(kStrong);
    return true;
  } else if (!m.month && is(Kind::number) && is(month_mark, 1)) {
    const int month = peek().whole();
    if (peek().value != std::floor(peek().value)) return back();
    if (month < 1 || month > 12) {
      const bool dated = is(Kind::number, 2) && is(day_mark, 3);
      if (!any && !dated) return back();
      impossible({Wrong::What::month, month});
      at_ += dated ? 4 : 2;
      m.month = 1;
      m.day = 1;
      sure(kStrong);
      return true;
    }
    m.month = month;
    at_ += 2;
    any = true;
  }
  if (any && m.month) accept(of);
  const Back day_back(*this);
  if (is(lunar_day)) {
    const bool alone = !m.month && !any;
    m.day = peek().whole();
    m.lunar = true;
    ++at_;
    sure(alone ? kFair : kStrong);
    return true;
  }
  if (is(Kind::number) && (is(dash, 1) || is(to, 1) || is(tilde, 1)) && is(Kind::number, 2) && is(day_mark, 3) &&
      peek().value >= 1 && peek(2).value > peek().value && peek(2).value <= 31) {  // 13-15日
    m.day = peek().whole();
    m.until_day = peek(2).whole();
    at_ += 4;
    sure(kStrong);
    return true;
  }
  if (is(Kind::number) && is(day_mark, 1)) {
    const Token& d = peek();
    const int day = d.whole();
    const bool day_word = peek(1).word == "日";
    if (day < 1 || day > 31 || d.value != day) {
      if (m.month || m.month_offset || (at_ > 0 && tokens_[at_ - 1].kind == month_mark)) {
        impossible({Wrong::What::day_of_month, m.month.value_or(0), day});
        at_ += 2;
        m.day = 1;
        sure(kStrong);
        return true;
      }
      return back();
    }
    if (!m.month && !m.month_offset && !any) {
      // 十日内, 两日后: a span. 三号楼, 一号选手, 5号线: a number of something.
      const Token& behind = peek(2);
      if (behind.kind == within || (day_word && (behind.kind == later || behind.kind == Kind::ago))) return back();
      if (d.han && day == 2 && d.word == "两") return back();
      if (!day_word && behind.kind == other && behind.han && joined(2) && counted_by_number(behind.word)) return back();
      // 中山路18号, 男一号, 五号电池: not surely a day
      const bool numbered = at_ > 0 && joined() && tokens_[at_ - 1].han && numbers_follow(tokens_[at_ - 1].word);
      if (numbered) return back();
      at_ += 2;
      m.day = day;
      sure(joined() && !goes_on(peek()) ? kWeak : kStrong);
      accept(comma);
      return true;
    }
    at_ += 2;
    m.day = day;
    if (m.month && !m.lunar) good_day(*m.month, day);
    accept(comma);
    sure(kStrong);
    return true;
  }
  // 三月十五, 5月1: the day without its mark
  if (m.month && is(Kind::number) && !is(Kind::oclock, 1) && !is(Kind::unit, 1) && !is(ge, 1) && !is(colon, 1) &&
      !is(minute_mark, 1) && !is(week_mark, 1) && !is(year_mark, 1) && !is(month_mark, 1) && peek().value >= 1 &&
      peek().value <= 31 && peek().value == std::floor(peek().value) && (peek().by_word || peek().digits <= 2) &&
      !is(meridiem, 1)) {
    m.day = peek().whole();
    if (peek().word.starts_with("廿")) m.lunar = true;  // only the lunar calendar counts so
    ++at_;
    if (!m.lunar) good_day(*m.month, *m.day);
    sure(kStrong);
    return true;
  }
  day_back();
  if (!any) return back();
  if (m.lunar && !m.month && !m.day) return back();
  // 五月天, 二月兰: names
  const bool name = m.month && !m.year && joined() && ((!goes_on(peek()) && !word("和")) || word("天"));
  sure(m.month && m.year ? kStrong : name ? kWeak : kFair);
  return true;
}

// Streets, lanes, roles and sizes have numbers with 号, too.
bool Grammar::numbers_follow(std::string_view word) {
  static constexpr std::string_view kWords[] = {"路", "街", "道", "巷", "弄", "段", "甲", "乙", "男", "女", "小",
                                                "东", "西", "号", "是", "换", "这", "那", "到", "大", "口"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// A sentence goes on behind 15号; 三号楼 is a number of something.
bool Grammar::counted_by_number(std::string_view word) {
  static constexpr std::string_view kNouns[] = {"楼", "线", "选", "房", "店", "门", "院", "馆", "机",
                                                "车", "台", "球", "位", "厅", "码", "桌", "柜", "城",
                                                "文", "公", "站", "井", "路", "员", "床"};
  return std::find(std::begin(kNouns), std::end(kNouns), word) != std::end(kNouns);
}

// "Monday 21": a number that is rather a day than an hour.
bool Grammar::weekday_and_day(Moment& m) {
  if (m.day || m.month || m.clock || !m.weekday || m.week) return false;
  if (at_ == 0 || tokens_[at_ - 1].kind != Kind::weekday || !is(Kind::number) || peek().han || peek().digits != 2)
    return false;
  if (peek().value < 13 || peek().value > 31 || is(colon, 1) || is(meridiem, 1) || is(Kind::oclock, 1) ||
      is(slash, 1) || is(dash, 1) || is(dot, 1) || is(Kind::unit, 1) || is(Kind::month, 1))
    return false;
  m.day = peek().whole();
  ++at_;
  return true;
}

// the 15th, the 20th of next month, 20 of this month, first day of march
bool Grammar::day_of_month(Moment& m) {
  if (m.day || m.month) return false;
  const Back back(*this);
  const std::size_t first = at_;
  const bool article = accept(the);
  int day = 0;
  const bool ordinal_form = ordinal_number(day);
  if (!ordinal_form && !(is(Kind::number) && !peek().han && peek().digits > 0 && whole(day, 1, 31))) return back();
  if (day < 1 || day > 31) return back();
  bool day_word = false;
  if (ordinal_form && is(Kind::unit) && peek().word == "day") {
    ++at_;
    day_word = true;
  }
  const Back of_back(*this);
  if (accept(of)) {
    accept(the);
    if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).unit() == Unit::month) {
      m.month_offset = is(following) ? 1 : peek().whole();
      at_ += 2;
      m.day = day;
      sure(kStrong);
      return true;
    }
    if (is(Kind::unit) && peek().unit() == Unit::month) {
      ++at_;
      m.day = day;
      sure(kStrong);
      return true;
    }
    of_back();
  }
  if (!ordinal_form) {
    // "Monday 21", "friday 23 at 4", "8pm on 15"
    const bool beside_weekday = m.weekday && first > 0 && tokens_[first - 1].kind == Kind::weekday;
    if (!beside_weekday && !(on_before_ && (m.clock || is(Kind::at))) && !(article && is(between)) &&
        !(first == 0 && is(Kind::at) && is(Kind::number, 1) && is(colon, 2)))  // 15 at 8:00
      return back();
    if (is(other)) return back();  // on 8 machines
    if (is(colon) || is(meridiem) || is(Kind::oclock) || is(slash) || is(dash) || is(Kind::unit) || is(Kind::number) ||
        is(dot))
      return back();
    if (day_word) return back();
    m.day = day;
    return true;
  }
  if (day_word && !article) return back();
  const bool hour_behind = is(Kind::number) && (is(meridiem, 1) || is(Kind::oclock, 1) || is(colon, 1));
  if (is(Kind::unit) || is(other) || is(Kind::weekday) || is(weekend) || (is(Kind::number) && !hour_behind) ||
      is(Kind::quarter) || is(past) || is(Kind::half))
    return back();
  m.day = day;
  const bool word_form = !article && !m.weekday && !on_before_;
  const bool bare_word = word_form && tokens_[at_ - 1].digits == 0;
  if (bare_word) return back();
  const bool in_words = tokens_[at_ - 1].digits == 0;
  sure(word_form || (in_words && !on_before_ && !m.weekday) ? kWeak : kFair);
  return true;
}

}  // namespace belfry::when
