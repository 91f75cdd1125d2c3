// A text that is not shown: it has no way into a log line, an answer or an error but reveal().
#pragma once

#include <string>
#include <utility>

namespace belfry {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}

  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string text_;
};

}  // namespace belfry
