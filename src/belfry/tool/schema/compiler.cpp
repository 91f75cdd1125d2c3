#include "belfry/tool/schema/compiler.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/tool/schema/keywords.h"
#include "belfry/tool/schema/messages.h"
#include "belfry/tool/schema/metaschemas.h"
#include "belfry/tool/schema/uri.h"

namespace belfry::tool {
namespace {

using json::Kind;

std::optional<Dialect> dialect_named(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  if (uri == "https://json-schema.org/draft/2020-12/schema") return Dialect::draft2020_12;
  if (uri == "http://json-schema.org/draft-07/schema" || uri == "https://json-schema.org/draft-07/schema")
    return Dialect::draft7;
  return std::nullopt;
}

bool is_anchor_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':'; };
  if (name.empty() || !letter(name.front())) return false;
  return std::ranges::all_of(name, [&](char c) { return letter(c) || other(c); });
}

}  // namespace

std::unexpected<Error> bad_schema(const Node& place, std::string_view what) {
  return fail(Errc::invalid_argument, fmt::format("#{}: {}", pointer(place), what));
}

Result<> Compiler::run(std::string_view text, Dialect dialect) {
  BELFRY_TRY(const ResourceId root, add_document(text, dialect));
  program_.root = program_.resources[static_cast<std::size_t>(root)].rules;
  // Following one may read more of the text and so find more of them.
  for (std::size_t i = 0; i < references_.size(); ++i) {
    const Reference reference = references_[i];
    BELFRY_CHECK(follow(reference));
  }
  return refuse_circles();
}

Result<ResourceId> Compiler::add_document(std::string_view text, Dialect dialect) {
  if (text.size() > kSchemaBytesMax)
    return fail(Errc::invalid_argument, fmt::format("the schema is longer than {} bytes", kSchemaBytesMax));
  Document& document = program_.documents.emplace_back(std::string(text), std::nullopt);
  const auto value = json::parse(document.text);
  if (!value) return fail(Errc::invalid_argument, "the schema is not JSON: " + value.error().detail);
  auto tree = Tree::read(*value, kSchemaValuesMax);
  if (!tree) return fail(Errc::invalid_argument, "the schema: " + tree.error().detail);
  document.tree.emplace(std::move(*tree));

  const auto resource = static_cast<ResourceId>(program_.resources.size());
  program_.resources.push_back({.root = &document.tree->root(), .dialect = dialect});
  BELFRY_TRY(const RulesId rules, subschema(document.tree->root(), {.resource = resource, .dialect = dialect}));
  // A document that names itself became a resource of its own; the nameless one stays as the place around it.
  return program_.rules[static_cast<std::size_t>(rules)].resource;
}

Result<RulesId> Compiler::subschema(const Node& node, Scope scope) {
  if (const auto found = read_.find(&node); found != read_.end()) return found->second;
  const auto id = static_cast<RulesId>(program_.rules.size());
  Rules& rules = program_.rules.emplace_back();
  read_.emplace(&node, id);
  rules.source = &node;
  rules.resource = scope.resource;
  Resource& around = program_.resources[static_cast<std::size_t>(scope.resource)];
  if (around.root == &node) around.rules = id;
  if (node.kind == Kind::boolean) {
    rules.refuses_all = node.raw == "false";
    return id;
  }
  if (node.kind != Kind::object)
    return bad_schema(node, fmt::format("is {}; a schema is an object, true or false", json::name(node.kind)));
  BELFRY_CHECK(identify(node, id, scope));
  rules.resource = scope.resource;
  BELFRY_CHECK(read_keywords(*this, rules, id, node, scope));
  return id;
}

Result<> Compiler::identify(const Node& node, RulesId id, Scope& scope) {
  BELFRY_CHECK(identify_dialect(node, scope));
  // In draft 7 nothing beside a `$ref` counts, not even a name.
  if (scope.dialect == Dialect::draft7 && node.member("$ref"))
    return node.parent ? Result<>{} : add_resource(node, node, {}, id, scope);
  BELFRY_CHECK(identify_resource(node, id, scope));
  return scope.dialect == Dialect::draft7 ? Result<>{} : add_anchors(node, id, scope);
}

