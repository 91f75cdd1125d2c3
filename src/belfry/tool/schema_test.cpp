#include "belfry/tool/schema.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"
#include "belfry/tool/schema/compiler.h"

namespace belfry::tool {
namespace {

Schema compiled(std::string_view text, Dialect dialect = Dialect::draft2020_12) {
  auto schema = Schema::compile(text, dialect);
  EXPECT_TRUE(schema.has_value()) << schema.error().detail;
  return std::move(schema).value();
}

std::vector<Violation> violations(std::string_view schema, std::string_view instance) {
  return compiled(schema).check(json::parse(instance).value());
}

// All that was found, as sentences.
std::string said(std::string_view schema, std::string_view instance) {
  std::string all;
  for (const Violation& violation : violations(schema, instance))
    all += (all.empty() ? "" : "\n") + sentence(violation);
  return all;
}

bool fits(std::string_view schema, std::string_view instance) { return violations(schema, instance).empty(); }

std::string refusal(std::string_view schema, Dialect dialect = Dialect::draft2020_12) {
  const auto result = Schema::compile(schema, dialect);
  if (result) return "taken";
  EXPECT_EQ(result.error().code, Errc::invalid_argument);
  return result.error().detail;
}

std::string repeated(std::string_view part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

constexpr std::string_view kSend = R"({
  "type": "object",
  "properties": {
    "to": {"type": "string", "minLength": 1},
    "delayMs": {"type": "integer", "minimum": 0},
    "priority": {"enum": ["low", "normal", "high"]},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2}
  },
  "required": ["to"],
  "additionalProperties": false
})";

TEST(ToolSchema, TakesArgumentsThatFit) {
  EXPECT_EQ(said(kSend, R"({"to": "ann", "delayMs": 5e3, "priority": "low", "tags": ["a"]})"), "");
}

TEST(ToolSchema, SaysWhatIsThereAndWhatBelongsThere) {
  EXPECT_EQ(said(kSend, R"({"to": "ann", "delayMs": "soon"})"),
            R"(delayMs: is a string ("soon"); a whole number belongs there)");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "delayMs": 1.5})"),
            "delayMs: is a number (1.5); a whole number belongs there");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "delayMs": -1})"), "delayMs: is -1; a number of at least 0 belongs there");
  EXPECT_EQ(said(kSend, R"({"to": ""})"), R"(to: has 0 characters (""); at least 1 belongs there)");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "tags": ["a", 5]})"), "tags/1: is a number (5); a string belongs there");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "tags": ["a", "b", "c"]})"), "tags: has 3 elements; at most 2 belong there");
  EXPECT_EQ(said(kSend, "{}"), R"(the arguments: "to" is missing; required: "to")");
  EXPECT_EQ(said(kSend, "[]"), "the arguments: is an array ([]); an object belongs there");
  EXPECT_EQ(said(R"({"const": {"a": 1}})", "null"), R"(the arguments: is null; {"a": 1} belongs there)");
  EXPECT_EQ(said(R"({"multipleOf": 0.01})", "0.015"),
            "the arguments: is 0.015; a number that is a multiple of 0.01 belongs there");
  EXPECT_EQ(said(R"({"pattern": "^[a-z]+$"})", R"("Ann")"),
            R"(the arguments: "Ann" does not match the pattern ^[a-z]+$)");
  EXPECT_EQ(said(R"({"uniqueItems": true})", "[1, 2, 1.0]"),
            "the arguments: the elements 0 and 2 are equal (1); each may be there only once");
  EXPECT_EQ(said(R"({"contains": {"type": "null"}})", "[1]"),
            R"(the arguments: has 0 elements that fit {"type": "null"}; at least 1 belongs there)");
  EXPECT_EQ(said(R"({"minProperties": 2})", R"({"a": 1})"), "the arguments: has 1 member; at least 2 belong there");
  EXPECT_EQ(said(R"({"dependentRequired": {"a": ["b"]}})", R"({"a": 1})"),
            R"(the arguments: "b" is missing; it is required where there is "a")");
  EXPECT_EQ(said(R"({"propertyNames": {"maxLength": 1}})", R"({"ab": 1})"),
            R"(ab: its name has 2 characters ("ab"); at most 1 belongs there)");
  EXPECT_EQ(said(R"({"not": {"type": "null"}})", "null"),
            R"(the arguments: is null; what fits {"type": "null"} may not be there)");
  EXPECT_EQ(said(R"({"prefixItems": [true], "items": false})", "[1, 2]"),
            "the arguments: has 2 elements; no more than 1 may be there");
  EXPECT_EQ(said(R"({"properties": {"a": false}})", R"({"a": 1})"), "a: is a number (1); nothing may be there");
  EXPECT_EQ(said(R"({"unevaluatedProperties": false})", R"({"a": 1})"),
            R"(a: "a" is not known here; no part of the schema is about it)");
}

