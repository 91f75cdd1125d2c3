// The grammar of both languages, by recursive descent over tokens. Each rule either matches and moves on, or leaves
// everything as it was. Every look at a token is counted.
//
// The rules live by room: grammar_numbers.cpp (numbers and spans of time), grammar_clock.cpp (times of day),
// grammar_dates.cpp (written dates), grammar_days.cpp (days by their relation: next Friday, the end of the month, Easter),
// grammar_ranges.cpp (ranges), grammar_recurrence.cpp (what comes again), grammar.cpp (moments and whole expressions).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belfry/when/expression.h"

namespace belfry::when {

// How surely something is about time. A weak match counts only if it is the whole text.
constexpr int kWeak = 1;    // "1530", "may", "at 4"
constexpr int kFair = 2;    // "3:30", "5/12"
constexpr int kStrong = 3;  // "tomorrow", "3pm", "in 5 minutes"

// Anchors in anchors; nobody says more, and each level could be tried in several ways.
constexpr int kDepthMax = 3;

class Grammar {
 public:
  Grammar(const Tokens& tokens, bool chinese, Kept& kept);
  // How many looks at a token it took so far.
  long steps() const { return steps_most(text_) - std::max(steps_left_, 0l); }
  // The expression that begins with this token; false if none does.
  bool at(std::size_t first, Expression& e) {
    at_ = first;
    strength_ = 0;
    impossible_.reset();
    depth_ = 0;
    clock_expected_ = clock_may_follow_ = bare_hour_ = range_end_ = on_before_ = cantonese_ = false;
    e = {};
    e.first = first;
    if (!expression(e)) return false;
    e.last = at_;
    e.strength = strength_;
    e.impossible = impossible_;
    return e.last > first;
  }

