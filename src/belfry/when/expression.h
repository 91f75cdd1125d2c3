// What a text says about time, before anybody knows what time it is.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <forward_list>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "belfry/when/token.h"

namespace belfry::when {

struct Amount {
  double count = 0;
  Unit unit = Unit::second;
};

// Few amounts: of each size at most one in words, some more as ISO 8601 writes them.
class Span {
 public:
  Span() = default;
  explicit Span(Amount only) { push_back(only); }
  bool push_back(Amount amount) {
    if (size_ == amounts_.size()) return false;
    amounts_[size_++] = amount;
    return true;
  }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const Amount* begin() const { return amounts_.data(); }
  const Amount* end() const { return amounts_.data() + size_; }
  const Amount& front() const { return amounts_[0]; }
  const Amount& back() const { return amounts_[size_ - 1]; }

 private:
  std::array<Amount, 10> amounts_;
  std::size_t size_ = 0;
};

// An optional number that takes four bytes, all zeros if there is none: INT_MIN is not one.
class Maybe {
 public:
  constexpr Maybe() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): it stands where a number does
  constexpr Maybe(int value) : bits_(value ^ INT_MIN) {}
  constexpr explicit operator bool() const { return bits_ != 0; }
  constexpr int operator*() const { return bits_ ^ INT_MIN; }
  constexpr int value_or(int otherwise) const { return bits_ != 0 ? **this : otherwise; }
  constexpr void reset() { bits_ = 0; }
  constexpr bool operator==(const Maybe&) const = default;

  template <class... More>
  static constexpr bool any(const More&... maybe) {
    return (maybe.bits_ | ...) != 0;
  }

 private:
  int bits_ = 0;
};

struct Clock {
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::optional<int> meridiem;  // 0 am, 1 pm
  bool exact = false;           // written as H:MM, or with 24-hour marks: never ambiguous
};

struct Moment;

// "the third Friday of October", "last day of March"
struct Nth {
  int n = 1;        // from the end if negative
  int weekday = 0;  // 0: `unit` counts
  Unit unit = Unit::day;
};

// Copied on every trial of a rule, so it owns nothing: spans and anchors lie in the `Kept` of the text.
struct Moment {
  // --- the day ---
  Maybe year;
  Maybe month;
  Maybe day;
  bool day_first_possible = false;  // 3/4: which is the month?
  bool lunar = false;
  Maybe day_offset;  // today 0
  Maybe weekday;
  Maybe week;  // 0 this week, 1 next, -1 last
  Maybe month_offset;
  Maybe quarter;  // 1 to 4
  Maybe quarter_offset;
  Maybe year_offset;
  Maybe decade_offset;
  Maybe holiday;
  Maybe term;
  std::optional<Nth> nth;
  Maybe iso_week;
  Maybe season;
  Maybe half_year;
  bool weekend = false;
  int shade = 0;  // "late July": its second half
  bool shade_from_today = false;
  int weekday_shift = 0;      // "Friday after next", 下下周: weeks to add to a bare weekday
  int beside = 0;             // "the Monday after Easter": after or before the anchor
  bool of_that_week = false;  // "Friday in two weeks": of that week, whatever day it begins from
  std::optional<Kind> edge;   // begin, middle, end of the period
  Unit edge_unit = Unit::month;
  bool coming_edge = false;      // 月初: when it has passed, the next one
  bool next_occurrence = false;  // "next Christmas"
  bool last_occurrence = false;

  // --- the time of day ---
  std::optional<Clock> clock;
  std::optional<Part> part;
  int part_shade = 0;  // -1 early, 1 late
  bool same_time = false;
  Maybe zone_minutes;       // the zone that the text names: an offset,
  std::string_view region;  // or an IANA name

  // --- relative ---
  bool now = false;
  const Span* offset = nullptr;
  int direction = 1;
  const Moment* anchor = nullptr;  // "three days after X": X

  // --- a range that is said in one piece: from 2 to 4pm, July 13-15, for 3 hours ---
  std::optional<Clock> until_clock;
  Maybe until_day;
  Maybe until_month;
  Maybe until_year;
  const Span* length = nullptr;
  const Span* reach = nullptr;  // the next three days; with `direction`
  std::optional<Unit> rest_of;  // the rest of the week

  // --- how ---
  bool day_behind_clock = false;  // "11:00 on Thursday": at the end of a range the day is for both ends
  bool explicit_past = false;
  bool after = false;  // "after 2026": what comes when the period is over

  bool has_day() const {
    return Maybe::any(year, month, day, day_offset, weekday, week, month_offset, quarter, quarter_offset, year_offset,
                      decade_offset, holiday, term, iso_week, season, half_year) ||
           nth || weekend || edge;
  }
  bool has_time() const { return clock || part || same_time; }
  bool is_range() const { return until_clock || until_day || until_month || until_year || length || reach || rest_of; }
  bool empty() const { return !has_day() && !has_time() && !offset && !now && !reach; }
};

static_assert(std::is_trivially_copyable_v<Moment>);

// What moments point to.
struct Kept {
  std::forward_list<Span> spans;
  std::forward_list<Moment> moments;
};

enum class Shape { moment, range, duration, recurrence };

// every two weeks on Monday; the time of day, the month and the holiday stand in the expression's `start`
struct Recurrence {
  double every = 1;  // half an hour: 0.5
  Unit unit = Unit::day;
  std::vector<int> weekdays;
  std::vector<int> month_days;  // -1: the last one
  std::optional<Nth> nth;       // the first Monday of each month
};

// What cannot be about a time that was understood: 25:00, 13月1日, Feb 30.
struct Wrong {
  enum class What {
    time_of_day,
    half_day_hour,
    month,
    day_of_month,
    weekday,
    week,
    offset,
    zone,
    second_time,
    bounds,
    anchor,
    vague
  };
  What what;
  int first = 0;   // the hour, the month, the hours of an offset
  int second = 0;  // the minute, the day
};

struct Expression {
  Shape shape = Shape::moment;
  Moment start;
  const Moment* end = nullptr;  // of a range; it lies in the `Kept`
  Recurrence recurrence;
  std::size_t first = 0;  // tokens
  std::size_t last = 0;   // one behind
  int strength = 0;       // how surely this is about time: see grammar.cpp
  std::optional<Wrong> impossible;
};

// How many looks at a token a text may take, whatever it says.
inline constexpr long kStepsPerByteMax = 2'000;

// The expression in a text: the whole of it, or the best part of a sentence; false if there is none. It is good for as
// long as `kept` is.
bool find_expression(const Tokens& tokens, bool chinese, Kept& kept, long& steps, Expression& out);

}  // namespace belfry::when
