// ECMA-262 to RE2. Everything that is no syntax is written as `\x{…}`, so that RE2 finds no meaning of its own in it.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/tool/schema/pattern.h"

namespace belfry::tool {
namespace {

// ECMA's white space and line ends; RE2's own \s is ASCII only. Written for the inside of brackets.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff})";
constexpr std::string_view kAnyButLineEnd = R"([^\x{a}\x{d}\x{2028}\x{2029}])";
constexpr std::string_view kNothing = R"([^\x{0}-\x{10ffff}])";
constexpr std::string_view kAnything = R"([\x{0}-\x{10ffff}])";

struct Category {
  std::string_view name;
  std::string_view re2;
};

// RE2 knows the short names of the general categories only.
constexpr std::array kCategories{
    Category{"Letter", "L"},
    Category{"Cased_Letter", "LC"},
    Category{"Uppercase_Letter", "Lu"},
    Category{"Lowercase_Letter", "Ll"},
    Category{"Titlecase_Letter", "Lt"},
    Category{"Modifier_Letter", "Lm"},
    Category{"Other_Letter", "Lo"},
    Category{"Mark", "M"},
    Category{"Combining_Mark", "M"},
    Category{"Nonspacing_Mark", "Mn"},
    Category{"Spacing_Mark", "Mc"},
    Category{"Enclosing_Mark", "Me"},
    Category{"Number", "N"},
    Category{"Decimal_Number", "Nd"},
    Category{"digit", "Nd"},
    Category{"Letter_Number", "Nl"},
    Category{"Other_Number", "No"},
    Category{"Punctuation", "P"},
    Category{"punct", "P"},
    Category{"Connector_Punctuation", "Pc"},
    Category{"Dash_Punctuation", "Pd"},
    Category{"Open_Punctuation", "Ps"},
    Category{"Close_Punctuation", "Pe"},
    Category{"Initial_Punctuation", "Pi"},
    Category{"Final_Punctuation", "Pf"},
    Category{"Other_Punctuation", "Po"},
    Category{"Symbol", "S"},
    Category{"Math_Symbol", "Sm"},
    Category{"Currency_Symbol", "Sc"},
    Category{"Modifier_Symbol", "Sk"},
    Category{"Other_Symbol", "So"},
    Category{"Separator", "Z"},
    Category{"Space_Separator", "Zs"},
    Category{"Line_Separator", "Zl"},
    Category{"Paragraph_Separator", "Zp"},
    Category{"Other", "C"},
    Category{"Control", "Cc"},
    Category{"cntrl", "Cc"},
    Category{"Format", "Cf"},
    Category{"Surrogate", "Cs"},
    Category{"Private_Use", "Co"},
};

std::string_view category(std::string_view name) {
  const auto found = std::ranges::find(kCategories, name, &Category::name);
  return found == kCategories.end() ? name : found->re2;
}

std::string literal(char32_t point) { return fmt::format("\\x{{{:x}}}", static_cast<unsigned>(point)); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// One thing that matches one character: a character, or a set as RE2 writes it between brackets.
struct Atom {
  char32_t point = 0;
  std::string set;

  bool is_set() const { return !set.empty(); }
};

class Translator {
 public:
  explicit Translator(std::string_view ecma) : text_(ecma) {}

  Result<std::string> run() {
    while (!at_end()) BELFRY_CHECK(term());
    return std::move(out_);
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  std::string_view rest() const { return text_.substr(at_); }
  bool take(std::string_view wanted) {
    if (!rest().starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  std::unexpected<Error> wrong(std::string_view what) const {
    return fail(Errc::invalid_argument, fmt::format("{} (at byte {})", what, at_));
  }
  Result<> emit(std::string_view text) {
    out_ += text;
    return {};
  }

  Result<char32_t> next() {
    char32_t point = 0;
    const int length = utf8_sequence(rest(), &point);
    if (length == 0) return wrong(at_end() ? "it ends in the middle" : "it is not UTF-8");
    at_ += static_cast<std::size_t>(length);
    return point;
  }

  Result<> term() {
    if (rest().starts_with('(')) return group();
    if (rest().starts_with('[')) return set();
    if (rest().starts_with('\\')) return escape();
    if (take(".")) return emit(kAnyButLineEnd);
    if (rest().starts_with('{')) return braces();
    BELFRY_TRY(const char32_t point, next());
    if (point < 0x80 && std::string_view("^$|)*+?").contains(static_cast<char>(point))) {
      return emit({text_.data() + at_ - 1, 1});
    }
    return emit(literal(point));
  }

  Result<> group() {
    if (rest().starts_with("(?=") || rest().starts_with("(?!")) return wrong("lookahead is not supported");
    if (rest().starts_with("(?<=") || rest().starts_with("(?<!")) return wrong("lookbehind is not supported");
    if (take("(?:")) return emit("(?:");
    if (take("(?<")) {
      const std::size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_) return wrong("a group's name has no end");
      at_ = end + 1;
      return emit("(?:");
    }
    if (rest().starts_with("(?")) return wrong("flags and other groups with (? are not supported");
    take("(");
    return emit("(?:");
  }

  // A count as in `a{2,5}`; other braces are meant as they stand.
  Result<> braces() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == ',')) ++end;
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    const bool closed = end < text_.size() && text_[end] == '}';
    if (closed && inner.starts_with(',')) return wrong("a count has no beginning; write {0,n}");
    ++at_;
    if (!closed || inner.empty() || std::ranges::count(inner, ',') > 1) return emit("\\{");
    at_ = end + 1;
    if (goes_backwards(inner)) return wrong("a count goes backwards");
    return emit(fmt::format("{{{}}}", inner));
  }

  // `5,2`; numbers too long to read are too large for RE2 anyway.
  static bool goes_backwards(std::string_view count) {
    const std::size_t comma = count.find(',');
    if (comma == std::string_view::npos || comma + 1 == count.size()) return false;
    unsigned least = 0;
    unsigned most = 0;
    const bool read = std::from_chars(count.data(), count.data() + comma, least).ec == std::errc{} &&
                      std::from_chars(count.data() + comma + 1, count.data() + count.size(), most).ec == std::errc{};
    return read && most < least;
  }

  Result<> escape() {
    if (take("\\b")) return emit("\\b");
    if (take("\\B")) return emit("\\B");
    if (rest().starts_with("\\k") || (rest().size() > 1 && text_[at_ + 1] >= '1' && text_[at_ + 1] <= '9'))
      return wrong("backreferences are not supported");
    BELFRY_TRY(const Atom atom, escaped_atom());
    return emit(atom.is_set() ? "[" + atom.set + "]" : literal(atom.point));
  }

  Result<> set() {
    take("[");
    const bool negated = take("^");
    if (take("]")) return emit(negated ? kAnything : kNothing);
    out_ += negated ? "[^" : "[";
    while (!take("]")) {
      if (at_end()) return wrong("a set has no closing ]");
      BELFRY_CHECK(range());
    }
    return emit("]");
  }

  // `a`, `a-z` or `\d`; a `-` that has no character on both sides is meant as it stands.
  Result<> range() {
    BELFRY_TRY(const Atom from, set_atom());
    if (from.is_set()) return emit(from.set);
    const std::size_t before = at_;
    if (!take("-") || rest().starts_with(']')) return at_ = before, emit(literal(from.point));
    BELFRY_TRY(const Atom to, set_atom());
    if (to.is_set()) return emit(literal(from.point) + literal('-') + to.set);
    if (to.point < from.point) return wrong("a range in [] goes backwards");
    return emit(literal(from.point) + "-" + literal(to.point));
  }

  Result<Atom> set_atom() {
    if (take("\\b")) return Atom{.point = '\b'};
    if (rest().starts_with('\\')) return escaped_atom();
    BELFRY_TRY(const char32_t point, next());
    return Atom{.point = point};
  }

  Result<Atom> escaped_atom() {
    take("\\");
    BELFRY_TRY(const char32_t point, next());
    switch (point) {
      case 'd': return Atom{.set = "\\d"};
      case 'D': return Atom{.set = "\\D"};
      case 'w': return Atom{.set = "\\w"};
      case 'W': return Atom{.set = "\\W"};
      case 's': return Atom{.set = std::string(kSpace)};
      case 'S': return Atom{.set = std::string(kNotSpace)};
      case 't': return Atom{.point = '\t'};
      case 'n': return Atom{.point = '\n'};
      case 'v': return Atom{.point = '\v'};
      case 'f': return Atom{.point = '\f'};
      case 'r': return Atom{.point = '\r'};
      case '0': return Atom{.point = 0};
      case 'c': return control();
      case 'x': return hexadecimal(2);
      case 'u': return unicode();
      case 'p':
      case 'P': return property(point == 'P');
      default: break;
    }
    // ECMA-262 wants only syntax escaped; `\@` and `\_` are common all the same and have one meaning.
    if (is_letter(point) || (point < 0x80 && is_digit(static_cast<char>(point))))
      return wrong(fmt::format("\\{} is no escape", static_cast<char>(point)));
    return Atom{.point = point};
  }

  Result<Atom> control() {
    BELFRY_TRY(const char32_t letter, next());
    if (!is_letter(letter)) return wrong("a letter belongs behind \\c");
    return Atom{.point = letter % 32};
  }

  Result<Atom> hexadecimal(std::size_t length) {
    unsigned value = 0;
    const char* const begin = rest().data();
    const char* const end = begin + std::min(length, rest().size());
    const auto read = std::from_chars(begin, end, value, 16);
    if (read.ptr != begin + length || read.ec != std::errc{}) return wrong("hexadecimal digits are missing");
    at_ += length;
    return Atom{.point = value};
  }

  Result<Atom> unicode() {
    if (take("{")) {
      const std::size_t length = rest().find('}');
      if (length == 0 || length == std::string_view::npos || length > 6)
        return wrong("\\u{…} is not closed or too long");
      BELFRY_TRY(const Atom atom, hexadecimal(length));
      take("}");
      return checked(atom);
    }
    BELFRY_TRY(Atom atom, hexadecimal(4));
    if (atom.point >= 0xD800 && atom.point <= 0xDBFF && take("\\u")) {
      BELFRY_TRY(const Atom low, hexadecimal(4));
      if (low.point < 0xDC00 || low.point > 0xDFFF) return wrong("half of a surrogate pair");
      atom.point = 0x10000 + ((atom.point - 0xD800) << 10) + (low.point - 0xDC00);
    }
    return checked(atom);
  }

  Result<Atom> checked(Atom atom) const {
    if (atom.point > 0x10FFFF) return wrong("there is no such character");
    if (atom.point >= 0xD800 && atom.point <= 0xDFFF) return wrong("half of a surrogate pair");
    return atom;
  }

  Result<Atom> property(bool negated) {
    const std::size_t end = text_.find('}', at_);
    if (!take("{") || end == std::string_view::npos) return wrong("\\p is followed by a name in braces");
    std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    for (const std::string_view prefix : {"General_Category=", "gc=", "Script=", "sc="})
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    if (name == "Any" && !negated) return Atom{.set = R"(\x{0}-\x{10ffff})"};
    if (name == "ASCII") return Atom{.set = negated ? R"(\x{80}-\x{10ffff})" : R"(\x{0}-\x{7f})"};
    const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) { return is_letter(c) || c == '_'; });
    if (!plain) return wrong(fmt::format("the property \"{}\" is not supported", name));
    if (category(name) == "LC") return Atom{.set = negated ? R"(\P{L}\p{Lm}\p{Lo})" : R"(\p{Lu}\p{Ll}\p{Lt})"};
    return Atom{.set = fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', category(name))};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> to_re2(std::string_view ecma) { return Translator(ecma).run(); }

}  // namespace belfry::tool
