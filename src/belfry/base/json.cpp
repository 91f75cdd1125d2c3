#include "belfry/base/json.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"

namespace belfry::json {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Payloads are mostly plain text: eight bytes at a time.
constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

constexpr std::uint64_t below(std::uint64_t word, unsigned char byte) { return (word - kOnes * byte) & ~word & kHighs; }
constexpr std::uint64_t equal(std::uint64_t word, char byte) {
  return below(word ^ (kOnes * static_cast<unsigned char>(byte)), 1);
}

// The length of the part before the first byte that matches; `any_of_eight` may be wrong only about which of the eight.
template <class Any, class One>
std::size_t run_before(std::string_view text, Any any_of_eight, One one) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if (any_of_eight(word) != 0) break;
  }
  while (at < text.size() && !one(text[at])) ++at;
  return at;
}

// Neither quote nor backslash, no control character, no byte of a longer character.
std::size_t plain_run(std::string_view text) {
  return run_before(
      text,
      [](std::uint64_t word) { return (word & kHighs) | below(word, 0x20) | equal(word, '"') | equal(word, '\\'); },
      [](char c) { return static_cast<signed char>(c) < 0x20 || c == '"' || c == '\\'; });
}

std::size_t run_without_quote(std::string_view text) {
  return run_before(
      text, [](std::uint64_t word) { return equal(word, '"') | equal(word, '\\'); },
      [](char c) { return c == '"' || c == '\\'; });
}

// Checks a text from the front. `problem_` keeps the first thing that was wrong.
class Checker {
 public:
  Checker(std::string_view text, int depth_max) : text_(text), depth_max_(depth_max) {}

  Result<Value> document() {
    skip_space();
    if (at_end()) return fail(Errc::invalid_json, "the text is empty; a JSON value was expected");
    const std::size_t start = at_;
    Kind kind{};
    if (!value(kind, 0)) return problem();
    const std::string_view raw = text_.substr(start, at_ - start);
    skip_space();
    if (!at_end()) return wrong("text after the end of the JSON value"), problem();
    return Value{kind, raw};
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  bool wrong(std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{} at byte {}", what, at_);
    return false;
  }
  std::unexpected<Error> problem() const { return fail(Errc::invalid_json, problem_); }

  bool value(Kind& kind, int depth) {
    switch (peek()) {
      case '{': kind = Kind::object; return object(depth + 1);
      case '[': kind = Kind::array; return array(depth + 1);
      case '"': kind = Kind::string; return string();
      case 't': kind = Kind::boolean; return literal("true");
      case 'f': kind = Kind::boolean; return literal("false");
      case 'n': kind = Kind::null; return literal("null");
      default: kind = Kind::number; return number();
    }
  }

  bool literal(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return wrong("an unknown word; true, false or null was expected");
    at_ += wanted.size();
    return true;
  }

  bool number() {
    if (peek() == '-') ++at_;
    if (!is_digit(peek())) return wrong("a JSON value was expected");
    if (peek() == '0') {
      ++at_;
    } else {
      digits();
    }
    if (peek() == '.') {
      ++at_;
      if (!digits()) return wrong("a digit was expected after the decimal point");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return wrong("a digit was expected in the exponent");
    }
    return true;
  }

  bool digits() {
    const std::size_t start = at_;
    while (is_digit(peek())) ++at_;
    return at_ > start;
  }

  bool hex4(unsigned& out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = at_end() ? -1 : hex_digit(text_[at_]);
      if (digit < 0) return wrong("four hexadecimal digits were expected after \\u");
      out = out * 16 + static_cast<unsigned>(digit);
    }
    return true;
  }

