// What is said about objects and their members.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/tool/schema/checker.h"
#include "belfry/tool/schema/messages.h"

namespace belfry::tool {
using json::Kind;

// Looking for the name that was meant is dear compared with a check.
constexpr std::size_t kStepsPerComparedName = 8;

bool Checker::check_object(const Visit& visit) {
  if (visit.node.kind != Kind::object) return true;
  const CountRange& count = visit.rules.object.count;
  bool valid = true;
  const auto demand = [&](bool fits, std::string_view keyword, std::string_view relation, std::uint64_t limit) {
    if (fits) return;
    valid = false;
    if (tells(visit))
      refuse(visit, keyword,
             fmt::format("has {}; at {} {} {} there", counted(visit.node.count, "member"), relation, limit,
                         limit == 1 ? "belongs" : "belong"));
  };
  demand(visit.node.count >= count.least, "minProperties", "least", count.least);
  demand(visit.node.count <= count.most, "maxProperties", "most", count.most);
  for (const Rule rule :
       {&Checker::check_required, &Checker::check_members, &Checker::check_names, &Checker::check_dependencies}) {
    if (stopped() || (!valid && !visit.findings)) break;
    if (!(this->*rule)(visit)) valid = false;
  }
  return valid;
}

bool Checker::check_required(const Visit& visit) {
  const auto& required = visit.rules.object.required;
  if (!spend(required.size())) return true;
  bool valid = true;
  for (const std::string_view name : required) {
    if (visit.node.member(name)) continue;
    if (!tells(visit)) return false;
    valid = refuse(visit, "required",
                   fmt::format("{} is missing; required: {}", shortened(json::quoted(name)), listed_names(required)));
  }
  return valid;
}

bool Checker::check_members(const Visit& visit) {
  const ObjectRules& object = visit.rules.object;
  if (object.members.empty() && object.patterns.empty() && object.others == kNone) return true;
  bool valid = true;
  for (const Node& member : visit.node.children()) {
    if (!spend(1) || (!valid && !visit.findings)) break;
    if (!check_member(visit, member)) valid = false;
  }
  return valid;
}

bool Checker::check_member(const Visit& visit, const Node& member) {
  const ObjectRules& object = visit.rules.object;
  bool known = false;
  bool valid = true;
  const auto check = [&](RulesId id) {
    known = true;
    mark(visit, member);
    if (!apply_to_child(id, member, visit)) valid = false;
  };
  if (const auto named = object.members.find(member.key); named != object.members.end()) check(named->second);
  for (const PatternMember& match : object.patterns) {
    if (!spend(match.pattern->cost(member.key.size()))) return true;
    if (match.pattern->found_in(member.key)) check(match.rules);
  }
  if (known || object.others == kNone) return valid;
  if (!rules(object.others).refuses_all) return check(object.others), valid;
  mark(visit, member);
  return tells(visit) && refuse_member(visit, member);
}

bool Checker::refuse_member(const Visit& visit, const Node& member) {
  std::vector<std::string_view> known;
  for (const auto& [name, id] : visit.rules.object.members) known.push_back(name);
  spend(known.size() * kStepsPerComparedName);
  std::string message = fmt::format("{} is not known here", shortened(json::quoted(member.key)));
  message += known.empty() ? "; no member may be there" : "; known are: " + listed_names(known);
  const std::string_view meant = nearest_name(member.key, known);
  if (!meant.empty()) message += fmt::format("; did you mean {}?", shortened(json::quoted(meant)));
  visit.findings->add(member, "additionalProperties", std::move(message));
  return false;
}

bool Checker::check_names(const Visit& visit) {
  if (visit.rules.object.names == kNone) return true;
  bool valid = true;
  for (const Node& member : visit.node.children()) {
    if (stopped() || (!valid && !visit.findings)) break;
    // The name as a value, at the place of its member.
    const std::string raw = json::quoted(member.key);
    Node name{.kind = Kind::string, .depth = member.depth, .raw = raw, .text = member.key, .key = member.key};
    name.parent = member.parent;
    Findings about_name;
    if (apply(visit.rules.object.names, name, nullptr, visit.findings ? &about_name : nullptr)) continue;
    valid = false;
    if (!tells(visit)) continue;
    for (const Finding& found : about_name.all())
      visit.findings->add(member, "propertyNames", "its name " + found.violation.message);
  }
  return valid;
}

bool Checker::check_dependencies(const Visit& visit) {
  bool valid = true;
  for (const Dependency& dependency : visit.rules.object.dependencies) {
    if (!spend(1 + dependency.required.size()) || (!valid && !visit.findings)) break;
    if (!visit.node.member(dependency.name)) continue;
    if (dependency.rules != kNone) valid = apply_in_place(dependency.rules, visit) && valid;
    for (const std::string_view name : dependency.required) {
      if (visit.node.member(name)) continue;
      if (!tells(visit)) return false;
      valid = refuse(visit, dependency.keyword,
                     fmt::format("{} is missing; it is required where there is {}", shortened(json::quoted(name)),
                                 shortened(json::quoted(dependency.name))));
    }
  }
  return valid;
}

}  // namespace belfry::tool
