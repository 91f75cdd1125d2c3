// Ranges: from 2 to 4pm, July 13-15, 下午2点到4点, for three hours from nine, the next two weeks, the rest of the day.
#include "belfry/when/grammar.h"

namespace belfry::when {

using enum Kind;

bool Grammar::range_word() {
  if (is(to) || is(until) || is(tilde)) {
    ++at_;
    accept(Kind::dash);
    return true;
  }
  if (is(Kind::dash)) {
    while (is(Kind::dash)) ++at_;
    return true;
  }
  return false;
}

// What joins the two ends: "to", "-", 到; behind "between" also "and".
bool Grammar::range_joint(bool between_word) {
  if (between_word && (accept(and_) || accept_word("和") || accept_word("与") || accept_word("跟"))) return true;
  return range_word();
}

// One end of a range of hours. `marked`: it can be nothing but a time of day.
bool Grammar::range_hour(Clock& out, bool& marked) {
  const Back back(*this);
  Moment trial;
  const bool expected = std::exchange(clock_expected_, false);  // 1.9 is no time here
  const bool written = digital_clock(trial) || chinese_clock(trial);
  clock_expected_ = expected;
  if (written) {
    out = *trial.clock;
    marked = true;
    return true;
  }
  if (is(Kind::part) && (peek().part() == Part::noon || peek().part() == Part::midnight)) {
    out = Clock{peek().part() == Part::noon ? 12 : 24, 0, 0, std::nullopt, true};
    marked = true;
    ++at_;
    return true;
  }
  const int digits = peek().digits;
  int n = 0;
  if (!is(Kind::number) || !whole(n, 0, 2400)) return back();
  out = Clock{n, 0, 0, std::nullopt, false};
  if (digits >= 3) {  // 0930
    if (digits != 4 || n % 100 > 59 || (n >= 1900 && n <= 2100)) return back();
    out = Clock{n / 100, n % 100, 0, std::nullopt, true};
  } else if (n >= 1 && n <= 12 && is(Kind::number) && peek().by_word && !peek().han) {  // three thirty
    const Back minutes_back(*this);
    if (!whole(out.minute, 1, 59)) minutes_back();
  }
  if (out.hour > 24) return back();
  if (word("h") && joined()) ++at_, out.exact = true;
  marked = meridiem_word(out.meridiem);
  if (accept(Kind::oclock)) marked = true;
  accept(ish);
  return true;
}

// 5 to 6 pm, 11-4, 9:30 - 11: what one end says about the half of the day holds for the other.
void Grammar::share_half_day(Clock& first, Clock& last) {
  const auto in_half = [](const Clock& clock) { return clock.hour % 12 * 60 + clock.minute; };
  if (first.hour > 12 || last.hour > 12) return;
  const bool rising = in_half(first) < in_half(last);
  if (last.meridiem && !first.meridiem) {
    first.meridiem = rising ? *last.meridiem : 1 - *last.meridiem;
  } else if (first.meridiem && !last.meridiem) {
    last.meridiem = rising ? *first.meridiem : 1 - *first.meridiem;
  }
}

bool Grammar::clock_range(Moment& m) {
  if (m.clock) return false;
  const Back back(*this);
  if (is(in) && is(between, 1)) ++at_;
  const bool between_word = accept(between);
  const bool led = between_word || accept(from);
  if (!accept(Kind::at)) accept(about);
  Clock first;
  Clock last;
  bool first_marked = false;
  bool last_marked = false;
  const bool han = peek().han;
  const bool in_words = peek().by_word && !han;
  const int digits = peek().digits;
  if (!range_hour(first, first_marked)) return back();
  const bool to_word = is(to);
  if (is(until) && !first_marked && !led && !m.has_day() && !m.part) return back();
  const bool dashed = is(Kind::dash);
  if (dashed && first_marked && peek().space_before && is(Kind::number, 1) && joined(1) && peek(1).digits == 4)
    return back();  // 11:50:48 -0500
  if (!range_joint(between_word)) return back();
  if (!accept(Kind::at)) accept(about);
  if (!range_hour(last, last_marked)) return back();
  if (dashed && !led && !first_marked && !last_marked && (last.hour + 12 - first.hour) % 12 > 9)
    return back();  // Friday 7-6
  if (is(Kind::month) || is(month_mark) || is(day_mark) || is(year_mark) || is(Kind::unit) || is(ge) || is(percent) ||
      is(slash) || (is(Kind::dash) && joined()) || (is(dot) && is(Kind::number, 1) && joined(1)) ||
      (is(of) && !last_marked && (is(Kind::month, 1) || is(next, 1))) || is(week_mark))
    return back();
  Moment trial;
  trial.clock = last;
  const bool parted = trailing_part(trial);
  if (parted && trial.clock->meridiem) last.meridiem = trial.clock->meridiem;
  const bool bare = !first_marked && !last_marked && !parted;
  if (bare && !led && !m.has_day() && !m.part && !is(Kind::day) && !is(next) && !is(Kind::weekday) && !is(Kind::on) &&
      !in_recurrence_)
    return back();
  if (bare && digits == 4 && !led) return back();
  // "ten to six" is a time of day, "8 to 9" is not.
  const bool minutes_to = to_word && !led && !han && !first_marked && first.minute == 0 && first.hour % 5 == 0;
  if (minutes_to && (in_words || (!(last_marked && last.meridiem) && !parted))) return back();
  if (first.hour > 24 || last.hour > 24) return back();
  share_half_day(first, last);
  if (parted && trial.part) {
    if (m.part) return back();
    m.part = trial.part;
  }
  m.clock = first;
  m.until_clock = last;
  sure(bare || (!first_marked && !led && !m.has_day()) ? kFair : kStrong);
  return true;
}

// A day of the month as it stands in a range: 13, the 13th.
bool Grammar::range_day(int& out) {
  const Back back(*this);
  accept(the);
  if (ordinal_number(out)) return (out >= 1 && out <= 31) || back();
  if (!is(Kind::number) || peek().han || peek().digits > 2 || !whole(out, 1, 31)) return back();
  return true;
}

// July 13-15, 13 to 15 July, between the 3rd and the 12th of September, from 4 to January 22, the 4th to the 9th next month
bool Grammar::day_range(Moment& m) {
  if (m.until_day || m.clock) return false;
  const Back back(*this);
  int first = 0;
  int last = 0;
  if (m.day && m.month && !m.lunar) {  // behind a date
    if (!range_word() || !range_day(last) || last <= *m.day) return back();
    if (is(colon) || is(meridiem) || is(Kind::month) || is(Kind::oclock) || is(slash) || is(Kind::unit) ||
        is(month_mark) || is(year_mark) || (is(Kind::dash) && joined()) || (is(of) && is(Kind::month, 1)) ||
        (is(dot) && is(Kind::number, 1)))
      return back();
    m.until_day = last;
    if (!m.year) year_behind(m);
    return true;
  }
  if (m.day) return false;
  const bool between_word = accept(between);
  if (!between_word) accept(from);
  if (!range_day(first) || !range_joint(between_word)) return back();
  if (m.month && between_word) {  // November between 19 and 20
    if (!range_day(last) || last <= first) return back();
  } else if (m.month) {
    return back();
  } else {
    Moment end;
    const Back end_back(*this);
    if (tokens_[at_ - 1].kind == Kind::dash && joined() && is(Kind::month)) return back();  // 05-JAN-27
    if (named_month(end) && end.day) {
      last = *end.day;
    } else {
      end_back();
      end = {};
      if (!range_day(last)) return back();
      if (!accept(of)) accept(in);
      accept(the);
      if (is(Kind::month)) {
        end.month = peek().whole();
        ++at_;
        year_behind(end);
      } else if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).unit() == Unit::month) {
        m.month_offset = is(following) ? 1 : peek().whole();
        at_ += 2;
      } else {
        return back();
      }
    }
    if (last <= first) return back();
    if (end.month) {
      m.month = end.month;
      m.year = end.year;
      good_day(*m.month, first);
      good_day(*m.month, last);
    }
  }
  m.day = first;
  m.until_day = last;
  sure(kStrong);
  return true;
}

