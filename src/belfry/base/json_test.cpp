#include "belfry/base/json.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"

namespace belfry::json {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

// Text with something of everything: escapes, control characters, all lengths of UTF-8.
rc::Gen<std::string> any_text() {
  const auto point = rc::gen::weightedOneOf<unsigned>({
      {4, rc::gen::inRange(0x20u, 0x7Fu)},
      {3, rc::gen::inRange(0x00u, 0x20u)},
      {1, rc::gen::elementOf(std::vector<unsigned>{'"', '\\', '/', 0x7F})},
      {1, rc::gen::inRange(0x80u, 0xD800u)},
      {1, rc::gen::inRange(0xE000u, 0x110000u)},
  });
  return rc::gen::map(rc::gen::container<std::vector<unsigned>>(point), [](const std::vector<unsigned>& points) {
    std::string text;
    for (const unsigned p : points) append_utf8(text, p);
    return text;
  });
}

RC_GTEST_PROP(Json, WrittenTextIsReadBack, ()) {
  const std::string original = *any_text();
  const std::string name = *any_text();

  const std::string written = Writer().object().field(name, original).end().take();

  const auto parsed = parse(written);
  RC_ASSERT(parsed.has_value());
  RC_ASSERT(parsed->kind == Kind::object);
  const auto fields = members(*parsed);
  RC_ASSERT(fields.has_value());
  RC_ASSERT(fields->size() == 1u);
  RC_ASSERT(fields->front().key == name);
  RC_ASSERT(text(fields->front().value) == original);
  RC_ASSERT(text(find(*parsed, name).value()) == original);
}

// Error messages quote what came from outside, whatever that was.
RC_GTEST_PROP(Json, WhateverBytesAreWrittenTheResultIsJson, ()) {
  const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());

  const std::string written = json::quoted(bytes);
  const auto parsed = parse(written);

  RC_ASSERT(parsed.has_value());
  RC_ASSERT(is_utf8(text(*parsed)));
  RC_ASSERT(!is_utf8(bytes) || text(*parsed) == bytes);
}

// A document of any shape, with the number of values in it.
struct Document {
  Writer writer;
  int values = 0;

  void grow(int depth) {
    ++values;
    switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
      case 0: writer.null(); break;
      case 1: writer.value(*rc::gen::arbitrary<bool>()); break;
      case 2: writer.value(*rc::gen::arbitrary<std::int64_t>()); break;
      case 3: writer.value(*rc::gen::arbitrary<double>()); break;
      case 4: writer.value(*any_text()); break;
      case 5: writer.raw(" [ 1 ,\t2 ] "), values += 2; break;
      case 6:
        writer.array();
        for (int n = *rc::gen::inRange(0, 4); n > 0; --n) grow(depth - 1);
        writer.end();
        break;
      default:
        writer.object();
        for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
          writer.key(std::to_string(n) + *any_text());
          grow(depth - 1);
        }
        writer.end();
    }
  }
};

int count_values(Value value) {
  int count = 1;
  if (value.kind == Kind::array)
    for (const Value element : elements(value)) count += count_values(element);
  if (value.kind == Kind::object) {
    const auto fields = members(value);
    RC_ASSERT(fields.has_value());
    for (const Member& member : *fields) count += count_values(member.value);
  }
  return count;
}

RC_GTEST_PROP(Json, WrittenDocumentsOfAnyShapeAreRead, ()) {
  Document document;
  document.grow(4);

  const auto parsed = parse(document.writer.str());

  RC_ASSERT(parsed.has_value());
  RC_ASSERT(count_values(*parsed) == document.values);
}

