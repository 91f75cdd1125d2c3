// What comes again: every Monday at 9, 每月最后一天, on the 5th of every month, weekdays at noon.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "belfry/when/grammar.h"

namespace belfry::when {

using enum Kind;

bool Grammar::one_weekday(int& out) {
  if (is(Kind::weekday)) {
    out = peek().whole();
    ++at_;
    return true;
  }
  if (is(week_mark) && is(Kind::number, 1) && joined(1) && peek(1).digits == 1 && peek(1).value >= 1 &&
      peek(1).value <= 7 && !is(Kind::oclock, 2) && !is(ge, 2) && !is(colon, 2) && !word("次", 2)) {
    out = peek(1).whole();
    at_ += 2;
    return true;
  }
  return false;
}

// Monday, Wednesday and Friday; 周一到周五; 周一三五
bool Grammar::weekday_list(std::vector<int>& out) {
  int day = 0;
  const bool han = peek().han;
  if (!one_weekday(day)) return false;
  out.push_back(day);
  // 周一三五: bare digits go on, unless they are an hour.
  if (han && is(Kind::number) && peek().han && peek().digits > 0 && peek().digits <= 6 && joined() &&
      !is(Kind::oclock, 1) && !is(minute_mark, 1) && !is(month_mark, 1) && !is(day_mark, 1) && !is(ge, 1)) {
    std::vector<int> more;
    for (int n = peek().whole(); n > 0; n /= 10) more.insert(more.begin(), n % 10);
    if (std::all_of(more.begin(), more.end(), [](int d) { return d >= 1 && d <= 7; })) {
      out.insert(out.end(), more.begin(), more.end());
      ++at_;
    }
  }
  while (true) {
    const Back back(*this);
    // 周六日, 周六、日
    if (han && out.back() == 6 && (is(day_mark) || (is(comma) && is(day_mark, 1))) && word("日", is(comma) ? 1 : 0)) {
      at_ += is(comma) ? 2 : 1;
      out.push_back(7);
      continue;
    }
    if (is(to) || is(until) || is(tilde) || is(Kind::dash)) {
      ++at_;
      if (!one_weekday(day)) {
        back();
        return true;
      }
      for (int d = out.back() % 7 + 1; d != day % 7 + 1; d = d % 7 + 1) out.push_back(d);
      continue;
    }
    if (is(slash) || word("&")) ++at_;
    accept(comma);
    // 每周一、三、五
    if (han && tokens_[at_ - 1].kind == comma && is(Kind::number) && peek().han && peek().digits == 1 &&
        peek().value >= 1 && peek().value <= 6 && !is(Kind::oclock, 1) && !is(day_mark, 1) && !is(month_mark, 1)) {
      out.push_back(peek().whole());
      ++at_;
      continue;
    }
    if (!accept(and_) && !accept_word("和") && !accept_word("与") && !accept_word("跟")) accept_word("及");
    if (!one_weekday(day)) {
      back();
      return true;
    }
    out.push_back(day);
  }
}

// first Monday [of the month], 第一个周一, 最后一个周五
bool Grammar::nth_weekday_of_month(Nth& out) {
  const Back back(*this);
  accept(the);
  int n = 0;
  if (is(next) && peek().word == "last") {
    ++at_;
    n = -1;
  } else if (word("最") && word("后", 1)) {
    at_ += 2;
    n = -1;
    int one = 0;
    if (is(Kind::number) && !whole(one, 1, 1)) return back();
    accept(ge);
  } else if (!ordinal_number(n) && !chinese_ordinal(n)) {
    return back();
  }
  int day = 0;
  if (n == 0 || n > 5 || !one_weekday(day)) return back();
  const Back month_back(*this);
  if (!((accept(of) || accept(in)) && (accept(the) || true) && is(Kind::unit) && peek().unit() == Unit::month &&
        accept(Kind::unit)))
    month_back();
  out = {n, day, Unit::day};
  return true;
}

// the 1st and the 15th, 5号和20号, the last day, 最后一天
bool Grammar::month_day_list(std::vector<int>& out) {
  const Back back(*this);
  while (true) {
    const Back piece(*this);
    if (!out.empty()) {
      accept(comma);
      if (!accept(and_) && !accept_word("和")) accept_word("与");
    }
    accept(the);
    int day = 0;
    if ((is(next) && peek().word == "last" && is(Kind::unit, 1) && peek(1).unit() == Unit::day)) {
      at_ += 2;
      out.push_back(-1);
    } else if (word("最") && word("后", 1)) {
      at_ += 2;
      int one = 0;
      if (is(Kind::number)) whole(one, 1, 1);
      if (!(is(Kind::unit) && peek().unit() == Unit::day) && !is(day_mark)) {
        piece();
        break;
      }
      ++at_;
      out.push_back(-1);
    } else if (is(Kind::number) && is(day_mark, 1)) {
      if (peek().value < 1 || peek().value > 31) impossible({Wrong::What::day_of_month, 0, peek().whole()});
      out.push_back(std::clamp(peek().whole(), 1, 31));
      at_ += 2;
    } else if (!(is(Kind::number) && peek().han) && ordinal_number(day) && day <= 31 && !is(Kind::weekday)) {
      out.push_back(day);
      if (is(Kind::unit) && peek().unit() == Unit::day) ++at_;
    } else {
      piece();
      break;
    }
  }
  return !out.empty() || back();
}

// on the 5th of every month, first Monday of each month
bool Grammar::day_of_every_month(Recurrence& r) {
  const Back back(*this);
  accept(Kind::on);
  Nth nth;
  if (nth_weekday_of_month(nth)) {
    r.nth = nth;
  } else if (!month_day_list(r.month_days)) {
    return back();
  }
  if (!accept(of)) accept(in);
  if (!is(every) || !is(Kind::unit, 1) || peek(1).unit() != Unit::month) {
    r = {};
    return back();
  }
  at_ += 2;
  r.unit = Unit::month;
  return true;
}

// What is repeated, behind "every" and its number.
bool Grammar::every_unit(Recurrence& r) {
  if (is(Kind::weekday) && peek().han && word("次", 1)) {  // 每周三次: three times a week, nobody knows when
    ++at_;
    r.unit = Unit::week;
    return true;
  }
  if (is(week_mark) && is(Kind::number, 1) && joined(1) && peek(1).han && (peek(1).value == 8 || peek(1).value == 9) &&
      !is(ge, 2)) {
    impossible({Wrong::What::weekday, peek(1).whole()});
    at_ += 2;
    r.unit = Unit::week;
    return true;
  }
  if (is(Kind::weekday) || (is(week_mark) && is(Kind::number, 1) && !is(ge, 2))) {
    r.unit = Unit::week;
    if (weekday_list(r.weekdays)) return true;
  }
  if (is(Kind::unit)) {
    r.unit = peek().unit();
    if (r.unit == Unit::business_day) r.unit = Unit::week, r.weekdays = {1, 2, 3, 4, 5};
    if (r.unit == Unit::fortnight) r.unit = Unit::week, r.every *= 2;
    if (r.unit == Unit::quarter) r.unit = Unit::month, r.every *= 3;
    if (r.unit == Unit::quarter_hour) r.unit = Unit::minute, r.every *= 15;
    if (r.unit == Unit::decade || r.unit == Unit::century || r.unit == Unit::weekend) return false;
    ++at_;
    return true;
  }
  if (is(weekend)) {
    r.unit = Unit::week;
    r.weekdays = {6, 7};
    ++at_;
    return true;
  }
  if (is(quarter)) {
    r.unit = Unit::month;
    r.every *= 3;
    ++at_;
    return true;
  }
  const Kind mark = peek().kind;
  if (mark == week_mark || mark == month_mark || mark == year_mark || mark == day_mark || mark == minute_mark) {
    r.unit = mark == week_mark    ? Unit::week
             : mark == month_mark ? Unit::month
             : mark == year_mark  ? Unit::year
             : mark == day_mark   ? Unit::day
                                  : Unit::minute;
    ++at_;
    accept_word("钟");
    return true;
  }
  if (is(Kind::part)) {  // every evening: the part itself is read as the time
    r.unit = Unit::day;
    return true;
  }
  if (is(Kind::month) || is(holiday)) {
    r.unit = Unit::year;
    return true;
  }
  return false;
}

bool Grammar::counted_before() const {
  if (at_ == 0) return false;
  const Kind kind = tokens_[at_ - 1].kind;
  return kind == Kind::number || kind == ge || kind == di || kind == couple || kind == next;
}

bool Grammar::recurrence_head(Recurrence& r) {
  const Back back(*this);
  if (is(often)) {
    r.unit = peek().unit();
    if (r.unit == Unit::fortnight) r.unit = Unit::week, r.every = 2;
    if (r.unit == Unit::quarter) r.unit = Unit::month, r.every = 3;
    const bool faint = peek().word == "天天" || peek().word == "annual" || peek().word == "日常";
    ++at_;
    // "the quarterly numbers" are no recurrence; "quarterly" alone is.
    sure(faint ? kWeak : is(other) ? kFair : kStrong);
    return true;
  }
  if (is(once) && (is(an, 1) || is(every, 1)) && is(Kind::unit, 2)) {  // once a week
    at_ += 2;
    sure(kStrong);
    return every_unit(r) || back();
  }
  if (is(pass) && peek().value == 1 && (is(week_mark, 1) || is(month_mark, 1) || is(day_mark, 1))) {  // 隔周
    ++at_;
    r.every = 2;
    sure(kStrong);
    return every_unit(r) || back();
  }
  if (!is(every)) {
    // on Mondays, on weekdays, weekends
    const bool on_word = accept(Kind::on);
    const bool plural = peek().word.size() > 5 && peek().word.ends_with('s') && peek().word != "thurs";
    if (is(Kind::weekday) && plural) {
      r.unit = Unit::week;
      sure(kStrong);
      return weekday_list(r.weekdays) || back();
    }
    if ((is(weekend) && plural) || (word("weekdays") && (on_word || at_ == 0)) || word("workdays")) {
      sure(kFair);
      return every_unit(r) || back();
    }
    // 工作日早上8点
    const bool time_behind = is(Kind::part, 1) || is(every, 1) || is(often, 1) ||
                             (is(Kind::number, 1) && (is(Kind::oclock, 2) || is(colon, 2)));
    if (is(Kind::unit) && peek().unit() == Unit::business_day && peek().han && time_behind && !counted_before()) {
      sure(kStrong);
      every_unit(r);
      if (is(every) || is(often)) {
        Recurrence daily;
        if (!recurrence_head(daily) || daily.unit != Unit::day) return back();
      }
      return true;
    }
    return back();
  }
  const bool other_one = peek().word == "every other";
  const bool gap = peek().word == "每隔";
  ++at_;
  double n = other_one ? 2 : 1;
  bool counted = false;
  if (is(next) && (is(Kind::end, 1) || is(begin, 1)) && peek(1).value == 1) {  // 每月底, 每月初
    r.unit = Unit::month;
    r.month_days = {is(begin, 1) ? 1 : -1};
    at_ += 2;
    sure(kStrong);
    return true;
  }
  if (Nth nth; nth_weekday_of_month(nth)) {
    // "every second Tuesday" is every other one; "of the month" makes it the second.
    const Token& last = tokens_[at_ - 1];
    const bool of_month =
        (last.kind == Kind::unit && last.unit() == Unit::month) || nth.n < 0 || nth.n == 1 || last.han;
    r.unit = of_month ? Unit::month : Unit::week;
    if (of_month) r.nth = nth;
    if (!of_month) r.weekdays = {nth.weekday}, r.every = nth.n;
    sure(kStrong);
    return true;
  }
  if (is(Kind::number) && !is(day_mark, 1) && !(is(month_mark, 1) && peek(1).word == "月" && is(Kind::number, 2))) {
    if (!number(n) || n <= 0 || n > 10'000) return back();
    counted = true;
  } else if (accept(Kind::half)) {
    accept(an);
    n = 0.5;
  } else if (int which = 0; ordinal_number(which)) {
    if (is(of) && is(Kind::month, 1)) {  // every 4th of July
      back();
      ++at_;
      r.unit = Unit::year;
      sure(kStrong);
      return true;
    }
    if (is(Kind::unit)) {
      n = which;
      counted = true;
    } else {  // every 30th
      if (which > 31) return back();
      r.unit = Unit::month;
      r.month_days = {which};
      sure(kStrong);
      return true;
    }
  }
  accept(ge);
  if (is(Kind::half) && peek().han) ++at_, n += 0.5;
  r.every = n;
  if (!every_unit(r)) return back();
  // 每隔两天 leaves two days out; 每隔两小时 is every two hours.
  if (gap && rank(r.unit) >= rank(Unit::day)) r.every = counted ? n + 1 : 2;
  sure(kStrong);
  return true;
}

// One of the days on which it happens.
bool Grammar::recurrence_piece(Recurrence& r) {
  const Back back(*this);
  while (is(Kind::on) || is(of) || is(comma) || is(in) || is(the)) ++at_;
  if (r.weekdays.empty() && !r.nth && (r.unit == Unit::week || r.unit == Unit::day) && weekday_list(r.weekdays)) {
    r.unit = Unit::week;
    return true;
  }
  if (r.unit == Unit::month && !r.nth && r.month_days.empty()) {
    if (Nth nth; nth_weekday_of_month(nth)) {
      r.nth = nth;
      return true;
    }
    if (month_day_list(r.month_days)) return true;
  }
  return back();
}

bool Grammar::weekday_set(std::vector<int>& out) {
  if (!accept(weekend)) return weekday_list(out);
  out = {6, 7};
  return true;
}

bool Grammar::leave_out(Recurrence& r, const std::vector<int>& days) {
  if (days.empty()) return true;
  if (r.every != 1 || (r.unit != Unit::day && r.unit != Unit::week)) return false;
  if (r.weekdays.empty()) r.weekdays = {1, 2, 3, 4, 5, 6, 7};
  std::erase_if(r.weekdays, [&](int day) { return std::find(days.begin(), days.end(), day) != days.end(); });
  r.unit = Unit::week;
  return !r.weekdays.empty();
}

// every day except Sunday, daily except weekends, 每天（周日除外）
bool Grammar::exception(Recurrence& r) {
  const Back back(*this);
  while (is(comma) || is(open)) ++at_;
  const bool led = is(except) && peek().value == 0 && accept(except);
  std::vector<int> days;
  if (!weekday_set(days)) return back();
  if (!led && !(is(except) && peek().value == 1 && accept(except))) return back();
  accept(close);
  return leave_out(r, days) || back();
}

// 除了周末每天: which days; none if there is no such thing
std::vector<int> Grammar::exception_before() {
  std::vector<int> days;
  const Back back(*this);
  if (!accept(except) || !weekday_set(days)) {
    back();
    return {};
  }
  if (!accept_word("外") && !accept_word("以外")) accept_word("之外");
  accept(comma);
  return days;
}

// Whether a time of day stands here, behind a comma or not: "at 9am", 上午9点
bool Grammar::time_follows() {
  const Back back(*this);
  accept(comma);
  accept(Kind::at);
  Moment m;
  const bool follows = part_of_day(m) || digital_clock(m) || chinese_clock(m) || (hour_clock(m) && m.clock->meridiem);
  back();
  return follows;
}

// "at 9am and 5pm"
bool Grammar::second_time_follows() {
  const Back back(*this);
  accept(comma);
  const bool follows = (accept(and_) || accept_word("和")) && time_follows();
  back();
  return follows;
}

bool Grammar::recurrence(Expression& e) {
  const Back back(*this);
  const std::vector<int> without = exception_before();
  Recurrence r;
  bool found = day_of_every_month(r);
  if (!found) {
    // 周一到周五每天
    const Back days_back(*this);
    std::vector<int> days;
    Recurrence daily;
    const bool listed = weekday_list(days) && days.size() > 1;
    if (listed && time_follows()) {  // Mon-Fri at 9am, 周二和周四下午3点
      r.unit = Unit::week;
      r.weekdays = days;
      found = true;
      sure(kStrong);
    } else if (listed && (is(every) || is(often)) && recurrence_head(daily) && daily.unit == Unit::day &&
               daily.every == 1) {
      r.unit = Unit::week;
      r.weekdays = days;
      found = true;
    } else {
      days_back();
      r = {};
      found = recurrence_head(r);
    }
  }
  if (!found) return back();
  sure(strength_ == 0 ? kStrong : strength_);
  for (int pieces = 0; pieces < 4; ++pieces) {
    if (exception(r) || recurrence_piece(r)) continue;
    Moment trial = e.start;
    const Back piece_back(*this);
    clock_expected_ = true;
    in_recurrence_ = true;
    const bool more = moment(trial) && !trial.offset && (!trial.is_range() || trial.until_clock) && !trial.now;
    clock_expected_ = false;
    in_recurrence_ = false;
    if (!more) {
      piece_back();
      break;
    }
    e.start = trial;
  }
  if (!leave_out(r, without)) return back();
  if (e.start.clock && second_time_follows()) impossible({Wrong::What::second_time});
  const bool in_period = e.start.week || e.start.month_offset || e.start.year_offset || e.start.day_offset;
  if (is(except) || in_period) impossible({Wrong::What::bounds});
  if (e.start.weekday && r.weekdays.empty()) r.weekdays.push_back(*e.start.weekday), r.unit = Unit::week;
  if (e.start.nth && !r.nth && e.start.nth->weekday != 0 && std::abs(e.start.nth->n) <= 5) r.nth = e.start.nth;
  if (e.start.day && !e.start.month && r.month_days.empty()) r.month_days.push_back(*e.start.day);
  e.shape = Shape::recurrence;
  e.recurrence = std::move(r);
  return true;
}

}  // namespace belfry::when
