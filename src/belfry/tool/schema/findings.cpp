#include "belfry/tool/schema/findings.h"

#include <algorithm>

#include <fmt/format.h>

namespace belfry::tool {

bool Findings::wants_more() {
  if (all_.size() == kViolationsMax) more_ = true;
  return !more_;
}

void Findings::add(const Node& node, std::string_view keyword, std::string message, std::string wanted) {
  if (!wants_more()) return;
  all_.push_back({&node, {pointer(node), std::string(keyword), std::move(message)}, std::move(wanted)});
}

void Findings::add(const Finding& finding) {
  if (wants_more()) all_.push_back(finding);
}

std::vector<Violation> Findings::take() {
  std::vector<Violation> out;
  for (Finding& finding : all_) out.push_back(std::move(finding.violation));
  if (more_)
    out.back() = {"", "", fmt::format("there is more that does not fit; these are the first {}", out.size() - 1)};
  return out;
}

bool is_wrong_kind(const Node& node, const Findings& findings) {
  return std::ranges::any_of(findings.all(), [&](const Finding& f) { return f.node == &node && !f.wanted.empty(); });
}

int distance(const Node& node, const Findings& findings) {
  int sum = is_wrong_kind(node, findings) ? 10'000 : 0;
  // A wrong constant in a member mostly means that another alternative was chosen; a missing name may be forgotten.
  for (const Finding& finding : findings.all()) {
    const std::string& keyword = finding.violation.keyword;
    sum += keyword == "const" || keyword == "enum" ? 20 : keyword == "required" ? 3 : 2;
  }
  return sum;
}

}  // namespace belfry::tool
