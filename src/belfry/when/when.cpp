#include "belfry/when/when.h"

#include <fmt/format.h>

#include "belfry/when/resolve.h"

namespace belfry::when {

Result<Reading> read(std::string_view text, const Reference& reference) {
  BELFRY_TRY(const Tokens tokens, scan(text));
  const bool chinese =
      reference.language == Language::chinese || (reference.language == Language::automatic && tokens.has_han);
  long steps = 0;
  const auto expression = find_expression(tokens, chinese, steps);
  if (!expression) return fail(Errc::not_a_time, fmt::format("\"{}\" says nothing about time", text.substr(0, 100)));
  BELFRY_TRY(const Resolved resolved, resolve(*expression, reference.now, reference.zone));
  return Reading{.at = resolved.at,
                 .end = resolved.end,
                 .shape = expression->shape,
                 .day_only = resolved.day_only,
                 .past = resolved.at < reference.now,
                 .alternatives = resolved.alternatives,
                 .begin_byte = tokens.list[expression->first].begin,
                 .end_byte = tokens.list[expression->last - 1].end};
}

}  // namespace belfry::when
