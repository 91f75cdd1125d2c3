// A schema as it is checked: each subschema is one `Rules`, and they name each other by number, since they may be recursive.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/tool/schema/decimal.h"
#include "belfry/tool/schema/json_tree.h"
#include "belfry/tool/schema/pattern.h"
#include "belfry/tool/schema_dialect.h"

namespace belfry::tool {

using RulesId = int;
using ResourceId = int;
inline constexpr int kNone = -1;

// Bits of a set of types. Every integer is a number, so `number` is both bits.
enum TypeBit : std::uint8_t {
  kNullType = 1,
  kBooleanType = 2,
  kFractionType = 4,
  kIntegerType = 8,
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kAnyType = 127,
};

// How many of something there may be.
struct CountRange {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

struct Bound {
  Decimal limit;
  std::string_view raw;  // as the schema has it, for messages
};

struct NumberRules {
  std::optional<Bound> minimum, maximum, above, below, multiple_of;
};

struct StringRules {
  CountRange length;
  const Pattern* pattern = nullptr;
};

struct ArrayRules {
  CountRange count;
  std::vector<RulesId> first;  // of the first elements, one each
  RulesId others = kNone;      // of the elements behind them
  std::string_view others_keyword;
  RulesId contains = kNone;
  CountRange contained{.least = 1};
  bool unique = false;
  RulesId unevaluated = kNone;
};

struct PatternMember {
  const Pattern* pattern;
  RulesId rules;
};

// What is asked of an object that has the member `name`.
struct Dependency {
  std::string_view name;
  std::string_view keyword;
  std::vector<std::string_view> required;
  RulesId rules = kNone;
};

struct ObjectRules {
  CountRange count;
  std::vector<std::string_view> required;
  std::map<std::string_view, RulesId> members;
  std::vector<PatternMember> patterns;
  RulesId others = kNone;
  RulesId names = kNone;
  std::vector<Dependency> dependencies;
  RulesId unevaluated = kNone;
};

struct Rules {
  const Node* source = nullptr;
  ResourceId resource = 0;
  bool refuses_all = false;
  RulesId reference = kNone;
  RulesId dynamic_reference = kNone;
  // The name that is looked for in the dynamic scope; empty if the dynamic reference is an ordinary one.
  std::string dynamic_name;

  std::uint8_t types = kAnyType;
  const Node* constant = nullptr;
  const Node* choices = nullptr;
  NumberRules number;
  StringRules string;
  ArrayRules array;
  ObjectRules object;

  std::vector<RulesId> all_of, any_of, one_of;
  RulesId excluded = kNone;
  RulesId condition = kNone;
  RulesId then = kNone;
  RulesId otherwise = kNone;

  bool wants_marks() const { return array.unevaluated != kNone || object.unevaluated != kNone; }
};

// A schema with an identity of its own: the document, or a part of it that has an `$id`.
struct Resource {
  std::string uri;
  const Node* root = nullptr;
  Dialect dialect = Dialect::draft2020_12;
  RulesId rules = kNone;
  std::map<std::string, RulesId, std::less<>> anchors;
  std::map<std::string, RulesId, std::less<>> dynamic_anchors;
};

struct Document {
  std::string text;
  std::optional<Tree> tree;  // views of `text`
};

// Everything a check needs; immutable once it is compiled.
struct Program {
  std::deque<Document> documents;
  std::deque<Rules> rules;
  std::deque<Resource> resources;
  std::map<std::string, Pattern, std::less<>> patterns;
  RulesId root = kNone;
};

}  // namespace belfry::tool
