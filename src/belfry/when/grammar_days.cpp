// Days by their relation to today or to a period: next Friday, 月底, the last Friday of May, Easter.
#include "belfry/when/grammar.h"

namespace belfry::when {

using enum Kind;

// last friday of october, third Tuesday in May, 十月的第一个星期一, last day of March, 6月第3个星期日
bool Grammar::nth_of_month(Moment& m) {
  if (m.nth || m.month || m.day) return false;
  const Back back(*this);
  accept(the);
  int n = 0;
  bool from_end = false;
  if (is(next) && peek().word == "last") {
    ++at_;
    n = -1;
  } else if (ordinal_number(n)) {
    if (is(next) && peek().word == "last") {
      ++at_;
      from_end = true;
    }
  } else {
    return back();
  }
  if (from_end) n = -n;
  Nth nth{n, 0, Unit::day};
  if (is(Kind::weekday)) {
    nth.weekday = peek().whole();
  } else if (is(Kind::unit) &&
             (peek().unit() == Unit::day || peek().unit() == Unit::week || peek().unit() == Unit::hour ||
              peek().unit() == Unit::minute || peek().unit() == Unit::month || peek().unit() == Unit::business_day)) {
    nth.unit = peek().unit();
  } else {
    return back();
  }
  ++at_;
  const bool linked = accept(of) || accept(in);
  accept(the);
  Moment period;
  if (is(next) && is(Kind::month, 1)) ++at_;  // this september
  if (is(Kind::month)) {
    period.month = peek().whole();
    ++at_;
    year_behind(period);
  } else if (is(next) && is(Kind::unit, 1) && peek(1).unit() == Unit::month) {
    period.month_offset = peek().whole();
    at_ += 2;
  } else if (is(Kind::unit) && peek().unit() == Unit::month && linked) {
    period.month_offset = 0;
    ++at_;
  } else if (is(next) && is(Kind::unit, 1) && peek(1).unit() == Unit::year) {
    period.year_offset = peek().whole();
    at_ += 2;
  } else if (is(Kind::unit) && peek().unit() == Unit::year && linked) {
    period.year_offset = 0;
    ++at_;
  } else if (is(Kind::number) && linked && year_behind(period) && period.year) {
  } else if (!quarter_of_year(period) && !(nth.weekday == 0 && linked && named_month(period))) {
    // "second saturday": the next one of this or the following months
    if (nth.weekday == 0 || from_end || linked || n < 1 || n > 4) return back();
    period.month_offset = 0;
    period.next_occurrence = true;
  }
  if (n > 400) return back();
  m.month = period.month, m.year = period.year, m.month_offset = period.month_offset,
  m.year_offset = period.year_offset;
  m.quarter = period.quarter, m.quarter_offset = period.quarter_offset, m.day = period.day;
  m.next_occurrence = period.next_occurrence;
  if (nth.unit == Unit::hour || nth.unit == Unit::minute) {  // the fifth hour of March 3rd, the last minute of 2027
    const bool hour = nth.unit == Unit::hour;
    if (n > (hour ? 24 : 60) || n == 0) return back();
    m.clock = n < 0 ? Clock{23, hour ? 0 : 59, 0, std::nullopt, true}
                    : Clock{hour ? n - 1 : 0, hour ? 0 : n - 1, 0, std::nullopt, true};
    if (!m.day) m.nth = Nth{n < 0 ? -1 : 1, 0, Unit::day};
    sure(kStrong);
    return true;
  }
  m.nth = nth;
  sure(kStrong);
  return true;
}

// Behind a Chinese month or year: 的第一个星期一, 第三周, 最后一天, 第十天
bool Grammar::chinese_nth(Moment& m) {
  if (m.nth || m.day || !(m.month || m.month_offset || m.year || m.year_offset || m.quarter)) return false;
  const Back back(*this);
  while (accept(of)) {
  }
  int n = 0;
  if (word("最") && word("后", 1)) {
    at_ += 2;
    n = -1;
    int count = 1;
    if (is(Kind::number)) whole(count, 1, 1);
    accept(ge);
  } else if (!chinese_ordinal(n)) {
    return back();
  }
  Nth nth{n, 0, Unit::day};
  if (is(Kind::weekday)) {
    nth.weekday = peek().whole();
    ++at_;
  } else if (is(week_mark)) {
    nth.unit = Unit::week;
    ++at_;
  } else if (is(Kind::unit) && peek().unit() == Unit::day) {
    ++at_;
  } else if (is(Kind::unit) && peek().unit() == Unit::quarter) {
    if (n < 1 || n > 4) return back();
    m.quarter = n;
    ++at_;
    sure(kStrong);
    return true;
  } else if (is(month_mark)) {
    if (n < 1 || n > 12) return back();
    m.month = n;
    ++at_;
    sure(kStrong);
    return true;
  } else {
    return back();
  }
  m.nth = nth;
  sure(kStrong);
  return true;
}

bool Grammar::quarter_of_year(Moment& m) {
  if (m.quarter || m.quarter_offset) return false;
  const Back back(*this);
  if (is(Kind::number) && peek().digits == 2 && word("q", 1) && joined(1) && is(Kind::number, 2) && joined(2) &&
      peek(2).value >= 1 && peek(2).value <= 4) {  // 18q4
    m.year = 2000 + peek().whole();
    m.quarter = peek(2).whole();
    at_ += 3;
    sure(kFair);
    return true;
  }
  if (peek().word == "q" && is(Kind::number, 1) && joined(1) && peek(1).value >= 1 && peek(1).value <= 4) {
    m.quarter = peek(1).whole();
    at_ += 2;
    year_behind(m);
    sure(kFair);
    return true;
  }
  accept(the);
  int n = 0;
  if ((ordinal_number(n)) && (is(quarter) || word("qtr"))) {
    if (n < 1 || n > 4) return back();
    ++at_;
    m.quarter = n;
    accept(of);
    year_behind(m);
    sure(kFair);
    return true;
  }
  back();
  if (peek().digits == 4 && is(Kind::number) && peek().value >= 1900) {  // 2019-Q1, 2016 H2
    m.year = peek().whole();
    ++at_;
    accept(dash);
    const bool q = word("q");
    if ((q || word("h")) && is(Kind::number, 1) && joined(1) && peek(1).digits == 1 && peek(1).value >= 1 &&
        peek(1).value <= (q ? 4 : 2)) {
      (q ? m.quarter : m.half_year) = peek(1).whole();
      at_ += 2;
      sure(kFair);
      return true;
    }
    m.year.reset();
    return back();
  }
  if (word("h") && is(Kind::number, 1) && joined(1) && peek(1).digits == 1 && peek(1).value >= 1 &&
      peek(1).value <= 2) {  // H2 2016
    m.half_year = peek(1).whole();
    at_ += 2;
    if (year_behind(m)) {
      sure(kFair);
      return true;
    }
    m.half_year.reset();
    return back();
  }
  if ((is(next) || is(past)) &&
      (is(quarter, 1) || word("qtr", 1) || (is(Kind::unit, 1) && peek(1).unit() == Unit::quarter))) {
    const bool comes = peek().word == "coming" || peek().word == "upcoming";
    m.quarter_offset = is(past) ? -1 : comes ? 1 : peek().whole();
    at_ += 2;
    sure(kFair);
    return true;
  }
  if (int which = 0; chinese_ordinal(which) && which <= 4 && is(Kind::unit) && peek().word == "季度") {  // 第二季度
    m.quarter = which;
    ++at_;
    sure(kFair);
    return true;
  }
  back();
  if (is(Kind::number) && peek().han && is(Kind::unit, 1) && peek(1).word == "季度" && peek().value >= 1 &&
      peek().value <= 4 && (m.year || m.year_offset)) {
    m.quarter = peek().whole();
    at_ += 2;
    sure(kFair);
    return true;
  }
  return back();
}

// next Friday, this tuesday, 下周五, 下下周一, Friday of next week, next week Mon, 周五, Friday after next
bool Grammar::weekday_phrase(Moment& m) {
  if (m.weekday) {
    // "8pm in the evening, Sunday" never says it twice; 明天(周四) does, with brackets
    return false;
  }
  const Back back(*this);
  const std::size_t first = at_;
  accept(the);
  if (is(open) && is(Kind::weekday, 1) && is(close, 2)) {  // 明天（周四） says it twice; (Friday) alone does not
    if (!m.has_day()) m.weekday = peek(1).whole();
    at_ += 3;
    sure(kFair);
    return true;
  }
  if (is(past) || (is(next) && peek().value == 0 && is(past, 1))) {  // this past Friday: the latest one
    at_ += is(past) ? 1 : 2;
    if (is(weekend)) {
      ++at_;
      m.weekend = true;
      m.week = -1;
    } else if (is(Kind::weekday)) {
      m.weekday = peek().whole();
      m.last_occurrence = true;
      ++at_;
    } else {
      return back();
    }
    m.explicit_past = true;
    sure(kStrong);
    return true;
  }
  if (is(next) || is(following)) {
    const int which = is(following) ? 1 : peek().whole();
    const bool upcoming = peek().word.find("coming") != std::string_view::npos;
    ++at_;
    if (is(ge)) ++at_;
    if (is(next) && peek().word == "upcoming") ++at_;
    if (is(Kind::weekday)) {
      m.weekday = peek().whole();
      ++at_;
      if (!upcoming) m.week = which;
      if (which < 0) m.explicit_past = true;
      sure(kStrong);
      return true;
    }
    if (is(week_mark) && is(Kind::number, 1) && joined(1) && peek(1).han &&
        (peek(1).value == 8 || peek(1).value == 9)) {  // 下周八
      impossible({Wrong::What::weekday, peek(1).whole()});
      at_ += 2;
      m.weekday = 1;
      sure(kStrong);
      return true;
    }
    if (is(week_mark) && is(Kind::weekday, 1)) {  // 下周周六
      at_ += 1;
      m.weekday = peek().whole();
      ++at_;
      m.week = which;
      sure(kStrong);
      return true;
    }
    if (is(week_mark) && is(Kind::number, 1) && peek(1).digits == 1 && !is(ge, 2) && !is(Kind::unit, 2) &&
        !is(day_mark, 2) && !is(week_mark, 2)) {  // 下周1
      const int day = peek(1).whole();
      if (day < 1 || day > 7 || is(Kind::oclock, 2) || is(colon, 2)) return back();
      at_ += 2;
      m.weekday = day;
      m.week = which;
      sure(kStrong);
      return true;
    }
    const bool week_word = (is(Kind::unit) && peek().unit() == Unit::week) || is(week_mark);
    if (week_word) {
      ++at_;
      m.week = which;
      if (which < 0) m.explicit_past = true;
      const Back day_back(*this);
      accept(comma);
      accept(of);
      if (is(Kind::on)) ++at_;
      if (is(Kind::weekday)) {
        m.weekday = peek().whole();
        ++at_;
      } else {
        day_back();
      }
      sure(kStrong);
      return true;
    }
    return back();
  }
  // 星期八: no such day
  if (is(week_mark) && is(Kind::number, 1) && joined(1) && peek(1).han && (peek(1).value == 8 || peek(1).value == 9) &&
      !is(later, 2) && !is(ge, 2)) {
    impossible({Wrong::What::weekday, peek(1).whole()});
    at_ += 2;
    m.weekday = 1;
    sure(kStrong);
    return true;
  }
  if (int day = 0; is(week_mark) && one_weekday(day)) {  // 周5下午
    m.weekday = day;
    sure(kStrong);
    return true;
  }
  if (!is(Kind::weekday)) return back();
  const Token& t = peek();
  // "sun" and "sat" and "mon" and "wed" mean something else in sentences.
  const bool loose = t.word == "sun" || t.word == "sat" || t.word == "mon" || t.word == "wed" || t.word == "thu" ||
                     t.word == "tue" || t.word == "fri";
  m.weekday = t.whole();
  ++at_;
  const Kind before_it = first > 0 ? tokens_[first - 1].kind : end_of_text;
  const bool led = before_it == Kind::on || before_it == by || before_it == until || before_it == every ||
                   is(Kind::at) || is(Kind::part) || (is(Kind::number) && !is(other, 1)) || is(dot);
  sure(loose ? (led ? kFair : kWeak) : kStrong);
  if (word("week") || word("fortnight")) {  // Friday week
    m.weekday_shift = word("week") ? 1 : 2;
    ++at_;
    return true;
  }
  const Back beside_back(*this);
  if ((is(Kind::after) || is(Kind::before)) && !m.anchor && !m.clock) {  // the Monday after Easter
    const int side = is(Kind::after) ? 1 : -1;
    ++at_;
    Moment anchor;
    if (moment(anchor) && anchor.has_day() && !anchor.weekday && !anchor.is_range()) {
      m.clock = anchor.clock, m.part = anchor.part, m.part_shade = anchor.part_shade;  // at 5pm
      m.zone_minutes = anchor.zone_minutes, m.region = anchor.region;
      anchor.clock.reset(), anchor.part.reset();
      m.anchor = keep(anchor);
      m.beside = side;
      return true;
    }
    beside_back();
  }
  const Back more(*this);
  accept(comma);
  if (is(Kind::after) && is(next, 1) && peek(1).word == "next" && !is(Kind::unit, 2) && !is(Kind::weekday, 2)) {
    at_ += 2;
    m.weekday_shift = 1;
    return true;
  }
  if (!accept(of)) accept(in);
  accept(the);
  if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).unit() == Unit::week) {
    m.week = is(following) ? 1 : peek().whole();
    at_ += 2;
    return true;
  }
  more();
  return true;
}

