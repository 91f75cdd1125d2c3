// The compiler's second and third step: where references lead, and that they do not go round in circles.
#include <charconv>

#include <fmt/format.h>

#include "belfry/tool/schema/compiler.h"
#include "belfry/tool/schema/messages.h"
#include "belfry/tool/schema/metaschemas.h"
#include "belfry/tool/schema/uri.h"

namespace belfry::tool {
namespace {

// The child that a part of a JSON Pointer names.
const Node* child(const Node& node, std::string_view part) {
  if (node.kind == json::Kind::object) return node.member(part);
  std::size_t position = 0;
  const auto read = std::from_chars(part.data(), part.data() + part.size(), position);
  const bool whole = read.ec == std::errc{} && read.ptr == part.data() + part.size();
  return whole && position < node.count && node.kind == json::Kind::array ? &node.first[position] : nullptr;
}

// What is checked against the very same value as `rules` itself.
std::vector<RulesId> in_place(const Rules& rules) {
  std::vector<RulesId> found{rules.reference, rules.dynamic_reference, rules.excluded, rules.condition,
                             rules.then,      rules.otherwise};
  for (const auto* list : {&rules.all_of, &rules.any_of, &rules.one_of})
    found.insert(found.end(), list->begin(), list->end());
  for (const Dependency& dependency : rules.object.dependencies) found.push_back(dependency.rules);
  std::erase(found, kNone);
  return found;
}

}  // namespace

Result<> Compiler::refer(const Node& place, RulesId from, ResourceId base, bool dynamic) {
  const std::string& uri = program_.resources[static_cast<std::size_t>(base)].uri;
  if (place.text.size() > kSchemaUriBytesMax)
    return bad_schema(place, fmt::format("is a reference of more than {} bytes", kSchemaUriBytesMax));
  references_.push_back({&place, from, resolve_uri(uri, place.text), dynamic});
  return {};
}

Result<> Compiler::follow(const Reference& reference) {
  BELFRY_TRY(const ResourceId found, resource(reference));
  BELFRY_TRY(const RulesId to, target(reference, found));
  Rules& rules = program_.rules[static_cast<std::size_t>(reference.from)];
  if (!reference.dynamic) return rules.reference = to, Result<>{};
  rules.dynamic_reference = to;
  // Only a reference that leads to a dynamic anchor by its name is looked up again in the dynamic scope.
  const std::string name = percent_decoded(fragment_of(reference.uri));
  const auto& anchors = program_.resources[static_cast<std::size_t>(found)].dynamic_anchors;
  if (const auto anchor = anchors.find(name); anchor != anchors.end() && anchor->second == to)
    rules.dynamic_name = name;
  return {};
}

Result<ResourceId> Compiler::resource(const Reference& reference) {
  const std::string_view uri = without_fragment(reference.uri);
  if (const auto found = resources_.find(uri); found != resources_.end()) return found->second;
  if (const auto text = metaschema(uri)) return add_document(*text, Dialect::draft2020_12);
  return bad_schema(*reference.place,
                    fmt::format("\"{}\" is not in this schema, and other documents are never fetched; put it into {}",
                                shortened(uri), "$defs with its $id, or refer to a place in this schema (#/$defs/…)"));
}

Result<RulesId> Compiler::target(const Reference& reference, ResourceId resource) {
  const Resource& found = program_.resources[static_cast<std::size_t>(resource)];
  const std::string fragment = percent_decoded(fragment_of(reference.uri));
  if (fragment.empty()) return found.rules;
  if (fragment.starts_with('/')) return by_pointer(reference, resource, fragment);
  if (const auto anchor = found.anchors.find(fragment); anchor != found.anchors.end()) return anchor->second;
  return bad_schema(*reference.place, fmt::format("leads nowhere: there is no anchor \"{}\"", shortened(fragment)));
}

Result<RulesId> Compiler::by_pointer(const Reference& reference, ResourceId resource, std::string_view pointer) {
  const Node* node = program_.resources[static_cast<std::size_t>(resource)].root;
  Scope scope{.resource = resource};
  std::string_view rest = pointer;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string part = pointer_decoded(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(rest.find('/'), rest.size()));
    const Node* const next = child(*node, part);
    if (!next)
      return bad_schema(*reference.place, fmt::format("leads nowhere: there is no {} in #{}",
                                                      shortened(json::quoted(part)), tool::pointer(*node)));
    node = next;
    // Parts with a name of their own stand on the way; what lies behind belongs to them.
    if (const auto read = read_.find(node); read != read_.end())
      scope.resource = program_.rules[static_cast<std::size_t>(read->second)].resource;
  }
  scope.dialect = program_.resources[static_cast<std::size_t>(scope.resource)].dialect;
  return subschema(*node, scope);
}

Result<> Compiler::refuse_circles() const {
  enum class Mark : char { fresh, open, done };
  std::vector<Mark> marks(program_.rules.size(), Mark::fresh);
  struct Step {
    RulesId id;
    std::vector<RulesId> next;
  };
  std::vector<Step> path;  // instead of recursion: a chain of references may be as long as the schema
  const auto enter = [&](RulesId id) {
    marks[static_cast<std::size_t>(id)] = Mark::open;
    path.push_back({id, in_place(program_.rules[static_cast<std::size_t>(id)])});
  };
  for (std::size_t start = 0; start < marks.size(); ++start) {
    if (marks[start] == Mark::fresh) enter(static_cast<RulesId>(start));
    while (!path.empty()) {
      Step& step = path.back();
      if (step.next.empty()) {
        marks[static_cast<std::size_t>(step.id)] = Mark::done;
        path.pop_back();
        continue;
      }
      const RulesId id = step.next.back();
      step.next.pop_back();
      const Mark mark = marks[static_cast<std::size_t>(id)];
      if (mark == Mark::open)
        return bad_schema(*program_.rules[static_cast<std::size_t>(step.id)].source,
                          "leads back to itself without going into the value, so no check would ever end");
      if (mark == Mark::fresh) enter(id);
    }
  }
  return {};
}

}  // namespace belfry::tool
