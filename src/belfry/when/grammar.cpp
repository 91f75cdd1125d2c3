// The grammar of both languages, by recursive descent over tokens. Each rule either matches and moves on, or leaves
// everything as it was. Every look at a token is counted.
#include <algorithm>
#include <cmath>
#include <utility>

#include "belfry/when/expression.h"

namespace belfry::when {
namespace {

using enum Kind;

// How surely something is about time. A weak match counts only if it is the whole text.
constexpr int kWeak = 1;    // "1530", "may", "at 4"
constexpr int kFair = 2;    // "3:30", "5/12"
constexpr int kStrong = 3;  // "tomorrow", "3pm", "in 5 minutes"

class Grammar {
 public:
  Grammar(const Tokens& tokens, bool chinese, long& steps) : tokens_(tokens.list), chinese_(chinese), steps_(steps) {}

  std::optional<Expression> at(std::size_t first) {
    at_ = first;
    strength_ = 0;
    impossible_.clear();
    Expression e;
    e.first = first;
    if (!expression(e)) return std::nullopt;
    e.last = at_;
    e.strength = strength_;
    e.impossible = impossible_;
    return e;
  }

 private:
  // --- tokens ---
  const Token& peek(std::size_t ahead = 0) const {
    ++steps_;
    static const Token kEnd = [] {
      Token token;
      token.kind = end_of_text;
      return token;
    }();
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : kEnd;
  }
  bool is(Kind kind, std::size_t ahead = 0) const { return peek(ahead).kind == kind; }
  bool accept(Kind kind) {
    if (!is(kind)) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view text, std::size_t ahead = 0) const { return peek(ahead).word == text; }
  bool accept_word(std::string_view text) {
    if (!word(text)) return false;
    ++at_;
    return true;
  }
  // Directly behind the token before it.
  bool joined(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() && at_ + ahead > 0 &&
           tokens_[at_ + ahead].begin == tokens_[at_ + ahead - 1].end;
  }
  void sure(int strength) { strength_ = std::max(strength_, strength); }
  void impossible(std::string why) {
    if (impossible_.empty()) impossible_ = std::move(why);
  }

  struct Back {
    Grammar& grammar;
    std::size_t at;
    int strength;
    std::string impossible;
    explicit Back(Grammar& g) : grammar(g), at(g.at_), strength(g.strength_), impossible(g.impossible_) {}
    bool operator()() const {
      grammar.at_ = at;
      grammar.strength_ = strength;
      grammar.impossible_ = impossible;
      return false;
    }
  };

  // --- numbers ---

  // 5, 1.5, 1,000, twenty-five, two hundred and five, 二十五, 1½, 3/4
  bool number(double& out) {
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
    if (t.han) {
      if (is(Kind::number) && !peek().han && joined()) return true;
      return true;
    }
    if (!t.by_word) return true;
    // English words.
    double total = out;
    double last = out;
    while (true) {
      const std::size_t before = at_;
      const bool hyphen = accept(dash);
      const bool joint = !hyphen && total >= 100 && accept(and_);
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
      static_cast<void>(joint);
      at_ = before;
      break;
    }
    out = total;
    return true;
  }

  bool whole(int& out, int least, int most) {
    const Back back(*this);
    double value = 0;
    if (!number(value) || value != std::floor(value) || value < least || value > most) return back();
    out = static_cast<int>(value);
    return true;
  }

  // 21st, twenty first, third; "second" is a unit by itself.
  bool ordinal_number(int& out) {
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

  bool chinese_ordinal(int& out) {
    const Back back(*this);
    if (!accept(di)) return back();
    if (!whole(out, 1, 400)) return back();
    accept(ge);
    return true;
  }

  // --- spans of time ---

  static bool is_letter_unit(const Token& t) { return t.word.size() == 1 || t.word == "mo"; }

  // The unit behind a number. `counted`: 个 stood before it.
  bool unit(Unit& out, bool counted, bool number_joined) {
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
        if (t.word != "日") return false;
        out = Unit::day;
        ++at_;
        return true;
      case week_mark:
        out = Unit::week;
        ++at_;
        return true;
      case year_mark:
        out = Unit::year;
        ++at_;
        return true;
      case month_mark:
        if (!counted || t.word != "月") return false;
        out = Unit::month;
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
      case Kind::month:  // "in 1 mon": months for some; never here
      default: return false;
    }
  }