TEST(ToolSchema, NamesKnownMembersAndTheOneThatWasMeant) {
  EXPECT_EQ(
      said(kSend, R"({"to": "ann", "delay_ms": 5})"),
      R"(delay_ms: "delay_ms" is not known here; known are: "delayMs", "priority", "tags" and "to"; did you mean "delayMs"?)");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "subject": 5})"),
            R"(subject: "subject" is not known here; known are: "delayMs", "priority", "tags" and "to")");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "priority": "hihg"})"),
            R"(priority: is a string ("hihg"), which is not one of "low", "normal" or "high"; did you mean "high"?)");
}

TEST(ToolSchema, NoticesValuesThatWereWrittenAsStrings) {
  EXPECT_EQ(said(kSend, R"({"to": "ann", "delayMs": "5"})"),
            R"(delayMs: is a string ("5"); a whole number belongs there, without quotes around it)");
  EXPECT_EQ(said(kSend, R"({"to": "ann", "tags": "[\"a\"]"})"),
            R"(tags: is a string ("[\"a\"]"); an array belongs there, without quotes around it)");
}

TEST(ToolSchema, FindsEverythingAtOnce) {
  const auto found = violations(kSend, R"({"delayMs": -0.5, "priority": 1, "x/y~": 1})");

  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].keyword, "required");
  EXPECT_EQ(found[1].keyword, "type");
  EXPECT_EQ(found[2].keyword, "minimum");
  EXPECT_EQ(found[3].path, "/priority");
  EXPECT_EQ(found[4].path, "/x~1y~0");
}

