// A regular expression of a schema. Schemas write them as ECMA-262 has them; RE2 matches them, because its time grows
// with the text and not with the cleverness of who wrote pattern and text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "belfry/base/result.h"

namespace re2 {
class RE2;
}

namespace belfry::tool {

// The same expression as RE2 writes it. What has no meaning there (lookahead, backreferences) is refused by name.
Result<std::string> to_re2(std::string_view ecma);

class Pattern {
 public:
  static Result<Pattern> compile(std::string_view ecma);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Anywhere in the text, unless the pattern is anchored.
  bool found_in(std::string_view text) const;
  // How many steps of a check a look at so many bytes counts as.
  std::size_t cost(std::size_t bytes) const;
  std::size_t size() const { return size_; }  // in instructions
  const std::string& source() const { return source_; }

 private:
  Pattern(std::string source, std::unique_ptr<re2::RE2> machine);

  std::string source_;
  std::unique_ptr<re2::RE2> machine_;
  std::size_t size_ = 0;
};

}  // namespace belfry::tool