 private:
  // --- tokens ---
  const Token& peek(std::size_t ahead = 0) const {
    const Token* const first = tokens_.data();
    // Enough: nothing matches any more.
    if (--steps_left_ < 0) [[unlikely]]
      return first[tokens_.size()];
    return first[at_ + ahead];
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
  // It is about time, but there is no such time; the rest is still read, so that the whole of it can be named.
  void impossible(Wrong wrong) {
    if (!impossible_) impossible_ = wrong;
  }
  const Span* keep(const Span& span) { return &kept_.spans.emplace_front(span); }
  const Moment* keep(const Moment& moment) { return &kept_.moments.emplace_front(moment); }
  // Remembers this place; called, goes back to it and says that nothing matched.
  struct Back {
    Grammar& grammar;
    std::size_t at;
    int strength;
    std::optional<Wrong> impossible;
    explicit Back(Grammar& g) : grammar(g), at(g.at_), strength(g.strength_), impossible(g.impossible_) {}
    bool operator()() const {
      grammar.at_ = at;
      grammar.strength_ = strength;
      grammar.impossible_ = impossible;
      return false;
    }
  };

  // --- numbers and spans ---
  bool number(double& out);
  bool whole(int& out, int least, int most);
  bool ordinal_number(int& out);
  bool chinese_ordinal(int& out);
  static bool is_letter_unit(const Token& t) { return t.word.size() == 1 || t.word == "mo"; }
  bool unit(Unit& out, bool counted, bool number_joined);
  bool half_hour_words(Amount& out);
  bool iso_duration(Span& out);
  bool amount(Amount& out);
  static int rank(Unit unit);
  bool span(Span& out);
  bool read_span(Span& out);

  // --- times of day ---
  bool meridiem_word(std::optional<int>& out);
  bool trailing_part(Moment& m);
  bool set_clock(Moment& m, int hour, int minute, int second, std::optional<int> half_day, bool exact);
  bool digital_clock(Moment& m);
  bool hour_clock(Moment& m);
  bool past_clock(Moment& m);
  bool chinese_clock(Moment& m);
  static bool counts_points(std::string_view word);
  static bool goes_on(const Token& behind);
  bool shichen_clock(Moment& m);
  bool time_of_day(Moment& m);
  bool part_of_day(Moment& m);
  bool eve_follows();
  std::string_view as_written(const Token& t) const;
  bool is_capital(const Token& t) const;
  static std::string_view zone_of_city(const std::string& city);
  std::string_view iana_name();
  std::string_view city_zone();
  std::string_view place_zone();
  bool zone_of_text(Moment& m);

  // --- written dates ---
  static int full_year(int two_digits);
  bool year_behind(Moment& m);
  bool good_day(int month, int day);
  bool named_month(Moment& m);
  bool numeric_date(Moment& m);
  void iso_time(Moment& m);
  bool iso_week_date(Moment& m);
  bool chinese_date(Moment& m);
  static bool numbers_follow(std::string_view word);
  static bool counted_by_number(std::string_view word);
  bool day_of_month(Moment& m);
  bool weekday_and_day(Moment& m);

  // --- days by their relation ---
  bool nth_of_month(Moment& m);
  bool chinese_nth(Moment& m);
  bool quarter_of_year(Moment& m);
  bool weekday_phrase(Moment& m);
  bool relative_day(Moment& m);
  bool this_period(Moment& m);
  bool unit_beside(Moment& m);
  bool part_beside(Moment& m);
  bool numbered_week(Moment& m);
  bool century(Moment& m);
  bool period(Moment& m);
  bool period_or_month(Moment& m);
  bool holiday_phrase(Moment& m);
  static bool is_number_name(std::string_view word);
  bool year_only(Moment& m);
  bool year_at_the_end(Moment& m);
  bool season_phrase(Moment& m);
  bool edge_behind(Moment& m);

  // --- ranges ---
  bool range_word();
  bool range_joint(bool between_word);
  bool range_hour(Clock& out, bool& marked);
  static void share_half_day(Clock& first, Clock& last);
  bool clock_range(Moment& m);
  bool range_day(int& out);
  bool day_range(Moment& m);
  bool year_range(Moment& m);
  bool length_phrase(Moment& m);
  bool reach_phrase(Moment& m);
  bool rest_phrase(Moment& m);

  // --- recurrences ---
  bool recurrence(Expression& e);
  bool day_of_every_month(Recurrence& r);
  bool recurrence_head(Recurrence& r);
  bool counted_before() const;
  bool every_unit(Recurrence& r);
  bool recurrence_piece(Recurrence& r);
  bool weekday_set(std::vector<int>& out);
  static bool leave_out(Recurrence& r, const std::vector<int>& days);
  bool exception(Recurrence& r);
  std::vector<int> exception_before();
  bool time_follows();
  bool second_time_follows();
  bool weekday_list(std::vector<int>& out);
  bool one_weekday(int& out);
  bool nth_weekday_of_month(Nth& out);
  bool month_day_list(std::vector<int>& out);

  // --- moments and whole expressions ---
  bool offset_phrase(Moment& m);
  bool now_phrase(Moment& m);
  bool same_time_phrase(Moment& m);
  struct Rule {
    bool (Grammar::*read)(Moment&);
    KindSet starts;  // the tokens that it can begin with
    KindSet needs;   // of these the text has at least one; none: it always may match
  };
  static const Rule kRules[];
  static const std::array<std::uint64_t, kKinds> kRulesByStart;  // a bit for each rule
  static const std::array<std::uint64_t, kKinds> kRulesByNeed;
  static const std::uint64_t kRulesWithoutNeed;
  static long steps_most(std::string_view text) { return kStepsPerByteMax * static_cast<long>(text.size()) / 2; }
  void look_at_the_whole();
  bool slot(Moment& m);
  bool connector();
  static constexpr int kConnectorsMost = 4;
  bool open_slot(Moment& m);
  bool moment(Moment& m);
  static void share_between(Moment& start, Moment& end);
  bool expression(Expression& e);

  std::string_view text_;
  std::span<const Token> tokens_;
  bool chinese_;
  Kept& kept_;
  mutable long steps_left_;
  KindSet present_{};        // what the text has
  std::uint64_t rules_ = 0;  // those of kRules that can match in it
  int depth_ = 0;            // of moments in moments: "a week after the day before Christmas"
  std::size_t at_ = 0;
  int strength_ = 0;
  std::optional<Wrong> impossible_;
  bool clock_expected_ = false;    // a bare hour may come: "at", or a day stood before
  bool clock_may_follow_ = false;  // "14 Feb from 9:30": a day stood before, and no time yet
  bool bare_hour_ = false;         // "no later than 4"
  bool range_end_ = false;         // the end of a range is being read
  bool on_before_ = false;
  bool cantonese_ = false;
  bool in_recurrence_ = false;  // what stands behind "every"
  bool iso_ = false;            // behind the T of an ISO 8601 time
  // The span that was read last: several rules begin with one, and each would read it again.
  struct {
    std::size_t begin = SIZE_MAX;
    std::size_t end = 0;
    bool found = false;
    Span span;
  } last_span_;
};

}  // namespace belfry::when
