// Moments, which are made of days and times of day, and whole expressions, which are made of moments.
#include "belfry/when/grammar.h"

#include <bit>
#include <cmath>

namespace belfry::when {

using enum Kind;

// in 5 minutes, 5 minutes later, 5分钟后, two days after christmas, a week from Friday, +2h
bool Grammar::offset_phrase(Moment& m) {
  if (m.offset || m.now) return false;
  const Back back(*this);
  bool lead = false;
  bool for_word = false;
  if (is(pass)) {
    ++at_;
    lead = true;
    accept(about);
  } else if (is(within)) {
    if (peek().value < 0) return back();
    lead = true;
    ++at_;
    while (accept(of)) {
    }
  } else if (is(in) || (is(Kind::after) && !m.clock)) {
    ++at_;
    lead = true;
    if (is(within)) ++at_;                                              // in less than an hour
    if (is(the) && is(Kind::number, 1) && word("s", 2)) return back();  // in the 90s
    accept(the);
    if (is(next) && peek().word == "next") ++at_;
  } else if (is(for_)) {
    ++at_;
    for_word = true;
  }
  while (accept(about) || accept(exactly)) {
  }
  accept(tilde);
  int sign = 1;
  bool signed_form = false;
  if (!lead && (is(plus) || is(dash)) && is(Kind::number, 1) && (joined(1) || at_ == 0) &&
      (at_ == 0 || peek().space_before)) {
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
      if (accept(Kind::ago)) {
        m.weekday = day;
        m.last_occurrence = true;
        m.weekday_shift = 1 - n;
        m.explicit_past = true;
        sure(kStrong);
        return true;
      }
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
    m.offset = keep(amounts);
    m.direction = sign;
    if (is(later)) ++at_;
    if (sign < 0) m.explicit_past = true;
    sure(kStrong);
    return true;
  }
  if (is(of) && is(within, 1)) ++at_;
  if (accept(within)) {
    m.offset = keep(amounts);
    sure(kStrong);
    return true;
  }
  if (is(later)) {
    if (peek().value == 1 && amounts.size() != 1) return back();
    ++at_;
    m.offset = keep(amounts);
    sure(kStrong);
    return true;
  }
  if (is(Kind::ago)) {
    ++at_;
    m.offset = keep(amounts);
    m.direction = -1;
    m.explicit_past = true;
    sure(kStrong);
    return true;
  }
  if (!lead || for_word || is(from) || is(Kind::after) || is(Kind::before)) {
    // "two weeks from tomorrow", "three days before Christmas"; "for two weeks from tomorrow" is a range
    const Back anchor_back(*this);
    if (is(from) && !is(Kind::now, 1) && (for_word || peek().word.starts_with("starting"))) return back();
    if (is(from) || is(Kind::after) || is(Kind::before)) {
      const int direction = is(Kind::before) ? -1 : 1;
      ++at_;
      if (accept(Kind::now)) {
        m.offset = keep(amounts);
        sure(kStrong);
        return true;
      }
      Moment anchor;
      if (moment(anchor) && !anchor.empty()) {
        m.offset = keep(amounts);
        m.direction = direction;
        m.anchor = keep(anchor);
        sure(kStrong);
        return true;
      }
    }
    anchor_back();
  }
  // a week tomorrow, two weeks on Friday
  const bool weeks =
      amounts.size() == 1 && (amounts.front().unit == Unit::week || amounts.front().unit == Unit::fortnight);
  if (!lead && weeks && is(Kind::on) && is(Kind::weekday, 1) &&
      amounts.front().count == std::floor(amounts.front().count) && amounts.front().count < 100) {
    m.weekday = peek(1).whole();
    m.weekday_shift = static_cast<int>(amounts.front().count) * (amounts.front().unit == Unit::fortnight ? 2 : 1);
    at_ += 2;
    sure(kStrong);
    return true;
  }
  if (!lead && weeks && is(Kind::day)) {
    Moment anchor;
    anchor.day_offset = peek().whole();
    ++at_;
    m.offset = keep(amounts);
    m.anchor = keep(anchor);
    sure(kStrong);
    return true;
  }
  if (lead) {
    m.offset = keep(amounts);
    sure(kStrong);
    return true;
  }
  return back();
}

bool Grammar::now_phrase(Moment& m) {
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
      m.offset = keep(amounts);
      m.direction = sign;
      sure(kStrong);
    } else {
      back();
    }
  }
  return true;
}