// tomorrow, 明天, the day after tomorrow, the next day, this day
bool Grammar::relative_day(Moment& m) {
  if (m.day_offset) return false;
  const Back back(*this);
  accept(the);
  if (is(Kind::day)) {
    m.day_offset = peek().whole();
    if (*m.day_offset < 0) m.explicit_past = true;
    ++at_;
    if (word("week") || word("fortnight")) {  // tomorrow week
      m.day_offset = *m.day_offset + (word("week") ? 7 : 14);
      ++at_;
    }
    sure(kStrong);
    return true;
  }
  if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).word == "day") {
    m.day_offset = is(following) ? 1 : peek().whole();
    at_ += 2;
    sure(kFair);
    return true;
  }
  return back();
}

// "the day", "my day", "the year" alone: this one
bool Grammar::this_period(Moment& m) {
  if (!m.empty() || at_ > 1) return false;
  const Back back(*this);
  if (!accept(the) && !accept_word("my")) return back();
  if (!is(Kind::unit) || peek().han || !is(end_of_text, 1)) return back();
  switch (peek().unit()) {
    case Unit::day: m.day_offset = 0; break;
    case Unit::week: m.week = 0; break;
    case Unit::month: m.month_offset = 0; break;
    case Unit::year: m.year_offset = 0; break;
    default: return back();
  }
  ++at_;
  sure(kWeak);
  return true;
}

