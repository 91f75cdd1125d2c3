// What is said about arrays and their elements.
#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "belfry/tool/schema/checker.h"
#include "belfry/tool/schema/messages.h"

namespace belfry::tool {

using json::Kind;

bool Checker::check_array(const Visit& visit) {
  if (visit.node.kind != Kind::array) return true;
  const CountRange& count = visit.rules.array.count;
  bool valid = true;
  const auto demand = [&](bool fits, std::string_view keyword, std::string_view relation, std::uint64_t limit) {
    if (fits) return;
    valid = false;
    if (tells(visit))
      refuse(visit, keyword,
             fmt::format("has {}; at {} {} {} there", counted(visit.node.count, "element"), relation, limit,
                         limit == 1 ? "belongs" : "belong"));
  };
  demand(visit.node.count >= count.least, "minItems", "least", count.least);
  demand(visit.node.count <= count.most, "maxItems", "most", count.most);
  for (const Rule rule : {&Checker::check_elements, &Checker::check_contained, &Checker::check_unique}) {
    if (stopped() || (!valid && !visit.findings)) break;
    if (!(this->*rule)(visit)) valid = false;
  }
  return valid;
}

bool Checker::check_elements(const Visit& visit) {
  const ArrayRules& array = visit.rules.array;
  bool valid = true;
  for (const Node& element : visit.node.children()) {
    if (stopped() || (!valid && !visit.findings)) break;
    const std::size_t at = element.position();
    const bool listed = at < array.first.size();
    if (!listed && array.others == kNone) break;
    mark(visit, element);
    if (!listed && rules(array.others).refuses_all) {
      if (tells(visit))
        refuse(visit, array.others_keyword,
               fmt::format("has {}; no more than {} may be there", counted(visit.node.count, "element"),
                           array.first.size()));
      return false;
    }
    if (!apply_to_child(listed ? array.first[at] : array.others, element, visit)) valid = false;
  }
  return valid;
}

bool Checker::check_contained(const Visit& visit) {
  const ArrayRules& array = visit.rules.array;
  if (array.contains == kNone) return true;
  std::uint64_t found = 0;
  for (const Node& element : visit.node.children()) {
    if (stopped()) return true;
    if (!apply(array.contains, element, nullptr, nullptr)) continue;
    ++found;
    mark(visit, element);
  }
  const bool few = found < array.contained.least;
  if (!few && found <= array.contained.most) return true;
  if (!tells(visit)) return false;
  const std::uint64_t limit = few ? array.contained.least : array.contained.most;
  const bool by_default = few && limit == 1;
  return refuse(visit,
                by_default ? "contains"
                : few      ? "minContains"
                           : "maxContains",
                fmt::format("has {} that {} {}; at {} {} {} there", counted(found, "element"),
                            found == 1 ? "fits" : "fit", shortened(rules(array.contains).source->raw),
                            few ? "least" : "most", limit, limit == 1 ? "belongs" : "belong"));
}

// Sorted, equal elements are neighbours; comparing each with each would take forever on a long array.
bool Checker::check_unique(const Visit& visit) {
  const std::size_t count = visit.node.count;
  if (!visit.rules.array.unique || count < 2) return true;
  if (!spend((count + visit.node.raw.size() / kBytesPerStep) * static_cast<std::size_t>(std::bit_width(count))))
    return true;
  std::vector<const Node*> order(count);
  std::iota(order.begin(), order.end(), visit.node.first);
  std::ranges::sort(order, [](const Node* a, const Node* b) {
    const auto sign = compare(*a, *b);
    return sign != 0 ? sign < 0 : a < b;
  });
  const auto twice =
      std::ranges::adjacent_find(order, [](const Node* a, const Node* b) { return compare(*a, *b) == 0; });
  if (twice == order.end()) return true;
  if (!tells(visit)) return false;
  return refuse(visit, "uniqueItems",
                fmt::format("the elements {} and {} are equal ({}); each may be there only once", (*twice)->position(),
                            (*std::next(twice))->position(), shortened((*twice)->raw)));
}

// Of objects and arrays: comes last, since it is about what nobody else has looked at.
bool Checker::check_unevaluated(const Visit& visit) {
  const bool is_array = visit.node.kind == Kind::array;
  const RulesId id = is_array                          ? visit.rules.array.unevaluated
                     : visit.node.kind == Kind::object ? visit.rules.object.unevaluated
                                                       : kNone;
  if (id == kNone || !spend(visit.node.count)) return true;
  const std::string_view keyword = is_array ? "unevaluatedItems" : "unevaluatedProperties";
  bool valid = true;
  for (const Node& child : visit.node.children()) {
    if ((*visit.marks)[child.position()]) continue;
    if (stopped() || (!valid && !visit.findings)) break;
    mark(visit, child);
    if (!rules(id).refuses_all) {
      valid = apply_to_child(id, child, visit) && valid;
      continue;
    }
    valid = false;
    if (tells(visit))
      visit.findings->add(child, keyword,
                          is_array ? "is one element too many; no part of the schema is about it"
                                   : fmt::format("{} is not known here; no part of the schema is about it",
                                                 shortened(json::quoted(child.key))));
  }
  return valid;
}

}  // namespace belfry::tool
