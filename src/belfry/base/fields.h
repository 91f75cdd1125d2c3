// The members of one request object, read with refusals that name the field and what would be right.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/base/time.h"

namespace belfry::json {

// What does not belong into a field, and what does.
std::unexpected<Error> wrong_type(std::string_view field, Value value, std::string_view wanted);

// A null stands for "not given". Reading refuses a name that is not known: a typing mistake must not be dropped silently.
class Fields {
 public:
  using Names = std::initializer_list<std::string_view>;
  // `what` is what the object stands for, with an article. An empty body is an empty object: every field of it may be
  // optional.
  static Result<Fields> read(std::string_view what, std::string_view body, Names known);

  std::optional<Value> find(std::string_view name) const;
  // As it stands, null included: for payloads, where null is a value like any other.
  std::optional<Value> find_any(std::string_view name) const;

  // Each leaves `into` as it is if the field is not given.
  Result<> text(std::string_view name, std::string& into) const;
  // A whole number in a range that somebody else checks; here it only has to fit.
  Result<> whole(std::string_view name, std::int64_t& into) const;
  Result<> flag(std::string_view name, bool& into) const;
  Result<> instant(std::string_view name, std::optional<WallTime>& into) const;
  Result<> texts(std::string_view name, std::size_t most, std::vector<std::string>& into) const;

 private:
  std::vector<Member> members_;
};

}  // namespace belfry::json
