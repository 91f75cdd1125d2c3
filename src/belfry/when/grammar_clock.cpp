// Times of day: clocks, parts of the day, zones.
#include <algorithm>
#include <cmath>

#include "belfry/when/grammar.h"
#include "belfry/when/words.h"
#include "belfry/when/zone.h"

namespace belfry::when {

using enum Kind;

bool Grammar::meridiem_word(std::optional<int>& out) {
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
bool Grammar::trailing_part(Moment& m) {
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
  if (!is(Kind::part) || word("nights") || word("mornings")) return back();
  m.part = peek().part();
  ++at_;
  return true;
}

bool Grammar::set_clock(Moment& m, int hour, int minute, int second, std::optional<int> half_day, bool exact) {
  if (m.clock) return false;
  if (half_day && (hour > 12 || hour == 0) && !(hour <= 23 && half_day == 1 && exact)) {
    if (hour > 12) impossible({Wrong::What::half_day_hour, hour});
  }
  if (hour > 24 || minute > 59 || second > 59 || (hour == 24 && (minute > 0 || second > 0)))
    impossible({Wrong::What::time_of_day, hour, minute});
  m.clock = Clock{hour, minute, second, half_day, exact};
  return true;
}

// 9:30, 15:30:15.250, 9.30pm, 15h30
bool Grammar::digital_clock(Moment& m) {
  const Back back(*this);
  const std::size_t hour_at = at_;
  const Token& h = peek();
  if (h.kind != Kind::number || h.digits == 0 || h.digits > 2 || (h.by_word && !h.han)) return false;
  const int hour = h.whole();
  ++at_;
  int minute = 0;
  int second = 0;
  const bool colon_form = is(colon);
  const bool dot_form = is(dot) && joined() && is(Kind::number, 1) && peek(1).digits == 2;
  const bool h_form = word("h") && (joined() || (is(Kind::number, 1) && peek(1).digits == 2 && is(meridiem, 2)));
  if (!colon_form && !dot_form && !h_form) return back();
  ++at_;
  if (h_form && !(is(Kind::number) && joined() && peek().digits == 2)) {
    // 15h
    if (is(Kind::number) && peek().digits == 2 && peek().value < 60 && !is(Kind::unit, 1)) {  // 10 H 10
      minute = peek().whole();
      ++at_;
    }
    const bool span_of = hour_at > 0 && tokens_[hour_at - 1].kind == for_;
    if (minute == 0 && (!clock_expected_ || span_of) && (hour <= 12 || hour >= 24)) return back();  // 3h is a span
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
  if (h_form && joined() && (word("m") || word("min") || word("mins") || word("s"))) return back();  // 1h30m
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
    if (!clock_expected_ || hour > 23 || minute > 59 || is(percent)) return back();
  }
  if (!has_meridiem && is(exactly)) ++at_;
  if (!set_clock(m, hour, minute, second, half_day, true)) return back();
  sure(has_meridiem || seconds ? kStrong : kFair);
  return true;
}

// 9pm, 9 o'clock, 1045pm, 0930, noon is a part
bool Grammar::hour_clock(Moment& m) {
  const Back back(*this);
  const Token& h = peek();
  const std::size_t first = at_;
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
  const bool hundreds = h.by_word && n >= 100 && n <= 2400 && n % 100 < 60;
  if ((h.digits == 4 || hundreds) && n <= 2359 && n % 100 < 60 && word("hours") && clock_expected_) {
    ++at_;  // at 1800 hours, at fifteen hundred hours
    sure(kStrong);
    return set_clock(m, n / 100, n % 100, 0, std::nullopt, true) || back();
  }
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
    if (is(Kind::number) && peek().value == 0 && peek().by_word) {  // oh five
      ++at_;
      accept(dash);
    }
    if (is(Kind::number) && whole(minute, 1, 59)) {
      accept_word("minutes");
      const bool has = meridiem_word(half_day);
      if ((!has && !is(Kind::unit)) || has) {
        sure(has ? kStrong : clock_expected_ ? kFair : kWeak);
        if (set_clock(m, n, minute, 0, half_day, n > 12)) return true;
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
  // "dinner for two", "a table for 4": a number of people, unless "in the afternoon" follows
  if (first > 0 && tokens_[first - 1].kind == for_ && !(is(in) && is(the, 1) && is(Kind::part, 2))) return back();
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
    // "9 tomorrow evening", "7, this morning"
    accept(comma);
    const bool day_part =
        n <= 12 && (is(Kind::day) || is(Kind::weekday) || (is(next) && peek().value == 0)) && is(Kind::part, 1);
    part_back();
    if (day_part) {
      sure(kStrong);
      return set_clock(m, n, 0, 0, half_day, false) || back();
    }
  }
  // "9 tomorrow", "10 on Monday"
  const bool day_behind = is(Kind::day) || (is(Kind::on) && is(Kind::weekday, 1));
  const bool leads = first == 0 && day_behind && n >= 1;
  if (!clock_expected_ && !bare_hour_ && !leads) return back();
  if (is(Kind::unit) || is(weekend) || is(Kind::month) || is(slash) || is(percent) || is(other) ||
      (is(dash) && joined()) || is(Kind::number) || is(Kind::weekday)) {
    if (!(is(Kind::weekday))) return back();
  }
  // "at 4" is a time of day when the sentence ends or goes on with something that is no noun.
  const bool at_word = first > 0 && tokens_[first - 1].kind == Kind::at && tokens_[first - 1].word == "at";
  const bool alone = is(end_of_text) || is(to) || is(for_) || is(comma) || is(dot) || is(question) || is(please) ||
                     is(Kind::on) || is(about) || is(in);
  sure(at_word && alone && n >= 1 && n <= 23 ? kFair : kWeak);
  return set_clock(m, n, 0, 0, half_day, false) || back();
}

// half past nine, quarter to 7, twenty minutes past five, ten to noon
bool Grammar::past_clock(Moment& m) {
  if (!present_.has_any({past, Kind::half, Kind::after, to, until, of, Kind::before})) return false;
  const Back back(*this);
  int minutes = 0;
  const std::size_t first = at_;
  bool bare_digits = false;
  bool faint = false;
  const bool article = accept(an);
  if (article && is(Kind::unit) && peek().unit() == Unit::minute && is(past, 1)) {  // a minute past midnight
    ++at_;
    minutes = 1;
  } else if (accept(Kind::half)) {
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
      if (quarters > 3) return back();
      minutes = static_cast<int>(15 * quarters);
    } else if (counted && quarters >= 1 && quarters <= 59 && quarters == std::floor(quarters)) {
      minutes = static_cast<int>(quarters);
      if (is(Kind::unit) && peek().unit() == Unit::minute) {
        ++at_;
      } else if (minutes % 5 != 0) {
        return back();  // "4 to 2" is a score
      } else {
        bare_digits = !tokens_[first].by_word;
      }
    } else {
      return back();
    }
  }
  bool before_it = false;
  if (bare_digits && !(is(past) || (first > 0 && tokens_[first - 1].kind == Kind::at))) {
    // "10 to 3" may be a score: only as the whole text
    faint = true;
  }
  if (is(past) || is(Kind::after)) {
    ++at_;
  } else if (is(to) || is(until) || (word("of") && minutes % 15 == 0) || is(Kind::before)) {
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
    if (!ok && is(Kind::number) && peek().digits == 2 && peek().value > 24 && peek().value < 60 && minutes % 15 == 0 &&
        is(end_of_text, 1)) {  // quarter past 25
      impossible({Wrong::What::time_of_day, peek().whole(), 0});
      ++at_;
      target.clock = Clock{};
    } else if (!ok) {
      return back();
    }
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
  sure(faint ? kWeak : kStrong);
  return true;
}

// 九点半, 15时30分20秒, 3点45, 差5分3点
bool Grammar::chinese_clock(Moment& m) {
  if (!present_.has(Kind::oclock)) return false;
  const Back back(*this);
  const std::size_t first = at_;
  if (first > 0 && tokens_[first - 1].kind == di) return false;  // 第二点
  int short_of = 0;
  if (accept(next_to)) {
    if (is(Kind::number)) {
      if (!whole(short_of, 1, 59)) return back();
      if (accept(ke) || (is(Kind::unit) && peek().unit() == Unit::quarter_hour && accept(Kind::unit))) {
        short_of *= 15;
      } else if (is(Kind::unit) && peek().unit() == Unit::minute) {
        ++at_;
      } else {
        accept(minute_mark);
        accept_word("钟");
      }
    }
  }
  int hour = 0;
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
  if (is(exactly)) {
    ++at_;
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
      } else if (is(ge) && n < 10 && tokens_[at_ - 1].by_word) {  // NOLINT(bugprone-branch-clone): the order counts
        return back();                                            // 二点五个
      } else if (is(Kind::unit) || is(day_mark) || is(month_mark) || is(year_mark) || is(ge) || is(week_mark) ||
                 is(Kind::oclock) || is(slash) || is(colon)) {
        minutes_back();
      } else if (cantonese_ && n < 12) {
        minute = 5 * n;
      } else if (n < 10 && tokens_[at_ - 1].digits == 1) {
        return back();  // 五点二 is a number
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
  if (!set_clock(m, hour, minute, second, half_day, shi && hour > 12)) return back();
  // 两点建议, 一点都不: in words and with nothing around it, it is more often not a time.
  const bool bare = tokens_[first].by_word && tokens_[at_ - 1].kind == Kind::oclock && tokens_[at_ - 1].word == "点" &&
                    !m.part && !m.has_day() && short_of == 0;
  const bool counted = first > 0 && tokens_[first - 1].han && counts_points(tokens_[first - 1].word);
  sure(bare && (hour == 1 || counted || !goes_on(peek())) ? kWeak : kStrong);
  return true;
}

// 有两点, 补充三点
bool Grammar::counts_points(std::string_view word) {
  static constexpr std::string_view kWords[] = {"有", "充", "提", "就", "这", "那", "说",
                                                "明", "的", "差", "大", "多", "了"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Whether a sentence goes on behind a time as it does: with a verb, a person, a mark; not with what a number counts.
bool Grammar::goes_on(const Token& behind) {
  if (behind.kind != other || !behind.han) return true;
  static constexpr std::string_view kWords[] = {
      "提", "叫", "喊", "开", "去", "来", "到", "要", "我", "你",   "他", "她", "咱", "大", "在", "有", "是",
      "发", "回", "见", "就", "能", "可", "会", "给", "帮", "把",   "截", "结", "还", "吃", "打", "看", "做",
      "生", "放", "考", "面", "搬", "休", "请", "交", "集", "起",   "睡", "准", "左", "前", "后", "之", "以",
      "的", "，", "上", "下", "跟", "通", "联", "记", "别", "必",   "务", "记", "送", "取", "接", "拿", "买",
      "订", "约", "启", "关", "执", "跑", "运", "重", "备", "出发", "飞", "登", "乘", "坐", "到", "离", "走",
      "带", "陪", "找", "问", "说", "讲", "谈", "聊", "写", "读",   "听", "学", "练", "洗", "换", "付", "还",
      "充", "缴", "报", "签", "打", "寄", "收", "查", "复", "体",   "剪", "浇", "喂", "遛", "倒", "喝", "服"};
  return std::find(std::begin(kWords), std::end(kWords), behind.word) != std::end(kWords);
}

bool Grammar::shichen_clock(Moment& m) {
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

bool Grammar::time_of_day(Moment& m) {
  if (m.clock) return false;
  if (word("t") && is(Kind::number, 1) && joined(1) && peek(1).digits == 2 && is(colon, 2)) {  // T20:15
    iso_time(m);
    if (m.clock) return true;
  }
  return past_clock(m) || digital_clock(m) || chinese_clock(m) || shichen_clock(m) || hour_clock(m);
}

// morning, early morning, 晚上; noon
bool Grammar::part_of_day(Moment& m) {
  if (m.part) {
    // "8pm in the evening", "tomorrow this afternoon": said twice
    if (m.clock && is(Kind::part)) {
      ++at_;
      return true;
    }
    const bool midnight = *m.part == Part::midnight || (is(Kind::part) && peek().part() == Part::midnight);
    if (midnight && is(Kind::part) && (*m.part == Part::tonight || peek().part() == Part::tonight)) {
      ++at_;  // midnight tonight
      m.part = Part::midnight;
      m.day_offset = 0;
      return true;
    }
    return false;
  }
  const Back back(*this);
  const std::size_t first = at_;
  accept(the);
  int shade = 0;
  if (is(late) && is(Kind::at, 1) && is(Kind::part, 2)) {  // late at night
    at_ += 2;
    shade = 1;
  } else if (is(early) || is(late)) {
    shade = is(early) ? -1 : 1;
    ++at_;
    accept(dash);
    const Back in_back(*this);
    if (!(accept(in) && accept(the) && is(Kind::part))) in_back();
    if (is(next) && peek().value == 0) ++at_;                  // late this morning
    if (is(Kind::day) && is(Kind::part, 1) && !m.has_day()) {  // late last night, early tomorrow morning
      m.day_offset = peek().whole();
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
  if (is(meridiem) && m.has_day() && shade == 0 && peek().value < 2) {  // tomorrow pm
    if (m.clock && m.clock->meridiem) return back();
    if (m.clock) {
      m.clock->meridiem = peek().whole();
    } else {
      m.part = peek().whole() == 0 ? Part::morning : Part::afternoon;
    }
    ++at_;
    return true;
  }
  if (!is(Kind::part)) return back();
  const Token& t = peek();
  const Kind before_it = first > 0 ? tokens_[first - 1].kind : end_of_text;
  m.part = t.part();
  if (shade < 0 && m.part == Part::morning) m.part = Part::early_morning, shade = 0;
  m.part_shade = shade;
  cantonese_ = t.word == "晏昼" || t.word == "下昼" || t.word == "上昼";
  ++at_;
  accept(time_word);
  if (t.word == "早" || t.word == "晚" || t.word == "夜" || t.word == "night" || t.word == "eve" || t.word == "lunch" ||
      t.word == "dinner" || t.word == "dawn" || t.word == "dusk" || t.word == "breakfast" || t.word == "morning" ||
      t.word == "下班") {
    const bool led = before_it == in || before_it == Kind::at || before_it == Kind::before || before_it == by ||
                     before_it == Kind::after || (first < tokens_.size() && tokens_[first].kind == the);
    sure(led && !t.han ? kFair : kWeak);
  } else {
    sure(t.word == "tonight" || t.han ? kStrong : kFair);
  }
  // Midnight on a date is where that day begins; said behind the date, it is where it ends.
  // But on New Year's Eve everybody means its end.
  if (m.part == Part::midnight && (is(Kind::on) || is(of)) && !m.has_day() && !eve_follows()) m.part_shade = -1;
  if (m.part == Part::tonight || m.part == Part::end_of_day || m.part == Part::off_work) sure(kStrong);
  return true;
}

// Europe/Paris, as it is written in the text.
std::string_view Grammar::iana_name() {
  if (!is(slash, 1) || !joined(1) || !joined(2) || peek().digits > 0 || peek().han) return {};
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' || c == '-' || c == '+';
  };
  const std::size_t begin = peek().begin;
  std::size_t end = begin;
  while (end < text_.size() && part(text_[end])) ++end;
  const std::string_view name = text_.substr(begin, end - begin);
  if (name.empty() || name.front() < 'A' || name.front() > 'Z' || !Zone::named(name)) return {};
  while (at_ < tokens_.size() && tokens_[at_].begin < end) ++at_;
  return name;
}

// "on New Year's Eve", "on December 31"
bool Grammar::eve_follows() {
  const Back back(*this);
  ++at_;
  accept(the);
  const bool eve = is(holiday) && (peek().word.ends_with("eve") || peek().word == "nye");
  Moment day;
  const bool last_day = !eve && named_month(day) && day.month == 12 && day.day == 31;
  back();
  return eve || last_day;
}

std::string_view Grammar::as_written(const Token& t) const { return text_.substr(t.begin, t.end - t.begin); }

bool Grammar::is_capital(const Token& t) const { return text_[t.begin] >= 'A' && text_[t.begin] <= 'Z'; }

// The zone that has the name of a city; empty if none has.
std::string_view Grammar::zone_of_city(const std::string& city) {
  for (const char* const region : {"Asia/", "Europe/", "America/", "Africa/", "Australia/", "Pacific/", "Atlantic/"})
    if (const auto known = Zone::named(region + city)) return known->name();
  return {};
}

// Kathmandu time: the city of a zone.
std::string_view Grammar::city_zone() {
  if (!is(other) || peek().han || peek().word.size() < 4 || !is(time_word, 1) || peek(1).word != "time") return {};
  if (!is_capital(peek())) return {};
  const std::string_view known = zone_of_city(std::string(as_written(peek())));
  if (!known.empty()) at_ += 2;
  return known;
}

// "in Tokyo", "in New York": a place that has "… time" in the tables, or a zone of its name.
std::string_view Grammar::place_zone() {
  const auto is_name = [this](std::size_t ahead) {
    return is(other, ahead) && !peek(ahead).han && is_capital(peek(ahead));
  };
  for (const std::size_t words : {2u, 1u}) {
    if (!is_name(1) || !is_name(words)) continue;
    std::string place;
    std::string city;
    for (std::size_t i = 1; i <= words; ++i) {
      place.append(peek(i).word).append(" ");
      city.append(i > 1 ? "_" : "").append(as_written(peek(i)));
    }
    const Word* known = Dictionary::get().word(place + "time");
    const std::string_view name = known && known->kind == Kind::zone ? region_name(known->value) : zone_of_city(city);
    if (name.empty()) continue;
    at_ += 1 + words;
    return name;
  }
  return {};
}

bool Grammar::zone_of_text(Moment& m) {
  if (m.zone_minutes || !m.region.empty()) return false;
  const Back back(*this);
  const bool bracket = accept(open);
  if (const std::string_view name = iana_name(); !name.empty()) {
    m.region = name;
    if (bracket) accept(close);
    return true;
  }
  if (const std::string_view name = m.clock ? city_zone() : std::string_view(); !name.empty()) {
    m.region = name;
    return true;
  }
  // 3pm Gotham time: to leave it out would be another time
  if (m.clock && is(other) && is_capital(peek()) && is(time_word, 1) && word("time", 1)) {
    impossible({Wrong::What::zone});
    at_ += 2;
    return true;
  }
  if (is(Kind::zone) && peek().value >= kRegion) {
    const bool letters = peek().word == "et" || peek().word == "pt";
    const bool coast =
        peek().word == "eastern" || peek().word == "central" || peek().word == "mountain" || peek().word == "pacific";
    if ((letters || coast) && !m.clock) return back();
    m.region = region_name(peek().whole());
    ++at_;
    if (bracket) accept(close);
    return true;
  }
  if (m.clock && is(in)) {  // 3pm in New York
    if (const std::string_view name = place_zone(); !name.empty()) {
      m.region = name;
      return true;
    }
    return back();
  }
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
    const bool tight = joined() && (is(plus) || iso_);  // 15:00+08; 15:00-16 is rather a range
    const Back sign_back(*this);
    ++at_;
    const Token& n = peek();
    if (n.kind == Kind::number && n.digits == 4 && joined() && n.value <= 1400 && n.whole() % 100 < 60 && !is(dot, 1) &&
        !is(dash, 1) && !is(slash, 1) && !is(year_mark, 1)) {
      minutes = sign * (n.whole() / 100 * 60 + n.whole() % 100);
      ++at_;
      found = true;
    } else if (n.kind == Kind::number && n.digits > 0 && n.digits <= 2 && joined()) {
      minutes = sign * n.whole() * 60;
      ++at_;
      const bool colon_form = is(colon) && is(Kind::number, 1) && peek(1).digits == 2;
      const int rest = colon_form ? peek(1).whole() : 0;
      if (colon_form || named || (tight && n.digits == 2)) {
        if (n.value > 14 || rest > 59) impossible({Wrong::What::offset, sign * n.whole(), rest});
        minutes += sign * rest;
        if (colon_form) at_ += 2;
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

}  // namespace belfry::when
