// From what a text says to an instant: needs the reference instant and a zone, and nothing else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/when/expression.h"
#include "belfry/when/rule.h"
#include "belfry/when/zone.h"

namespace belfry::when {

struct Resolved {
  Instant at;
  std::optional<Instant> end;
  bool day_only = false;      // the text names a day and no time: `at` is its documented hour
  bool relative = false;      // counted from this very moment, fractions of its second included
  bool relative_end = false;  // its end, too
  std::vector<Instant> alternatives;
  std::optional<Rule> rule;  // of a recurrence: `at` is its next occurrence
};

// Fills `out`, which must be new. Refuses what cannot be: 30 February, 25 o'clock, a year outside 1 to 9999.
Result<> resolve(const Expression& expression, Instant now, const Zone& zone, Resolved& out);

}  // namespace belfry::when
