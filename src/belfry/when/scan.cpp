// Text to tokens, in one pass: full width becomes half width, traditional characters simplified ones, capitals small
// letters; then numbers are read and words looked up, the longest first.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/when/token.h"

namespace belfry::when {
namespace {

// Traditional characters that stand in words about time, and their simplified forms, pair by pair.
constexpr std::u32string_view kTraditional =
    U"個个後后週周點点時时鐘钟號号幾几兩两禮礼這这當当過过內内從从間间鬥斗節节聖圣國国慶庆誕诞兒儿婦妇勞劳動动聽听晝昼們们農农曆历陰阴陽阳臘腊"
    U"歲岁軍军復复紀纪輪轮現现馬马請请謝谢約约邊边連连萬万貳二參三肆四陸六傾倾壹一伍五捌八玖九拾十佰百仟千〇零○零俩两倆两仨三叁三廿廿晚晚"
    U"夜夜點点鍾钟裡里裏里裹里於于為为還还給给與与長长員员親亲師师靈灵難难黃黄雙双來来處处種种蟄蛰穀谷滿满氣气華华東东錢钱會会務务際际權权益益"
    U"歸归獨独訂订準准將将應应該该開开關关門门顯显著着終终結结傑杰爾尔轉转經经設设餐餐餅饼齋斋獻献殿殿燭烛樹树植植猶犹太太歡欢誦诵夢梦島岛戰战"
    U"實实歷历齊齐權权難难"
    U"驚惊尋寻頭头颱台預预畢毕電电話话說说題题學学習习業业"
    U"臨临體体費费闆板灑洒贖赎毀毁穌稣圖图龐庞蘭兰歐欧麗丽燈灯紅红"
    U"勝胜雞鸡義义衛卫產产傳传愛爱讀读書书醫医護护護护煙烟滅灭";

struct Character {
  char32_t code;
  std::uint32_t begin;
  std::uint32_t end;
};

char32_t simplified(char32_t c) {
  static const auto pairs = [] {
    std::vector<std::pair<char32_t, char32_t>> all;
    for (std::size_t i = 0; i + 1 < kTraditional.size(); i += 2) all.emplace_back(kTraditional[i], kTraditional[i + 1]);
    std::sort(all.begin(), all.end());
    return all;
  }();
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), std::pair<char32_t, char32_t>{c, 0});
  return at != pairs.end() && at->first == c ? at->second : c;
}

char32_t normal(char32_t c) {
  if (c >= 0xFF01 && c <= 0xFF5E) c -= 0xFEE0;  // full width
  if (c >= U'A' && c <= U'Z') return c + 32;
  switch (c) {
    case 0x3000:
    case 0xA0:
    case 0x2009:
    case 0x202F:
    case 0x200B:
    case 0xFEFF:
    case U'\t':
    case U'\n':
    case U'\r': return U' ';
    case U'：': return U':';
    case U'，':
    case U'、':
    case U';':
    case U'；': return U',';
    case U'。': return U'.';
    case U'–':
    case U'—':
    case U'―':
    case U'－':
    case U'ー':
    case U'−':
    case U'‐':
    case U'‑': return U'-';
    case U'～':
    case U'〜': return U'~';
    case U'’':
    case U'‘':
    case U'`':
    case U'´': return U'\'';
    case U'“':
    case U'”':
    case U'″': return U'"';
    case U'′': return U'\'';
    case U'（':
    case U'【':
    case U'「':
    case U'《': return U'(';
    case U'）':
    case U'】':
    case U'」':
    case U'》': return U')';
    default: return simplified(c);
  }
}

bool is_han(char32_t c) { return (c >= 0x3400 && c <= 0x9FFF) || c == U'〇'; }
bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_letter(char32_t c) { return (c >= U'a' && c <= U'z') || (c >= 0xC0 && c <= 0x24F); }

int han_digit(char32_t c) {
  switch (c) {
    case U'零':
    case U'〇': return 0;
    case U'一': return 1;
    case U'二':
    case U'两': return 2;
    case U'三': return 3;
    case U'四': return 4;
    case U'五': return 5;
    case U'六': return 6;
    case U'七': return 7;
    case U'八': return 8;
    case U'九': return 9;
    default: return -1;
  }
}

