#include "belfry/tool/schema/checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/tool/schema/messages.h"

namespace belfry::tool {
namespace {

using json::Kind;

// Bytes of a text or number that are looked at in one step.
constexpr std::size_t kBytesPerStep = 64;

std::size_t cost(const Node& node) {
  const bool scalar = node.kind == Kind::string || node.kind == Kind::number;
  return 1 + (scalar ? node.raw.size() / kBytesPerStep : 0);
}

std::uint64_t length_in_characters(std::string_view text) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::vector<Violation> Checker::run(const Node& instance) {
  Findings findings;
  apply(program_.root, instance, nullptr, &findings);
  if (stopped()) return {{"", "", stopped_because_}};
  return findings.take();
}

bool Checker::spend(std::size_t steps) {
  steps_ += steps;
  if (steps_ > kCheckStepsMax && !stopped())
    stopped_because_ = fmt::format("could not be checked: that takes more than {} steps", kCheckStepsMax);
  return !stopped();
}

bool Checker::refuse(const Visit& visit, std::string_view keyword, std::string message, std::string wanted) {
  visit.findings->add(visit.node, keyword, std::move(message), std::move(wanted));
  return false;
}

bool Checker::apply(RulesId id, const Node& node, Marks* marks, Findings* findings) {
  if (!spend(cost(node))) return true;
  if (depth_ == kCheckDepthMax) {
    stopped_because_ = fmt::format("could not be checked: schemas lead to schemas more than {} deep", kCheckDepthMax);
    return true;
  }
  const Rules& applied = rules(id);
  const bool enters = dynamic_scope_.empty() || dynamic_scope_.back() != applied.resource;
  if (enters) dynamic_scope_.push_back(applied.resource);
  ++depth_;

  bool valid = true;
  if (applied.wants_marks()) {
    // What was looked at elsewhere does not count here, but what is looked at here counts elsewhere.
    spend(node.count / kBytesPerStep);
    Marks own(node.count);
    valid = apply_rules({applied, node, &own, findings});
    if (marks) add_marks(own, *marks);
  } else {
    valid = apply_rules({applied, node, marks, findings});
  }

  --depth_;
  if (enters) dynamic_scope_.pop_back();
  return valid;
}

void Checker::add_marks(const Marks& from, Marks& to) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i]) to[i] = true;
}

bool Checker::apply_rules(const Visit& visit) {
  if (visit.rules.refuses_all) {
    if (visit.findings) refuse(visit, "false", fmt::format("is {}; nothing may be there", describe(visit.node)));
    return false;
  }
  static constexpr Rule kRules[] = {&Checker::check_references, &Checker::check_type,     &Checker::check_choice,
                                    &Checker::check_number,     &Checker::check_string,   &Checker::check_array,
                                    &Checker::check_object,     &Checker::check_all_of,   &Checker::check_any_of,
                                    &Checker::check_one_of,     &Checker::check_excluded, &Checker::check_condition,
                                    &Checker::check_unevaluated};
  bool valid = true;
  for (const Rule rule : kRules) {
    if (!(this->*rule)(visit)) valid = false;
    if (stopped() || (!valid && !visit.findings)) break;
  }
  return valid;
}

bool Checker::check_references(const Visit& visit) {
  bool valid = true;
  if (visit.rules.reference != kNone) valid = apply_in_place(visit.rules.reference, visit);
  if (visit.rules.dynamic_reference != kNone) valid = apply_in_place(dynamic_target(visit.rules), visit) && valid;
  return valid;
}

// The outermost schema on the way here that has an anchor of that name.
RulesId Checker::dynamic_target(const Rules& rules) const {
  if (rules.dynamic_name.empty()) return rules.dynamic_reference;
  for (const ResourceId resource : dynamic_scope_) {
    const auto& anchors = program_.resources[static_cast<std::size_t>(resource)].dynamic_anchors;
    if (const auto found = anchors.find(rules.dynamic_name); found != anchors.end()) return found->second;
  }
  return rules.dynamic_reference;
}