// the night before Thanksgiving, the morning after New Year's: of the day beside it
bool Grammar::part_beside(Moment& m) {
  const Part part = peek().part();
  const int direction = is(Kind::after, 1) ? 1 : -1;
  at_ += 2;
  Moment anchor;
  if (!moment(anchor) || !anchor.has_day() || anchor.is_range() || anchor.part) return false;
  m.clock = anchor.clock;
  m.part = part;
  anchor.clock.reset();
  m.offset = keep(Span({1, Unit::day}));
  m.direction = direction;
  m.anchor = keep(anchor);
  sure(kStrong);
  return true;
}

// the day after Christmas, the week before the 5th, the month after next, the day before
bool Grammar::unit_beside(Moment& m) {
  if (!m.empty()) return false;
  const Back back(*this);
  const bool article = accept(the) || accept(an);
  if (article && is(Kind::part) && !peek().han && (is(Kind::before, 1) || is(Kind::after, 1)))
    return part_beside(m) || back();
  Unit u = Unit::weekend;
  if (is(Kind::unit) && !peek().han) {
    u = peek().unit();
  } else if (!is(weekend)) {
    return back();
  }
  if (is_letter_unit(peek())) return back();
  ++at_;
  if (!is(Kind::after) && !is(Kind::before)) return back();
  const int direction = is(Kind::after) ? 1 : -1;
  ++at_;
  const Back after_back(*this);
  accept(the);
  if (direction > 0 && is(next) && peek().word == "next" && !is(Kind::unit, 1) && !is(Kind::weekday, 1)) {
    ++at_;
    if (u == Unit::week) m.week = 2;
    if (u == Unit::month) m.month_offset = 2;
    if (u == Unit::year) m.year_offset = 2;
    if (u == Unit::weekend) m.weekend = true, m.week = 2;
    if (!m.has_day()) return back();
    sure(kStrong);
    return true;
  }
  after_back();
  if (u == Unit::weekend) return back();
  Moment anchor;
  if (moment(anchor) && !anchor.empty()) {
    m.anchor = keep(anchor);
    sure(kStrong);
  } else {
    after_back();
    if (!article || !(is(end_of_text) || is(dot) || is(question) || is(comma))) return back();
    sure(kFair);
  }
  m.offset = keep(Span({1, u}));
  m.direction = direction;
  if (direction < 0 && !m.anchor) m.explicit_past = true;
  return true;
}