// Cut, changed or doubled somewhere, a text is refused or read, but nothing breaks.
RC_GTEST_PROP(Json, DamagedDocumentsDoNoHarm, ()) {
  Document document;
  document.grow(3);
  std::string damaged = document.writer.take();
  const auto at = static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(damaged.size()) + 1));
  switch (*rc::gen::inRange(0, 3)) {
    case 0: damaged.resize(at); break;
    case 1: damaged.insert(at, 1, *rc::gen::arbitrary<char>()); break;
    default: damaged.insert(at, damaged);
  }

  const auto parsed = parse(damaged);

  if (parsed) count_values(*parsed);
}

struct Refusal {
  const char* why;
  std::string text;
};

TEST(Json, RefusesWhatIsNotExactlyOneValue) {
  using namespace std::string_literals;
  const std::vector<Refusal> table = {
      {"nothing", ""},
      {"only space", " \n\t "},
      {"two values", "1 2"},
      {"text after the value", "{} x"},
      {"deeper than 64", nested(65)},
      {"trailing comma in an array", "[1,]"},
      {"trailing comma in an object", R"({"a":1,})"},
      {"leading comma", "[,1]"},
      {"missing comma", "[1 2]"},
      {"missing colon", R"({"a" 1})"},
      {"missing value", R"({"a":})"},
      {"name without quotes", "{a:1}"},
      {"single quotes", "['a']"},
      {"unclosed array", "[1"},
      {"unclosed object", R"({"a":1)"},
      {"unclosed string", "\"abc"},
      {"wrong bracket", "[1}"},
      {"comment", "[1] // one"},
      {"leading zero", "01"},
      {"leading zero, negative", "-01"},
      {"plus sign", "+1"},
      {"minus alone", "-"},
      {"no digit before the point", ".5"},
      {"no digit after the point", "1."},
      {"no digit in the exponent", "1e"},
      {"no digit after the exponent's sign", "1e+"},
      {"hexadecimal", "0x10"},
      {"NaN", "NaN"},
      {"Infinity", "Infinity"},
      {"negative infinity", "-Infinity"},
      {"unknown word", "nul"},
      {"word in capitals", "True"},
      {"word with a tail", "truee"},
      {"byte order mark", "\xEF\xBB\xBF{}"},
      {"NUL after the value", "1\0"s},
      {"NUL in an array", "[\0]"s},
      {"NUL in a string", "\"a\0b\""s},
      {"newline in a string", "\"a\nb\""},
      {"tab in a string", "\"a\tb\""},
      {"unknown escape", R"("\x41")"},
      {"escape at the end", "\"\\"},
      {"escaped NUL", "\"\\\0\""s},
      {"short hexadecimal escape", R"("\u12")"},
      {"wrong hexadecimal escape", R"("\u12g4")"},
      {"high surrogate alone", R"("\ud83d")"},
      {"high surrogate before another character", R"("\ud83dx")"},
      {"high surrogate before another escape", R"("\ud83d\n")"},
      {"two high surrogates", R"("\ud83d\ud83d")"},
      {"low surrogate alone", R"("\ude00")"},
      {"UTF-8: continuation alone", "\"\x80\""},
      {"UTF-8: cut sequence", "\"\xE2\x82\""},
      {"UTF-8: overlong slash", "\"\xC0\xAF\""},
      {"UTF-8: overlong NUL", "\"\xC0\x80\""},
      {"UTF-8: encoded surrogate", "\"\xED\xA0\x80\""},
      {"UTF-8: past U+10FFFF", "\"\xF4\x90\x80\x80\""},
      {"UTF-8: five bytes", "\"\xF8\x88\x80\x80\x80\""},
      {"UTF-8: 0xFF", "\"\xFF\""},
      {"UTF-8 in a name", "{\"\xFF\":1}"},
  };
  for (const Refusal& row : table) {
    const auto parsed = parse(row.text);
    ASSERT_FALSE(parsed.has_value()) << row.why;
    EXPECT_EQ(parsed.error().code, Errc::invalid_json) << row.why;
    EXPECT_FALSE(parsed.error().detail.empty()) << row.why;
    EXPECT_TRUE(is_utf8(parsed.error().detail)) << row.why;
  }
}

