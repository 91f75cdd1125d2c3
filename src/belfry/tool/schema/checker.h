// One check of one value against a program.
//
// With `findings` every rule is looked at and what does not fit is told; without, the first thing that does not fit ends
// it. Alternatives are first tried without and only told about if none fits, so nested ones cost their depth, not a power.
#pragma once

#include <string>
#include <vector>

#include "belfry/tool/schema.h"
#include "belfry/tool/schema/findings.h"
#include "belfry/tool/schema/rules.h"

namespace belfry::tool {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  std::vector<Violation> run(const Node& instance);

 private:
  // Which children of a value some schema has looked at; `unevaluated…` is about the others.
  using Marks = std::vector<bool>;
  struct Visit {
    const Rules& rules;
    const Node& node;
    Marks* marks;        // nothing if nobody asks
    Findings* findings;  // nothing if only the outcome counts
  };
  using Rule = bool (Checker::*)(const Visit&);

  bool apply(RulesId id, const Node& node, Marks* marks, Findings* findings);
  bool apply_rules(const Visit& visit);
  bool apply_in_place(RulesId id, const Visit& visit) { return apply(id, visit.node, visit.marks, visit.findings); }
  bool apply_to_child(RulesId id, const Node& child, const Visit& visit) {
    return apply(id, child, nullptr, visit.findings);
  }

  bool check_references(const Visit& visit);
  bool check_value(const Visit& visit);
  bool is_allowed(const Visit& visit);
  static bool refuse_type(const Visit& visit);
  static bool refuse_value(const Visit& visit);
  bool check_number(const Visit& visit);
  bool check_string(const Visit& visit);

  bool check_array(const Visit& visit);
  bool check_elements(const Visit& visit);
  bool check_contained(const Visit& visit);
  bool check_unique(const Visit& visit);
  bool check_unevaluated(const Visit& visit);

  bool check_object(const Visit& visit);
  bool check_members(const Visit& visit);
  bool check_member(const Visit& visit, const Node& member);
  bool refuse_member(const Visit& visit, const Node& member);
  bool check_names(const Visit& visit);
  bool check_required(const Visit& visit);
  bool check_dependencies(const Visit& visit);

  bool check_all_of(const Visit& visit);
  bool check_any_of(const Visit& visit);
  bool check_one_of(const Visit& visit);
  bool check_excluded(const Visit& visit);
  bool check_condition(const Visit& visit);
  // Applies it without telling; marks only what fits.
  bool fits(RulesId id, const Visit& visit);
  void tell_about_alternatives(const Visit& visit, const std::vector<RulesId>& alternatives, std::string_view keyword);

  const Rules& rules(RulesId id) const { return program_.rules[static_cast<std::size_t>(id)]; }
  RulesId dynamic_target(const Rules& rules) const;
  static void mark(const Visit& visit, const Node& child) {
    if (visit.marks) (*visit.marks)[child.position()] = true;
  }
  static void add_marks(const Marks& from, Marks& to);
  // Whether somebody wants to know why something does not fit.
  static bool tells(const Visit& visit) { return visit.findings && visit.findings->wants_more(); }
  // False, and tells why.
  static bool refuse(const Visit& visit, std::string_view keyword, std::string message, std::string wanted = {});

  // Counts work; false once there was too much of it, and then nothing that is found counts any more.
  // Bytes of a text, or marks of an array, that are looked at in one step.
  static constexpr std::size_t kBytesPerStep = 64;
  static std::size_t cost(const Node& node);
  bool spend(std::size_t steps);
  bool stopped() const { return !stopped_because_.empty(); }

  const Program& program_;
  std::vector<ResourceId> dynamic_scope_;
  std::size_t steps_ = 0;
  int depth_ = 0;
  std::string stopped_because_;
};

}  // namespace belfry::tool
