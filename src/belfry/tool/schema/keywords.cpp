#include "belfry/tool/schema/keywords.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "belfry/tool/schema/messages.h"

namespace belfry::tool {
namespace {

using json::Kind;

constexpr int kDraft7 = 1;
constexpr int kDraft2020 = 2;
constexpr int kBoth = 3;

struct TypeName {
  std::string_view name;
  std::uint8_t bits;
};
constexpr std::array kTypeNames{
    TypeName{"null", kNullType},
    TypeName{"boolean", kBooleanType},
    TypeName{"integer", kIntegerType},
    TypeName{"string", kStringType},
    TypeName{"array", kArrayType},
    TypeName{"object", kObjectType},
    TypeName{"number", kFractionType | kIntegerType},
};

class Reader {
 public:
  Reader(Compiler& compiler, Rules& rules, RulesId id, const Node& node, Compiler::Scope scope)
      : compiler_(compiler), rules_(rules), id_(id), node_(node), scope_(scope) {}

  Result<> run();

 private:
  using Read = Result<> (Reader::*)(const Node& value);
  struct Keyword {
    std::string_view name;
    int dialects;
    Read read;
  };
  static const Keyword kKeywords[];

  static std::unexpected<Error> wanted(const Node& value, std::string_view what) {
    return bad_schema(value, fmt::format("is {}; {} belongs there", describe(value), what));
  }

  Result<> schema_into(const Node& value, RulesId& into) {
    BELFRY_TRY(into, compiler_.subschema(value, scope_));
    return {};
  }
  Result<> schemas_into(const Node& value, std::vector<RulesId>& into) {
    if (value.kind != Kind::array || value.count == 0) return wanted(value, "a list of at least one schema");
    for (const Node& element : value.children()) BELFRY_CHECK(schema_into(element, into.emplace_back()));
    return {};
  }
  Result<> count_into(const Node& value, std::uint64_t& into) const {
    const bool whole = value.kind == Kind::number && Decimal(value.raw).is_integer();
    if (!whole || Decimal(value.raw).is_negative()) return wanted(value, "a whole number of at least 0");
    into = Decimal(value.raw).clamped(UINT64_MAX);
    return {};
  }
  Result<> bound_into(const Node& value, std::optional<Bound>& into) const {
    if (value.kind != Kind::number) return wanted(value, "a number");
    into = Bound{Decimal(value.raw), value.raw};
    return {};
  }
  Result<> names_into(const Node& value, std::vector<std::string_view>& into) const {
    if (value.kind != Kind::array) return wanted(value, "a list of names");
    for (const Node& name : value.children()) {
      if (name.kind != Kind::string) return wanted(name, "the name of a member");
      into.push_back(name.text);
    }
    std::ranges::sort(into);
    const auto twice = std::ranges::adjacent_find(into);
    if (twice != into.end()) return bad_schema(value, fmt::format("\"{}\" stands twice", *twice));
    return {};
  }
  // For every member of an object of schemas.
  template <class Visit>
  Result<> each_schema(const Node& value, Visit visit) {
    if (value.kind != Kind::object) return wanted(value, "an object of schemas");
    for (const Node& member : value.children()) {
      BELFRY_TRY(const RulesId id, compiler_.subschema(member, scope_));
      BELFRY_CHECK(visit(member, id));
    }
    return {};
  }

  Result<> ref(const Node& value) { return reference(value, false); }
  Result<> dynamic_ref(const Node& value) { return reference(value, true); }
  Result<> reference(const Node& value, bool dynamic) {
    if (value.kind != Kind::string) return wanted(value, "a reference such as \"#/$defs/name\"");
    return compiler_.refer(value, id_, scope_.resource, dynamic);
  }
  Result<> definitions(const Node& value) {
    return each_schema(value, [](const Node&, RulesId) { return Result<>{}; });
  }
  Result<> ignored_schema(const Node& value) {
    RulesId ignored = kNone;
    return schema_into(value, ignored);
  }

  Result<> type(const Node& value);
  Result<> type_into(const Node& value, std::uint8_t& into) const;
  Result<> constant(const Node& value) { return rules_.constant = &value, Result<>{}; }
  Result<> choices(const Node& value) {
    if (value.kind != Kind::array) return wanted(value, "a list of values");
    return rules_.choices = &value, Result<>{};
  }

  Result<> minimum(const Node& value) { return bound_into(value, rules_.number.minimum); }
  Result<> maximum(const Node& value) { return bound_into(value, rules_.number.maximum); }
  Result<> above(const Node& value) { return bound_into(value, rules_.number.above); }
  Result<> below(const Node& value) { return bound_into(value, rules_.number.below); }
  Result<> multiple_of(const Node& value);

  Result<> min_length(const Node& value) { return count_into(value, rules_.string.length.least); }
  Result<> max_length(const Node& value) { return count_into(value, rules_.string.length.most); }
  Result<> pattern(const Node& value) {
    if (value.kind != Kind::string) return wanted(value, "a regular expression");
    BELFRY_TRY(rules_.string.pattern, compiler_.pattern(value, value.text));
    return {};
  }

