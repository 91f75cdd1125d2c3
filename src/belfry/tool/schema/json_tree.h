// A checked JSON text as a tree: every value is read once, and a schema can then look at it many times.
#pragma once

#include <compare>
#include <cstdint>
#include <forward_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"

namespace belfry::tool {

struct Node {
  json::Kind kind = json::Kind::null;
  int depth = 0;
  std::string_view raw;
  std::string_view text;  // of a string, without its escapes
  std::string_view key;   // of a member
  const Node* parent = nullptr;
  const Node* first = nullptr;  // the children stand side by side, those of an object by name
  std::size_t count = 0;

  std::span<const Node> children() const { return {first, count}; }
  const Node* member(std::string_view name) const;
  std::size_t position() const { return static_cast<std::size_t>(this - parent->first); }
};

// Where a value stands, as a JSON Pointer.
std::string pointer(const Node& node);
// A part of a JSON Pointer without its escapes.
std::string pointer_decoded(std::string_view part);

// An order over all values in which equal ones are equal: `1.0` and `1`, objects whatever the order of their members.
std::strong_ordering compare(const Node& a, const Node& b);

// Nodes point into the text that was read and to each other; so a tree moves, but is not copied.
class Tree {
 public:
  // Refuses a member that stands twice, more than `values_max` values, and depth beyond kJsonDepthMax.
  static Result<Tree> read(json::Value value, std::size_t values_max);

  Tree(Tree&&) noexcept = default;
  Tree& operator=(Tree&&) noexcept = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() = default;

  const Node& root() const { return nodes_.front(); }

 private:
  Tree() = default;
  Result<> add_children(std::size_t parent);
  Result<> add_members(std::size_t parent);
  Result<> add(std::size_t parent, json::Value value);
  std::string_view keep(std::string text) { return texts_.emplace_front(std::move(text)); }
  std::string_view decoded(json::Value string);

  std::vector<Node> nodes_;               // has its room from the start, so that nodes stay where they are
  std::forward_list<std::string> texts_;  // decoded ones, which stay where they are
  std::size_t values_max_ = 0;
};

}  // namespace belfry::tool