TEST(ToolSchema, SaysOfAlternativesWhatBringsTheNearestOneAbout) {
  constexpr std::string_view kOptional = R"({"anyOf": [{"type": "string"}, {"type": "null"}, {"const": 7}]})";
  EXPECT_EQ(said(kOptional, "5"), "the arguments: is a number (5); a string, null or 7 belongs there");

  // Beside null there is only one that can have been meant.
  constexpr std::string_view kObject = R"({"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]})";
  EXPECT_EQ(said(kObject, "{}"), R"(the arguments: "a" is missing; required: "a")");

  constexpr std::string_view kShapes = R"({"oneOf": [
    {"title": "circle", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
    {"title": "square", "properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]}]})";
  EXPECT_EQ(said(kShapes, R"({"kind": "square", "a": "1"})"),
            "the arguments: fits none of the 2 alternatives; nearest is number 2, \"square\", and what does not fit "
            "there follows\na: is a string (\"1\"); a number belongs there, without quotes around it");
  EXPECT_EQ(said(R"({"oneOf": [{"type": "integer"}, {"minimum": 2}]})", "3"),
            "the arguments: fits 2 of the 2 alternatives (number 1 and number 2); exactly one may fit");
}

TEST(ToolSchema, AValueOfTheRightChoiceAndTheWrongTypeIsRefused) {
  EXPECT_EQ(said(R"({"type": "string", "enum": [5]})", "5"), "the arguments: is a number (5); a string belongs there");
}

TEST(ToolSchema, LongValuesAreCutBetweenCharacters) {
  const std::string text = said(R"({"type": "number"})", "\"" + repeated("é", 200) + "\"");

  EXPECT_TRUE(is_utf8(text));
  EXPECT_LT(text.size(), 150u);
  EXPECT_NE(text.find("é…"), std::string::npos);
}

TEST(ToolSchema, NumbersAreExact) {
  EXPECT_TRUE(fits(R"({"const": 1})", "1.0"));
  EXPECT_TRUE(fits(R"({"type": "integer"})", "1e400"));
  EXPECT_FALSE(fits(R"({"type": "integer"})", "1e-400"));
  EXPECT_TRUE(fits(R"({"minimum": 1e400})", "1e401"));
  EXPECT_FALSE(fits(R"({"maximum": 9007199254740992})", "9007199254740993"));
  EXPECT_FALSE(fits(R"({"const": 9007199254740992})", "9007199254740993"));
  EXPECT_TRUE(fits(R"({"multipleOf": 0.01})", "19.99"));
  EXPECT_TRUE(fits(R"({"multipleOf": 0.0001})", "0.0075"));
  EXPECT_FALSE(fits(R"({"multipleOf": 0.0001})", "0.00751"));
  EXPECT_TRUE(fits(R"({"multipleOf": 3})", "1" + repeated("0", 500) + "2"));
  EXPECT_TRUE(fits(R"({"exclusiveMaximum": 1e99999999999999999999})", "-1e99999999999999999999"));
  EXPECT_TRUE(fits(R"({"minLength": 1.0, "maxLength": 1e300})", R"("a")"));
  EXPECT_FALSE(fits(R"({"uniqueItems": true})", "[{\"a\": 1, \"b\": [0]}, {\"b\": [-0.0], \"a\": 10e-1}]"));
}

TEST(ToolSchema, ABadSchemaIsRefusedAtItsPlace) {
  EXPECT_EQ(refusal("nothing").substr(0, 22), "the schema is not JSON");
  EXPECT_EQ(refusal("5"), "#: is a number; a schema is an object, true or false");
  EXPECT_EQ(
      refusal(R"({"properties": {"a/b": {"type": "strin"}}})"),
      "#/properties/a~1b/type: \"strin\" is not a type; the types are null, boolean, integer, number, string, array "
      "and object");
  EXPECT_EQ(refusal(R"({"minLength": -1})"),
            "#/minLength: is a number (-1); a whole number of at least 0 belongs there");
  EXPECT_EQ(refusal(R"({"required": "a"})"), "#/required: is a string (\"a\"); a list of names belongs there");
  EXPECT_EQ(refusal(R"({"required": ["a", "a"]})"), "#/required: \"a\" stands twice");
  EXPECT_EQ(refusal(R"({"anyOf": []})"), "#/anyOf: is an array ([]); a list of at least one schema belongs there");
  EXPECT_EQ(refusal(R"({"multipleOf": 0})"), "#/multipleOf: is a number (0); a number above 0 belongs there");
  EXPECT_EQ(refusal(R"({"items": [true]})"),
            "#/items: is a list; one schema for all elements belongs there, and a list in prefixItems");
  EXPECT_EQ(refusal(R"({"type": "null", "type": "null"})"), "the schema: the member \"type\" stands twice");
  EXPECT_EQ(refusal(R"({"$schema": "http://json-schema.org/draft-04/schema#"})").substr(0, 70),
            "#/$schema: \"http://json-schema.org/draft-04/schema#\" is not a dialect ");
  EXPECT_EQ(refusal(R"({"$id": "http://a/b#c"})"), "#/$id: has a fragment; a name for this place belongs in $anchor");
  EXPECT_EQ(refusal(R"({"$anchor": "a b"})").substr(0, 24), "#/$anchor: \"a b\" is no n");
  EXPECT_EQ(refusal(R"({"$defs": {"a": {"$id": "x"}, "b": {"$id": "x"}}})"),
            "#/$defs/b/$id: \"x\" is the name of another schema, too");
}

TEST(ToolSchema, ReferencesThatLeadNowhereOrElsewhereAreRefused) {
  EXPECT_EQ(refusal(R"({"$ref": "#/$defs/a", "$defs": {"b": true}})"),
            "#/$ref: leads nowhere: there is no \"a\" in #/$defs");
  EXPECT_EQ(refusal(R"({"$ref": "#a"})"), "#/$ref: leads nowhere: there is no anchor \"a\"");
  EXPECT_EQ(refusal(R"({"items": {"$ref": "http://example.com/x#/y"}})").substr(0, 98),
            "#/items/$ref: \"http://example.com/x\" is not in this schema, and other documents are never fetched;");
  EXPECT_EQ(refusal(R"({"$ref": 5})"), "#/$ref: is a number (5); a reference such as \"#/$defs/name\" belongs there");
}

TEST(ToolSchema, ReferencesThatGoInCirclesAreRefused) {
  EXPECT_NE(refusal(R"({"$ref": "#"})").find("leads back to itself"), std::string::npos);
  EXPECT_NE(refusal(R"({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}})")
                .find("leads back to itself"),
            std::string::npos);
  // Through the value it may go round as often as the value is deep.
  constexpr std::string_view kTree = R"({"type": "array", "items": {"$ref": "#"}})";
  EXPECT_TRUE(fits(kTree, "[[], [[[]]]]"));
  EXPECT_EQ(said(kTree, "[[], [[5]]]"), "1/0/0: is a number (5); an array belongs there");
}

TEST(ToolSchema, ACircleThatOnlyShowsInTheDynamicScopeEndsTheCheck) {
  constexpr std::string_view kCircle = R"({
    "$id": "http://a/outer", "$dynamicAnchor": "x", "$ref": "inner",
    "$defs": {"inner": {"$id": "inner", "$dynamicRef": "#x", "$defs": {"end": {"$dynamicAnchor": "x"}}}}})";
  const auto found = violations(kCircle, "5");

  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keyword, "");
  EXPECT_EQ(found[0].message, "could not be checked: schemas lead to schemas more than 512 deep");
}

TEST(ToolSchema, AChainOfReferencesIsFollowedWithoutRunningOutOfStack) {
  std::string schema = R"({"$ref": "#/$defs/0", "$defs": {)";
  for (int i = 0; i < 4'000; ++i) schema += fmt::format(R"("{}": {{"$ref": "#/$defs/{}"}}, )", i, i + 1);
  schema += R"("4000": true}})";

  EXPECT_EQ(violations(schema, "5").front().keyword, "");
}

TEST(ToolSchema, WorkIsBounded) {
  // Each level doubles the work: 2^60 without a bound.
  std::string schema = R"({"$defs": {"60": {"type": "null"})";
  for (int i = 0; i < 60; ++i) {
    const std::string next = fmt::format(R"({{"$ref": "#/$defs/{}"}})", i + 1);
    schema += fmt::format(R"(, "{0}": {{"anyOf": [{1}, {1}]}})", i, next);
  }
  const std::string stopped = "the arguments: could not be checked: that takes more than 1000000 steps";
  EXPECT_EQ(said(schema + R"(}, "$ref": "#/$defs/0"})", "5"), stopped);
  EXPECT_EQ(said(schema + R"(}, "not": {"$ref": "#/$defs/0"}})", "5"), stopped) << "undecided is not turned round";
}

TEST(ToolSchema, WorkOnALargeConstantIsBounded) {
  const std::string array = "[" + repeated("0,", 9'000) + "0]";
  std::string schema = R"({"$defs": {"4": {"const": )" + array + "}";
  for (int i = 0; i < 4; ++i) {
    const std::string next = fmt::format(R"({{"$ref": "#/$defs/{}"}})", i + 1);
    schema += fmt::format(R"(, "{}": {{"allOf": [{}{}]}})", i, repeated(next + ",", 9), next);
  }
  EXPECT_EQ(said(schema + R"(}, "$ref": "#/$defs/0"})", array),
            "the arguments: could not be checked: that takes more than 1000000 steps");
}

TEST(ToolSchema, WorkOnPatternsIsBounded) {
  const std::string text = "\"" + repeated("ab", 100'000) + "\"";
  EXPECT_EQ(said(R"({"pattern": "a[ab]{900}c"})", text),
            "the arguments: could not be checked: that takes more than 1000000 steps");
  EXPECT_TRUE(fits(R"({"pattern": "^[ab]+$"})", text));
  EXPECT_TRUE(fits(R"({"items": {"pattern": "^.{1,500}$"}})", "[" + repeated("\"some words\",", 100) + "\"\u00e9\"]"));
}

TEST(ToolSchema, LongArraysAreComparedWithoutComparingEachWithEach) {
  std::string array = "[0";
  for (int i = 1; i < 30'000; ++i) array += "," + std::to_string(i);

  EXPECT_EQ(said(R"({"uniqueItems": true})", array + "]"), "");
  EXPECT_EQ(said(R"({"uniqueItems": true})", array + ",1e0]"),
            "the arguments: the elements 1 and 30000 are equal (1); each may be there only once");
}

TEST(ToolSchema, ViolationsAreBoundedAndSaySo) {
  const auto found = violations(R"({"items": {"type": "string"}})", "[" + repeated("1,", 5'000) + "1]");

  ASSERT_EQ(found.size(), kViolationsMax);
  EXPECT_EQ(found[30].path, "/30");
  EXPECT_EQ(found[31].message, "there is more that does not fit; these are the first 31");
}

TEST(ToolSchema, TooManyValuesOrMembersTwiceAreNotChecked) {
  EXPECT_EQ(said("true", "[" + repeated("1,", kCheckValuesMax) + "1]"),
            "the arguments: there are more than 100000 values in it");
  EXPECT_EQ(said("true", R"({"a": 1, "b": {"c": 1, "c": 2}})"), "the arguments: the member \"c\" stands twice");
}

TEST(ToolSchema, DepthOfTheValueIsBoundedWhateverItsReaderAllowed) {
  const std::string text = repeated("[", 1'000) + repeated("]", 1'000);
  const auto value = json::parse(text, 2'000).value();

  EXPECT_EQ(compiled("true").check(value).front().message, "nesting deeper than 64");
}

TEST(ToolSchema, LargeSchemasAreRefused) {
  EXPECT_EQ(refusal("\"" + repeated("x", kSchemaBytesMax) + "\""), "the schema is longer than 262144 bytes");
  EXPECT_EQ(refusal(R"({"enum": [)" + repeated("1,", kSchemaValuesMax) + "1]}"),
            "the schema: there are more than 20000 values in it");
  std::string patterns = R"("x": true)";
  for (std::size_t i = 0; i <= kSchemaPatternsMax; ++i) patterns += fmt::format(R"(, "{0}": {{"pattern": "a{0}"}})", i);
  EXPECT_NE(refusal(R"({"properties": {)" + patterns + "}}").find("more than 100 patterns"), std::string::npos);
  EXPECT_NE(refusal(R"({"$id": "http://a/)" + repeated("x", 3'000) + "\"}").find("more than 2000 bytes"),
            std::string::npos);
}

TEST(ToolSchema, DialectsDiffer) {
  constexpr std::string_view kSeven = R"({"$schema": "http://json-schema.org/draft-07/schema#",
    "items": [{"type": "null"}], "additionalItems": false, "minContains": 7})";
  EXPECT_TRUE(fits(kSeven, "[null]"));
  EXPECT_EQ(said(kSeven, "[null, 1]"), "the arguments: has 2 elements; no more than 1 may be there");
  EXPECT_EQ(violations(kSeven, "[null, 1]").front().keyword, "additionalItems");

  // In draft 7 nothing beside a reference counts; what it leads to may stand there all the same.
  const Schema beside =
      compiled(R"({"$ref": "#/definitions/a", "definitions": {"a": true}, "type": "null"})", Dialect::draft7);
  EXPECT_TRUE(beside.check(json::parse("5").value()).empty());
}

TEST(ToolSchema, SchemasCanBeCheckedAgainstTheirMetaschema) {
  constexpr std::string_view kMeta = R"({"$ref": "https://json-schema.org/draft/2020-12/schema"})";
  EXPECT_TRUE(fits(kMeta, kSend));
  EXPECT_TRUE(fits(R"({"$ref": "http://json-schema.org/draft-07/schema#"})", kSend));
  EXPECT_EQ(said(kMeta, R"({"properties": {"a": {"minLength": "1"}}})"),
            R"(properties/a/minLength: is a string ("1"); a whole number belongs there, without quotes around it)");
}

}  // namespace
}  // namespace belfry::tool
