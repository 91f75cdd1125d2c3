// Text to tokens, in one pass: full width becomes half width, traditional characters simplified ones, capitals small
// letters; then numbers are read and words looked up, the longest first.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/when/token.h"
#include "belfry/when/words.h"

namespace belfry::when {
namespace {

// Traditional characters that stand in words about time, and their simplified forms, pair by pair.
constexpr std::u32string_view kTraditional =
    U"個个後后週周點点時时鐘钟號号幾几兩两禮礼這这當当過过內内從从間间鬥斗節节聖圣國国慶庆誕诞兒儿婦妇勞劳動动聽听晝昼們们農农曆历陰阴陽阳臘腊"
    U"歲岁軍军復复紀纪輪轮現现馬马請请謝谢約约邊边連连萬万貳二參三肆四陸六傾倾壹一伍五捌八玖九拾十佰百仟千俩两倆两仨三叁三廿廿晚晚"
    U"夜夜點点鍾钟裡里裏里裹里於于為为還还給给與与長长員员親亲師师靈灵難难黃黄雙双來来處处種种蟄蛰穀谷滿满氣气華华東东錢钱會会務务際际權权益益"
    U"歸归獨独訂订準准將将應应該该開开關关門门顯显著着終终結结傑杰爾尔轉转經经設设餐餐餅饼齋斋獻献殿殿燭烛樹树植植猶犹太太歡欢誦诵夢梦島岛戰战"
    U"實实歷历齊齐權权難难"
    U"驚惊尋寻頭头颱台預预畢毕電电話话說说題题學学習习業业"
    U"臨临體体費费闆板灑洒贖赎毀毁穌稣圖图龐庞蘭兰歐欧麗丽燈灯紅红"
    U"勝胜雞鸡義义衛卫產产傳传愛爱讀读書书醫医護护護护煙烟滅灭";

// By the character's distance from the first one.
constexpr auto kSimplified = [] {
  std::array<char16_t, kHanEnd - kHanBegin> table{};
  for (char32_t c = kHanBegin; c < kHanEnd; ++c) table[c - kHanBegin] = static_cast<char16_t>(c);
  for (std::size_t i = 0; i + 1 < kTraditional.size(); i += 2)
    table[kTraditional[i] - kHanBegin] = static_cast<char16_t>(kTraditional[i + 1]);
  return table;
}();

constexpr auto kAscii = [] {
  std::array<char, 128> table{};
  for (int c = 0; c < 128; ++c)
    table[static_cast<std::size_t>(c)] = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const unsigned char space : {'\t', '\n', '\r'}) table[space] = ' ';
  table[';'] = ',';
  table['`'] = '\'';
  return table;
}();

char32_t normal(char32_t c) {
  if (c >= kHanBegin && c < kHanEnd) return kSimplified[c - kHanBegin];
  if (c >= 0xFF01 && c <= 0xFF5E) c -= 0xFEE0;  // full width
  if (c < 0x80) return static_cast<unsigned char>(kAscii[c]);
  switch (c) {
    case 0x3000:
    case 0xA0:
    case 0x2009:
    case 0x202F:
    case 0x200B:
    case 0xFEFF: return U' ';
    case U'、': return U',';
    case U'。': return U'.';
    case U'–':
    case U'—':
    case U'―':
    case U'ー':
    case U'−':
    case U'‐':
    case U'‑': return U'-';
    case U'〜': return U'~';
    case U'’':
    case U'‘':
    case U'´':
    case U'′': return U'\'';
    case U'“':
    case U'”':
    case U'″': return U'"';
    case U'【':
    case U'「':
    case U'《': return U'(';
    case U'】':
    case U'」':
    case U'》': return U')';
    case U'〇':
    case U'○': return U'零';
    default: return c;
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

// One letter left out, typed twice over or too many, or two swapped. Another letter makes another word: Sundar, sundae.
bool is_slip(std::string_view word, std::string_view right) {
  if (word.front() != right.front()) return false;
  const std::size_t same = static_cast<std::size_t>(
      std::mismatch(word.begin(), word.end(), right.begin(), right.end()).first - word.begin());
  const auto rest = [&](std::string_view text, std::size_t skipped) {
    return text.substr(std::min(text.size(), same + skipped));
  };
  if (word.size() + 1 == right.size()) return rest(word, 0) == rest(right, 1);
  if (word.size() == right.size() + 1) return rest(word, 1) == rest(right, 0);
  return word.size() == right.size() && same + 1 < word.size() && word[same] == right[same + 1] &&
         word[same + 1] == right[same] && rest(word, 2) == rest(right, 2);
}

class Scanner {
 public:
  Scanner(std::string_view text, Tokens& out) : text_(text), out_(out) {}

  Result<> run() {
    BELFRY_CHECK(decode());
    out_.text = text_;
    out_.make_room(2 * count_);  // no character makes more than two
    while (at_ < count_) step();
    for (std::size_t i = 0; i < Tokens::kEnds; ++i) out_.add().kind = Kind::end_of_text;
    out_.count -= Tokens::kEnds;
    return {};
  }

 private:
  Result<> decode() {
    if (text_.size() > kTextBytesMax)
      return fail(Errc::too_large,
                  fmt::format("the expression has {} bytes; at most {} are read", text_.size(), kTextBytesMax));
    std::size_t written = 0;
    for (std::size_t i = 0; i < text_.size();) {
      places_[count_] = {static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(written)};
      if (const auto byte = static_cast<unsigned char>(text_[i]); byte >= 0x20 && byte < 0x7F) {
        codes_[count_++] = static_cast<unsigned char>(out_.normal[written++] = kAscii[byte]);
        ++i;
        continue;
      }
      if (const char32_t han = han_at(i); han != 0) {
        codes_[count_++] = kSimplified[han - kHanBegin];
        written += write_utf8(&out_.normal[written], static_cast<unsigned>(codes_[count_ - 1]));
        i += 3;
        continue;
      }
      char32_t code = 0;
      const int length = utf8_sequence(text_.substr(i), &code);
      if (length == 0) return fail(Errc::invalid_argument, fmt::format("byte {} of the expression is not UTF-8", i));
      if ((code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7F)
        return fail(Errc::invalid_argument, fmt::format("byte {} of the expression is a control character", i));
      codes_[count_] = normal(code);
      // No normal form has more bytes than the character itself.
      written += write_utf8(&out_.normal[written], static_cast<unsigned>(codes_[count_]));
      ++count_;
      i += static_cast<std::size_t>(length);
    }
    codes_[count_] = codes_[count_ + 1] = codes_[count_ + 2] = 0;  // no rule goes on from here
    places_[count_] = {static_cast<std::uint16_t>(text_.size()), static_cast<std::uint16_t>(written)};
    return {};
  }

  // The character of three bytes at this place if it is a Chinese one, else 0.
  char32_t han_at(std::size_t i) const {
    if (i + 3 > text_.size()) return 0;
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text_[i + k]); };
    if (byte(0) < 0xE4 || byte(0) > 0xE9 || (byte(1) & 0xC0) != 0x80 || (byte(2) & 0xC0) != 0x80) return 0;
    const char32_t code = (byte(0) & 15u) << 12 | (byte(1) & 63u) << 6 | (byte(2) & 63u);
    return code >= kHanBegin ? code : 0;
  }

  char32_t peek(std::size_t ahead = 0) const { return codes_[at_ + ahead]; }

  std::string_view normal_text(std::size_t from, std::size_t to) const {
    return {&out_.normal[places_[from].normal], static_cast<std::size_t>(places_[to].normal - places_[from].normal)};
  }

  Token& add(std::size_t from, std::size_t to, Kind kind, double value) {
    Token& token = out_.add();
    token.kind = kind;
    token.value = value;
    token.begin = places_[from].text;
    token.end = places_[to].text;
    token.space_before = from == 0 || codes_[from - 1] == U' ';
    token.word = normal_text(from, to);
    token.han = is_han(codes_[from]);
    return token;
  }

  Token& push(std::size_t to, Kind kind, double value) {
    Token& token = add(at_, to, kind, value);
    at_ = to;
    return token;
  }

  const Token* last() const { return out_.count > 0 ? out_.first + out_.count - 1 : nullptr; }

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
    while (to < count_ && is_digit(codes_[to])) {
      value = value * 10 + static_cast<double>(codes_[to] - U'0');
      ++to;
    }
    const std::size_t count = to - at_;
    // 1st, 2nd, 3rd, 4th
    const auto suffix = [&](char32_t a, char32_t b) {
      return to + 2 <= count_ && codes_[to] == a && codes_[to + 1] == b &&
             (to + 2 == count_ || !is_letter(codes_[to + 2]));
    };
    const bool ordinal =
        count <= 3 && (suffix(U's', U't') || suffix(U'n', U'd') || suffix(U'r', U'd') || suffix(U't', U'h'));
    Token& token = push(ordinal ? to + 2 : to, ordinal ? Kind::ordinal : Kind::number, value);
    token.digits = static_cast<std::uint8_t>(std::min<std::size_t>(count, 255));
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
    while (to < count_) {
      const char32_t c = codes_[to];
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
    const char32_t behind = to < count_ ? codes_[to] : 0;
    const int first_digit = static_cast<int>(plain) / 10;
    const int last_digit = static_cast<int>(plain) % 10;
    const bool listed = last() && last()->kind == Kind::weekday;  // 周一三五
    const bool about = !scaled && plain_digits == 2 && first_digit > 0 && behind != U'年' && !listed &&
                       (last_digit == first_digit + 1 || plain == 35);
    if (about) plain = first_digit, plain_digits = 1;
    const double value = scaled ? total + section + std::max(digit, 0.0) : plain;
    const std::size_t count = scaled ? 0 : plain_digits;
    Token& token = push(to, Kind::number, value);
    token.digits = static_cast<std::uint8_t>(std::min<std::size_t>(count, 255));
    token.by_word = true;
    return true;
  }

  const Word* han_word(std::uint64_t hash, std::size_t length) const {
    const Dictionary::Entry* entry = words_.find(hash);
    return entry && entry->text == normal_text(at_, at_ + length) ? entry->word : nullptr;
  }

  // The longest word of the tables that begins here; how many characters it has.
  std::pair<const Word*, std::size_t> longest_han_word() const {
    static constexpr std::size_t kLongest = 10;
    const std::uint32_t lengths = words_.lengths(peek());
    const std::size_t most = std::min({kLongest, count_ - at_, static_cast<std::size_t>(std::bit_width(lengths))});
    std::array<std::uint64_t, kLongest + 1> hashes;  // filled up to `most`
    WordHash hash;
    for (std::size_t n = 1; n <= most; ++n) {
      hash.add(codes_[at_ + n - 1]);
      hashes[n] = hash.value();
    }
    for (std::size_t n = most; n > 0; --n) {
      if ((lengths >> n & 1) == 0) continue;
      if (const Word* word = han_word(hashes[n], n)) return {word, n};
    }
    return {nullptr, 0};
  }

  void han() {
    auto [found, length] = longest_han_word();
    // 九月初九, 10月底, 19年底: behind a number 月 and 年 are marks, and the rest stands by itself.
    const bool edge =
        found && (found->second == Kind::end || found->second == Kind::begin || found->second == Kind::middle);
    if (edge && last() && last()->kind == Kind::number && last()->end == places_[at_].text) {
      length = 1;
      WordHash hash;
      hash.add(peek());
      found = han_word(hash.value(), 1);
    }
    const char32_t c = peek();
    const bool numeral = han_digit(c) >= 0 || han_scale(c) != 0 || c == U'廿' || c == U'卅';
    // 零 alone is "and"; at the front of a number it is part of it (零五分).
    if (numeral && (!found || length == 1) && han_number()) return;
    if (!found)
      push(at_ + 1, Kind::other, 0);
    else
      take(*found, length);
  }

  void take(const Word& word, std::size_t length) {
    const std::size_t from = at_;
    push(at_ + length, word.kind, word.value).by_word = word.kind == Kind::number;
    if (word.second == Kind::other) return;
    add(from, from + length, word.second, word.second_value).space_before = false;
  }

  bool letter_at(std::size_t i) const { return is_letter(codes_[i]); }

  // Hashes a word as the tables have it, without apostrophes; where it ends.
  std::size_t read_word(std::size_t i, WordHash& hash) const {
    const std::size_t begin = i;
    while (true) {
      const char32_t c = codes_[i];
      if (is_letter(c))
        hash.add(c);
      else if (c != U'\'' || i == begin || !letter_at(i + 1))
        break;
      ++i;
    }
    if (codes_[i] == U'\'' && codes_[i - 1] == U's' && (i + 1 == count_ || codes_[i + 1] == U' ')) ++i;  // workers'
    return i;
  }

  // Behind what may stand between the words of a phrase; the same place if no word follows.
  std::size_t skip_gap(std::size_t i) const {
    const std::size_t begin = i;
    while ((codes_[i] == U' ' || codes_[i] == U'-' || codes_[i] == U'.') && i - begin < 3) ++i;
    return letter_at(i) ? i : begin;
  }

  // Whether the characters up to `end` are these words, but for apostrophes and what stands between the words.
  bool is_phrase(std::string_view words, std::size_t end) const {
    std::size_t i = at_;
    for (std::size_t k = 0; k < words.size();) {
      while (i < end && codes_[i] == U'\'') ++i;
      if (i >= end) return false;
      if (words[k] == ' ') {
        const std::size_t behind = skip_gap(i);
        if (behind == i) return false;
        i = behind;
        ++k;
        continue;
      }
      char32_t c = 0;
      k += static_cast<std::size_t>(utf8_sequence(words.substr(k), &c));
      if (codes_[i++] != c) return false;
    }
    return true;
  }

  const Dictionary::Entry* entry_up_to(std::size_t end, WordHash hash) const {
    const Dictionary::Entry* entry = words_.find(hash.value());
    if (!entry) return nullptr;
    return entry->text == normal_text(at_, end) || is_phrase(entry->text, end) ? entry : nullptr;
  }

  // The day that was meant by a word with a slip of the finger: a time of day behind it must not stand alone.
  const Word* meant(std::string_view word) const {
    static constexpr std::string_view kDays[] = {"tomorrow", "monday",   "tuesday", "wednesday", "thursday",
                                                 "friday",   "saturday", "sunday",  "tonight",   "yesterday"};
    if (word.size() < 5 || word.size() > 10) return nullptr;
    for (const std::string_view day : kDays)
      if (is_slip(word, day)) return words_.word(day);
    return nullptr;
  }

  // Words with spaces in them ("day after tomorrow") go before shorter ones.
  void latin() {
    WordHash hash;
    std::size_t behind = read_word(at_, hash);
    const std::size_t first_end = behind;
    const Dictionary::Entry* first = entry_up_to(behind, hash);
    const Word* found = first ? first->word : nullptr;
    std::size_t end = first_end;
    for (int words = 1; first && words < first->words_most; ++words) {
      const std::size_t next = skip_gap(behind);
      if (next == behind) break;
      hash.add(U' ');
      behind = read_word(next, hash);
      const Dictionary::Entry* longer = entry_up_to(behind, hash);
      if (longer && longer->word) found = longer->word, end = behind;
    }
    if (!found) found = meant(normal_text(at_, first_end));
    if (!found) {
      push(first_end, Kind::other, 0);
      return;
    }
    take(*found, end - at_);
    // "a.m." and "p.m.": the last dot belongs to it; "Aug." too.
    if (peek() == U'.' &&
        (found->kind == Kind::meridiem || found->kind == Kind::month || found->kind == Kind::weekday) &&
        !is_digit(peek(1))) {
      ++at_;
      out_.first[out_.count - 1].end = places_[at_].text;
    }
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

  struct Place {
    std::uint16_t text;    // where the character begins in the given text,
    std::uint16_t normal;  // and in the normal one
  };
  const Dictionary& words_ = Dictionary::get();
  std::string_view text_;
  Tokens& out_;
  std::size_t count_ = 0;  // of characters
  std::size_t at_ = 0;
  std::array<char32_t, kTextBytesMax + 3> codes_;  // normal forms; filled up to `count_`, and zeros behind
  std::array<Place, kTextBytesMax + 1> places_;
};

}  // namespace

Result<> scan(std::string_view text, Tokens& out) { return Scanner(text, out).run(); }

}  // namespace belfry::when