// week 23, week 3 of 2027, 第23周
bool Grammar::numbered_week(Moment& m) {
  if (m.iso_week || m.week || m.month || m.month_offset || m.day) return false;
  const Back back(*this);
  accept(the);
  int n = 0;
  if (word("week") && is(Kind::number, 1) && peek(1).digits > 0 && peek(1).digits <= 2) {
    ++at_;
    if (!whole(n, 1, 53)) return back();
    if (is(colon) || is(slash) || is(meridiem)) return back();
    const Back year_back(*this);
    if (!accept(of)) accept(in);
    if (is(next) && is(Kind::unit, 1) && peek(1).unit() == Unit::year) {
      m.year_offset = peek().whole();
      at_ += 2;
    } else if (!year_behind(m)) {
      year_back();
    }
  } else if (chinese_ordinal(n)) {
    if (n > 53 || !accept(week_mark)) return back();
  } else {
    return back();
  }
  m.iso_week = n;
  sure(kFair);
  return true;
}

// 21世纪20年代, 19世纪, the 21st century, this decade, the next decade
bool Grammar::century(Moment& m) {
  if (m.year || m.year_offset || m.month || m.day) return false;
  const Back back(*this);
  accept(the);
  if (is(within) && peek().word.ends_with("the next") && is(Kind::unit, 1) && peek(1).unit() == Unit::decade) {
    m.decade_offset = 1;
    at_ += 2;
    sure(kFair);
    return true;
  }
  // the 1970s, the 1970's
  if (is(Kind::number) && peek().digits == 4 && peek().value >= 1900 && peek().value <= 2100 &&
      peek().whole() % 10 == 0 && ((word("s", 1) && joined(1)) || (is(apostrophe, 1) && word("s", 2) && joined(2)))) {
    m.year = peek().whole();
    at_ += word("s", 1) ? 2 : 3;
    sure(kFair);
    return true;
  }
  if (is(next) && is(Kind::unit, 1) && peek(1).unit() == Unit::decade && !peek(1).han) {
    m.decade_offset = peek().whole();
    at_ += 2;
    sure(kFair);
    return true;
  }
  int n = 0;
  const bool counted = ordinal_number(n) || (is(Kind::number) && whole(n, 1, 30));
  if (counted && is(Kind::unit) && peek().unit() == Unit::century) {
    ++at_;
    m.year = (n - 1) * 100;
    if (n == 1) m.year = 1;
    int tens = 0;
    const Back decade_back(*this);
    if (is(Kind::number) && whole(tens, 10, 90) && is(Kind::unit) && peek().unit() == Unit::decade) {
      ++at_;
      m.year = (n - 1) * 100 + tens;
    } else {
      decade_back();
    }
    sure(kFair);
    return true;
  }
  return back();
}