  bool half_hour_words(Amount& out) {
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

  bool amount(Amount& out) {
    if (half_hour_words(out)) return true;
    const Back back(*this);
    double count = 0;
    bool counted = false;
    bool number_joined = false;
    const bool sign = is(plus) || is(dash);
    if (sign) return false;
    if (accept(an)) {
      count = 1;
      if (is(couple)) {
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
      if (!number_joined) return back();
      out = {count, Unit::minute};
      return true;
    }
    if (is(quote) && number_joined) {
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
    } else if (is(and_) && is(Kind::half, 1) && !is(an, 2) && !is(Kind::unit, 2)) {
      at_ += 2;
      count += 0.5;
    }
    out = {count, u};
    return true;
  }

  static int rank(Unit unit) {
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

  bool span(Span& out) {
    Amount first;
    if (!amount(first)) return false;
    out = {first};
    while (true) {
      const Back back(*this);
      accept(comma);
      accept(and_);
      Amount more;
      if (!amount(more) || rank(more.unit) >= rank(out.back().unit)) {
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

  // --- times of day ---

  bool meridiem_word(std::optional<int>& out) {
    if (is(meridiem)) {
      if (peek().word.front() == 'p' && peek().word.size() <= 2 && peek().word != "pm" && !joined()) {
        // "5 P." is a habit; "p" alone with a space is not
        if (peek().word == "p" && !(peek().end - peek().begin > 1)) return false;
      }
      if (peek().value < 2) out = peek().whole();
      ++at_;
      accept(dot);
      return true;
    }
    // "9a", "8:45a"
    if (is(an) && peek().word == "a" && joined()) {
      out = 0;
      ++at_;
      return true;
    }
    return false;
  }

  // "in the morning" behind an hour.
  bool trailing_part(Moment& m) {
    const Back back(*this);
    accept(comma);
    const bool preposition = accept(in) || accept(Kind::at) || accept(Kind::on);
    accept(the);
    if (is(early)) {
      m.part_shade = -1;
      ++at_;
    }
    if (is(meridiem) && preposition) {
      if (!m.clock) return back();
      m.clock->meridiem = peek().whole();
      ++at_;
      return true;
    }
    if (!is(Kind::part)) return back();
    if (!preposition && !is_lunch(peek().part()) && peek().word != "tonight" && !peek().han && false) return back();
    m.part = peek().part();
    ++at_;
    return true;
  }
  static bool is_lunch(Part part) { return part == Part::lunch || part == Part::noon || part == Part::midnight; }

  bool set_clock(Moment& m, int hour, int minute, int second, std::optional<int> half_day, bool exact) {
    if (m.clock) return false;
    if (half_day && (hour > 12 || hour == 0) && !(hour <= 23 && half_day == 1 && exact)) {
      if (hour > 12) impossible("there is no such hour with am or pm");
    }
    if (hour > 24 || minute > 59 || second > 59 || (hour == 24 && (minute > 0 || second > 0)))
      impossible("there is no such time of day");
    m.clock = Clock{hour, minute, second, half_day, exact};
    return true;
  }

  // 9:30, 15:30:15.250, 9.30pm, 15h30
  bool digital_clock(Moment& m) {
    const Back back(*this);
    const Token& h = peek();
    if (h.kind != Kind::number || h.digits == 0 || h.digits > 2 || (h.by_word && !h.han)) return false;
    const int hour = h.whole();
    ++at_;
    int minute = 0;
    int second = 0;
    const bool colon_form = is(colon);
    const bool dot_form = is(dot) && joined() && is(Kind::number, 1) && peek(1).digits == 2;
    const bool h_form = word("h") && joined();
    if (!colon_form && !dot_form && !h_form) return back();
    ++at_;
    if (h_form && !(is(Kind::number) && joined() && peek().digits == 2)) {
      // 15h
      if (is(Kind::number) && peek().digits == 2 && peek().value < 60 && !is(Kind::unit, 1)) {  // 10 H 10
        minute = peek().whole();
        ++at_;
      }
      std::optional<int> half_day;
      meridiem_word(half_day);
      if (!set_clock(m, hour, minute, 0, half_day, true)) return back();
      sure(kWeak);
      return true;
    }
    if (!is(Kind::number) || peek().digits == 0 || peek().digits > 2 || (dot_form && !joined())) return back();
    if (colon_form && peek().digits != 2) return back();
    minute = peek().whole();
    ++at_;
    bool seconds = false;
    if (is(colon) && is(Kind::number, 1) && peek(1).digits == 2) {
      second = peek(1).whole();
      at_ += 2;
      seconds = true;
      if (is(dot) && joined() && is(Kind::number, 1) && joined(1)) at_ += 2;  // fractions are dropped: rounding is D5's
    }
    std::optional<int> half_day;
    const bool has_meridiem = meridiem_word(half_day);
    if (dot_form && !has_meridiem) {
      // 2.30 is a number, unless "at" or a day stands before it.
      if (!clock_expected_ || hour > 23 || minute > 59) return back();
    }
    if (!has_meridiem && is(exactly)) ++at_;
    if (!set_clock(m, hour, minute, second, half_day, true)) return back();
    sure(has_meridiem || seconds ? kStrong : kFair);
    return true;
  }

  // 9pm, 9 o'clock, 1045pm, 0930, noon is a part
  bool hour_clock(Moment& m) {
    const Back back(*this);
    const Token& h = peek();
    double value = 0;
    if (h.kind != Kind::number || h.han || !number(value) || value != std::floor(value) || value < 0) return back();
    const int n = static_cast<int>(std::min(value, 1e6));
    std::optional<int> half_day;
    accept(dash);
    if (accept(ish)) {
      meridiem_word(half_day);
      if (n > 24) return back();
      sure(half_day ? kStrong : kFair);
      return set_clock(m, n, 0, 0, half_day, false) || back();
    }
    if (at_ > 0 && tokens_[at_ - 1].kind == dash) --at_;
    if (h.digits >= 3 && h.digits <= 4) {  // 1045pm, 1530
      const int hour = n / 100;
      const int minute = n % 100;
      const bool has = meridiem_word(half_day);
      if (minute > 59 || hour > 23) return back();
      if (!has && !(h.digits == 4 || clock_expected_)) return back();
      if (!has && (hour >= 19 && hour <= 20 && !clock_expected_)) return back();  // rather a year
      sure(has ? kStrong : kWeak);
      return set_clock(m, hour, minute, 0, half_day, has || h.digits == 4) || back();
    }
    if (n > 99) return back();
    if (meridiem_word(half_day)) {
      sure(kStrong);
      return set_clock(m, n, 0, 0, half_day, false) || back();
    }
    if (accept(Kind::oclock)) {
      meridiem_word(half_day);
      accept(exactly);
      sure(kStrong);
      return set_clock(m, n, 0, 0, half_day, false) || back();
    }
    // seven thirty, eight forty pm, eleven oh five
    if (n >= 1 && n <= 24 && h.by_word) {
      const Back minutes_back(*this);
      int minute = 0;
      accept(dash);
      if (is(Kind::number) && whole(minute, 1, 59)) {
        if (accept_word("minutes")) {
        }
        const bool has = meridiem_word(half_day);
        if ((!has && !is(Kind::unit)) || has) {
          sure(has ? kStrong : kWeak);
          if (set_clock(m, n, minute, 0, half_day, false)) return true;
        }
      }
      minutes_back();
    }
    if (n > 24) return back();
    // "at 3 15"
    if (clock_expected_ && is(Kind::number) && !h.by_word && peek().digits == 2 && peek().value < 60 &&
        !is(Kind::unit, 1) && !is(Kind::month, 1)) {
      const int minute = peek().whole();
      ++at_;
      meridiem_word(half_day);
      sure(kWeak);
      return set_clock(m, n, minute, 0, half_day, false) || back();
    }
    // "8 in the evening", "9 tomorrow morning" — the hour stands by what follows
    {
      const Back part_back(*this);
      Moment trial = m;
      trial.clock = Clock{n, 0, 0, std::nullopt, false};
      if (trailing_part(trial)) {
        m = trial;
        sure(kStrong);
        return true;
      }
      part_back();
    }
    if (!clock_expected_) return back();
    if (is(Kind::unit) || is(weekend) || is(Kind::month) || is(slash) || is(percent) || is(other) ||
        (is(dash) && joined()) || is(Kind::number) || is(Kind::weekday)) {
      if (!(is(Kind::weekday))) return back();
    }
    sure(kWeak);
    return set_clock(m, n, 0, 0, half_day, false) || back();
  }

  // half past nine, quarter to 7, twenty minutes past five, ten to noon
  bool past_clock(Moment& m) {
    const Back back(*this);
    int minutes = 0;
    accept(an);
    if (accept(Kind::half)) {
      minutes = 30;
      if (!is(past) && !is(Kind::after)) {  // "half three"
        int hour = 0;
        if (whole(hour, 1, 12) && !is(Kind::unit) && set_clock(m, hour, 30, 0, std::nullopt, false)) {
          std::optional<int> half_day;
          if (meridiem_word(half_day)) m.clock->meridiem = half_day;
          sure(kFair);
          return true;
        }
        return back();
      }
    } else {
      double quarters = 1;
      const bool counted = is(Kind::number) && number(quarters);
      if (accept(quarter)) {
        minutes = static_cast<int>(15 * quarters);
      } else if (counted && quarters >= 1 && quarters <= 59 && quarters == std::floor(quarters)) {
        minutes = static_cast<int>(quarters);
        if (is(Kind::unit) && peek().unit() == Unit::minute) ++at_;
      } else {
        return back();
      }
    }
    bool before_it = false;
    if (is(past) || is(Kind::after)) {
      ++at_;
    } else if (is(to) || is(until) || word("of") || is(Kind::before)) {
      before_it = true;
      ++at_;
    } else {
      return back();
    }
    Moment target;
    if (is(Kind::part) && (peek().part() == Part::noon || peek().part() == Part::midnight)) {
      target.clock = Clock{peek().part() == Part::noon ? 12 : 24, 0, 0, std::nullopt, true};
      ++at_;
    } else {
      const bool expected = std::exchange(clock_expected_, true);
      const bool ok = digital_clock(target) || hour_clock(target);
      clock_expected_ = expected;
      if (!ok) return back();
    }
    int total = target.clock->hour * 60 + target.clock->minute + (before_it ? -minutes : minutes);
    if (total < 0) total += 24 * 60;
    if (m.clock) return back();
    m.clock = target.clock;
    if (target.clock->meridiem == 1 && target.clock->hour == 12 && before_it) {
      m.clock->meridiem.reset();
      m.clock->exact = true;
    }
    m.clock->hour = total / 60 % 24;
    m.clock->minute = total % 60;
    if (target.part) m.part = target.part;
    sure(kStrong);
    return true;
  }

  // 九点半, 15时30分20秒, 3点45, 差5分3点
  bool chinese_clock(Moment& m) {
    const Back back(*this);
    int short_of = 0;
    if (accept(next_to)) {
      if (is(Kind::number)) {
        if (!whole(short_of, 1, 59)) return back();
        if (accept(ke)) {
          short_of *= 15;
        } else {
          accept(minute_mark);
          accept_word("钟");
        }
      }
    }
    int hour = 0;
    const bool written_in_digits = is(Kind::number) && !peek().by_word;
    if (!is(Kind::number)) return back();
    // 七八点: the first of the two
    if (peek().han && peek().digits == 2 && is(Kind::oclock, 1) && peek().value > 24 && peek().value < 100 &&
        peek().whole() % 10 == peek().whole() / 10 + 1) {
      hour = peek().whole() / 10;
      ++at_;
    } else if (!whole(hour, 0, 99)) {
      return back();
    }
    if (!is(Kind::oclock) || peek().word == "oclock") return back();
    const bool shi = peek().word == "时";
    ++at_;
    int minute = 0;
    int second = 0;
    if (accept(exactly)) {
    } else if (is(Kind::half)) {
      ++at_;
      minute = 30;
      int s = 0;
      if (is(Kind::number) && whole(s, 0, 59) && is(Kind::unit) && peek().unit() == Unit::second) {
        ++at_;
        second = s;
      }
    } else if (is(with)) {  // 三点搭半, 踏三
      ++at_;
      if (accept(Kind::half)) {
        minute = 30;
      } else if (int five = 0; whole(five, 1, 11)) {
        minute = five * 5;
      } else {
        return back();
      }
    } else {
      const Back minutes_back(*this);
      while (is(and_) && peek().word == "零") ++at_;
      accept_word("过");
      int n = 0;
      if (is(Kind::number) && whole(n, 0, 99)) {
        if (is(ke)) {
          ++at_;
          accept_word("钟");
          if (n < 1 || n > 3) return back();
          minute = 15 * n;
        } else if (is(zi) || (is(ge) && word("字", 1))) {
          at_ += is(zi) ? 1 : 2;
          minute = 5 * n;
        } else if (accept(minute_mark) || (is(Kind::unit) && peek().unit() == Unit::minute && accept(Kind::unit))) {
          accept_word("钟");
          minute = n;
          const Back seconds_back(*this);
          while (is(and_) && peek().word == "零") ++at_;
          if (int s = 0; is(Kind::number) && whole(s, 0, 99) && is(Kind::unit) && peek().unit() == Unit::second) {
            ++at_;
            second = s;
          } else {
            seconds_back();
          }
        } else if (is(Kind::unit) || is(day_mark) || is(month_mark) || is(year_mark) || is(ge) || is(week_mark) ||
                   is(Kind::oclock) || is(slash) || is(colon)) {
          minutes_back();
        } else if (m_cantonese_ && n < 12) {
          minute = 5 * n;
        } else if (n > 59) {
          return back();
        } else {
          minute = n;
        }
      } else {
        minutes_back();
      }
    }
    accept(exactly);
    std::optional<int> half_day;
    meridiem_word(half_day);
    if (short_of > 0) {
      const int total = hour * 60 - short_of;
      hour = total / 60;
      minute = total % 60;
    } else if (at_ < tokens_.size() && accept(next_to)) {  // 三点差五分
      int five = 0;
      if (!whole(five, 1, 59)) return back();
      if (accept(ke))
        five *= 15;
      else
        accept(minute_mark);
      const int total = hour * 60 - five;
      hour = total / 60;
      minute = total % 60;
    }
    static_cast<void>(written_in_digits);
    if (!set_clock(m, hour, minute, second, half_day, shi && hour > 12)) return back();
    sure(kStrong);
    return true;
  }

  bool shichen_clock(Moment& m) {
    if (!is(shichen) || m.clock) return false;
    const int hour = (peek().whole() * 2 + 23) % 24;
    ++at_;
    int ke_count = 0;
    const Back back(*this);
    int minute = 0;
    if (is(Kind::number) && whole(ke_count, 1, 7) && accept(ke))
      minute = 15 * ke_count;
    else
      back();
    m.clock = Clock{(hour + minute / 60) % 24, minute % 60, 0, std::nullopt, true};
    sure(kStrong);
    return true;
  }

  bool time_of_day(Moment& m) {
    if (m.clock) return false;
    return past_clock(m) || digital_clock(m) || chinese_clock(m) || shichen_clock(m) || hour_clock(m);
  }

  // morning, early morning, 晚上; noon
  bool part_of_day(Moment& m) {
    if (m.part) {
      // "8pm in the evening", "tomorrow this afternoon": said twice
      if (m.clock && is(Kind::part)) {
        ++at_;
        return true;
      }
      return false;
    }
    const Back back(*this);
    accept(the);
    int shade = 0;
    if (is(early) || is(late)) {
      shade = is(early) ? -1 : 1;
      ++at_;
      accept(dash);
      const Back in_back(*this);
      if (!(accept(in) && accept(the) && is(Kind::part))) in_back();
      if (is(next) && peek().value == 0) ++at_;                        // late this morning
      if (is(Kind::day) && peek().value == -1 && is(Kind::part, 1)) {  // late last night
        m.day_offset = -1;
        ++at_;
      }
    }
    if (is(later) && is(next, 1)) {  // later this afternoon
      at_ += 1;
      shade = 0;
    }
    if (shade != 0 && is(in) && is(the, 1) && is(Kind::unit, 2)) {  // early in the day
      at_ += 3;
      m.part = shade < 0 ? Part::morning : Part::evening;
      sure(kFair);
      return true;
    }
    if (!is(Kind::part)) return back();
    const Token& t = peek();
    m.part = t.part();
    m.part_shade = shade;
    m_cantonese_ = t.word == "晏昼" || t.word == "下昼" || t.word == "上昼";
    ++at_;
    accept(time_word);
    if (t.word == "早" || t.word == "晚" || t.word == "夜" || t.word == "night" || t.word == "eve" ||
        t.word == "lunch" || t.word == "dinner" || t.word == "breakfast" || t.word == "morning" || t.word == "下班") {
      sure(kWeak);
    } else {
      sure(t.word == "tonight" || t.han ? kStrong : kFair);
    }
    if (m.part == Part::tonight || m.part == Part::end_of_day) sure(kStrong);
    return true;
  }

  bool zone_of_text(Moment& m) {
    if (m.zone_minutes) return false;
    const Back back(*this);
    const bool bracket = accept(open);
    int minutes = 0;
    bool found = false;
    if (is(Kind::zone)) {
      if (peek().word == "z" && !joined()) return back();
      minutes = peek().whole();
      ++at_;
      found = true;
      accept(time_word);
    }
    const bool named = found;
    if ((is(plus) || is(dash)) && (named || (m.clock && (peek().space_before || joined())))) {
      const int sign = is(plus) ? 1 : -1;
      const Back sign_back(*this);
      ++at_;
      const Token& n = peek();
      if (n.kind == Kind::number && n.digits == 4 && joined()) {
        minutes = sign * (n.whole() / 100 * 60 + n.whole() % 100);
        ++at_;
        found = true;
      } else if (n.kind == Kind::number && n.digits > 0 && n.digits <= 2 && joined() && n.value <= 14) {
        minutes = sign * n.whole() * 60;
        ++at_;
        if (is(colon) && is(Kind::number, 1) && peek(1).digits == 2) {
          minutes += sign * peek(1).whole();
          at_ += 2;
          found = true;
        } else if (named) {
          found = true;
        } else {
          sign_back();
        }
      } else {
        sign_back();
      }
    }
    if (!found) return back();
    if (bracket) accept(close);
    if (is(open) && is(Kind::zone, 1) && is(close, 2)) at_ += 3;  // GMT+0900 (JST)
    m.zone_minutes = minutes;
    return true;
  }

  // --- dates ---

  static int full_year(int n, int digits, bool& two) {
    two = digits <= 2;
    if (digits > 2) return n;
    return n < 70 ? 2000 + n : 1900 + n;
  }

  // A year behind a date: ", 2026", "2026", "'26", "in 2026", "2555 BE", "this year"
  bool year_behind(Moment& m) {
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
    if (t.kind == Kind::number && t.digits == 0 && t.by_word && !t.han) {
      double value = 0;
      if (number(value) && value >= 1900 && value < 2200) {
        m.year = static_cast<int>(value);
        return true;
      }
      return back();
    }
    if (t.kind == apostrophe && is(Kind::number, 1) && peek(1).digits == 2) {
      m.year = full_year(peek(1).whole(), 2, m.two_digit_year);
      at_ += 2;
      return true;
    }
    return back();
  }

  bool good_day(int month, int day, std::optional<int> year) {
    if (month < 1 || month > 12) {
      impossible("there is no such month");
      return false;
    }
    const int most = month == 2 ? 29 : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
    if (day < 1 || day > most) {
      impossible("the month has no such day");
      return false;
    }
    static_cast<void>(year);
    return true;
  }

  // May 15th, 15 May, the 15th of May, May 2026, 15-May-2026, 2026 May 15
  bool named_month(Moment& m) {
    if (m.month || m.day || m.holiday) return false;
    const Back back(*this);
    int day = 0;
    int year = 0;
    bool has_day = false;
    bool of_word = false;
    if (is(Kind::number) && peek().digits == 4 && is(Kind::month, 1)) {  // 2009 May 22nd
      year = peek().whole();
      ++at_;
      accept(comma);
    } else {
      const bool article = accept(the);
      if (ordinal_number(day)) {
        has_day = true;
        if (is(Kind::unit) && peek().unit() == Unit::day) ++at_;
      } else if (is(Kind::number) && !peek().han && whole(day, 1, 31)) {
        has_day = true;
      } else if (article) {
        return back();
      }
      if (has_day) {
        of_word = accept(of) || accept(in);
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
    const bool ambiguous = name.word == "may" || name.word == "mar" || name.word == "march" || name.word == "dec" ||
                           name.word == "jan" || name.word == "sun";
    if (relative && which != 0) m.year_offset.reset(), m.next_occurrence = which > 0, m.last_occurrence = which < 0;
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
        } else if (value > 31 && value < 100 && value == std::floor(value)) {
          impossible("the month has no such day");
          return back();
        } else {
          n_back();
          day_back();
        }
      } else {
        day_back();
      }
    } else if (of_word) {
    }
    if (has_day) {
      good_day(*m.month, day, m.year);
      m.day = day;
      sure(kStrong);
    } else {
      sure(ambiguous ? kWeak : kFair);
    }
    if (!m.year) {
      year_behind(m);
      if (!m.year && has_day && is(Kind::number) && peek().digits == 2 && !is(colon, 1) && !is(meridiem, 1) &&
          !is(Kind::unit, 1) && !peek().han && !is(Kind::month, 1) && !is(dash, 1) && !is(Kind::oclock, 1) &&
          !is(slash, 1) && !(is(an, 1) && joined(1)) && !is(dot, 1)) {
        m.year = full_year(peek().whole(), 2, m.two_digit_year);  // 14th April 15
        ++at_;
      } else if (!m.year && has_day && (is(dash) || is(slash) || is(comma)) && is(Kind::number, 1) &&
                 peek(1).digits == 2 && joined() && joined(1) && !is(colon, 2)) {
        m.year = full_year(peek(1).whole(), 2, m.two_digit_year);
        at_ += 2;
      }
    }
    if (m.year) sure(kStrong);
    return true;
  }

  // 2026-07-04, 7/4/2026, 25/05/2015, 2015.05.25, 7/4, 13/09, 5.12
  bool numeric_date(Moment& m) {
    if (m.month || m.day || m.year || m.holiday) return false;
    const Back back(*this);
    const auto plain = [&](std::size_t ahead) {
      return is(Kind::number, ahead) && peek(ahead).digits > 0 && (!peek(ahead).han);
    };
    const auto separator = [&](std::size_t ahead) {
      return is(slash, ahead) || is(dash, ahead) || is(dot, ahead) || is(colon, ahead);
    };
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
      sure(kFair);
      return true;
    }
    if (!separator(1) || !plain(2)) return back();
    const Kind sep = peek(1).kind;
    const bool spaced = !joined(1) || !joined(2);
    if (spaced && sep != slash) return back();
    const Token a = peek();
    const Token b = peek(2);
    // Not in the middle of a longer chain of numbers: 192.168.0.1, 133-03-03-2020.
    if (at_ > 0 && joined() &&
        (tokens_[at_ - 1].kind == sep || tokens_[at_ - 1].kind == Kind::number || tokens_[at_ - 1].kind == other ||
         tokens_[at_ - 1].kind == dash || tokens_[at_ - 1].kind == plus))
      return back();
    const bool three = is(sep, 3) && plain(4) && joined(3) == joined(1) && (joined(4) || spaced);
    if (three) {
      const Token c = peek(4);
      if (is(sep, 5) && plain(6) && joined(5) && sep != colon) return back();
      at_ += 5;
      int year = 0;
      int month = 0;
      int day = 0;
      if (a.digits == 4 && b.digits <= 2 && c.digits <= 2) {
        year = a.whole(), month = b.whole(), day = c.whole();
        if (month > 12 && day <= 12 && sep == slash) std::swap(month, day);
      } else if (sep != colon && (c.digits == 4 || (c.digits == 2 && a.digits <= 2 && b.digits <= 2))) {
        if (a.digits > 2 || b.digits > 2) return back();
        year = c.digits == 4 ? c.whole() : full_year(c.whole(), 2, m.two_digit_year);
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
      good_day(month, day, year);
      if (month < 1 || month > 12) month = 1;
      m.year = year, m.month = month, m.day = day;
      sure(kStrong);
      iso_time(m);
      return true;
    }
    if (sep == colon) return back();
    if (is(sep, 3) && joined(3)) return back();
    // 9/2012, 2012-09: a month
    if (a.digits <= 2 && b.digits == 4 && sep != dash && a.value >= 1 && a.value <= 12 && b.value > 1900) {
      at_ += 3;
      m.month = a.whole(), m.year = b.whole();
      sure(kFair);
      return true;
    }
    if (a.digits == 4 && b.digits == 2 && sep != dot && sep != slash && b.value >= 1 && b.value <= 12 &&
        a.value > 1900) {
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
      if (sep == slash) impossible("there is no such date");
      return back();
    }
    at_ += 3;
    if (is(percent) || (is(Kind::unit) && sep != dash)) return back();
    if (!good_day(month, day, std::nullopt)) return back();
    m.month = month, m.day = day;
    sure(sep == slash ? kFair : kWeak);
    return true;
  }

  // T09:30:00Z behind an ISO date
  void iso_time(Moment& m) {
    if (!(word("t") && joined() && is(Kind::number, 1))) return;
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
    zone_of_text(m);
    sure(kStrong);
  }

  // 2026-W24-4
  bool iso_week_date(Moment& m) {
    const Back back(*this);
    if (!is(Kind::number) || peek().digits != 4) return false;
    const int year = peek().whole();
    ++at_;
    accept(dash);
    if (!(word("w") && joined())) return back();
    ++at_;
    if (!is(Kind::number) || !joined() || peek().digits != 2 || peek().value < 1 || peek().value > 53) return back();
    m.year = year;
    m.iso_week = peek().whole();
    ++at_;
    m.weekday = 1;
    if (is(dash) && is(Kind::number, 1) && peek(1).digits == 1 && peek(1).value >= 1 && peek(1).value <= 7) {
      m.weekday = peek(1).whole();
      at_ += 2;
    }
    sure(kStrong);
    return true;
  }

  // 2026年5月1日, 5月1号, 15号, 5月, 2026年; 农历八月十五
  bool chinese_date(Moment& m) {
    if (m.day || m.holiday) return false;
    const Back back(*this);
    bool any = false;
    if (accept(lunar)) m.lunar = true, any = true;
    if (!m.year && !m.month && is(Kind::number) && is(year_mark, 1) && peek().digits >= 1 && peek().digits <= 4 &&
        peek().digits != 3 && peek().digits != 1) {
      const Token& y = peek();
      m.year = full_year(y.whole(), y.digits, m.two_digit_year);
      at_ += 2;
      any = true;
      accept(comma);
      while (accept(of)) {
      }
      if (accept(lunar)) m.lunar = true;
      // 2018年前, 2018年后 are for the caller
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
    } else if (!m.month && is(Kind::number) && is(month_mark, 1)) {
      const int month = peek().whole();
      if (peek().value != std::floor(peek().value)) return back();
      if (month < 1 || month > 12) {
        if (!any) return back();
        impossible("there is no such month");
        return true;
      }
      const Back month_back(*this);
      m.month = month;
      at_ += 2;
      any = true;
    }
    if (any && m.month) accept(of);
    const Back day_back(*this);
    if (is(lunar_day)) {
      if (!m.month) return back();
      m.day = peek().whole();
      m.lunar = true;
      ++at_;
      sure(kStrong);
      return true;
    }
    if (is(Kind::number) && is(day_mark, 1)) {
      const Token& d = peek();
      const int day = d.whole();
      const bool day_word = peek(1).word == "日";
      if (day < 1 || day > 31 || d.value != day) {
        if (m.month)
          impossible("the month has no such day");
        else
          return back();
      }
      if (!m.month && !m.month_offset && !any) {
        // 十日内, 两日后: a span. 三号楼, 一号选手, 5号线: a number of something.
        const Token& behind = peek(2);
        if (behind.kind == within || (day_word && (behind.kind == later || behind.kind == Kind::ago))) return back();
        if (d.han && day == 2 && d.word == "两") return back();
        if (!day_word && behind.kind == other && behind.han && joined(2) && !verb_behind_day(behind.word))
          return back();
      }
      at_ += 2;
      m.day = day;
      if (m.month && !m.lunar) good_day(*m.month, day, m.year);
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
      ++at_;
      if (!m.lunar) good_day(*m.month, *m.day, m.year);
      sure(kStrong);
      return true;
    }
    day_back();
    if (!any) return back();
    if (m.lunar && !m.month && !m.day) return back();
    sure(m.month && m.year ? kStrong : kFair);
    return true;
  }

  static bool verb_behind_day(std::string_view word) {
    // A sentence goes on behind 15号; what a number counts is a noun.
    static constexpr std::string_view kNouns[] = {"楼", "线", "选", "房", "店", "门", "院", "馆", "机",
                                                  "车", "台", "球", "位", "厅", "码", "桌", "柜", "城",
                                                  "文", "公", "站", "井", "路", "员", "床"};
    return std::find(std::begin(kNouns), std::end(kNouns), word) == std::end(kNouns);
  }

  // the 15th, the 20th of next month, 20 of this month, first day of march
  bool day_of_month(Moment& m) {
    if (m.day || m.month) return false;
    const Back back(*this);
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
      if (!m.weekday && !(on_before_ && m.clock)) return back();
      if (is(colon) || is(meridiem) || is(Kind::oclock) || is(slash) || is(dash) || is(Kind::unit) ||
          is(Kind::number) || is(dot))
        return back();
      if (day_word) return back();
      m.day = day;
      return true;
    }
    if (day_word && !article) return back();
    if (is(Kind::unit) || is(other) || is(Kind::weekday) || is(weekend) || is(Kind::number) || is(Kind::quarter) ||
        is(past) || is(Kind::half))
      return back();
    if (peek().kind == unit_kind()) return back();
    m.day = day;
    const bool word_form = !article && !m.weekday && !on_before_;
    const bool bare_word = word_form && tokens_[at_ - 1].digits == 0;
    if (bare_word) return back();
    sure(word_form ? kWeak : kFair);
    if (on_before_ || article) sure(kFair);
    return true;
  }
  static Kind unit_kind() { return Kind::unit; }

  // last friday of october, third Tuesday in May, 十月的第一个星期一, last day of March, 6月第3个星期日
  bool nth_of_month(Moment& m) {
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
    } else if (is(Kind::number) && peek().digits == 4 && linked) {
      period.year = peek().whole();
      ++at_;
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
    m.nth = nth;
    sure(kStrong);
    return true;
  }

  // Behind a Chinese month or year: 的第一个星期一, 第三周, 最后一天, 第十天
  bool chinese_nth(Moment& m) {
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

  bool quarter_of_year(Moment& m) {
    if (m.quarter || m.quarter_offset) return false;
    const Back back(*this);
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
    if (is(next) && (is(quarter, 1) || word("qtr", 1) || (is(Kind::unit, 1) && peek(1).unit() == Unit::quarter))) {
      m.quarter_offset = peek().whole();
      at_ += 2;
      sure(kFair);
      return true;
    }
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
  bool weekday_phrase(Moment& m) {
    if (m.weekday) {
      // "8pm in the evening, Sunday" never says it twice; 明天(周四) does, with brackets
      return false;
    }
    const Back back(*this);
    accept(the);
    if (is(open) && is(Kind::weekday, 1) && is(close, 2)) {
      at_ += 3;
      return m.has_day();
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
        if (upcoming) {
        } else {
          m.week = which;
          if (which < 0) m.explicit_past = true;
          if (which == 0) m.week = 0;
        }
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
    if (is(week_mark) && is(Kind::number, 1) && joined(1) && peek(1).han &&
        (peek(1).value == 8 || peek(1).value == 9) && !is(later, 2) && !is(ge, 2)) {
      at_ += 2;
      impossible("there is no such day of the week");
      m.weekday = 1;
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
    sure(loose ? kFair : kStrong);
    const Back more(*this);
    accept(comma);
    if (is(Kind::after) && is(next, 1) && peek(1).word == "next" && !is(Kind::unit, 2) && !is(Kind::weekday, 2)) {
      at_ += 2;
      m.weekday_shift = 1;
      return true;
    }
    const bool linked = accept(of) || accept(in);
    accept(the);
    if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).unit() == Unit::week) {
      m.week = is(following) ? 1 : peek().whole();
      at_ += 2;
      return true;
    }
    static_cast<void>(linked);
    more();
    return true;
  }

  // tomorrow, 明天, the day after tomorrow, the next day, this day
  bool relative_day(Moment& m) {
    if (m.day_offset) return false;
    const Back back(*this);
    accept(the);
    if (is(Kind::day)) {
      m.day_offset = peek().whole();
      if (*m.day_offset < 0) m.explicit_past = true;
      ++at_;
      sure(kStrong);
      return true;
    }
    if ((is(next) || is(following)) && is(Kind::unit, 1) && peek(1).word == "day") {
      m.day_offset = is(following) ? 1 : peek().whole();
      at_ += 2;
      sure(kFair);
      return true;
    }
    if (is(Kind::unit) && peek().unit() == Unit::day && is(Kind::after, 1) && is(Kind::day, 2)) {
      m.day_offset = peek(2).whole() + 1;
      at_ += 3;
      sure(kStrong);
      return true;
    }
    return back();
  }

  // next month, 下个月, this year, 明年, next weekend, 月底, end of the month
  bool period(Moment& m) {
    const Back back(*this);
    accept(the);
    Kind edge = other;
    if ((is(Kind::end) || is(begin) || is(middle)) && !peek().han) {
      edge = peek().kind;
      ++at_;
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
        if (u != Unit::day && u != Unit::week && u != Unit::month && u != Unit::year && u != Unit::quarter)
          return back();
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
    }
    if (is(next) && (is(Kind::end, 1) || is(begin, 1) || is(middle, 1)) && peek(1).value > 0) {  // 月底
      const int which = static_cast<int>(peek(1).value);
      if (edge != other) return back();
      m.edge = peek(1).kind;
      m.edge_unit = which == 1 ? Unit::month : which == 2 ? Unit::year : Unit::week;
      at_ += 2;
      sure(kStrong);
      return true;
    }
    if (is(next) || is(following)) {
      const int which = is(following) ? 1 : peek().whole();
      const Token& what = peek(1);
      if (what.kind == Kind::unit &&
          (what.unit() == Unit::month || what.unit() == Unit::year || what.unit() == Unit::week)) {
        at_ += 2;
        std::optional<int>& slot = what.unit() == Unit::month  ? m.month_offset
                                   : what.unit() == Unit::year ? m.year_offset
                                                               : m.week;
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
        m.offset = Span{{1, Unit::business_day}};
        m.calendar_offset = true;
        sure(kFair);
        return true;
      }
      if (what.kind == Kind::unit && (what.unit() == Unit::hour || what.unit() == Unit::minute) && which == 1) {
        at_ += 2;
        m.offset = Span{{1, what.unit()}};
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
      if (what.kind == season) {
        at_ += 2;
        m.season = what.whole();
        if (which != 0) m.year_offset = which;
        sure(kFair);
        return true;
      }
    }
    if (is(weekend) && (m.has_day() == false || m.week)) {
      ++at_;
      m.weekend = true;
      sure(kFair);
      return true;
    }
    return back();
  }

  bool holiday_phrase(Moment& m) {
    if (m.holiday || m.term || m.month || m.day || m.nth) return false;
    const Back back(*this);
    accept(the);
    if (is(term)) {
      m.term = peek().whole();
      ++at_;
      accept_word("节");
    } else if (is(holiday)) {
      if (peek().word == "eve") return back();
      m.holiday = peek().whole();
      ++at_;
      const Back behind(*this);
      if (is(next) && peek().han) behind();
    } else {
      return back();
    }
    if (!m.year) year_behind(m);
    sure(kStrong);
    return true;
  }

  bool year_only(Moment& m) {
    if (m.year || m.month || m.day || m.clock) return false;
    if (!is(Kind::number) || peek().digits != 4 || peek().han) return false;
    const int year = peek().whole();
    if (year < 1900 || year > 2200 || is(colon, 1) || is(dash, 1) || is(Kind::unit, 1) || is(meridiem, 1)) return false;
    ++at_;
    m.year = year;
    sure(kWeak);
    return true;
  }

  bool season_phrase(Moment& m) {
    if (m.season || m.half_year) return false;
    if (is(season)) {
      m.season = peek().whole();
      ++at_;
      if (!m.year && !m.year_offset) year_behind(m);
      sure(kWeak);
      return true;
    }
    if (is(half_year) && (m.year || m.year_offset)) {
      m.half_year = peek().whole();
      ++at_;
      sure(kFair);
      return true;
    }
    if (is(half_year)) {
      m.half_year = peek().whole();
      ++at_;
      sure(kWeak);
      return true;
    }
    return false;
  }

  // 底, 初, 中旬 behind a month or a year
  bool edge_behind(Moment& m) {
    if (m.edge || m.day || !(m.month || m.year || m.month_offset || m.year_offset || m.week)) return false;
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
      m.edge_unit = m.month || m.month_offset ? Unit::month : m.week ? Unit::week : Unit::year;
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

  // --- relative ---

  // in 5 minutes, 5 minutes later, 5分钟后, two days after christmas, a week from Friday, +2h
  bool offset_phrase(Moment& m) {
    if (m.offset || m.now) return false;
    const Back back(*this);
    bool lead = false;
    bool for_word = false;
    bool inside = false;
    if (is(pass)) {
      ++at_;
      lead = true;
      accept(about);
    } else if (is(within)) {
      if (peek().value < 0) return back();
      inside = true;
      lead = true;
      ++at_;
      while (accept(of)) {
      }
    } else if (is(in) || (is(Kind::after) && !m.clock)) {
      ++at_;
      lead = true;
      if (is(within)) ++at_;  // in less than an hour
      accept(the);
      if (is(next) && peek().word == "next") ++at_;
    } else if (is(for_)) {
      ++at_;
      for_word = true;
    } else if (is(next) && (peek().word == "next" || (peek().han && peek().value == 1)) &&
               (is(Kind::number, 1) || is(couple, 1))) {
      // next 2 weeks
      ++at_;
      inside = true;
      lead = true;
    }
    while (accept(about)) {
    }
    accept(tilde);
    int sign = 1;
    bool signed_form = false;
    if (!lead && (is(plus) || is(dash)) && is(Kind::number, 1) && joined(1) && (at_ == 0 || peek().space_before)) {
      sign = is(plus) ? 1 : -1;
      signed_form = true;
      ++at_;
    }
    Span amounts;
    if (!span(amounts)) {
      // "three fridays from now", "4 tuesdays from now"
      int n = 0;
      const Back weekdays_back(*this);
      if (!lead && is(Kind::number) && whole(n, 1, 50) && is(Kind::weekday)) {
        const int day = peek().whole();
        ++at_;
        if (accept(later) || (accept(from) && accept(Kind::now))) {
          m.weekday = day;
          m.weekday_shift = n - 1;
          sure(kStrong);
          return true;
        }
      }
      weekdays_back();
      return back();
    }
    accept(apostrophe);
    accept(time_word);                          // in three weeks time
    if (is(about) && peek().value == 1) ++at_;  // 左右
    if (signed_form) {
      m.offset = amounts;
      m.direction = sign;
      if (is(later)) ++at_;
      if (sign < 0) m.explicit_past = true;
      sure(kStrong);
      return true;
    }
    if (is(of) && is(within, 1)) ++at_;
    if (accept(within)) {
      m.offset = amounts;
      m.within = true;
      sure(kStrong);
      return true;
    }
    if (is(later)) {
      const bool zh = peek().han;
      if (peek().value == 1 && !(amounts.size() == 1)) return back();
      ++at_;
      static_cast<void>(zh);
      m.offset = amounts;
      sure(kStrong);
      return true;
    }
    if (is(Kind::ago)) {
      ++at_;
      m.offset = amounts;
      m.direction = -1;
      m.explicit_past = true;
      sure(kStrong);
      return true;
    }
    if (!lead || for_word || is(from) || is(Kind::after) || is(Kind::before)) {
      // "two weeks from tomorrow", "three days before Christmas"
      const Back anchor_back(*this);
      if (is(from) || is(Kind::after) || is(Kind::before)) {
        const int direction = is(Kind::before) ? -1 : 1;
        ++at_;
        if (accept(Kind::now)) {
          m.offset = amounts;
          sure(kStrong);
          return true;
        }
        Moment anchor;
        if (moment(anchor) && !anchor.empty()) {
          m.offset = amounts;
          m.direction = direction;
          m.anchor = {anchor};
          m.calendar_offset = true;
          sure(kStrong);
          return true;
        }
      }
      anchor_back();
    }
    if (lead) {
      m.offset = amounts;
      m.within = inside;
      sure(kStrong);
      return true;
    }
    return back();
  }

  bool now_phrase(Moment& m) {
    if (!is(Kind::now) || !m.empty()) return false;
    const Token& t = peek();
    ++at_;
    m.now = true;
    sure(t.word == "now" || t.word == "过" ? kFair : kStrong);
    if (is(plus) || is(dash)) {  // now + 1hour
      const Back back(*this);
      const int sign = is(plus) ? 1 : -1;
      ++at_;
      Span amounts;
      if (span(amounts)) {
        m.offset = amounts;
        m.direction = sign;
        sure(kStrong);
      } else {
        back();
      }
    }
    return true;
  }

  // this time tomorrow, tomorrow same time, 明天这个时候
  bool same_time_phrase(Moment& m) {
    if (m.same_time || m.clock) return false;
    const Back back(*this);
    accept(Kind::at);
    accept(the);
    if (is(same) && peek().han) {
      ++at_;
      m.same_time = true;
      return true;
    }
    if ((is(same) || (is(next) && peek().value == 0 && peek().word == "this")) && is(time_word, 1)) {
      at_ += 2;
      m.same_time = true;
      return true;
    }
    return back();
  }

  // One slot of a moment more.
  bool slot(Moment& m) {
    return iso_week_date(m) || offset_phrase(m) || now_phrase(m) || same_time_phrase(m) || nth_of_month(m) ||
           weekday_phrase(m) || quarter_of_year(m) || relative_day(m) || holiday_phrase(m) || numeric_date(m) ||
           named_month(m) || chinese_date(m) || chinese_nth(m) || period(m) || edge_behind(m) || time_of_day(m) ||
           part_of_day(m) || day_of_month(m) || zone_of_text(m) || season_phrase(m) || year_only(m);
  }

  // Words that join slots.
  bool connector() {
    const Token& t = peek();
    switch (t.kind) {
      case Kind::at:
      case for_:
        clock_expected_ = true;
        ++at_;
        return true;
      case Kind::on:
        on_before_ = true;
        ++at_;
        return true;
      case by:
      case in:
      case of:
      case the:
      case comma:
      case about:
      case exactly:
      case open:
      case close:
        if (t.kind == about || t.kind == by) clock_expected_ = true;
        ++at_;
        return true;
      case Kind::dash:
        // "6 jan 2017 - 6:37am"; a range has its own rule, tried before.
        ++at_;
        return true;
      default: return false;
    }
  }

  static constexpr int kConnectorsMost = 3;

  // "tomorrow after 4pm", "Friday before noon": the time itself, and nothing is said about the other end.
  bool open_slot(Moment& m) {
    if (!m.has_day() || !(is(Kind::after) || is(Kind::before) || is(until))) return false;
    const Back back(*this);
    ++at_;
    clock_expected_ = true;
    if (!slot(m)) return back();
    m.open_end = true;
    return true;
  }

  bool moment(Moment& m) {
    const bool expected = std::exchange(clock_expected_, false);
    const bool on_word = std::exchange(on_before_, false);
    const bool cantonese = std::exchange(m_cantonese_, false);
    bool any = false;
    while (true) {
      const Back back(*this);
      bool found = false;
      bool dash_used = false;
      // With as few joining words as possible: "in" may belong to what follows.
      for (int connectors = 0; connectors <= kConnectorsMost; ++connectors) {
        if ((m.has_day() || m.part) && !m.clock) clock_expected_ = true;
        found = slot(m) || open_slot(m);
        if (found) break;
        if (is(Kind::dash) && any) {
          if (dash_used || !(m.has_day() && !m.clock)) break;
          dash_used = true;
        }
        if (!connector()) break;
      }
      if (!found) {
        back();
        break;
      }
      any = true;
    }
    clock_expected_ = expected;
    on_before_ = on_word;
    m_cantonese_ = cantonese;
    return any;
  }

  // --- whole expressions ---

  bool recurrence(Expression& e) {
    const Back back(*this);
    if (is(often)) {
      e.shape = Shape::recurrence;
      e.recurrence = {1, peek().unit(), {}, false};
      if (peek().unit() == Unit::fortnight) e.recurrence = {2, Unit::week, {}, false};
      ++at_;
      sure(kStrong);
      moment(e.start);
      return true;
    }
    if (!is(every)) {
      // "on Mondays"
      accept(Kind::on);
      if (is(Kind::weekday) && peek().word.size() > 5 && peek().word.ends_with('s') && peek().word != "tues" &&
          peek().word != "wednes" && peek().word != "thurs") {
        e.shape = Shape::recurrence;
        e.recurrence = {1, Unit::week, {peek().whole()}, false};
        ++at_;
        moment(e.start);
        e.start.weekday.reset();
        sure(kStrong);
        return true;
      }
      return back();
    }
    const int skip = peek().whole();
    const bool zh_gap = peek().word == "每隔";
    ++at_;
    e.shape = Shape::recurrence;
    e.recurrence.every = 1;
    double n = 1;
    accept(and_);
    bool numbered = false;
    if (is(Kind::number) && !is(day_mark, 1)) {
      const Back number_back(*this);
      if (!number(n) || n < 1 || n > 10'000) return back();
      numbered = true;
      if (is(month_mark) && !is(ge)) {
        number_back();
        numbered = false;
        n = 1;
      }
    } else if (is(Kind::half)) {
      ++at_;
      n = 0.5;
    } else if (int which = 0; ordinal_number(which)) {
      n = which;
      numbered = true;
    } else if (word("other")) {
      ++at_;
      n = 2;
    }
    if (skip == 1 && !numbered && !zh_gap) n = 2;
    if (zh_gap && numbered) n += is(Kind::unit) && rank(peek().unit()) < 3 ? 0 : 1;
    accept(ge);
    if (is(Kind::half)) ++at_, n += 0.5;
    e.recurrence.every = std::max(1, static_cast<int>(n));
    if (is(Kind::weekday)) {
      e.recurrence.unit = Unit::week;
      while (is(Kind::weekday)) {
        e.recurrence.weekdays.push_back(peek().whole());
        ++at_;
        const Back more(*this);
        accept(comma);
        accept(and_);
        if (word("和")) ++at_;
        if (!is(Kind::weekday)) {
          more();
          break;
        }
      }
    } else if (is(Kind::unit)) {
      const Unit u = peek().unit();
      if (u == Unit::business_day)
        e.recurrence.weekdays_only = true, e.recurrence.unit = Unit::day;
      else
        e.recurrence.unit = u;
      ++at_;
    } else if (is(week_mark)) {
      ++at_;
      e.recurrence.unit = Unit::week;
      if (is(Kind::number) && peek().digits == 1 && peek().value <= 7 && !is(Kind::oclock, 1)) {
        e.recurrence.weekdays.push_back(peek().whole());
        ++at_;
      }
    } else if (is(month_mark)) {
      ++at_;
      e.recurrence.unit = Unit::month;
    } else if (is(year_mark)) {
      ++at_;
      e.recurrence.unit = Unit::year;
    } else if (is(day_mark) || is(Kind::day)) {
      ++at_;
      e.recurrence.unit = Unit::day;
    } else if (minute_mark == peek().kind) {
      ++at_;
      accept_word("钟");
      e.recurrence.unit = Unit::minute;
    } else if (is(weekend)) {
      ++at_;
      e.recurrence.unit = Unit::week;
      e.recurrence.weekdays = {6};
    } else if (is(Kind::part)) {
      e.recurrence.unit = Unit::day;
    } else if (is(Kind::month) || is(holiday) || is(Kind::ordinal) || is(quarter)) {
      e.recurrence.unit = is(quarter) ? Unit::quarter : Unit::year;
      if (is(quarter)) ++at_;
    } else {
      return back();
    }
    moment(e.start);
    if (e.start.weekday && e.recurrence.weekdays.empty()) e.recurrence.weekdays.push_back(*e.start.weekday);
    sure(kStrong);
    return true;
  }

  bool range_word() {
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

  bool expression(Expression& e) {
    const Back back(*this);
    while (is(please) || is(question)) ++at_;
    if (recurrence(e)) return true;
    const bool between_word = is(between);
    const bool from_word = is(from) || is(since);
    const bool until_word = is(until) || is(Kind::before);
    const bool after_word = is(Kind::after);
    bool opened = false;
    if (between_word || from_word || until_word) {
      ++at_;
      opened = true;
    } else if (after_word) {
      Moment trial;
      if (!moment(trial)) {
        ++at_;
        opened = true;
      } else {
        back();
      }
    }
    accept(by);
    if (opened) clock_expected_ = true;
    // all day, the whole week
    if (is(all) || (is(for_) && is(the, 1) && is(Kind::unit, 2))) {
      const Back all_back(*this);
      at_ += is(all) ? 1 : 2;
      accept(the);
      accept(dash);
      Unit u = Unit::day;
      if (unit(u, true, false)) {
        e.shape = Shape::duration;
        e.start.offset = Span{{1, u}};
        sure(kFair);
        return true;
      }
      all_back();
    }
    if (!moment(e.start)) {
      clock_expected_ = false;
      // A bare span is a duration.
      Span amounts;
      const Back span_back(*this);
      accept(about);
      if (span(amounts)) {
        e.shape = Shape::duration;
        e.start.offset = amounts;
        const Token& last = tokens_[at_ - 1];
        const bool letter = !last.han && is_letter_unit(last) && last.kind == Kind::unit;
        sure(letter ? kFair : kStrong);
        if (letter) sure(kFair);
        return true;
      }
      span_back();
      return back();
    }
    clock_expected_ = false;
    // The end of a range.
    const Back end_back(*this);
    bool ranged = false;
    if (between_word ? (accept(and_) || accept_word("和") || accept_word("与") || range_word()) : range_word()) {
      Moment end;
      clock_expected_ = true;
      if (moment(end) && !end.empty()) {
        e.shape = Shape::range;
        e.end = end;
        ranged = true;
      }
      clock_expected_ = false;
    }
    if (!ranged) {
      end_back();
      const Back for_back(*this);
      Span length;
      if (accept(for_) && span(length)) {
        e.shape = Shape::range;
        e.length = length;
      } else {
        for_back();
      }
    } else if (accept_word("之间") || accept_word("间")) {
    }
    if (opened && until_word) e.start.open_end = true;
    if ((is(later) || is(Kind::ago)) && peek().han && !e.start.offset) {  // 下午三点之前
      ++at_;
      e.start.open_end = true;
    }
    return true;
  }

  const std::vector<Token>& tokens_;
  bool chinese_;
  long& steps_;
  std::size_t at_ = 0;
  int strength_ = 0;
  std::string impossible_;
  bool clock_expected_ = false;  // a bare hour may come: "at", or a day stood before
  bool on_before_ = false;
  bool m_cantonese_ = false;
};

}  // namespace

std::optional<Expression> find_expression(const Tokens& tokens, bool chinese, long& steps) {
  Grammar grammar(tokens, chinese, steps);
  std::optional<Expression> best;
  const std::size_t count = tokens.list.size();
  const auto fluff = [&](std::size_t i) {
    const Kind kind = tokens.list[i].kind;
    return kind == please || kind == question || kind == dot || kind == comma || kind == quote || kind == close ||
           kind == open || kind == colon || kind == dash ||
           (kind == other && tokens.list[i].word.size() > 1 && !tokens.list[i].han &&
            static_cast<unsigned char>(tokens.list[i].word.front()) >= 0xE2);
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto found = grammar.at(i);
    if (!found || found->last <= i) continue;
    bool whole_text = true;
    for (std::size_t k = 0; k < i; ++k)
      whole_text = whole_text && (fluff(k) || tokens.list[k].kind == Kind::on || tokens.list[k].kind == Kind::at ||
                                  tokens.list[k].kind == the);
    for (std::size_t k = found->last; k < count; ++k) whole_text = whole_text && fluff(k);
    if (!whole_text && found->strength < kFair) continue;
    if (whole_text && found->strength < kWeak) continue;
    if (!best || found->strength > best->strength ||
        (found->strength == best->strength && found->last - found->first > best->last - best->first))
      best = found;
    i = found->last - 1;
  }
  return best;
}

}  // namespace belfry::when