bool Checker::check_type(const Visit& visit) {
  if (visit.rules.types == kAnyType || (type_of(visit.node) & visit.rules.types) != 0) return true;
  // The allowed values say more than their type does.
  if (!visit.findings || visit.rules.choices || visit.rules.constant) return false;
  const std::string wanted = describe_types(visit.rules.types);
  return refuse(visit, "type",
                fmt::format("is {}; {} belongs there{}", describe(visit.node), wanted,
                            hint_for_string(visit.node, visit.rules.types)),
                wanted);
}

bool Checker::check_choice(const Visit& visit) {
  if (const Node* const constant = visit.rules.constant; constant && compare(*constant, visit.node) != 0) {
    if (!visit.findings) return false;
    const std::string wanted = shortened(constant->raw);
    return refuse(visit, "const", fmt::format("is {}; {} belongs there", describe(visit.node), wanted), wanted);
  }
  if (!visit.rules.choices) return true;
  const auto choices = visit.rules.choices->children();
  for (const Node& choice : choices)
    if (!spend(1 + choice.raw.size() / kBytesPerStep) || compare(choice, visit.node) == 0) return true;
  if (!visit.findings) return false;
  std::vector<std::string> allowed;
  std::vector<std::string_view> texts;
  for (const Node& choice : choices) {
    allowed.push_back(shortened(choice.raw));
    if (choice.kind == Kind::string) texts.push_back(choice.text);
  }
  const auto meant = visit.node.kind == Kind::string ? nearest_name(visit.node.text, texts) : std::string_view();
  const std::string hint = meant.empty() ? "" : fmt::format("; did you mean {}?", shortened(json::quoted(meant)));
  return refuse(visit, "enum",
                fmt::format("is {}, which is not one of {}{}", describe(visit.node), listed(allowed, "or"), hint),
                listed(allowed, "or"));
}

bool Checker::check_number(const Visit& visit) {
  const NumberRules& number = visit.rules.number;
  if (visit.node.kind != Kind::number) return true;
  if (!number.minimum && !number.maximum && !number.above && !number.below && !number.multiple_of) return true;
  const Decimal value(visit.node.raw);
  bool valid = true;
  const auto demand = [&](bool fits, std::string_view keyword, std::string_view relation, std::string_view limit) {
    if (fits) return;
    valid = false;
    if (visit.findings)
      refuse(visit, keyword,
             fmt::format("is {}; a number {} {} belongs there", shortened(visit.node.raw), relation, shortened(limit)));
  };
  if (const auto& b = number.minimum) demand(value >= b->limit, "minimum", "of at least", b->raw);
  if (const auto& b = number.maximum) demand(value <= b->limit, "maximum", "of at most", b->raw);
  if (const auto& b = number.above) demand(value > b->limit, "exclusiveMinimum", "above", b->raw);
  if (const auto& b = number.below) demand(value < b->limit, "exclusiveMaximum", "below", b->raw);
  if (const auto& b = number.multiple_of)
    demand(value.is_multiple_of(b->limit), "multipleOf", "that is a multiple of", b->raw);
  return valid;
}

bool Checker::check_string(const Visit& visit) {
  const auto& [length, pattern] = visit.rules.string;
  if (visit.node.kind != Kind::string) return true;
  bool valid = true;
  const auto demand = [&](bool fits, std::string_view keyword, const auto& message) {
    if (fits) return;
    valid = false;
    if (visit.findings) refuse(visit, keyword, message());
  };
  const std::uint64_t has = length_in_characters(visit.node.text);
  const auto counts = [&](std::string_view relation, std::uint64_t limit) {
    return fmt::format("has {} ({}); at {} {} {} there", counted(has, "character"), shortened(visit.node.raw), relation,
                       limit, limit == 1 ? "belongs" : "belong");
  };
  demand(has >= length.least, "minLength", [&] { return counts("least", length.least); });
  demand(has <= length.most, "maxLength", [&] { return counts("most", length.most); });
  if (!pattern || !spend(pattern->cost(visit.node.text.size()))) return valid;
  demand(pattern->found_in(visit.node.text), "pattern", [&] {
    return fmt::format("{} does not match the pattern {}", shortened(visit.node.raw), shortened(pattern->source()));
  });
  return valid;
}

}  // namespace belfry::tool
