#include "belfry/when/when.h"

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/when/resolve.h"

namespace belfry::when {
namespace {

constexpr WallTime kEarliestNow{std::chrono::sys_days{std::chrono::year{1900} / 1 / 1}.time_since_epoch()};
constexpr WallTime kLatestNow{std::chrono::sys_days{std::chrono::year{2200} / 1 / 1}.time_since_epoch()};

// At most so many bytes of a text stand in a message, whole characters.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::size_t end = 0;
  while (end < text.size()) {
    const int length = std::max(1, utf8_sequence(text.substr(end)));
    if (end + static_cast<std::size_t>(length) > kMost) break;
    end += static_cast<std::size_t>(length);
  }
  std::string out = "\"";
  out.append(text.substr(0, end)).append(end < text.size() ? "…\"" : "\"");
  return out;
}

ReadingKind kind_of(const Expression& expression, const Resolved& resolved) {
  switch (expression.shape) {
    case Shape::range: return ReadingKind::range;
    case Shape::duration: return ReadingKind::duration;
    case Shape::recurrence: return ReadingKind::recurrence;
    default: return resolved.day_only ? ReadingKind::date : ReadingKind::instant;
  }
}

std::optional<Zone> zone_in(const Moment& moment) {
  if (moment.zone_minutes) return Zone::fixed(*moment.zone_minutes * 60);
  if (moment.region.empty()) return std::nullopt;
  auto named = Zone::named(moment.region);
  return named ? std::optional(std::move(*named)) : std::nullopt;
}

Result<Reading> refuse_open(std::string_view text, const Reading& reading) {
  const auto iso = [&](WallTime at) { return reading.zone.iso(at); };
  return fail(Errc::ambiguous_time, fmt::format("{} can be {} or {}; say which", quoted(text), iso(reading.at),
                                                iso(reading.alternatives[0])));
}

}  // namespace

Result<Language> parse_language(std::string_view text) {
  if (text.empty() || text == "auto") return Language::automatic;
  const std::string_view base = text.substr(0, text.find_first_of("-_"));
  if (base == "en") return Language::english;
  if (base == "zh") return Language::chinese;
  return fail(Errc::invalid_argument,
              fmt::format("\"{}\" is not a language that is read; auto, en and zh are", text.substr(0, 40)));
}

std::string_view word(ZoneSource source) {
  switch (source) {
    case ZoneSource::text: return "text";
    case ZoneSource::given: return "given";
    case ZoneSource::user: return "user";
    case ZoneSource::server: return "server";
  }
  return "";
}

std::string_view word(ReadingKind kind) {
  switch (kind) {
    case ReadingKind::instant: return "instant";
    case ReadingKind::date: return "date";
    case ReadingKind::range: return "range";
    case ReadingKind::duration: return "duration";
    case ReadingKind::recurrence: return "recurrence";
  }
  return "";
}

Result<Reading> read_counting(std::string_view text, const Reference& reference, long& steps) {
  if (reference.now < kEarliestNow || reference.now >= kLatestNow)
    return fail(Errc::invalid_time, "the reference is not in the years 1900 to 2199");
  Tokens tokens;
  BELFRY_CHECK(scan(text, tokens));
  const bool chinese =
      reference.language == Language::chinese || (reference.language == Language::automatic && tokens.has_han);
  Kept kept;
  Expression expression;
  if (!find_expression(tokens, chinese, kept, steps, expression)) {
    if (text.empty())
      return fail(Errc::not_a_time, "the text is empty; a time like \"tomorrow at 9\" or 明天9点 is wanted");
    return fail(Errc::not_a_time, quoted(text) + " says nothing about time");
  }
  const Instant now = std::chrono::floor<Seconds>(reference.now);
  Resolved resolved;
  BELFRY_CHECK(resolve(expression, now, reference.zone, resolved));
  const auto own = zone_in(expression.start);
  // What counts from this moment counts from its fraction of a second, too: never early.
  const Millis fraction = resolved.relative || resolved.at == now ? reference.now - now : Millis{0};
  Reading reading;
  reading.kind = kind_of(expression, resolved);
  reading.at = resolved.at + fraction;
  reading.day_only = resolved.day_only;
  reading.zone = own ? *own : reference.zone;
  reading.zone_source = own ? ZoneSource::text : reference.zone_source;
  reading.rule = std::move(resolved.rule);
  reading.begin_byte = tokens.all()[expression.first].begin;
  reading.end_byte = tokens.all()[expression.last - 1].end;
  if (resolved.end) reading.end = *resolved.end + (resolved.relative_end ? reference.now - now : Millis{0});
  for (const Instant other : resolved.alternatives) reading.alternatives.emplace_back(other);
  // An ISO instant may have fractions of a second, which the grammar does not see.
  if (text.contains('T') && tokens.all().front().digits == 4) {
    const auto exact = parse_iso(text);
    if (exact && std::chrono::floor<Seconds>(*exact) == resolved.at) reading.at = *exact;
  }
  reading.past = reading.at < reference.now;
  if (reference.strict && !reading.alternatives.empty()) return refuse_open(text, reading);
  return reading;
}

Result<Reading> read(std::string_view text, const Reference& reference) {
  long steps = 0;
  return read_counting(text, reference, steps);
}

}  // namespace belfry::when