// next month, 下个月, this year, 明年, next weekend, 月底, end of the month
bool Grammar::period(Moment& m) {
  const Back back(*this);
  accept(the);
  Kind edge = other;
  if (word("beginning") && is(Kind::month, 1) && (is(Kind::number, 2) || is(Kind::ordinal, 2))) return back();  // from
  if ((is(Kind::end) || is(begin) || is(middle)) && !peek().han) {
    edge = peek().kind;
    ++at_;
    accept(dash);
    accept(of);
    accept(the);
    if (is(Kind::day) && edge == Kind::end) {
      m.day_offset = peek().whole();
      ++at_;
      m.part = Part::end_of_day;
      sure(kStrong);
      return true;
    }
    if (is(Kind::unit) && !peek().han) {
      const Unit u = peek().unit();
      if (u != Unit::day && u != Unit::week && u != Unit::month && u != Unit::year && u != Unit::quarter) return back();
      if (u == Unit::day) return back();
      ++at_;
      m.edge = edge;
      m.edge_unit = u;
      sure(kFair);
      return true;
    }
    if (is(Kind::month)) {
      m.month = peek().whole();
      ++at_;
      year_behind(m);
      m.edge = edge;
      m.edge_unit = Unit::month;
      sure(kFair);
      return true;
    }
    if (is(Kind::number) && peek().digits == 4) {
      m.year = peek().whole();
      ++at_;
      m.edge = edge;
      m.edge_unit = Unit::year;
      sure(kFair);
      return true;
    }
    if (is(quarter)) {  // the end of the quarter
      ++at_;
      m.quarter_offset = 0;
      m.edge = edge;
      m.edge_unit = Unit::quarter;
      sure(kFair);
      return true;
    }
    if (quarter_of_year(m) && (m.quarter || m.quarter_offset)) {
      m.edge = edge;
      m.edge_unit = Unit::quarter;
      return true;
    }
  }
  if ((is(late) || is(early) || (is(later) && word("later"))) && edge == other) {  // late this month, early March
    const Back shade_back(*this);
    const bool is_late = !is(early);
    const bool from_today = is(later);
    ++at_;
    accept(dash);
    const bool unit_behind = is(next) && is(Kind::unit, 1) && !is(Kind::part, 1);
    if ((unit_behind || (is(Kind::month) && !from_today)) && period_or_month(m)) {
      m.shade = is_late ? 1 : -1;
      m.shade_from_today = from_today;
      sure(kFair);
      return true;
    }
    shade_back();
  }
  if (is(next) && (is(Kind::end, 1) || is(begin, 1) || is(middle, 1)) && peek(1).value > 0) {  // 月底
    const int which = static_cast<int>(peek(1).value);
    if (edge != other) return back();
    m.edge = peek(1).kind;
    m.coming_edge = is(begin, 1);
    m.edge_unit = which == 1 ? Unit::month : which == 2 ? Unit::year : Unit::week;
    at_ += 2;
    sure(kStrong);
    return true;
  }
  if (is(next) || is(following) || is(past)) {
    const bool comes = peek().word == "coming" || peek().word == "upcoming";
    const Token& what = peek(1);
    const bool longer = what.kind == Kind::unit && (what.unit() == Unit::month || what.unit() == Unit::quarter ||
                                                    what.unit() == Unit::week || what.unit() == Unit::year);
    const int which = is(past) ? -1 : is(following) || (comes && longer) ? 1 : peek().whole();
    if (what.kind == Kind::unit &&
        (what.unit() == Unit::month || what.unit() == Unit::year || what.unit() == Unit::week)) {
      at_ += 2;
      Maybe& slot = what.unit() == Unit::month ? m.month_offset : what.unit() == Unit::year ? m.year_offset : m.week;
      if (slot) return back();
      slot = which;
      if (which < 0) m.explicit_past = true;
      if (edge != other) m.edge = edge, m.edge_unit = what.unit();
      const Back edge_back(*this);
      while (accept(of)) {
      }
      if ((is(Kind::end) || is(begin) || is(middle)) && peek().han) {
        m.edge = peek().kind;
        m.edge_unit = what.unit();
        ++at_;
      } else {
        edge_back();
      }
      sure(kStrong);
      return true;
    }
    if (what.kind == week_mark) {
      at_ += 2;
      m.week = which;
      if (which < 0) m.explicit_past = true;
      sure(kStrong);
      return true;
    }
    if (what.kind == weekend) {
      at_ += 2;
      m.weekend = true;
      m.week = which;
      if (which < 0) m.explicit_past = true;
      sure(kStrong);
      return true;
    }
    if (what.kind == Kind::unit && what.unit() == Unit::business_day && which == 1) {
      at_ += 2;
      m.offset = keep(Span({1, Unit::business_day}));
      sure(kFair);
      return true;
    }
    if (what.kind == Kind::unit && (what.unit() == Unit::hour || what.unit() == Unit::minute) && which == 1) {
      at_ += 2;
      m.offset = keep(Span({1, what.unit()}));
      sure(kFair);
      return true;
    }
    if (what.kind == Kind::part && !what.han) {  // this morning, next night
      if (m.part) return back();
      at_ += 2;
      m.part = what.part();
      if (!m.has_day() && (which != 0)) m.day_offset = which;
      if (!m.has_day()) m.day_offset = 0;
      sure(kStrong);
      return true;
    }
    if (what.kind == holiday && !m.holiday) {
      ++at_;
      if (which > 0) m.next_occurrence = true;
      if (which < 0) m.last_occurrence = true, m.explicit_past = true;
      m.holiday = peek().whole();
      ++at_;
      sure(kStrong);
      return true;
    }
    if (what.kind == season && what.word != "fall") {
      at_ += 2;
      m.season = what.whole();
      if (which != 0) m.year_offset = which;
      sure(kFair);
      return true;
    }
  }
  if (is(same) && !peek().han && is(Kind::unit, 1) && m.empty()) {  // the same week
    const Unit u = peek(1).unit();
    if (u == Unit::week) m.week = 0;
    if (u == Unit::month) m.month_offset = 0;
    if (u == Unit::year) m.year_offset = 0;
    if (u == Unit::day) m.day_offset = 0;
    if (m.has_day()) {
      at_ += 2;
      sure(kFair);
      return true;
    }
  }
  if (is(weekend) && (!m.has_day() || m.week || m.holiday)) {
    ++at_;
    m.weekend = true;
    sure(kFair);
    return true;
  }
  return back();
}

