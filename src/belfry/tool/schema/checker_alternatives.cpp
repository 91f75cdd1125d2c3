// Schemas of schemas: all, any, one, none, and if.
#include <algorithm>

#include <fmt/format.h>

#include "belfry/tool/schema/checker.h"
#include "belfry/tool/schema/messages.h"

namespace belfry::tool {
namespace {

// Of the nearest alternative so many findings are told.
constexpr std::size_t kNearestFindingsMax = 5;

// What an alternative wanted instead of the value, if that is all it had to say.
std::string only_wish(const Node& node, const Findings& told) {
  const bool alone = told.all().size() == 1 && told.all().front().node == &node;
  return alone ? told.all().front().wanted : std::string();
}

std::string name_of(std::size_t number, const Rules& rules) {
  const Node* const title = rules.source->kind == json::Kind::object ? rules.source->member("title") : nullptr;
  if (!title || title->kind != json::Kind::string) return fmt::format("number {}", number + 1);
  return fmt::format("number {}, {}", number + 1, shortened(title->raw));
}

}  // namespace

bool Checker::check_all_of(const Visit& visit) {
  bool valid = true;
  for (const RulesId id : visit.rules.all_of) {
    if (!apply_in_place(id, visit)) valid = false;
    if (stopped() || (!valid && !visit.findings)) break;
  }
  return valid;
}

bool Checker::fits(RulesId id, const Visit& visit) {
  if (!visit.marks) return apply(id, visit.node, nullptr, nullptr);
  spend(visit.node.count / kBytesPerStep);
  Marks seen(visit.node.count);
  if (!apply(id, visit.node, &seen, nullptr)) return false;
  add_marks(seen, *visit.marks);
  return true;
}

bool Checker::check_any_of(const Visit& visit) {
  if (visit.rules.any_of.empty()) return true;
  bool valid = false;
  for (const RulesId id : visit.rules.any_of) {
    if (fits(id, visit)) valid = true;
    // With marks the others are looked at, too: each that fits has looked at something.
    if (stopped() || (valid && !visit.marks)) return true;
  }
  if (!valid && tells(visit)) tell_about_alternatives(visit, visit.rules.any_of, "anyOf");
  return valid;
}

bool Checker::check_one_of(const Visit& visit) {
  if (visit.rules.one_of.empty()) return true;
  std::vector<std::string> fitting;
  std::size_t count = 0;
  for (std::size_t i = 0; i < visit.rules.one_of.size(); ++i) {
    const RulesId id = visit.rules.one_of[i];
    const bool one_more = fits(id, visit);
    if (stopped()) return true;
    if (!one_more) continue;
    if (++count > 1 && !visit.findings) return false;
    if (visit.findings && count <= kListedMax) fitting.push_back(name_of(i, rules(id)));
  }
  if (count == 1) return true;
  if (!tells(visit)) return false;
  if (count == 0) {
    tell_about_alternatives(visit, visit.rules.one_of, "oneOf");
  } else {
    refuse(visit, "oneOf",
           fmt::format("fits {} of the {} alternatives ({}); exactly one may fit", count, visit.rules.one_of.size(),
                       listed(fitting, "and", count)));
  }
  return false;
}

void Checker::tell_about_alternatives(const Visit& visit, const std::vector<RulesId>& alternatives,
                                      std::string_view keyword) {
  Findings nearest;
  std::size_t nearest_number = 0;
  std::size_t right_kind = 0;
  std::vector<std::string> wishes;
  bool only_wishes = true;
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    Findings told;
    apply(alternatives[i], visit.node, visit.marks, &told);
    if (stopped()) return;
    if (!is_wrong_kind(visit.node, told)) ++right_kind;
    const std::string wish = only_wish(visit.node, told);
    if (wish.empty()) only_wishes = false;
    if (wishes.size() <= kListedMax && std::ranges::find(wishes, wish) == wishes.end()) wishes.push_back(wish);
    if (i > 0 && distance(visit.node, told) >= distance(visit.node, nearest)) continue;
    nearest = std::move(told);
    nearest_number = i;
  }
  if (only_wishes) {
    const std::string wanted = listed(wishes, "or");
    refuse(visit, keyword, fmt::format("is {}; {} belongs there", describe(visit.node), wanted), wanted);
    return;
  }
  // With `null` or the like beside it there is no doubt which one was meant.
  if (right_kind != 1 && alternatives.size() > 1)
    refuse(visit, keyword,
           fmt::format("fits none of the {} alternatives; nearest is {}, and what does not fit there follows",
                       alternatives.size(), name_of(nearest_number, rules(alternatives[nearest_number]))));
  const auto& found = nearest.all();
  for (std::size_t i = 0; i < std::min(found.size(), kNearestFindingsMax); ++i) visit.findings->add(found[i]);
}

bool Checker::check_excluded(const Visit& visit) {
  if (visit.rules.excluded == kNone || stopped()) return true;
  if (!apply(visit.rules.excluded, visit.node, nullptr, nullptr) || stopped()) return true;
  if (!tells(visit)) return false;
  return refuse(visit, "not",
                fmt::format("is {}; what fits {} may not be there", describe(visit.node),
                            shortened(rules(visit.rules.excluded).source->raw)));
}

bool Checker::check_condition(const Visit& visit) {
  const Rules& rules = visit.rules;
  if (rules.condition == kNone) return true;
  const RulesId next = fits(rules.condition, visit) ? rules.then : rules.otherwise;
  if (stopped() || next == kNone) return true;
  return apply_in_place(next, visit);
}

}  // namespace belfry::tool
