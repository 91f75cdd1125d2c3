// Reads what people and models write about time: "tomorrow at 9", 明天早上9点, 2026-05-01T09:00+08:00.
//
// Pure: text, reference instant, zone and language in; no clock. One instant comes out, with the zone that was used and a
// sentence that says it back, or a reason why not. docs/time.md says what is understood and how.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/base/time.h"
#include "belfry/when/expression.h"
#include "belfry/when/rule.h"
#include "belfry/when/zone.h"

namespace belfry::when {

enum class Language { automatic, english, chinese };
// `auto`, `en`, `zh`, also with a region: zh-CN.
Result<Language> parse_language(std::string_view text);

// Where the zone came from: what the text says counts first.
enum class ZoneSource { text, given, user, server };
std::string_view word(ZoneSource source);

struct Reference {
  WallTime now;
  const Zone& zone;
  Language language = Language::automatic;  // by the script of the text
  ZoneSource zone_source = ZoneSource::given;
  bool strict = false;  // refuse what can be read in two ways
};

enum class ReadingKind { instant, date, range, duration, recurrence };
std::string_view word(ReadingKind kind);

struct Reading {
  ReadingKind kind = ReadingKind::instant;
  WallTime at;                  // of a range its beginning, of a recurrence its next occurrence
  std::optional<WallTime> end;  // of a range; behind the last day if it is one of days
  bool day_only = false;        // a day without a time: `at` is at its documented hour
  bool past = false;            // before the reference
  Zone zone;                    // the one that was used: that of the text, or the given one
  ZoneSource zone_source = ZoneSource::given;
  std::vector<WallTime> alternatives;  // other defensible readings
  std::optional<Rule> rule;            // of a recurrence
  std::size_t begin_byte = 0;          // the part of the text that was used
  std::size_t end_byte = 0;
};

// Refuses what says nothing about time (`not_a_time`), what cannot be (`impossible_time`), in strict mode what is open
// (`ambiguous_time`), and what cannot be read at all (`invalid_argument`, `too_large`).
Result<Reading> read(std::string_view text, const Reference& reference);

// The same, counting.
Result<Reading> read_counting(std::string_view text, const Reference& reference, long& steps);

}  // namespace belfry::when