  bool escape() {
    const char c = peek();
    ++at_;
    if (c == 'u') {
      unsigned unit = 0;
      if (!hex4(unit)) return false;
      if (unit >= 0xDC00 && unit <= 0xDFFF) return wrong("half of a surrogate pair");
      if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (text_.substr(at_, 2) != "\\u") return wrong("half of a surrogate pair");
        at_ += 2;
        if (!hex4(unit)) return false;
        if (unit < 0xDC00 || unit > 0xDFFF) return wrong("half of a surrogate pair");
      }
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos || c == '\0') {
      --at_;
      return wrong("an unknown escape in a string");
    }
    return true;
  }

  bool string() {
    ++at_;
    while (true) {
      at_ += plain_run(text_.substr(at_));
      if (at_end()) return wrong("a string without its closing quote");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        ++at_;
        if (at_end()) return wrong("a string without its closing quote");
        if (!escape()) return false;
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) return wrong("a control character in a string; write it as an escape");
      const int length = utf8_sequence(text_.substr(at_));
      if (length == 0) return wrong("invalid UTF-8");
      at_ += static_cast<std::size_t>(length);
    }
  }

  bool enter(int depth) {
    if (depth > depth_max_) return wrong(fmt::format("{} {}", kTooDeep, depth_max_));
    ++at_;
    skip_space();
    return true;
  }

  bool object(int depth) {
    if (!enter(depth)) return false;
    if (peek() == '}') return ++at_, true;
    while (true) {
      if (peek() != '"') return wrong("a member name in quotes was expected");
      if (!string()) return false;
      skip_space();
      if (peek() != ':') return wrong("a colon was expected after the member name");
      ++at_;
      skip_space();
      Kind kind{};
      if (!value(kind, depth)) return false;
      skip_space();
      if (peek() == '}') return ++at_, true;
      if (peek() != ',') return wrong("a comma or } was expected");
      ++at_;
      skip_space();
    }
  }

  bool array(int depth) {
    if (!enter(depth)) return false;
    if (peek() == ']') return ++at_, true;
    while (true) {
      Kind kind{};
      if (!value(kind, depth)) return false;
      skip_space();
      if (peek() == ']') return ++at_, true;
      if (peek() != ',') return wrong("a comma or ] was expected");
      ++at_;
      skip_space();
    }
  }

  std::string_view text_;
  int depth_max_;
  std::size_t at_ = 0;
  std::string problem_;
};

// Walks a text that was checked before, so it only looks for where things end.
class Walker {
 public:
  explicit Walker(std::string_view checked) : text_(checked) {}

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  char next() { return text_[at_++]; }
  char peek() const { return text_[at_]; }

  Value value() {
    const std::size_t start = at_;
    const char c = peek();
    Kind kind = Kind::number;
    if (c == '"') {
      kind = Kind::string;
      skip_string();
    } else if (c == '{' || c == '[') {
      kind = c == '{' ? Kind::object : Kind::array;
      skip_nested();
    } else {
      if (c == 't' || c == 'f') kind = Kind::boolean;
      if (c == 'n') kind = Kind::null;
      while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != ',' && text_[at_] != '}' && text_[at_] != ']')
        ++at_;
    }
    return {kind, text_.substr(start, at_ - start)};
  }

 private:
  void skip_string() {
    ++at_;
    while (true) {
      at_ += run_without_quote(text_.substr(at_));
      if (text_[at_] == '"') break;
      at_ += 2;
    }
    ++at_;
  }

  void skip_nested() {
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at_;
    } while (depth > 0);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

unsigned read_hex4(std::string_view digits) {
  unsigned unit = 0;
  for (int i = 0; i < 4; ++i) unit = unit * 16 + static_cast<unsigned>(hex_digit(digits[static_cast<std::size_t>(i)]));
  return unit;
}

template <class Integer>
bool read_all(std::string_view text, Integer& out) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  return read.ec == std::errc{} && read.ptr == end;
}

// Calls `visit(key, value)` for each member until it returns false.
template <class Visit>
void each_member(Value object, Visit visit) {
  BELFRY_ASSERT(object.kind == Kind::object);
  Walker walk(object.raw);
  walk.next();
  walk.skip_space();
  while (walk.peek() != '}') {
    const Value key = walk.value();
    walk.skip_space();
    walk.next();
    walk.skip_space();
    const Value content = walk.value();
    if (!visit(key, content)) return;
    walk.skip_space();
    if (walk.peek() == ',') walk.next();
    walk.skip_space();
  }
}

}  // namespace

Result<Value> parse(std::string_view text, int depth_max) { return Checker(text, depth_max).document(); }

Result<std::vector<Member>> members(Value object) {
  std::vector<Member> found;
  std::string twice;
  each_member(object, [&](Value key, Value content) {
    std::string name = text(key);
    for (const Member& member : found)
      if (member.key == name) twice = name;
    found.push_back({std::move(name), content});
    return twice.empty() && found.size() <= 64;
  });
  if (!twice.empty()) return fail(Errc::invalid_json, fmt::format("the field \"{}\" stands twice", twice));
  if (found.size() > 64) return fail(Errc::unknown_field, "the object has more than 64 fields");
  return found;
}

std::vector<Member> every_member(Value object) {
  std::vector<Member> found;
  each_member(object, [&](Value key, Value content) {
    found.push_back({text(key), content});
    return true;
  });
  return found;
}

std::optional<Value> find(Value object, std::string_view key) {
  std::optional<Value> found;
  each_member(object, [&](Value name, Value content) {
    if (text(name) != key) return true;
    found = content;
    return false;
  });
  return found;
}

std::string text_in(Value object, std::string_view key) {
  const auto found = find(object, key);
  return found && found->kind == Kind::string ? text(*found) : std::string();
}