// this time tomorrow, tomorrow same time, 明天这个时候
bool Grammar::same_time_phrase(Moment& m) {
  if (m.same_time || m.clock) return false;
  const Back back(*this);
  accept(Kind::at);
  accept(the);
  if (is(Kind::now) && (word("此时") || word("at this time")) && m.has_day()) {
    ++at_;
    m.same_time = true;
    return true;
  }
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

constexpr KindSet kRangeWords{Kind::to, Kind::until, Kind::tilde, Kind::dash, Kind::between};

constexpr Grammar::Rule Grammar::kRules[] = {
    {&Grammar::iso_week_date, {Kind::number}, {Kind::unit, Kind::other}},
    {&Grammar::reach_phrase,
     {Kind::in, Kind::on, Kind::the, Kind::next, Kind::past, Kind::within, Kind::ago},
     {Kind::counts_time}},
    {&Grammar::rest_phrase, {Kind::the, Kind::rest}, {Kind::rest}},
    {&Grammar::offset_phrase,
     {Kind::pass, Kind::within, Kind::in, Kind::after, Kind::for_, Kind::about, Kind::exactly, Kind::tilde, Kind::plus,
      Kind::dash, Kind::number, Kind::an, Kind::the, Kind::half, Kind::quarter, Kind::couple},
     {Kind::counts_time}},
    {&Grammar::length_phrase,
     {Kind::for_, Kind::number, Kind::an, Kind::the, Kind::half, Kind::quarter, Kind::couple},
     {Kind::counts_time}},
    {&Grammar::now_phrase, {Kind::now}, {}},
    {&Grammar::same_time_phrase,
     {Kind::at, Kind::the, Kind::same, Kind::next, Kind::now},
     {Kind::same, Kind::time_word, Kind::now}},
    {&Grammar::nth_of_month,
     {Kind::the, Kind::next, Kind::ordinal, Kind::number, Kind::unit},
     {Kind::weekday, Kind::unit}},
    {&Grammar::this_period, {Kind::the, Kind::other}, {Kind::unit}},
    {&Grammar::unit_beside, {Kind::the, Kind::an, Kind::unit, Kind::weekend}, {Kind::after, Kind::before}},
    {&Grammar::weekday_phrase,
     {Kind::the, Kind::open, Kind::past, Kind::next, Kind::following, Kind::week_mark, Kind::weekday},
     {Kind::weekday, Kind::week_mark, Kind::unit, Kind::weekend}},
    {&Grammar::day_range,
     {Kind::from, Kind::between, Kind::the, Kind::ordinal, Kind::number, Kind::unit, Kind::to, Kind::until, Kind::tilde,
      Kind::dash},
     kRangeWords},
    {&Grammar::clock_range,
     {Kind::in, Kind::between, Kind::from, Kind::at, Kind::about, Kind::number, Kind::part, Kind::next_to},
     kRangeWords},
    {&Grammar::quarter_of_year,
     {Kind::number, Kind::other, Kind::the, Kind::ordinal, Kind::unit, Kind::next, Kind::past, Kind::di},
     {Kind::has_quarter}},
    {&Grammar::relative_day, {Kind::the, Kind::day, Kind::next, Kind::following}, {}},
    {&Grammar::holiday_phrase, {Kind::the, Kind::term, Kind::holiday}, {Kind::term, Kind::holiday}},
    {&Grammar::numbered_week, {Kind::the, Kind::unit, Kind::di}, {Kind::unit, Kind::week_mark}},
    {&Grammar::century,
     {Kind::the, Kind::within, Kind::number, Kind::next, Kind::ordinal, Kind::unit},
     {Kind::has_century}},
    {&Grammar::year_range, {Kind::between, Kind::from, Kind::in, Kind::number}, kRangeWords},
    {&Grammar::numeric_date, {Kind::next, Kind::number}, {}},
    {&Grammar::named_month,
     {Kind::number, Kind::the, Kind::ordinal, Kind::unit, Kind::next, Kind::month},
     {Kind::month}},
    {&Grammar::chinese_date,
     {Kind::lunar, Kind::era, Kind::number, Kind::lunar_month, Kind::lunar_day},
     {Kind::lunar, Kind::era, Kind::year_mark, Kind::month_mark, Kind::day_mark, Kind::lunar_month, Kind::lunar_day,
      Kind::month}},
    {&Grammar::chinese_nth, {Kind::of, Kind::other, Kind::di}, {Kind::di, Kind::other}},
    {&Grammar::period,
     {Kind::the, Kind::end, Kind::begin, Kind::middle, Kind::late, Kind::early, Kind::later, Kind::next,
      Kind::following, Kind::past, Kind::same, Kind::weekend},
     {}},
    {&Grammar::edge_behind, {Kind::of, Kind::ten_days, Kind::end, Kind::begin, Kind::middle, Kind::next}, {}},
    {&Grammar::weekday_and_day, {Kind::number}, {Kind::weekday}},
    {&Grammar::year_at_the_end, {Kind::number}, {}},
    {&Grammar::time_of_day,
     {Kind::number, Kind::an, Kind::half, Kind::quarter, Kind::next_to, Kind::shichen, Kind::other},
     {}},
    {&Grammar::part_of_day, {Kind::the, Kind::early, Kind::late, Kind::later, Kind::meridiem, Kind::part}, {}},
    {&Grammar::day_of_month, {Kind::the, Kind::ordinal, Kind::number, Kind::unit}, {}},
    {&Grammar::zone_of_text, {Kind::open, Kind::zone, Kind::plus, Kind::dash, Kind::other, Kind::in}, {}},
    {&Grammar::season_phrase, {Kind::season, Kind::half_month, Kind::half_year}, {}},
    {&Grammar::year_only, {Kind::the, Kind::unit, Kind::number}, {}},
};

namespace {

template <class Rules, class Set>
constexpr std::array<std::uint64_t, kKinds> by_kind(const Rules& rules, Set set) {
  std::array<std::uint64_t, kKinds> table{};
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    for (std::size_t rule = 0; rule < std::size(rules); ++rule)
      if ((rules[rule].*set).has(static_cast<Kind>(kind))) table[kind] |= std::uint64_t{1} << rule;
  return table;
}

}  // namespace

constexpr std::array<std::uint64_t, kKinds> Grammar::kRulesByStart = by_kind(kRules, &Rule::starts);
constexpr std::array<std::uint64_t, kKinds> Grammar::kRulesByNeed = by_kind(kRules, &Rule::needs);
constexpr std::uint64_t Grammar::kRulesWithoutNeed = [] {
  std::uint64_t found = 0;
  for (std::size_t rule = 0; rule < std::size(kRules); ++rule)
    if (kRules[rule].needs.empty()) found |= std::uint64_t{1} << rule;
  return found;
}();

Grammar::Grammar(const Tokens& tokens, bool chinese, Kept& kept)
    : text_(tokens.text),
      tokens_(tokens.all()),
      chinese_(chinese),
      kept_(kept),
      steps_left_(steps_most(tokens.text)),
      rules_(kRulesWithoutNeed) {
  look_at_the_whole();
}

// Most texts lack what most rules are about.
void Grammar::look_at_the_whole() {
  const auto note = [this](Kind kind) {
    present_.add(kind);
    rules_ |= kRulesByNeed[static_cast<std::size_t>(kind)];
  };
  const auto letter = [](const Token& t, char c) { return t.word.size() == 1 && t.word.front() == c; };
  bool present_weekday = false;
  for (const Token& t : tokens_) {
    note(t.kind);
    switch (t.kind) {
      case Kind::unit:
        note(counts_time);
        if (t.unit() == Unit::decade || t.unit() == Unit::century || letter(t, 's')) note(has_century);
        if (t.unit() == Unit::quarter || letter(t, 'h')) note(has_quarter);
        if (t.unit() == Unit::business_day && (t.han || t.word.ends_with('s'))) note(recurs);
        break;
      case Kind::part:
        if (t.word == "nights" || t.word == "晚") note(counts_time);
        break;
      case Kind::weekday:
        if (t.word == "mon") note(counts_time);
        if (t.word.ends_with('s') || present_weekday) note(recurs);  // Mondays; Tuesday and Thursday
        present_weekday = true;
        break;
      case weekend:
        note(counts_time);
        if (t.word.ends_with('s')) note(recurs);
        break;
      case quarter:
        note(counts_time);
        note(has_quarter);
        break;
      case minute_mark:
      case day_mark:
      case week_mark:
      case year_mark:
      case month_mark:
      case ke:
      case apostrophe:
      case quote: note(counts_time); break;
      case every:
      case often:
      case once: note(recurs); break;
      case pass:
        if (t.value == 1) note(recurs);  // 隔周
        break;
      case Kind::other:
        if (letter(t, 'q') || letter(t, 'h') || t.word == "qtr") note(has_quarter);
        if (letter(t, 's')) note(has_century);
        break;
      default: break;
    }
  }
  if (present_.has(Kind::weekday) && present_.has_any({later, Kind::ago, from}))
    note(counts_time);  // three Fridays from now
}

// One slot of a moment more.
bool Grammar::slot(Moment& m) {
  if (peek().word.starts_with('p') && m.empty()) {
    const Back back(*this);
    Span ignored;
    const bool iso = iso_duration(ignored);
    back();
    if (iso) return false;  // a span by itself
  }
  const std::uint64_t rules = rules_ & kRulesByStart[static_cast<std::size_t>(peek().kind)];
  if (rules == 0) return false;
  const Moment before = m;
  for (std::uint64_t left = rules; left != 0; left &= left - 1) {
    if ((this->*kRules[std::countr_zero(left)].read)(m)) return true;
    m = before;  // a rule that failed may have begun to fill it in
  }
  return false;
}

// Words that join slots.
bool Grammar::connector() {
  const Token& t = peek();
  if (t.kind == open && is(except, 2)) return false;  // 每天8点（周日除外）
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
    case from:
      if (!clock_may_follow_) return false;
      clock_expected_ = true;
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

// "tomorrow after 4pm", "Friday before noon": the time itself, and nothing is said about the other end.
bool Grammar::open_slot(Moment& m) {
  if (!m.has_day() || !(is(Kind::after) || is(Kind::before) || is(until))) return false;
  const Back back(*this);
  const bool until_word = is(until);
  ++at_;
  clock_expected_ = true;
  const Moment before = m;
  if (!slot(m)) return back();
  if (until_word && !m.clock && !m.part) {  // from tomorrow until Sunday
    m = before;
    return back();
  }
  return true;
}

bool Grammar::moment(Moment& m) {
  if (depth_ >= kDepthMax) return false;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  const bool expected = std::exchange(clock_expected_, false);
  const bool on_word = std::exchange(on_before_, false);
  const bool cantonese = std::exchange(cantonese_, false);
  bool any = false;
  while (true) {
    const Back back(*this);
    bool found = false;
    bool dash_used = false;
    // With as few joining words as possible: "in" may belong to what follows.
    for (int connectors = 0; connectors <= kConnectorsMost; ++connectors) {
      clock_may_follow_ = m.has_day() && !m.clock;
      if ((m.has_day() || m.part) && !m.clock) clock_expected_ = true;
      const bool had_clock = m.clock && !m.has_day();
      found = slot(m) || open_slot(m);
      if (found && had_clock && m.has_day()) m.day_behind_clock = true;
      if (found) break;
      if (is(Kind::dash) && any) {
        // "6 jan 2027 - 6:37am"; another date behind it is the end of a range
        const bool clock_behind = is(Kind::number, 1) && (is(colon, 2) || is(meridiem, 2) || is(Kind::oclock, 2));
        const bool date_behind = m.weekday && (is(Kind::month, 1) || is(open, 1));  // Friday-Jun-15
        if (dash_used || !(m.has_day() && !m.clock) || !(clock_behind || date_behind)) break;
        dash_used = true;
      }
      if (!connector()) break;
    }
    if (!found) {
      back();
      break;
    }
    any = true;
    if (is(end_of_text)) break;
  }
  clock_expected_ = expected;
  on_before_ = on_word;
  cantonese_ = cantonese;
  return any;
}

// What only one end says holds for both: 10 August - 12 September 2027, 9:30 - 11:00 on Thursday.
void Grammar::share_between(Moment& start, Moment& end) {
  if (end.year && !start.year && start.month) start.year = end.year;
  if (end.year_offset && !start.year_offset && start.month) start.year_offset = end.year_offset;
  if (start.year && !end.year && end.month && start.month && *end.month >= *start.month) end.year = start.year;
  if (!start.zone_minutes && start.region.empty()) start.zone_minutes = end.zone_minutes, start.region = end.region;
  if (start.clock && end.clock) share_half_day(*start.clock, *end.clock);
  if (start.clock && !start.has_day() && !start.offset && end.clock && end.has_day() && end.day_behind_clock) {
    const std::optional<Clock> clock = start.clock;
    const std::optional<Part> part = start.part ? start.part : end.part;
    start = end;
    start.clock = clock;
    start.part = part;
  }
  if (start.part && start.clock && end.clock && !end.part && !end.has_day()) end.part = start.part;
}

bool Grammar::expression(Expression& e) {
  const Back back(*this);
  while (is(please) || is(question)) ++at_;
  if (is(later) && word("from now") && is(until, 1)) {  // from now until 5pm
    const Back now_back(*this);
    at_ += 2;
    Moment end;
    clock_expected_ = true;
    const bool ends = moment(end) && !end.is_range();
    clock_expected_ = false;
    if (ends) {
      e.shape = Shape::range;
      e.start.now = true;
      e.end = keep(end);
      sure(kStrong);
      return true;
    }
    now_back();
  }
  if (is(later) && word("later") && is(Kind::day, 1) && peek(1).value >= 0) {  // later today
    impossible({Wrong::What::vague});
    e.start.day_offset = peek(1).whole();
    at_ += 2;
    sure(kStrong);
    return true;
  }
  if (present_.has(recurs)) {
    const Back repeat_back(*this);
    if (recurrence(e)) return true;
    if (time_of_day(e.start)) {  // 5pm on the last Friday of every month
      accept(comma);
      if (recurrence(e)) return true;
    }
    repeat_back();
    e.start = {};
  }
  const bool between_word = is(between);
  const bool from_word = is(from) || is(since);
  const bool until_word = is(until) || is(Kind::before);
  const bool after_word = is(Kind::after);
  bool opened = false;
  if ((between_word || from_word) && moment(e.start) && e.start.is_range()) {  // said in one piece
    e.shape = Shape::range;
    if (!accept_word("之间")) accept_word("间");
    return true;
  }
  back();
  e.start = {};
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
  bare_hour_ = opened && is(Kind::number) && (((until_word || after_word) && !is(Kind::unit, 1)) || is(for_, 1));
  // all day, the whole week
  if (is(all) || (is(for_) && is(the, 1) && is(Kind::unit, 2))) {
    const Back all_back(*this);
    at_ += is(all) ? 1 : 2;
    accept(the);
    accept(dash);
    Unit u = Unit::day;
    if (unit(u, true, false)) {
      e.shape = Shape::duration;
      e.start.offset = keep(Span({1, u}));
      sure(kFair);
      return true;
    }
    all_back();
  }
  const bool any = moment(e.start);
  bare_hour_ = false;
  if (!any) {
    clock_expected_ = false;
    // A bare span is a duration.
    Span amounts;
    const Back span_back(*this);
    const bool for_word = !opened && accept(for_);
    accept(about);
    accept(exactly);
    if (span(amounts) || iso_duration(amounts)) {
      e.shape = Shape::duration;
      e.start.offset = keep(amounts);
      const Token& last = tokens_[at_ - 1];
      // "a second opinion", 一分货: too little to be sure in a sentence.
      const bool slight = last.word == "second" || last.word == "分" || last.word == "秒" || last.word == "点" ||
                          last.kind == quarter || (last.word == "minute" && tokens_[at_ - 2].kind == an);
      if (word("old")) return back();  // 5 years old
      const bool letter = !last.han && is_letter_unit(last) && last.kind == Kind::unit;
      sure(slight || (letter && !for_word) ? kWeak : letter ? kFair : kStrong);
      // "2d 03:00": on that day, at that time
      Moment time;
      const Back time_back(*this);
      if (rank(amounts.back().unit) >= rank(Unit::day) && digital_clock(time)) {
        e.shape = Shape::moment;
        e.start.clock = time.clock;
      } else {
        time_back();
      }
      return true;
    }
    span_back();
    return back();
  }
  clock_expected_ = false;
  if (is(end_of_text) && !opened && !e.start.is_range()) return true;  // most texts: all that follows wants more
  // "9am every day", "at noon on weekdays"
  if (present_.has(recurs) && !opened && e.start.has_time() && !e.start.has_day() && !e.start.is_range()) {
    Expression repeated;
    repeated.start = e.start;
    const Back behind_back(*this);
    accept(comma);
    if (recurrence(repeated)) {
      e.shape = repeated.shape;
      e.start = repeated.start;
      e.recurrence = repeated.recurrence;
      return true;
    }
    behind_back();
  }
  if (e.start.is_range()) {
    e.shape = Shape::range;
    if (!accept_word("之间")) accept_word("间");
    return true;
  }
  // 2027年的前两周, 今年最后4个月: a part of a period
  const Moment& whole_period = e.start;
  const bool only_period =
      (whole_period.year || whole_period.year_offset || whole_period.month || whole_period.month_offset) &&
      !whole_period.day && !whole_period.clock && !whole_period.part && !whole_period.weekday &&
      !whole_period.holiday && !whole_period.edge && !whole_period.nth && !whole_period.offset;
  if (only_period && tokens_[at_ - 1].han) {
    const Back part_back(*this);
    while (accept(of)) {
    }
    const bool head = is(Kind::ago) && word("前");
    const bool tail = word("最") && word("后", 1);
    Span amounts;
    if (head || tail) at_ += head ? 1 : 2;
    if ((head || tail) && (is(Kind::number) || is(couple)) && span(amounts)) {
      e.shape = Shape::range;
      e.start.length = keep(amounts);
      if (tail) {
        Moment end = e.start;
        end.length = nullptr;
        end.after = true;
        Moment last;
        last.offset = keep(amounts);
        last.direction = -1;
        last.anchor = keep(end);
        last.length = keep(amounts);
        e.start = last;
      }
      sure(kStrong);
      return true;
    }
    part_back();
  }
  // 春节前三天, 中秋节后一天
  if ((is(later) || is(Kind::ago)) && peek().han && (e.start.has_day() || e.start.clock) && !e.start.offset &&
      (is(Kind::number, 1) || is(couple, 1) || is(Kind::half, 1) || is(di, 1))) {
    const Back beside_back(*this);
    const int direction = is(later) ? 1 : -1;
    ++at_;
    int first = 0;
    if (const Back nth_back(*this); chinese_ordinal(first) && first == 1 && is(Kind::weekday)) {  // 元旦后第一个周一
      Moment near;
      near.weekday = peek().whole();
      near.beside = direction;
      near.anchor = keep(e.start);
      ++at_;
      e.start = near;
      sure(kStrong);
      return true;
    } else {
      nth_back();
    }
    accept(di);  // 国庆节后第一天
    Span amounts;
    if (span(amounts)) {
      Moment shifted;
      shifted.offset = keep(amounts);
      shifted.direction = direction;
      shifted.anchor = keep(e.start);
      e.start = shifted;
      Moment time;
      const Back time_back(*this);
      if (moment(time) && time.has_time() && !time.has_day()) {
        e.start.clock = time.clock;
        e.start.part = time.part;
      } else {
        time_back();
      }
      sure(kStrong);
      return true;
    }
    beside_back();
  }
  // The end of a range.
  const Back end_back(*this);
  bool ranged = false;
  // ISO 8601: 2026-07-20T09:00/PT90M, 2026-07-20/2026-07-24
  const bool iso = e.start.year && e.start.month && e.start.day && is(slash) && joined();
  if (iso) {
    ++at_;
    Span length;
    if (iso_duration(length)) {
      e.shape = Shape::range;
      e.start.length = keep(length);
      return true;
    }
  }
  if (iso || range_joint(between_word)) {
    Moment end;
    clock_expected_ = true;
    range_end_ = true;
    const bool found = moment(end);
    range_end_ = false;
    if (found && !end.empty() && !end.is_range()) {
      e.shape = Shape::range;
      share_between(e.start, end);
      e.end = keep(end);
      ranged = true;
    }
    clock_expected_ = false;
  }
  if (!ranged) {
    end_back();
  } else if (!accept_word("之间")) {
    accept_word("间");
  }
  if (opened && e.start.clock && strength_ == kWeak) sure(kFair);  // "no later than 4"
  if (opened && after_word && !e.start.day && !e.start.clock && !e.start.part &&
      (e.start.year || e.start.month || e.start.month_offset || e.start.year_offset || e.start.week))
    e.start.after = true;
  if ((is(later) || is(Kind::ago)) && peek().han && !e.start.offset) {  // 下午三点之前, 2027年之后
    e.start.after = is(later) && !e.start.day && !e.start.clock && !e.start.part && (e.start.year || e.start.month);
    ++at_;
  }
  return true;
}

namespace {

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// "on Friday remind me to call Bob at 5pm": the day and the time stand apart, and belong together.
void join_day_and_time(Expression& best, const std::vector<Expression>& all) {
  const auto plain = [](const Expression& e) {
    return e.shape == Shape::moment && !e.start.offset && !e.start.now && !e.impossible && !e.start.explicit_past;
  };
  const auto day_only = [&](const Expression& e) { return plain(e) && e.start.has_day() && !e.start.has_time(); };
  const auto time_only = [&](const Expression& e) { return plain(e) && e.start.clock && !e.start.has_day(); };
  const bool wants_time = day_only(best);
  if (!wants_time && !time_only(best)) return;
  const Expression* other = nullptr;
  for (const Expression& one : all) {
    if (one.first == best.first || one.shape != Shape::moment) continue;
    if (other || !(wants_time ? time_only(one) : day_only(one))) return;  // more than the two: no telling
    other = &one;
  }
  if (!other) return;
  const Moment time = wants_time ? other->start : best.start;
  Moment day = wants_time ? best.start : other->start;
  day.clock = time.clock;
  day.part = time.part;
  day.part_shade = time.part_shade;
  day.zone_minutes = time.zone_minutes;
  day.region = time.region;
  best.start = day;
}

bool is_better(const Expression& one, const Expression& other) {
  if (one.strength != other.strength) return one.strength > other.strength;
  const bool repeats = one.shape == Shape::recurrence;
  if (repeats != (other.shape == Shape::recurrence)) return repeats;
  return one.last - one.first > other.last - other.first;
}

// Whether a span counts from another time in the sentence: 1 behind it, -1 before it, 0 if it does not.
int side_of(std::span<const Token> list, const Expression& e) {
  if (e.shape != Shape::duration) return 0;
  const Token* behind = e.last < list.size() ? &list[e.last] : nullptr;
  if (behind && !behind->han && behind->kind == Kind::before) return -1;  // 15 minutes before my 10am meeting
  if (behind && !behind->han && behind->kind == Kind::after) return 1;
  const Token* ahead_of = e.first > 0 ? &list[e.first - 1] : nullptr;
  if (!ahead_of || !ahead_of->han) return 0;
  if (ahead_of->kind == ahead) return -1;  // 提前十分钟
  const bool noun = e.first > 1 && list[e.first - 2].han &&
                    (list[e.first - 2].kind == other || list[e.first - 2].kind == day_mark);  // 生日前一天
  if (!noun || ahead_of->end != list[e.first].begin) return 0;
  return ahead_of->kind == Kind::ago ? -1 : ahead_of->kind == later ? 1 : 0;  // 会议前半小时
}

// "15 minutes before my 10am meeting tomorrow": the span is not from now, but from the time that is said beside it.
bool count_from_another(std::span<const Token> list, const std::vector<Expression>& all, Kept& kept, Expression& out) {
  const auto lead = std::find_if(all.begin(), all.end(), [&](const Expression& e) { return side_of(list, e) != 0; });
  if (lead == all.end()) return false;
  std::vector<Expression> rest;
  for (const Expression& one : all)
    if (one.first != lead->first && one.shape == Shape::moment) rest.push_back(one);
  out = *lead;
  if (rest.empty()) {
    out.impossible = Wrong{Wrong::What::anchor};
    return true;
  }
  Expression anchor = *std::max_element(rest.begin(), rest.end(),
                                        [](const Expression& a, const Expression& b) { return is_better(b, a); });
  join_day_and_time(anchor, rest);
  out = anchor;
  out.start = {};
  out.start.offset = lead->start.offset;
  out.start.direction = side_of(list, *lead);
  out.start.zone_minutes = anchor.start.zone_minutes;
  out.start.region = anchor.start.region;
  out.start.anchor = &kept.moments.emplace_front(anchor.start);
  const bool led = lead->first > 0 && list[lead->first - 1].kind == ahead;
  out.first = std::min(lead->first - (led ? 1 : 0), anchor.first);
  out.last = std::max(lead->last, anchor.last);
  return true;
}

// 明天起每天8点, every day at 8am for a week: another time right beside a rule says when it begins or ends.
bool is_bounded(std::span<const Token> list, const std::vector<Expression>& all, const Expression& rule) {
  constexpr std::size_t kBeside = 2;
  return std::any_of(all.begin(), all.end(), [&](const Expression& one) {
    if (one.first == rule.first || one.shape == Shape::recurrence) return false;
    const std::size_t from = one.first < rule.first ? one.last : rule.last;
    const std::size_t to = one.first < rule.first ? rule.first : one.first;
    if (to - from > kBeside) return false;
    for (std::size_t i = from; i < to; ++i)
      if (list[i].kind == please || list[i].kind == question || list[i].kind == dot) return false;
    return true;
  });
}

// What may stand around an expression that is the whole of a text.
bool is_fluff(const Token& t) {
  static constexpr KindSet kFluff{please, question, dot, comma, quote, close, open, colon, dash};
  if (kFluff.has(t.kind)) return true;
  return t.kind == other && t.word.size() > 1 && !t.han && static_cast<unsigned char>(t.word.front()) >= 0xE2;
}

bool touches(const Token& first, const Token& second) { return first.end == second.begin; }

// In the middle of a word, a code or a number: v3.5, $20, %e7.
bool inside_a_word(std::span<const Token> list, std::size_t i) {
  if (i == 0 || list[i].kind != number || !touches(list[i - 1], list[i])) return false;
  const Token& before_it = list[i - 1];
  if (before_it.kind == dot) return i > 1 && list[i - 2].kind == number && touches(list[i - 2], before_it);
  if (list[i].digits == 0) return false;
  return before_it.kind == percent || before_it.kind == currency || before_it.kind == hash ||
         (before_it.kind == other && is_letter(before_it.word.front())) || (before_it.kind == unit && !before_it.han);
}

bool can_begin(std::span<const Token> list, std::size_t i) {
  const Token& t = list[i];
  switch (t.kind) {
    // What joins a time to something before it is no part of it.
    case comma:
    case close:
    case of:
    case dot:
    case and_:
    case colon: return false;
    case about: return t.value == 2 || i + 1 == list.size() || list[i + 1].kind == number;
    // Words that are nothing else begin nothing, but for a few that the rules know by their letters.
    case other:
      return t.word == "q" || t.word == "my" || t.word == "t" || t.word.starts_with('p') || t.word == "最" ||
             t.word == "beginning";
    default: return !inside_a_word(list, i);
  }
}

bool is_whole(std::span<const Token> list, const Expression& e) {
  const auto joins = [](const Token& t) { return t.kind == Kind::on || t.kind == Kind::at || t.kind == the; };
  for (std::size_t k = 0; k < e.first; ++k)
    if (!is_fluff(list[k]) && !joins(list[k])) return false;
  for (std::size_t k = e.last; k < list.size(); ++k)
    if (!is_fluff(list[k])) return false;
  return true;
}

// "not tomorrow but the day after", 不是明天
bool is_negated(std::span<const Token> list, std::size_t first) {
  return first > 0 && (list[first - 1].word == "not" || list[first - 1].word == "不是");
}

// twice a day, 一天三次
bool is_count(std::span<const Token> list, const Expression& e) {
  if (e.shape != Shape::duration) return false;
  const std::string_view before_it = e.first > 0 ? list[e.first - 1].word : std::string_view();
  if (before_it == "twice" || before_it == "times" || before_it == "thrice") return true;
  return e.last + 1 < list.size() && list[e.last].kind == number && list[e.last + 1].word == "次";
}

}  // namespace

bool find_expression(const Tokens& tokens, bool chinese, Kept& kept, long& steps, Expression& out) {
  Grammar grammar(tokens, chinese, kept);
  struct Count {
    const Grammar& grammar;
    long& steps;
    ~Count() { steps += grammar.steps(); }
  } const count{grammar, steps};
  const std::span<const Token> list = tokens.all();
  std::vector<Expression> all;
  std::size_t best = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!can_begin(list, i) || !grammar.at(i, out)) continue;
    const bool whole = is_whole(list, out);
    if (out.strength < (whole ? kWeak : kFair)) continue;
    if (is_negated(list, i)) {
      i = out.last - 1;
      continue;
    }
    if (is_count(list, out)) out.impossible = Wrong{Wrong::What::second_time};
    if (whole) return true;
    all.push_back(out);
    if (is_better(out, all[best])) best = all.size() - 1;
    i = out.last - 1;
  }
  if (all.empty()) return false;
  if (count_from_another(list, all, kept, out)) return true;
  out = all[best];
  join_day_and_time(out, all);
  if (out.shape == Shape::recurrence && is_bounded(list, all, out)) out.impossible = Wrong{Wrong::What::bounds};
  return true;
}

}  // namespace belfry::when
