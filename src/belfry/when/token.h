// What a text is made of, in both languages: the reader's grammar works on these and never sees a letter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "belfry/base/result.h"

namespace belfry::when {

enum class Kind : std::uint8_t {
  number,       // value; `digits` says how it was written
  ordinal,      // value: third, 3rd
  unit,         // Unit
  weekday,      // 1 Monday … 7 Sunday
  month,        // a month by its name
  part,         // Part: a part of the day
  meridiem,     // 0 am, 1 pm
  day,          // today 0, tomorrow 1, yesterday -1
  next,         // how many: next 1, 下下 2; also last -1, this 0
  following,    // "the following"
  holiday,      // index into the table of holidays
  zone,         // minutes from UTC
  term,         // a solar term, 0 to 23
  lunar,        // 农历
  lunar_month,  // 正月, 腊月, 冬月
  lunar_day,    // 初九, 廿二
  shichen,      // a double hour: 子时 0 … 亥时 11
  now,          // now, asap
  every,        // every, each, 每
  often,        // Unit: daily, weekly
  weekend,
  oclock,       // o'clock, 点, 时
  minute_mark,  // 分
  ke,           // 刻
  zi,           // 个字: five minutes (Cantonese)
  year_mark,
  month_mark,
  day_mark,   // 年 月 日/号
  week_mark,  // 周/星期/礼拜, of which a number makes a weekday
  ge,         // 个
  di,         // 第
  half,
  quarter,
  three_quarters,
  couple,  // couple, few, several, 几: value
  an,      // a, an
  at,
  on,
  in,
  of,
  the,
  for_,
  and_,
  by,
  with,
  to,
  from,
  between,
  until,
  since,
  before,
  after,
  past,
  within,
  later,  // later, from now, hence, 后, 以后
  ago,    // ago, 前
  pass,   // 再过, 过
  end,
  begin,
  middle,  // 底 初 中旬
  early,
  late,     // early morning, late night
  about,    // about, around, 大约
  exactly,  // sharp, 整
  same,
  time_word,  // "same time", "this time"
  next_to,    // 差: minutes before
  plus,
  minus,
  colon,
  slash,
  dash,
  dot,
  comma,
  tilde,
  open,
  close,
  apostrophe,
  quote,
  percent,
  currency,
  hash,
  question,
  please,  // fluff that may stand anywhere: please, 请, 吧, 。
  ish,
  all,         // all, whole, full, 全
  rest,        // the rest of
  once,        // once a week
  except,      // except Sunday, 周日除外
  ahead,       // 提前
  half_month,  // 上半月: the day on which it begins
  era,         // the year before its first: 民国 1911
  half_year,   // 上半年 1, 下半年 2
  ten_days,    // 上旬 1, 中旬 2, 下旬 3
  season,      // spring 0 …
  other,       // anything else
  end_of_text,
  // Of no token, but of a text that has tokens which some rules cannot do without:
  counts_time,  // a unit that can stand behind a number
  recurs,       // every, daily, Mondays
  has_quarter,  // q3, H2, the last quarter
  has_century,  // decades, centuries, 1970s
};
inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::has_century) + 1;

enum class Unit : std::uint8_t {
  second,
  minute,
  hour,
  day,
  week,
  month,
  quarter,
  year,
  decade,
  century,
  fortnight,
  business_day,
  weekend,
  quarter_hour
};

enum class Part : std::uint8_t {
  dawn,
  early_morning,
  morning,
  forenoon,
  noon,
  lunch,
  afternoon,
  dusk,
  evening,
  night,
  late_night,
  tonight,
  midnight,
  small_hours,
  end_of_day,
  off_work,
  daytime,
  midmorning,
  midafternoon,
  breakfast,
  dinner,
};

struct Token {
  double value = 0;
  std::string_view word;    // as normalised: lower case, half width, simplified
  std::uint32_t begin = 0;  // bytes of the original text
  std::uint32_t end = 0;
  Kind kind = Kind::other;
  std::uint8_t digits = 0;    // how many digits, if it was written in digits (also Chinese ones: 二〇二六)
  bool space_before = false;  // or the beginning of the text
  bool han = false;           // written in Chinese characters
  bool by_word = false;       // a number in words

  Unit unit() const { return static_cast<Unit>(static_cast<int>(value)); }
  Part part() const { return static_cast<Part>(static_cast<int>(value)); }
  int whole() const { return static_cast<int>(std::clamp(value, -1e9, 1e9)); }
};

class KindSet {
 public:
  constexpr KindSet(std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) add(kind);
  }
  constexpr void add(Kind kind) { bits_[static_cast<std::size_t>(kind) / 64] |= bit(kind); }
  constexpr bool has(Kind kind) const { return (bits_[static_cast<std::size_t>(kind) / 64] & bit(kind)) != 0; }
  constexpr bool empty() const { return bits_[0] == 0 && bits_[1] == 0; }
  constexpr bool has_any(const KindSet& kinds) const {
    return (bits_[0] & kinds.bits_[0]) != 0 || (bits_[1] & kinds.bits_[1]) != 0;
  }

 private:
  static constexpr std::uint64_t bit(Kind kind) { return std::uint64_t{1} << (static_cast<std::size_t>(kind) % 64); }
  std::uint64_t bits_[2] = {};
};

inline constexpr std::size_t kTextBytesMax = 1'024;

static_assert(std::is_trivially_destructible_v<Token>);

struct Tokens {
  Tokens() = default;
  Tokens(const Tokens&) = delete;  // the tokens point into `normal`
  Tokens& operator=(const Tokens&) = delete;

  // So many ends stand behind the last token that no look ahead goes further.
  static constexpr std::size_t kEnds = 8;

  void make_room(std::size_t tokens) {
    if (tokens + kEnds <= kFew) return;
    many = std::make_unique_for_overwrite<std::byte[]>((tokens + kEnds) * sizeof(Token));
    first = reinterpret_cast<Token*>(many.get());
  }
  Token& add() { return *std::construct_at(first + count++); }
  std::span<const Token> all() const { return {first, count}; }

  std::string_view text;  // as it was given
  bool has_han = false;
  std::array<char, kTextBytesMax> normal;
  static constexpr std::size_t kFew = 160;
  alignas(Token) std::array<std::byte, kFew * sizeof(Token)> few;
  std::unique_ptr<std::byte[]> many;  // for a long text
  Token* first = reinterpret_cast<Token*>(few.data());
  std::size_t count = 0;
};

// Fills `out`, which must be empty. Refuses what is not UTF-8, has control characters or is longer than kTextBytesMax.
Result<> scan(std::string_view text, Tokens& out);

// The characters that words are made of in Chinese.
inline constexpr char32_t kHanBegin = 0x4E00;
inline constexpr char32_t kHanEnd = 0xA000;

// A word of the tables; `second` stands if a word says two things (明早: tomorrow, morning).
struct Word {
  std::string_view text;
  Kind kind;
  int value = 0;
  Kind second = Kind::other;
  int second_value = 0;
};
// From here on the value of a zone is that of a place instead of minutes.
inline constexpr int kRegion = 100'000;
// The IANA name behind such a value; empty for minutes.
std::string_view region_name(int value);

}  // namespace belfry::when