std::vector<Value> elements(Value array) {
  BELFRY_ASSERT(array.kind == Kind::array);
  std::vector<Value> found;
  Walker walk(array.raw);
  walk.next();
  walk.skip_space();
  while (walk.peek() != ']') {
    found.push_back(walk.value());
    walk.skip_space();
    if (walk.peek() == ',') walk.next();
    walk.skip_space();
  }
  return found;
}

std::string text(Value string) {
  BELFRY_ASSERT(string.kind == Kind::string);
  const std::string_view inner = string.raw.substr(1, string.raw.size() - 2);
  std::string out;
  out.reserve(inner.size());
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      out += inner[i];
      continue;
    }
    switch (const char c = inner[++i]; c) {
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u': {
        unsigned point = read_hex4(inner.substr(i + 1));
        i += 4;
        if (point >= 0xD800 && point <= 0xDBFF) {
          point = 0x10000 + ((point - 0xD800) << 10) + (read_hex4(inner.substr(i + 3)) - 0xDC00);
          i += 6;
        }
        append_utf8(out, point);
        break;
      }
      default: out += c;
    }
  }
  return out;
}

bool boolean(Value value) { return value.raw == "true"; }

std::optional<std::int64_t> integer(Value number) {
  if (number.kind != Kind::number) return std::nullopt;
  std::int64_t whole = 0;
  if (read_all(number.raw, whole)) return whole;

  // `5.0`, `50e-1`: move the point by the exponent and see that no digit is left behind it.
  const bool negative = number.raw.starts_with('-');
  const std::size_t e = std::min(number.raw.find_first_of("eE"), number.raw.size());
  std::string digits;
  std::int64_t shift = 0;
  bool behind_point = false;
  for (const char c : number.raw.substr(0, e).substr(negative ? 1 : 0)) {
    behind_point = behind_point || c == '.';
    if (c == '.' || (c == '0' && digits.empty() && !behind_point)) continue;
    digits += c;
    shift -= behind_point ? 1 : 0;
  }
  for (; !digits.empty() && digits.back() == '0'; ++shift) digits.pop_back();
  if (digits.find_first_not_of('0') == std::string::npos) return 0;
  std::string_view exponent_text = number.raw.substr(e);
  if (!exponent_text.empty()) exponent_text.remove_prefix(1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  std::int32_t exponent = 0;
  if (!exponent_text.empty() && !read_all(exponent_text, exponent)) return std::nullopt;
  shift += exponent;
  if (shift < 0 || shift > 18) return std::nullopt;  // 19 digits are the most there are
  digits.append(static_cast<std::size_t>(shift), '0');
  if (negative) digits.insert(0, 1, '-');
  return read_all(digits, whole) ? std::optional(whole) : std::nullopt;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "a boolean";
    case Kind::number: return "a number";
    case Kind::string: return "a string";
    case Kind::array: return "an array";
    case Kind::object: return "an object";
  }
  assertion_failed("a known kind", __FILE__, __LINE__);
}

void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t plain = plain_run(text.substr(i));
    out += text.substr(i, plain);
    i += plain;
    if (i == text.size()) break;
    const char c = text[i];
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += "\\u00";
          out += kHex[(c >> 4) & 15];
          out += kHex[c & 15];
        } else if (const auto length = static_cast<std::size_t>(utf8_sequence(text.substr(i))); length > 0) {
          out += text.substr(i, length);
          i += length - 1;
        } else {
          out += "\xEF\xBF\xBD";  // U+FFFD: error messages quote what came from outside, whatever that was
        }
    }
  }
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

void Writer::separate() {
  if (!first_) out_ += ',';
  first_ = false;
}

Writer& Writer::open(char first, char last) {
  separate();
  out_ += first;
  closers_ += last;
  first_ = true;
  return *this;
}

Writer& Writer::end() {
  BELFRY_ASSERT(!closers_.empty());
  out_ += closers_.back();
  closers_.pop_back();
  first_ = false;
  return *this;
}

Writer& Writer::key(std::string_view name) {
  separate();
  append_quoted(out_, name);
  out_ += ':';
  first_ = true;  // the value that follows wants no comma
  return *this;
}

Writer& Writer::value(std::string_view text) {
  separate();
  append_quoted(out_, text);
  return *this;
}

Writer& Writer::integer_value(std::int64_t number) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

Writer& Writer::unsigned_value(std::uint64_t number) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

Writer& Writer::value(double number) {
  separate();
  if (std::isfinite(number)) {
    fmt::format_to(std::back_inserter(out_), "{}", number);
  } else {
    out_ += "null";  // JSON has no word for it
  }
  return *this;
}

Writer& Writer::raw(std::string_view checked_json) {
  separate();
  out_ += checked_json;
  return *this;
}

}  // namespace belfry::json
