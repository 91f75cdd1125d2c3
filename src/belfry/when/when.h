// Reads what people and models write about time: "tomorrow at 9", 明天早上9点, 2026-05-01T09:00+08:00.
//
// Pure: text, reference instant, zone and language in; no clock, no I/O. One instant comes out, or a reason why not.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/when/civil.h"
#include "belfry/when/expression.h"
#include "belfry/when/zone.h"

namespace belfry::when {

enum class Language { automatic, english, chinese };

struct Reference {
  Instant now;
  const Zone& zone;
  Language language = Language::automatic;
};

struct Reading {
  Instant at;
  std::optional<Instant> end;  // of a range
  Shape shape = Shape::moment;
  bool day_only = false;              // a day without a time: `at` is its documented hour
  bool past = false;                  // before the reference
  std::vector<Instant> alternatives;  // other defensible readings
  std::size_t begin_byte = 0;         // the part of the text that was used
  std::size_t end_byte = 0;
};

// Refuses what is not about time (`not_found`), what cannot be (`invalid_time`), and what cannot be read at all.
Result<Reading> read(std::string_view text, const Reference& reference);

}  // namespace belfry::when