bool Grammar::period_or_month(Moment& m) { return is(Kind::month) ? named_month(m) && !m.day : period(m); }

bool Grammar::holiday_phrase(Moment& m) {
  if (m.holiday || m.term || m.month || m.day || m.nth) return false;
  const Back back(*this);
  accept(the);
  if (is(term)) {
    m.term = peek().whole();
    ++at_;
    accept_word("节");
  } else if (is(holiday)) {
    if (peek().word == "eve") return back();
    // 五一路, 八一中学, 六块五一斤: numbers that are names of holidays
    const bool number_name =
        peek().han && peek().word.size() == 6 && peek().end - peek().begin <= 6 && is_number_name(peek().word);
    if (number_name && at_ > 0 && joined() && (tokens_[at_ - 1].kind == other || tokens_[at_ - 1].kind == Kind::number))
      return back();
    m.holiday = peek().whole();
    ++at_;
    if (number_name && joined() && !goes_on(peek()) && !word("节") && !word("假") && !word("长") && !word("期")) {
      sure(kWeak);
      return true;
    }
  } else {
    return back();
  }
  if (!m.year) year_behind(m);
  sure(kStrong);
  return true;
}

bool Grammar::is_number_name(std::string_view word) {
  return word == "五一" || word == "八一" || word == "六一" || word == "五四" || word == "三八";
}