// 2014-2018, from 2014 to 2018
bool Grammar::year_range(Moment& m) {
  if (m.has_day() || m.clock) return false;
  const Back back(*this);
  const auto year = [&](int& out) {
    if (!is(Kind::number) || peek().digits != 4 || peek().han) return false;
    out = peek().whole();
    ++at_;
    return out >= 1900 && out <= 2200;
  };
  const bool between_word = accept(between);
  const bool led = between_word || accept(from) || accept(in);
  int first = 0;
  int last = 0;
  if (!year(first) || !range_joint(between_word) || !year(last) || last <= first) return back();
  if (is(colon) || is(Kind::dash) || is(slash) || is(Kind::unit)) return back();
  m.year = first;
  m.until_year = last;
  sure(led ? kFair : kWeak);
  return true;
}

// "14th Feb for 7 hours from 9:30", "for 3 hours from 10 am", "a day starting this Friday"
bool Grammar::length_phrase(Moment& m) {
  if (m.length || m.offset) return false;
  const Back back(*this);
  const bool led = accept(for_);
  Span length;
  if (!span(length)) return back();
  if (led && is(comma) && is(from, 1)) ++at_;
  const bool starts = is(from) && (led || peek().word.starts_with("starting"));
  if (!starts && !(led && (m.clock || m.has_day()))) return back();
  if (starts) {
    if (is(Kind::now, 1)) return back();
    ++at_;
    bare_hour_ = true;
  }
  m.length = keep(length);
  return true;
}