  Result<> min_items(const Node& value) { return count_into(value, rules_.array.count.least); }
  Result<> max_items(const Node& value) { return count_into(value, rules_.array.count.most); }
  Result<> unique_items(const Node& value) {
    if (value.kind != Kind::boolean) return wanted(value, "true or false");
    return rules_.array.unique = value.raw == "true", Result<>{};
  }
  Result<> prefix_items(const Node& value) { return schemas_into(value, rules_.array.first); }
  Result<> items(const Node& value);
  Result<> old_items(const Node& value);
  Result<> contains(const Node& value) { return schema_into(value, rules_.array.contains); }
  Result<> min_contains(const Node& value) { return count_into(value, rules_.array.contained.least); }
  Result<> max_contains(const Node& value) { return count_into(value, rules_.array.contained.most); }
  Result<> unevaluated_items(const Node& value) { return schema_into(value, rules_.array.unevaluated); }

  Result<> min_properties(const Node& value) { return count_into(value, rules_.object.count.least); }
  Result<> max_properties(const Node& value) { return count_into(value, rules_.object.count.most); }
  Result<> required(const Node& value) { return names_into(value, rules_.object.required); }
  Result<> properties(const Node& value) {
    return each_schema(value, [this](const Node& member, RulesId id) {
      rules_.object.members.emplace(member.key, id);
      return Result<>{};
    });
  }
  Result<> pattern_properties(const Node& value) {
    return each_schema(value, [this](const Node& member, RulesId id) -> Result<> {
      BELFRY_TRY(const Pattern* const compiled, compiler_.pattern(member, member.key));
      rules_.object.patterns.push_back({compiled, id});
      return {};
    });
  }
  Result<> additional_properties(const Node& value) { return schema_into(value, rules_.object.others); }
  Result<> property_names(const Node& value) { return schema_into(value, rules_.object.names); }
  Result<> unevaluated_properties(const Node& value) { return schema_into(value, rules_.object.unevaluated); }
  Result<> dependent_required(const Node& value);
  Result<> dependent_schemas(const Node& value);
  Result<> dependencies(const Node& value);

  Result<> all_of(const Node& value) { return schemas_into(value, rules_.all_of); }
  Result<> any_of(const Node& value) { return schemas_into(value, rules_.any_of); }
  Result<> one_of(const Node& value) { return schemas_into(value, rules_.one_of); }
  Result<> excluded(const Node& value) { return schema_into(value, rules_.excluded); }
  Result<> condition(const Node& value) { return schema_into(value, rules_.condition); }
  Result<> then(const Node& value) { return schema_into(value, rules_.then); }
  Result<> otherwise(const Node& value) { return schema_into(value, rules_.otherwise); }