bool Grammar::year_only(Moment& m) {
  if (m.year || m.month || m.day || m.clock) return false;
  const Back back(*this);
  accept(the);
  const bool named = accept_word("year") || accept_word("calendar year");
  if (is(Kind::number) && peek().by_word && !peek().han && (at_ == 0 || tokens_[at_ - 1].kind == in)) {
    const bool led = at_ > 0;
    Moment words;  // in two thousand and twenty
    if (year_behind(words) && words.year) {
      m.year = words.year;
      sure(led ? kFair : kWeak);
      return true;
    }
  }
  if (!is(Kind::number) || peek().digits != 4 || peek().han) return back();
  const int year = peek().whole();
  if (year < (named ? 1000 : 1900) || year > 2200 || is(colon, 1) || (is(dash, 1) && joined(1)) || is(Kind::unit, 1) ||
      is(meridiem, 1) || is(slash, 1))
    return back();
  const Kind before_it = at_ > 0 ? tokens_[at_ - 1].kind : end_of_text;
  ++at_;
  m.year = year;
  const bool open_ended = word("or") && (is(later, 1) || is(Kind::after, 1));
  if (open_ended) at_ += 2;
  const bool led = open_ended || named || before_it == in || before_it == since || before_it == until ||
                   before_it == Kind::after || before_it == Kind::before || before_it == from;
  sure(led ? kFair : kWeak);
  return true;
}