// the next three days, the last two weeks, 未来两天, 过去一周, 近三年, 前两天
bool Grammar::reach_phrase(Moment& m) {
  if (!m.empty()) return false;
  const Back back(*this);
  if (is(in) || is(Kind::on)) ++at_;
  accept(the);
  const Token& lead = peek();
  int direction = 0;
  if (lead.kind == next &&
      (lead.word == "next" || lead.word == "coming" || lead.word == "upcoming" || lead.word == "下"))
    direction = 1;
  if ((lead.kind == next && (lead.word == "last" || lead.word == "previous" || lead.word == "上")) || lead.kind == past)
    direction = -1;
  if (lead.kind == within && lead.value != 0) direction = lead.whole();
  if (lead.kind == within && (lead.word.ends_with("the next") || is(next, 1) || (is(the, 1) && is(next, 2)))) {
    while (is(within) || is(the)) ++at_;  // within the upcoming two days
    if (!is(next)) --at_;
    direction = 1;
  }
  if (lead.kind == Kind::ago && (lead.word == "前" || lead.word == "之前")) direction = -1;
  if (direction == 0) return back();
  const Kind before_it = at_ > 0 && joined() ? tokens_[at_ - 1].kind : end_of_text;
  if (lead.kind == Kind::ago && (before_it == other || before_it == day_mark)) return back();  // 生日前一天
  ++at_;
  while (accept(of)) {
  }
  if (!is(Kind::number) && !is(couple) && !is(an)) return back();
  Span amounts;
  if (!span(amounts)) return back();
  if (is(later) || is(Kind::ago) || is(from)) return back();
  accept(within);
  if (direction < 0 && lead.word == "last" && is(of)) {  // the last three weeks of this year
    const Back of_back(*this);
    ++at_;
    Moment whole_period;
    if (moment(whole_period) && whole_period.has_day() && !whole_period.day && !whole_period.clock) {
      whole_period.after = true;
      m.offset = keep(amounts);
      m.direction = -1;
      m.anchor = keep(whole_period);
      m.length = keep(amounts);
      sure(kStrong);
      return true;
    }
    of_back();
  }
  m.reach = keep(amounts);
  m.direction = direction;
  if (direction < 0) m.explicit_past = true;
  sure(kStrong);
  return true;
}

// the rest of the day, rest of my week
bool Grammar::rest_phrase(Moment& m) {
  if (!m.empty() || !(is(the) ? is(rest, 1) : is(rest))) return false;
  const Back back(*this);
  accept(the);
  ++at_;
  accept(of);
  accept(the);
  if (word("my") || word("our") || (is(next) && peek().value == 0)) ++at_;
  if (!is(Kind::unit)) return back();
  const Unit u = peek().unit();
  if (u != Unit::day && u != Unit::week && u != Unit::month && u != Unit::quarter && u != Unit::year) return back();
  ++at_;
  m.now = true;
  m.rest_of = u;
  sure(kStrong);
  return true;
}

}  // namespace belfry::when