int han_scale(char32_t c) {
  switch (c) {
    case U'十': return 10;
    case U'百': return 100;
    case U'千': return 1'000;
    case U'万': return 10'000;
    default: return 0;
  }
}

// How many hundredths of one the character is: ½ is 50.
int fraction(char32_t c) { return c == U'½' ? 50 : c == U'¼' ? 25 : c == U'¾' ? 75 : 0; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Result<Tokens> run() {
    out_.text = text_;
    out_.normal.reserve(2 * text_.size() + 64);  // never moved again: the words point into it
    characters_.reserve(text_.size());
    offsets_.reserve(text_.size() + 1);
    out_.list.reserve(text_.size() / 2 + 4);
    BELFRY_CHECK(decode());
    for (const Character& c : characters_) {
      offsets_.push_back(static_cast<std::uint32_t>(out_.normal.size()));
      append_utf8(out_.normal, static_cast<unsigned>(c.code));
    }
    offsets_.push_back(static_cast<std::uint32_t>(out_.normal.size()));
    while (at_ < characters_.size()) step();
    return std::move(out_);
  }

 private:
  Result<> decode() {
    if (text_.size() > kTextBytesMax)
      return fail(Errc::too_large,
                  fmt::format("the expression has {} bytes; at most {} are read", text_.size(), kTextBytesMax));
    for (std::size_t i = 0; i < text_.size();) {
      const int length = utf8_sequence(text_.substr(i));
      if (length == 0) return fail(Errc::invalid_argument, fmt::format("byte {} of the expression is not UTF-8", i));
      const auto byte = [&](int k) { return static_cast<unsigned char>(text_[i + static_cast<std::size_t>(k)]); };
      char32_t code = byte(0);
      if (length == 2) code = (code & 31) << 6 | (byte(1) & 63);
      if (length == 3) code = (code & 15) << 12 | (byte(1) & 63u) << 6 | (byte(2) & 63);
      if (length == 4) code = (code & 7) << 18 | (byte(1) & 63u) << 12 | (byte(2) & 63u) << 6 | (byte(3) & 63);
      if ((code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7F)
        return fail(Errc::invalid_argument, fmt::format("byte {} of the expression is a control character", i));
      const auto begin = static_cast<std::uint32_t>(i);
      i += static_cast<std::size_t>(length);
      characters_.push_back({normal(code), begin, static_cast<std::uint32_t>(i)});
    }
    return {};
  }

  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < characters_.size() ? characters_[at_ + ahead].code : 0;
  }

  std::string_view normal_text(std::size_t from, std::size_t to) const {
    return std::string_view(out_.normal).substr(offsets_[from], offsets_[to] - offsets_[from]);
  }

  Token make(std::size_t from, std::size_t to, Kind kind, double value) const {
    Token token;
    token.kind = kind;
    token.value = value;
    token.begin = characters_[from].begin;
    token.end = characters_[to - 1].end;
    token.space_before = from == 0 || characters_[from - 1].code == U' ';
    token.word = normal_text(from, to);
    token.han = is_han(characters_[from].code);
    return token;
  }

  void push(std::size_t to, Kind kind, double value) {
    out_.list.push_back(make(at_, to, kind, value));
    at_ = to;
  }

  void step() {
    const char32_t c = peek();
    if (c == U' ') {
      ++at_;
    } else if (is_digit(c)) {
      digits();
    } else if (is_han(c)) {
      out_.has_han = true;
      han();
    } else if (is_letter(c)) {
      latin();
    } else if (fraction(c) != 0) {
      push(at_ + 1, Kind::number, fraction(c) / 100.0);
    } else {
      punctuation(c);
    }
  }

  void digits() {
    std::size_t to = at_;
    double value = 0;
    while (to < characters_.size() && is_digit(characters_[to].code)) {
      value = value * 10 + static_cast<double>(characters_[to].code - U'0');
      ++to;
    }
    const std::size_t count = to - at_;
    // 1st, 2nd, 3rd, 4th
    const auto suffix = [&](char32_t a, char32_t b) {
      return to + 2 <= characters_.size() && characters_[to].code == a && characters_[to + 1].code == b &&
             (to + 2 == characters_.size() || !is_letter(characters_[to + 2].code));
    };
    const bool ordinal =
        count <= 3 && (suffix(U's', U't') || suffix(U'n', U'd') || suffix(U'r', U'd') || suffix(U't', U'h'));
    push(ordinal ? to + 2 : to, ordinal ? Kind::ordinal : Kind::number, value);
    out_.list.back().digits = static_cast<std::uint8_t>(std::min<std::size_t>(count, 255));
  }

  // 二十五, 一百零五, 二〇二六, 三万; with 廿 and 卅.
  bool han_number() {
    std::size_t to = at_;
    double total = 0;
    double section = 0;
    double digit = -1;
    double plain = 0;
    std::size_t plain_digits = 0;
    bool scaled = false;
    while (to < characters_.size()) {
      const char32_t c = characters_[to].code;
      if (const int d = han_digit(c); d >= 0) {
        // 三十三点 is 33; but after 十 only one digit belongs to the number. 十五六 is about fifteen.
        if (scaled && digit > 0) {
          if (d == digit + 1) ++to;
          break;
        }
        digit = d;
        plain = plain * 10 + d;
        ++plain_digits;
      } else if (c == U'廿' || c == U'卅') {
        if (scaled || digit >= 0) break;
        section += c == U'廿' ? 20 : 30;
        scaled = true;
      } else if (const int scale = han_scale(c); scale != 0) {
        if (scale == 10'000) {
          total = (total + section + std::max(digit, 0.0)) * 10'000;
          section = 0;
        } else {
          if (plain_digits > 1 && !scaled && plain >= 10) break;  // 二〇二六十: no number
          section += (digit > 0 ? digit : scale == 10 && digit < 0 ? 1 : std::max(digit, 1.0)) * scale;
        }
        digit = -1;
        scaled = true;
      } else {
        break;
      }
      ++to;
    }
    if (to == at_) return false;
    // 两三天, 七八点: about as many as the first says; 七八年 is a year.
    const char32_t behind = to < characters_.size() ? characters_[to].code : 0;
    const int first_digit = static_cast<int>(plain) / 10;
    const int last_digit = static_cast<int>(plain) % 10;
    const bool listed = !out_.list.empty() && out_.list.back().kind == Kind::weekday;  // 周一三五
    const bool about = !scaled && plain_digits == 2 && first_digit > 0 && behind != U'年' && !listed &&
                       (last_digit == first_digit + 1 || plain == 35);
    if (about) plain = first_digit, plain_digits = 1;
    const double value = scaled ? total + section + std::max(digit, 0.0) : plain;
    const std::size_t count = scaled ? 0 : plain_digits;
    push(to, Kind::number, value);
    out_.list.back().digits = static_cast<std::uint8_t>(std::min<std::size_t>(count, 255));
    out_.list.back().by_word = true;
    return true;
  }

  void han() {
    static constexpr std::size_t kLongest = 10;
    const std::size_t most = longest_word_bytes(normal_text(at_, at_ + 1)) / 3;
    const std::size_t room = std::min({kLongest, characters_.size() - at_, std::max<std::size_t>(most, 1)});
    const Word* found = nullptr;
    std::size_t length = 0;
    for (std::size_t n = room; n > 0 && !found; --n) {
      found = find_word(normal_text(at_, at_ + n));
      length = n;
    }
    // 九月初九, 10月底, 19年底: behind a number 月 and 年 are marks, and the rest stands by itself.
    const bool edge =
        found && (found->second == Kind::end || found->second == Kind::begin || found->second == Kind::middle);
    if (edge && !out_.list.empty() && out_.list.back().kind == Kind::number &&
        out_.list.back().end == characters_[at_].begin) {
      length = 1;
      found = find_word(normal_text(at_, at_ + 1));
    }
    const char32_t c = peek();
    const bool numeral = han_digit(c) >= 0 || han_scale(c) != 0 || c == U'廿' || c == U'卅';
    // 零 alone is "and"; at the front of a number it is part of it (零五分).
    if (numeral && (!found || length == 1) && han_number()) return;
    if (!found) return push(at_ + 1, Kind::other, 0);
    take(*found, length);
  }

  void take(const Word& word, std::size_t length) {
    const std::size_t from = at_;
    push(at_ + length, word.kind, word.value);
    if (word.kind == Kind::number) out_.list.back().by_word = true;
    if (word.second == Kind::other) return;
    Token second = make(from, from + length, word.second, word.second_value);
    second.space_before = false;
    out_.list.push_back(second);
  }

  // Words with spaces in them ("day after tomorrow") are tried first, the longest first. Apostrophes do not count.
  void latin() {
    static constexpr std::size_t kWordsMost = 6;
    std::array<std::size_t, kWordsMost> ends{};
    std::array<std::string, kWordsMost> phrases;
    std::size_t count = 0;
    std::string phrase;
    std::size_t i = at_;
    while (i < characters_.size() && count < kWordsMost) {
      std::size_t letters = 0;
      while (i < characters_.size() &&
             (is_letter(characters_[i].code) || (characters_[i].code == U'\'' && letters > 0 &&
                                                 i + 1 < characters_.size() && is_letter(characters_[i + 1].code)))) {
        if (characters_[i].code != U'\'') append_utf8(phrase, static_cast<unsigned>(characters_[i].code));
        ++i;
        ++letters;
      }
      if (letters == 0) break;
      if (i < characters_.size() && characters_[i].code == U'\'' && phrase.ends_with('s') &&
          (i + 1 == characters_.size() || characters_[i + 1].code == U' '))
        ++i;  // workers'
      ends[count] = i;
      phrases[count++] = phrase;
      // What may stand between the words of a phrase.
      const std::size_t gap_begin = i;
      while (i < characters_.size() &&
             (characters_[i].code == U' ' || characters_[i].code == U'-' || characters_[i].code == U'.') &&
             i - gap_begin < 3)
        ++i;
      if (i == gap_begin || i >= characters_.size() || !is_letter(characters_[i].code)) break;
      phrase += ' ';
    }
    const std::size_t most = longest_word_bytes(phrases[0]);
    for (std::size_t n = count; n > 0; --n) {
      if (phrases[n - 1].size() > most) continue;
      const Word* word = find_word(phrases[n - 1]);
      if (!word) continue;
      take(*word, ends[n - 1] - at_);
      // "a.m." and "p.m.": the last dot belongs to it; "Aug." too.
      if (peek() == U'.' &&
          (word->kind == Kind::meridiem || word->kind == Kind::month || word->kind == Kind::weekday) &&
          !is_digit(peek(1))) {
        out_.list.back().end = characters_[at_].end;
        ++at_;
      }
      return;
    }
    push(ends[0], Kind::other, 0);
  }

  void punctuation(char32_t c) {
    Kind kind = Kind::other;
    switch (c) {
      case U'+': kind = Kind::plus; break;
      case U'-': kind = Kind::dash; break;
      case U':': kind = Kind::colon; break;
      case U'/': kind = Kind::slash; break;
      case U'.': kind = Kind::dot; break;
      case U',': kind = Kind::comma; break;
      case U'~': kind = Kind::tilde; break;
      case U'(': kind = Kind::open; break;
      case U')': kind = Kind::close; break;
      case U'\'': kind = Kind::apostrophe; break;
      case U'"': kind = Kind::quote; break;
      case U'@': kind = Kind::at; break;
      case U'%': kind = Kind::percent; break;
      case U'$':
      case U'€':
      case U'£':
      case U'¥': kind = Kind::currency; break;
      case U'#': kind = Kind::hash; break;
      case U'?':
      case U'!':
      case U'？':
      case U'！': kind = Kind::question; break;
      default: break;
    }
    push(at_ + 1, kind, 0);
  }

  std::string_view text_;
  std::vector<Character> characters_;
  std::vector<std::uint32_t> offsets_;  // of each character in the normalised text
  std::size_t at_ = 0;
  Tokens out_;
};

}  // namespace

Result<Tokens> scan(std::string_view text) { return Scanner(text).run(); }

}  // namespace belfry::when