  Compiler& compiler_;
  Rules& rules_;
  RulesId id_;
  const Node& node_;
  Compiler::Scope scope_;
};

const Reader::Keyword Reader::kKeywords[] = {
    {"$ref", kBoth, &Reader::ref},
    {"$dynamicRef", kDraft2020, &Reader::dynamic_ref},
    {"$defs", kDraft2020, &Reader::definitions},
    {"definitions", kBoth, &Reader::definitions},
    {"contentSchema", kDraft2020, &Reader::ignored_schema},
    {"type", kBoth, &Reader::type},
    {"const", kBoth, &Reader::constant},
    {"enum", kBoth, &Reader::choices},
    {"minimum", kBoth, &Reader::minimum},
    {"maximum", kBoth, &Reader::maximum},
    {"exclusiveMinimum", kBoth, &Reader::above},
    {"exclusiveMaximum", kBoth, &Reader::below},
    {"multipleOf", kBoth, &Reader::multiple_of},
    {"minLength", kBoth, &Reader::min_length},
    {"maxLength", kBoth, &Reader::max_length},
    {"pattern", kBoth, &Reader::pattern},
    {"minItems", kBoth, &Reader::min_items},
    {"maxItems", kBoth, &Reader::max_items},
    {"uniqueItems", kBoth, &Reader::unique_items},
    {"prefixItems", kDraft2020, &Reader::prefix_items},
    {"items", kDraft2020, &Reader::items},
    {"items", kDraft7, &Reader::old_items},
    {"contains", kBoth, &Reader::contains},
    {"minContains", kDraft2020, &Reader::min_contains},
    {"maxContains", kDraft2020, &Reader::max_contains},
    {"unevaluatedItems", kDraft2020, &Reader::unevaluated_items},
    {"minProperties", kBoth, &Reader::min_properties},
    {"maxProperties", kBoth, &Reader::max_properties},
    {"required", kBoth, &Reader::required},
    {"properties", kBoth, &Reader::properties},
    {"patternProperties", kBoth, &Reader::pattern_properties},
    {"additionalProperties", kBoth, &Reader::additional_properties},
    {"propertyNames", kBoth, &Reader::property_names},
    {"unevaluatedProperties", kDraft2020, &Reader::unevaluated_properties},
    {"dependentRequired", kDraft2020, &Reader::dependent_required},
    {"dependentSchemas", kDraft2020, &Reader::dependent_schemas},
    // 2020-12 has split it in two, but still allows it, and people still write it.
    {"dependencies", kBoth, &Reader::dependencies},
    {"allOf", kBoth, &Reader::all_of},
    {"anyOf", kBoth, &Reader::any_of},
    {"oneOf", kBoth, &Reader::one_of},
    {"not", kBoth, &Reader::excluded},
    {"if", kBoth, &Reader::condition},
    {"then", kBoth, &Reader::then},
    {"else", kBoth, &Reader::otherwise},
};

Result<> Reader::run() {
  const int dialect = scope_.dialect == Dialect::draft7 ? kDraft7 : kDraft2020;
  if (const Node* const only = node_.member("$ref"); only && dialect == kDraft7) return ref(*only);
  for (const Keyword& keyword : kKeywords) {
    const Node* const value = (keyword.dialects & dialect) != 0 ? node_.member(keyword.name) : nullptr;
    if (value) BELFRY_CHECK((this->*keyword.read)(*value));
  }
  return {};
}

Result<> Reader::type(const Node& value) {
  rules_.types = 0;
  if (value.kind == Kind::string) return type_into(value, rules_.types);
  if (value.kind != Kind::array || value.count == 0) return wanted(value, "a type or a list of types");
  for (const Node& name : value.children()) BELFRY_CHECK(type_into(name, rules_.types));
  return {};
}

Result<> Reader::type_into(const Node& value, std::uint8_t& into) const {
  const auto found = std::ranges::find(kTypeNames, value.text, &TypeName::name);
  if (value.kind != Kind::string || found == kTypeNames.end())
    return bad_schema(value, fmt::format("{} is not a type; the types are null, boolean, integer, number, string, "
                                         "array and object",
                                         shortened(value.raw)));
  into |= found->bits;
  return {};
}

Result<> Reader::multiple_of(const Node& value) {
  BELFRY_CHECK(bound_into(value, rules_.number.multiple_of));
  const Decimal& divisor = rules_.number.multiple_of->limit;
  if (divisor.is_zero() || divisor.is_negative()) return wanted(value, "a number above 0");
  if (divisor.significant_digits() > Decimal::kDivisorDigitsMax)
    return bad_schema(value, fmt::format("has more than {} digits", Decimal::kDivisorDigitsMax));
  return {};
}

Result<> Reader::items(const Node& value) {
  if (value.kind == Kind::array)
    return bad_schema(value, "is a list; one schema for all elements belongs there, and a list in prefixItems");
  rules_.array.others_keyword = "items";
  return schema_into(value, rules_.array.others);
}

// In draft 7 a list says what the first elements are, and additionalItems what follows; beside one schema it says nothing.
Result<> Reader::old_items(const Node& value) {
  rules_.array.others_keyword = "items";
  if (value.kind != Kind::array) return schema_into(value, rules_.array.others);
  for (const Node& element : value.children()) BELFRY_CHECK(schema_into(element, rules_.array.first.emplace_back()));
  rules_.array.others_keyword = "additionalItems";
  const Node* const others = node_.member("additionalItems");
  return others ? schema_into(*others, rules_.array.others) : Result<>{};
}

Result<> Reader::dependent_required(const Node& value) {
  if (value.kind != Kind::object) return wanted(value, "an object of lists of names");
  for (const Node& member : value.children()) {
    auto& dependency = rules_.object.dependencies.emplace_back(member.key, value.key);
    BELFRY_CHECK(names_into(member, dependency.required));
  }
  return {};
}

Result<> Reader::dependent_schemas(const Node& value) {
  return each_schema(value, [&](const Node& member, RulesId id) {
    rules_.object.dependencies.push_back({.name = member.key, .keyword = value.key, .rules = id});
    return Result<>{};
  });
}

Result<> Reader::dependencies(const Node& value) {
  if (value.kind != Kind::object) return wanted(value, "an object of schemas or lists of names");
  for (const Node& member : value.children()) {
    Dependency dependency{.name = member.key, .keyword = value.key};
    if (member.kind == Kind::array) {
      BELFRY_CHECK(names_into(member, dependency.required));
    } else {
      BELFRY_CHECK(schema_into(member, dependency.rules));
    }
    rules_.object.dependencies.push_back(std::move(dependency));
  }
  return {};
}

}  // namespace

Result<> read_keywords(Compiler& compiler, Rules& rules, RulesId id, const Node& node, Compiler::Scope scope) {
  return Reader(compiler, rules, id, node, scope).run();
}

}  // namespace belfry::tool