Result<> Compiler::identify_dialect(const Node& node, Scope& scope) {
  const Node* const named = node.member("$schema");
  if (!named || (node.parent && !node.member("$id"))) return {};
  const auto dialect = named->kind == Kind::string ? dialect_named(named->text) : std::nullopt;
  if (!dialect)
    return bad_schema(*named, fmt::format("{} is not a dialect known here; known are "
                                          "https://json-schema.org/draft/2020-12/schema and "
                                          "http://json-schema.org/draft-07/schema#",
                                          shortened(named->raw)));
  scope.dialect = *dialect;
  return {};
}

Result<> Compiler::identify_resource(const Node& node, RulesId id, Scope& scope) {
  const Node* const named = node.member("$id");
  const std::string& base = program_.resources[static_cast<std::size_t>(scope.resource)].uri;
  if (!named) return node.parent ? Result<>{} : add_resource(node, node, base, id, scope);
  if (named->kind != Kind::string) return bad_schema(*named, "is not a string; a URI belongs there");
  const std::string_view fragment = fragment_of(named->text);
  if (!fragment.empty() && scope.dialect == Dialect::draft2020_12)
    return bad_schema(*named, "has a fragment; a name for this place belongs in $anchor");
  if (!without_fragment(named->text).empty() || !node.parent) {
    const std::string uri = resolve_uri(base, without_fragment(named->text));
    if (uri.size() > kSchemaUriBytesMax)
      return bad_schema(*named, fmt::format("is a URI of more than {} bytes", kSchemaUriBytesMax));
    BELFRY_CHECK(add_resource(*named, node, uri, id, scope));
  }
  if (fragment.empty()) return {};
  return add_anchor(*named, fragment, id, scope.resource);
}

Result<> Compiler::add_resource(const Node& place, const Node& root, std::string uri, RulesId id, Scope& scope) {
  const bool whole = !root.parent;  // a document has its resource already; it only gets its name
  const ResourceId resource = whole ? scope.resource : static_cast<ResourceId>(program_.resources.size());
  if (!resources_.emplace(uri, resource).second)
    return bad_schema(place, fmt::format("\"{}\" is the name of another schema, too", uri));
  if (!whole) program_.resources.push_back({.root = &root, .rules = id});
  program_.resources[static_cast<std::size_t>(resource)].uri = std::move(uri);
  program_.resources[static_cast<std::size_t>(resource)].dialect = scope.dialect;
  scope.resource = resource;
  return {};
}

Result<> Compiler::add_anchors(const Node& node, RulesId id, Scope scope) {
  for (const std::string_view keyword : {"$anchor", "$dynamicAnchor"}) {
    const Node* const named = node.member(keyword);
    if (!named) continue;
    if (named->kind != Kind::string) return bad_schema(*named, "is not a string; a name belongs there");
    BELFRY_CHECK(add_anchor(*named, named->text, id, scope.resource));
    auto& resource = program_.resources[static_cast<std::size_t>(scope.resource)];
    if (keyword == "$dynamicAnchor") resource.dynamic_anchors.emplace(named->text, id);
  }
  return {};
}

Result<> Compiler::add_anchor(const Node& place, std::string_view name, RulesId id, ResourceId resource) {
  if (!is_anchor_name(name))
    return bad_schema(place, fmt::format("{} is no name; letters, digits, \"-\", \"_\" and \".\" belong there",
                                         shortened(place.raw)));
  auto& anchors = program_.resources[static_cast<std::size_t>(resource)].anchors;
  const auto [found, added] = anchors.emplace(name, id);
  if (!added && found->second != id) return bad_schema(place, fmt::format("\"{}\" names another place, too", name));
  return {};
}

Result<const Pattern*> Compiler::pattern(const Node& place, std::string_view source) {
  if (const auto found = program_.patterns.find(source); found != program_.patterns.end()) return &found->second;
  if (program_.patterns.size() == kSchemaPatternsMax)
    return bad_schema(place, fmt::format("the schema has more than {} patterns", kSchemaPatternsMax));
  auto compiled = Pattern::compile(source);
  if (!compiled)
    return bad_schema(place, fmt::format("the pattern {} is not usable: {}", shortened(json::quoted(source)),
                                         compiled.error().detail));
  pattern_instructions_ += compiled->size();
  if (pattern_instructions_ > kSchemaPatternInstructionsMax)
    return bad_schema(place, "the patterns of the schema are too large together");
  return &program_.patterns.emplace(source, std::move(*compiled)).first->second;
}

}  // namespace belfry::tool