TEST(Json, AcceptsWhatLooksOddButIsJson) {
  for (const char* odd : {"0", "-0", "1e400", "0.1E-7", "\"\"", "[]", "{}", " [ ] ", R"("\ud83d\ude00")", R"("\u0000")",
                          R"({"":0})", "12345678901234567890123", "\"\x7F\"", "\"\xEF\xBF\xBF\""})
    EXPECT_TRUE(parse(odd).has_value()) << odd;
  EXPECT_TRUE(parse(nested(kJsonDepthMax)).has_value());
  EXPECT_FALSE(parse(std::string(1'000'000, '[')).has_value());
}

TEST(Json, SaysWhereItStoppedReading) {
  EXPECT_NE(parse(R"({"a": tru})").error().detail.find("byte 6"), std::string::npos);
}

TEST(Json, RefusesAKeyThatStandsTwice) {
  const auto fields = members(parse(R"({"a":1,"b":2,"a":3})").value());

  ASSERT_FALSE(fields.has_value());
  EXPECT_EQ(fields.error().code, Errc::invalid_json);
  EXPECT_FALSE(members(parse(R"({"a":1,"\u0061":3})").value()).has_value()) << "the same name written otherwise";
}

TEST(Json, KeepsValuesAsTheyWereWritten) {
  const auto value = parse(R"( {"n": 1.10 , "s":"a\u0062", "o":{"x":[1, 2]}} )").value();

  EXPECT_EQ(find(value, "n")->raw, "1.10");
  EXPECT_EQ(text(*find(value, "s")), "ab");
  EXPECT_EQ(find(value, "o")->raw, R"({"x":[1, 2]})");
  EXPECT_EQ(elements(*find(*find(value, "o"), "x"))[1].raw, "2");
  EXPECT_FALSE(find(value, "none").has_value());
}

TEST(Json, ReadsIntegersThatAreExactlyOne) {
  const auto read = [](const char* number) { return integer(parse(number).value()); };

  EXPECT_EQ(read("5"), 5);
  EXPECT_EQ(read("5.0"), 5);
  EXPECT_EQ(read("5e0"), 5);
  EXPECT_EQ(read("0.5e1"), 5);
  EXPECT_EQ(read("50e-1"), 5);
  EXPECT_EQ(read("-0"), 0);
  EXPECT_EQ(read("0e999999999999"), 0);
  EXPECT_EQ(read("1.5e3"), 1500);
  EXPECT_EQ(read("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(read("9223372036854775807.000"), std::numeric_limits<std::int64_t>::max());
  for (const char* other :
       {"5.5", "1e400", "1e-400", "9223372036854775808", "-9223372036854775809", "1e19", "0.1", "5e-1",
        "5.00000000000000000000000001", "4503599627370496.0000001", "true", "\"5\"", "null"})
    EXPECT_EQ(read(other), std::nullopt) << other;
}

TEST(Json, WritesNumbersShortAndExact) {
  const auto write = [](auto value) { return Writer().value(value).take(); };

  EXPECT_EQ(write(0.1), "0.1");
  EXPECT_EQ(write(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(write(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(write(true), "true");
  EXPECT_EQ(write(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(write(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
}

TEST(Json, WritesNestedObjectsAndArrays) {
  Writer w;
  w.object().key("list").array().value(1).value("two").object().end().end().field("flag", false).key("no").null().end();

  EXPECT_EQ(w.str(), R"({"list":[1,"two",{}],"flag":false,"no":null})");
}

TEST(Json, TheDepthThatIsReadCanBeChosen) {
  const std::string deep = std::string(67, '[') + std::string(67, ']');

  EXPECT_TRUE(parse(deep, 67));
  const auto refused = parse(deep, 66);

  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().detail.starts_with(kTooDeep)) << refused.error().detail;
  EXPECT_FALSE(parse(deep));
}

}  // namespace
}  // namespace belfry::json
