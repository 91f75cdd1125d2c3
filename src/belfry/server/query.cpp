#include "belfry/server/query.h"

#include <charconv>

#include <fmt/format.h>

namespace belfry::server::wire {

Result<std::int64_t> read_number(std::string_view name, const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0)
    return fail(Errc::invalid_argument,
                fmt::format("{} is \"{}\"; a whole number, 0 or more, belongs there", name, text.substr(0, 40)));
  return number;
}

Result<int> read_limit(const std::string& text, int most) {
  int limit = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, limit);
  if (read.ec != std::errc{} || read.ptr != end || limit < 1 || limit > most)
    return fail(Errc::invalid_argument,
                fmt::format("limit \"{}\" is not a number from 1 to {}", text.substr(0, 40), most));
  return limit;
}

std::unexpected<Error> unknown_parameter(const std::string& name, std::string_view known) {
  return fail(Errc::unknown_field,
              fmt::format("unknown parameter \"{}\"; this list knows: {}", name.substr(0, 100), known));
}

}  // namespace belfry::server::wire
