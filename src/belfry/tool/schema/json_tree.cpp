#include "belfry/tool/schema/json_tree.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/limits.h"
#include "belfry/tool/schema/decimal.h"

namespace belfry::tool {
namespace {

std::string pointer_encoded(std::string_view part) {
  std::string out;
  for (const char c : part) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

// Commas and brackets in strings count, too; it only has to be enough.
std::size_t values_at_most(std::string_view raw) {
  return 1 +
         static_cast<std::size_t>(std::ranges::count_if(raw, [](char c) { return c == ',' || c == '[' || c == '{'; }));
}

std::strong_ordering compare_numbers(const Node& a, const Node& b) {
  if (a.raw == b.raw) return std::strong_ordering::equal;
  const auto left = json::integer({a.kind, a.raw});
  const auto right = json::integer({b.kind, b.raw});
  if (left && right) return *left <=> *right;
  return Decimal(a.raw) <=> Decimal(b.raw);
}

}  // namespace

const Node* Node::member(std::string_view name) const {
  const auto all = children();
  const auto found = std::ranges::lower_bound(all, name, {}, &Node::key);
  return found != all.end() && found->key == name ? &*found : nullptr;
}

std::string pointer(const Node& node) {
  if (!node.parent) return {};
  const bool named = node.parent->kind == json::Kind::object;
  return pointer(*node.parent) + "/" + (named ? pointer_encoded(node.key) : std::to_string(node.position()));
}

std::string pointer_decoded(std::string_view part) {
  std::string out;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escape = part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
    out += !escape ? part[i] : part[i + 1] == '0' ? '~' : '/';
    if (escape) ++i;
  }
  return out;
}

std::strong_ordering compare(const Node& a, const Node& b) {
  if (a.kind != b.kind) return a.kind <=> b.kind;
  if (a.kind == json::Kind::number) return compare_numbers(a, b);
  if (a.kind == json::Kind::string) return a.text <=> b.text;
  if (a.kind == json::Kind::boolean) return a.raw <=> b.raw;
  if (a.count != b.count) return a.count <=> b.count;
  for (std::size_t i = 0; i < a.count; ++i) {
    if (const auto order = a.first[i].key <=> b.first[i].key; order != 0) return order;
    if (const auto order = compare(a.first[i], b.first[i]); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

Result<Tree> Tree::read(json::Value value, std::size_t values_max) {
  Tree tree;
  tree.values_max_ = values_max;
  tree.nodes_.reserve(std::min(values_at_most(value.raw), values_max));
  tree.nodes_.push_back({.kind = value.kind, .raw = value.raw});
  if (value.kind == json::Kind::string) tree.nodes_.back().text = tree.decoded(value);
  // Row by row, so that children stand side by side and no depth costs stack.
  for (std::size_t i = 0; i < tree.nodes_.size(); ++i) BELFRY_CHECK(tree.add_children(i));
  return tree;
}

Result<> Tree::add_children(std::size_t parent) {
  const json::Value value{nodes_[parent].kind, nodes_[parent].raw};
  const std::size_t first = nodes_.size();
  if (value.kind == json::Kind::array) {
    for (const json::Value element : json::elements(value)) BELFRY_CHECK(add(parent, element));
  } else if (value.kind == json::Kind::object) {
    BELFRY_CHECK(add_members(parent));
  }
  nodes_[parent].count = nodes_.size() - first;
  if (nodes_.size() > first) nodes_[parent].first = &nodes_[first];
  return {};
}

Result<> Tree::add_members(std::size_t parent) {
  auto members = json::every_member({nodes_[parent].kind, nodes_[parent].raw});
  std::ranges::sort(members, {}, &json::Member::key);
  const auto twice = std::ranges::adjacent_find(members, {}, &json::Member::key);
  if (twice != members.end())
    return fail(Errc::invalid_argument, fmt::format("the member \"{}\" stands twice", twice->key));
  for (json::Member& member : members) {
    BELFRY_CHECK(add(parent, member.value));
    nodes_.back().key = keep(std::move(member.key));
  }
  return {};
}

Result<> Tree::add(std::size_t parent, json::Value value) {
  if (nodes_.size() >= values_max_)
    return fail(Errc::invalid_argument, fmt::format("there are more than {} values in it", values_max_));
  Node node{.kind = value.kind, .depth = nodes_[parent].depth + 1, .raw = value.raw, .parent = &nodes_[parent]};
  if (node.depth > kJsonDepthMax)
    return fail(Errc::invalid_argument, fmt::format("{} {}", json::kTooDeep, kJsonDepthMax));
  if (value.kind == json::Kind::string) node.text = decoded(value);
  nodes_.push_back(node);
  return {};
}

std::string_view Tree::decoded(json::Value string) {
  if (string.raw.find('\\') == std::string_view::npos) return string.raw.substr(1, string.raw.size() - 2);
  return keep(json::text(string));
}

}  // namespace belfry::tool
