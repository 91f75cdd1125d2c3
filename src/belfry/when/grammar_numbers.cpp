// Numbers in digits and words, and the spans of time that they count.
#include <cmath>

#include "belfry/when/grammar.h"

namespace belfry::when {

using enum Kind;

// 5, 1.5, 1,000, twenty-five, two hundred and five, 二十五, 1½, 3/4
bool Grammar::number(double& out) {
  const Token& t = peek();
  if (t.kind != Kind::number) return false;
  ++at_;
  out = t.value;
  if (t.digits > 0 && !t.by_word) {
    if (is(dot) && joined() && is(Kind::number, 1) && joined(1) && peek(1).digits > 0) {
      const Token& part = peek(1);
      out += part.value / std::pow(10.0, part.digits);
      at_ += 2;
    }
    while (is(comma) && joined() && is(Kind::number, 1) && joined(1) && peek(1).digits == 3) {
      out = out * 1000 + peek(1).value;
      at_ += 2;
    }
    if (is(Kind::number) && peek().digits == 0 && !peek().by_word && peek().value < 1 && joined()) {
      out += peek().value;  // 1½
      ++at_;
    }
    if (is(Kind::number) && (peek().value == 10'000 || peek().value == 1'000 || peek().value == 100) &&
        peek().by_word && !peek().han) {
      out *= peek().value;
      ++at_;
    }
    return true;
  }
  if (t.han || !t.by_word) return true;
  // English words.
  double total = out;
  double last = out;
  while (true) {
    const std::size_t before = at_;
    const bool hyphen = accept(dash);
    if (!hyphen && total >= 100) accept(and_);
    const Token& n = peek();
    if (n.kind == Kind::number && n.by_word && !n.han) {
      if ((n.value == 100 || n.value == 1'000) && last < n.value) {
        total = total - last + last * n.value;
        last *= n.value;
        ++at_;
        continue;
      }
      const bool tens_units = last >= 20 && last < 100 && std::fmod(last, 10) == 0 && n.value >= 1 && n.value <= 9;
      const bool after_hundreds = last >= 100 && n.value < 100;
      if (tens_units || after_hundreds) {
        total += n.value;
        last = n.value;
        ++at_;
        continue;
      }
    }
    at_ = before;
    break;
  }
  out = total;
  return true;
}

bool Grammar::whole(int& out, int least, int most) {
  const Back back(*this);
  double value = 0;
  if (!number(value) || value != std::floor(value) || value < least || value > most) return back();
  out = static_cast<int>(value);
  return true;
}

// 21st, twenty first, third; "second" is a unit by itself.
bool Grammar::ordinal_number(int& out) {
  const Back back(*this);
  if (is(Kind::ordinal)) {
    out = peek().whole();
    ++at_;
    return true;
  }
  if (word("second")) {
    out = 2;
    ++at_;
    return true;
  }
  if (is(Kind::number) && peek().by_word && !peek().han && (peek().value == 20 || peek().value == 30)) {
    const int tens = peek().whole();
    ++at_;
    accept(dash);
    if ((is(Kind::ordinal) && peek().value < 10) || word("second")) {
      out = tens + (word("second") ? 2 : peek().whole());
      ++at_;
      return true;
    }
    return back();
  }
  return false;
}

bool Grammar::chinese_ordinal(int& out) {
  const Back back(*this);
  if (!accept(di)) return back();
  if (!whole(out, 1, 400)) return back();
  accept(ge);
  return true;
}

// The unit behind a number. `counted`: 个 stood before it.
bool Grammar::unit(Unit& out, bool counted, bool number_joined) {
  const Token& t = peek();
  switch (t.kind) {
    case Kind::unit:
      if (!t.han && is_letter_unit(t) && !number_joined &&
          !(t.word == "h" || t.word == "s" || t.word == "d" || t.word == "m"))
        return false;
      out = t.unit();
      ++at_;
      if (t.word == "min" || t.word == "sec" || t.word == "hr") accept(dot);
      return true;
    case minute_mark:
      out = Unit::minute;
      ++at_;
      accept_word("钟");
      return true;
    case day_mark:
      if (t.word != "日" || word("元", 1) || word("本", 1)) return false;
      out = Unit::day;
      ++at_;
      return true;
    case week_mark:
      out = Unit::week;
      ++at_;
      return true;
    case year_mark:
      if (at_ > 0 && tokens_[at_ - 1].kind == Kind::number && tokens_[at_ - 1].digits > 0 &&
          (tokens_[at_ - 1].digits >= 4 || (tokens_[at_ - 1].digits == 2 && tokens_[at_ - 1].value < 10)))
        return false;                   // 2026年前, 07年以后: a year, not a number of years
      if (word("级", 1)) return false;  // 三年级
      out = Unit::year;
      ++at_;
      return true;
    case month_mark:
      if (!counted || t.word != "月") return false;
      out = Unit::month;
      ++at_;
      return true;
    case Kind::weekday:  // in 2 mon
      if (t.word != "mon" || at_ < 2 || tokens_[at_ - 2].kind != in || tokens_[at_ - 1].digits == 0) return false;
      out = Unit::month;
      ++at_;
      return true;
    case Kind::part:
      if (t.word != "nights" && t.word != "晚") return false;
      out = Unit::day;
      ++at_;
      return true;
    case weekend:
      out = Unit::weekend;
      ++at_;
      return true;
    case quarter:
      if (t.word != "quarters" && t.word != "quarter") return false;
      out = Unit::quarter;
      ++at_;
      return true;
    default: return false;
  }
}

// P1DT12H, PT90M, as ISO 8601 writes spans.
bool Grammar::iso_duration(Span& out) {
  const std::size_t begin = at_ < tokens_.size() ? tokens_[at_].begin : text_.size();
  if (begin >= text_.size() || text_[begin] != 'P') return false;
  Span found;
  std::size_t i = begin + 1;
  bool time = false;
  while (i < text_.size()) {
    if (text_[i] == 'T' && !time) {
      time = true;
      ++i;
      continue;
    }
    double number = 0;
    std::size_t digits = 0;
    for (; i < text_.size() && text_[i] >= '0' && text_[i] <= '9' && digits < 9; ++i, ++digits)
      number = number * 10 + (text_[i] - '0');
    if (digits == 0 || i >= text_.size()) break;
    const char letter = text_[i];
    const bool known = time ? letter == 'H' || letter == 'M' || letter == 'S'
                            : letter == 'Y' || letter == 'M' || letter == 'W' || letter == 'D';
    if (!known) return false;
    const Unit unit = letter == 'Y'   ? Unit::year
                      : letter == 'W' ? Unit::week
                      : letter == 'D' ? Unit::day
                      : letter == 'H' ? Unit::hour
                      : letter == 'S' ? Unit::second
                      : time          ? Unit::minute
                                      : Unit::month;
    if (!found.push_back({number, unit})) return false;
    ++i;
  }
  if (found.empty()) return false;
  while (at_ < tokens_.size() && tokens_[at_].begin < i) ++at_;
  out = found;
  return true;
}

bool Grammar::half_hour_words(Amount& out) {
  if (!present_.has_any({Kind::half, quarter})) return false;
  const Back back(*this);
  accept(an);
  accept(the);
  if (accept(Kind::half)) {
    accept(of);
    accept(an);
    accept(ge);
    Unit u = Unit::hour;
    if (!unit(u, true, false)) return back();
    out = {0.5, u};
    return true;
  }
  double quarters = 1;
  if (is(Kind::number)) number(quarters);
  if (accept(quarter)) {
    accept(of);
    if (!accept(an)) accept(the);
    if (word("hour") || word("hours") || word("hr")) {
      ++at_;
      out = {quarters / 4, Unit::hour};
      return true;
    }
  }
  return back();
}

bool Grammar::amount(Amount& out) {
  if (half_hour_words(out)) return true;
  const Back back(*this);
  double count = 0;
  bool counted = false;
  bool number_joined = false;
  const bool sign = is(plus) || is(dash);
  if (sign) return false;
  if (is(an) && peek().value == 1 && (is(Kind::number, 1) || is(couple, 1))) ++at_;  // another five minutes
  if (accept(an)) {
    count = 1;
    if (is(Kind::number) && (peek().value == 12 || peek().value == 100 || peek().value == 1'000) && peek().by_word) {
      count = peek().value;  // a dozen, a hundred
      ++at_;
    } else if (is(couple)) {
      count = peek().value;
      ++at_;
      accept(of);
    } else if (accept(Kind::half)) {
      count = 0.5;
    }
  } else if (is(couple) && !peek().han) {
    count = peek().value;
    ++at_;
    accept(of);
  } else if (is(couple)) {
    count = peek().value;
    ++at_;
  } else if (number(count)) {
    if (is(Kind::number) && is(slash, 1) && joined(1) && is(Kind::number, 2) && joined(2) && peek(2).value > 1 &&
        peek(2).value <= 10 && peek().value < peek(2).value) {  // 2 1/2 hours
      count += peek().value / peek(2).value;
      at_ += 3;
    }
    number_joined = joined();
    // 十几分钟, 3/4 hour
    if (is(slash) && joined() && is(Kind::number, 1)) {
      const double below = peek(1).value;
      if (below <= 0 || below > 10 || count >= below) return back();
      at_ += 2;
      count /= below;
      number_joined = joined();
    }
    if (is(and_) && is(an, 1) && is(Kind::half, 2)) {  // two and a half hours
      at_ += 3;
      count += 0.5;
    } else if (is(and_) && is(Kind::half, 1) && !peek().han) {
      at_ += 2;
      count += 0.5;
    } else if (is(and_) && is(an, 1) && is(quarter, 2)) {  // one and a quarter hours
      at_ += 3;
      count += 0.25;
    } else if (is(and_) && is(Kind::number, 1) && peek(1).value == 3 && is(quarter, 2)) {
      at_ += 3;
      count += 0.75;
    }
    if (is(couple) && peek().han) {
      ++at_;
      count += 5;
    }
  } else {
    return back();
  }
  if (accept(ge)) counted = true;
  if (accept(Kind::half)) {
    if (!is(Kind::unit) && !is(month_mark)) return back();
    count += 0.5;
    counted = true;
  }
  if (is(and_) && peek().word == "多") {
    ++at_;
  }
  if (accept(apostrophe)) {  // 15'
    if (!number_joined || (word("s") && joined())) return back();
    out = {count, Unit::minute};
    return true;
  }
  if (is(quote) && number_joined && tokens_[at_ - 1].digits > 0 && !tokens_[at_ - 1].han) {
    ++at_;
    out = {count, Unit::second};
    return true;
  }
  Unit u = Unit::second;
  if (is(ke) && !is(Kind::oclock)) {
    ++at_;
    accept_word("钟");
    out = {count, Unit::quarter_hour};
    return true;
  }
  accept(dash);  // "30-minute"
  if (!unit(u, counted, number_joined)) return back();
  // 一天半, 一分半钟, an hour and a half
  if (is(Kind::half) && peek().han) {
    ++at_;
    accept_word("钟");
    count += 0.5;
  } else if (is(and_) && is(an, 1) && is(Kind::half, 2) && !is(Kind::unit, 3)) {
    at_ += 3;
    count += 0.5;
  } else if (is(and_) && is(an, 1) && is(quarter, 2) && !is(of, 3)) {  // an hour and a quarter
    at_ += 3;
    count += 0.25;
  } else if (is(and_) && is(Kind::half, 1) && !is(an, 2) && !is(Kind::unit, 2)) {
    at_ += 2;
    count += 0.5;
  }
  out = {count, u};
  return true;
}

int Grammar::rank(Unit unit) {
  switch (unit) {
    case Unit::century: return 9;
    case Unit::decade: return 8;
    case Unit::year: return 7;
    case Unit::quarter: return 6;
    case Unit::month: return 5;
    case Unit::fortnight:
    case Unit::week: return 4;
    case Unit::weekend:
    case Unit::business_day:
    case Unit::day: return 3;
    case Unit::hour: return 2;
    case Unit::quarter_hour:
    case Unit::minute: return 1;
    case Unit::second: return 0;
  }
  return 0;
}

bool Grammar::span(Span& out) {
  if (last_span_.begin != at_) {
    const std::size_t begin = at_;
    last_span_.found = read_span(last_span_.span);
    last_span_.begin = begin;
    last_span_.end = at_;
  }
  at_ = last_span_.end;
  if (last_span_.found) out = last_span_.span;
  return last_span_.found;
}

bool Grammar::read_span(Span& out) {
  Amount first;
  if (!amount(first)) return false;
  out = Span(first);
  while (true) {
    const Back back(*this);
    accept(comma);
    accept(and_);
    Amount more;
    const bool joins = amount(more) && std::none_of(out.begin(), out.end(), [&](const Amount& one) {
                         return rank(one.unit) == rank(more.unit);
                       });
    if (!joins) {
      // 3小时15分后: fine as it is; "1 hour 30" has a bare number.
      back();
      int minutes = 0;
      const Back bare(*this);
      if (out.back().unit == Unit::hour && out.size() == 1 && whole(minutes, 1, 59) && (is(later) || is(Kind::ago))) {
        out.push_back({static_cast<double>(minutes), Unit::minute});
      } else {
        bare();
      }
      return true;
    }
    out.push_back(more);
  }
}

}  // namespace belfry::when