// Thu Oct 26 11:00:09 2023, Halloween weekend 2027
bool Grammar::year_at_the_end(Moment& m) {
  const bool complete = (m.month && m.day && m.clock) || (m.holiday && m.weekend);
  if (m.year || !complete) return false;
  if (!is(Kind::number) || peek().digits != 4 || peek().value < 1900 || peek().value > 2200 || is(colon, 1))
    return false;
  m.year = peek().whole();
  ++at_;
  return true;
}

bool Grammar::season_phrase(Moment& m) {
  if (m.season || m.half_year) return false;
  if (is(season)) {
    const bool fall = word("fall");
    m.season = peek().whole();
    ++at_;
    if (!m.year && !m.year_offset) year_behind(m);
    if (fall && !m.year && !m.year_offset) {
      m.season.reset();
      --at_;
      return false;
    }
    sure(kWeak);
    return true;
  }
  if (is(half_month) && !m.day) {
    if (!m.month && !m.month_offset) m.month_offset = 0;
    m.day = peek().whole();
    ++at_;
    sure(kFair);
    return true;
  }
  if (is(half_year)) {
    m.half_year = peek().whole();
    ++at_;
    sure(kFair);
    return true;
  }
  return false;
}

// 底, 初, 中旬 behind a month or a year
bool Grammar::edge_behind(Moment& m) {
  if (m.edge || m.day ||
      !(m.month || m.year || m.month_offset || m.year_offset || m.week || m.quarter || m.quarter_offset))
    return false;
  const Back back(*this);
  while (accept(of)) {
  }
  if (is(ten_days) && (m.month || m.month_offset)) {
    m.day = peek().whole() * 10 - 9;
    ++at_;
    sure(kStrong);
    return true;
  }
  if ((is(Kind::end) || is(begin) || is(middle)) && peek().han) {
    m.edge = peek().kind;
    m.edge_unit = m.month || m.month_offset       ? Unit::month
                  : m.week                        ? Unit::week
                  : m.quarter || m.quarter_offset ? Unit::quarter
                                                  : Unit::year;
    ++at_;
    sure(kStrong);
    return true;
  }
  if (is(next) && (is(Kind::end, 1) || is(begin, 1) || is(middle, 1)) && peek(1).value > 0) {  // 次年年末, 十二月月底
    m.edge = peek(1).kind;
    m.edge_unit = peek(1).value == 1 ? Unit::month : Unit::year;
    at_ += 2;
    return true;
  }
  return back();
}

}  // namespace belfry::when
