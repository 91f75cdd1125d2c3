// A text of which parts are found by patterns and taken away.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <re2/re2.h>

namespace belfry::agent {

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool empty() const { return begin == end; }
};

struct Found {
  Span whole;
  std::vector<Span> groups;
};

// As it was written, and as it is matched: the same number of bytes, so a place in one is the same place in the other.
class Words {
 public:
  Words(std::string_view text, bool chinese);

  const std::string& said() const { return said_; }
  const std::string& plain() const { return plain_; }
  bool empty() const { return said_.empty(); }
  std::string said(Span span) const { return said_.substr(span.begin, span.end - span.begin); }

  std::optional<Found> find(const re2::RE2& pattern) const;
  bool has(const re2::RE2& pattern) const { return find(pattern).has_value(); }
  void take(Span span);
  // As often as it is there.
  void take_all(const re2::RE2& pattern);
  void keep(Span span);

 private:
  void trim();

  std::string said_;
  std::string plain_;
  bool chinese_;
};

}  // namespace belfry::agent
