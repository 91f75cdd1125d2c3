// What a check found, while it goes on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/tool/schema.h"
#include "belfry/tool/schema/json_tree.h"

namespace belfry::tool {

struct Finding {
  const Node* node;
  Violation violation;
  std::string wanted;  // if another kind of value or another value belongs there: which
};

class Findings {
 public:
  void add(const Node& node, std::string_view keyword, std::string message, std::string wanted = {});
  void add(const Finding& finding);

  // Whether one more would be kept; to be asked when there is one, before its message is made.
  bool wants_more();
  const std::vector<Finding>& all() const { return all_; }
  // In the end; says so if there were too many.
  std::vector<Violation> take();

 private:
  std::vector<Finding> all_;
  bool more_ = false;
};

// How far a value is from a schema that found this: small is near. A value of the wrong kind is the farthest.
int distance(const Node& node, const Findings& findings);
// Whether it is the value itself that is of the wrong kind, rather than something about it.
bool is_wrong_kind(const Node& node, const Findings& findings);

}  // namespace belfry::tool
