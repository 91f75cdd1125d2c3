#include "belfry/tool/schema/checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/tool/schema/messages.h"

namespace belfry::tool {
namespace {

using json::Kind;

std::uint64_t length_in_characters(std::string_view text) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::size_t Checker::cost(const Node& node) {
  const bool scalar = node.kind == Kind::string || node.kind == Kind::number;
  return 1 + (scalar ? node.raw.size() / kBytesPerStep : 0);
}

std::vector<Violation> Checker::run(const Node& instance) {
  Findings findings;
  const bool valid = apply(program_.root, instance, nullptr, &findings);
  if (stopped()) return {{"", "", stopped_because_}};
  // Whatever was forgotten to be told: what does not fit must not pass.
  if (!valid && findings.all().empty()) findings.add(instance, "", "does not fit the schema");
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
    if (tells(visit)) refuse(visit, "false", fmt::format("is {}; nothing may be there", describe(visit.node)));
    return false;
  }
  static constexpr Rule kRules[] = {&Checker::check_references, &Checker::check_value,     &Checker::check_number,
                                    &Checker::check_string,     &Checker::check_array,     &Checker::check_object,
                                    &Checker::check_all_of,     &Checker::check_any_of,    &Checker::check_one_of,
                                    &Checker::check_excluded,   &Checker::check_condition, &Checker::check_unevaluated};
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

bool Checker::check_value(const Visit& visit) {
  const bool right_type = visit.rules.types == kAnyType || (type_of(visit.node) & visit.rules.types) != 0;
  const bool allowed = is_allowed(visit);
  if (right_type && allowed) return true;
  if (!tells(visit)) return false;
  return allowed ? refuse_type(visit) : refuse_value(visit);  // the allowed values say more than their type
}

bool Checker::is_allowed(const Visit& visit) {
  if (const Node* const constant = visit.rules.constant) {
    if (!spend(1 + constant->raw.size() / kBytesPerStep)) return true;
    if (compare(*constant, visit.node) != 0) return false;
  }
  if (!visit.rules.choices) return true;
  for (const Node& choice : visit.rules.choices->children())
    if (!spend(1 + choice.raw.size() / kBytesPerStep) || compare(choice, visit.node) == 0) return true;
  return false;
}

bool Checker::refuse_type(const Visit& visit) {
  const std::string wanted = describe_types(visit.rules.types);
  const std::string hint = hint_for_string(visit.node, visit.rules.types);
  return refuse(visit, "type", fmt::format("is {}; {} belongs there{}", describe(visit.node), wanted, hint), wanted);
}

bool Checker::refuse_value(const Visit& visit) {
  if (const Node* const constant = visit.rules.constant) {
    const std::string wanted = shortened(constant->raw);
    return refuse(visit, "const", fmt::format("is {}; {} belongs there", describe(visit.node), wanted), wanted);
  }
  const Node& choices = *visit.rules.choices;
  std::vector<std::string> allowed;
  std::vector<std::string_view> texts;
  for (const Node& choice : choices.children()) {
    if (allowed.size() < kListedMax) allowed.push_back(shortened(choice.raw));
    if (choice.kind == Kind::string) texts.push_back(choice.text);
  }
  const std::string list = listed(allowed, "or", choices.count);
  const auto meant = visit.node.kind == Kind::string ? nearest_name(visit.node.text, texts) : std::string_view();
  const std::string hint = meant.empty() ? "" : fmt::format("; did you mean {}?", shortened(json::quoted(meant)));
  return refuse(visit, "enum", fmt::format("is {}, which is not one of {}{}", describe(visit.node), list, hint), list);
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
    if (tells(visit))
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
    if (tells(visit)) refuse(visit, keyword, message());
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
