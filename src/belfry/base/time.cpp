#include "belfry/base/time.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

namespace belfry {
namespace {

using std::chrono::day;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::month;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

// Reads from the front of a text; every step says whether it matched.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  bool skip(char wanted) {
    if (peek() != wanted || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<int> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char c = rest_[i];
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  // Digits after the point, as milliseconds rounded up.
  std::optional<int> fraction_up() {
    int millis = 0;
    int scale = 100;
    bool more = false;
    std::size_t used = 0;
    for (; used < rest_.size() && rest_[used] >= '0' && rest_[used] <= '9'; ++used) {
      const int digit = rest_[used] - '0';
      if (scale > 0) {
        millis += digit * scale;
        scale /= 10;
      } else {
        more = more || digit != 0;
      }
    }
    if (used == 0) return std::nullopt;
    rest_.remove_prefix(used);
    return millis + (more ? 1 : 0);
  }

 private:
  std::string_view rest_;
};

std::unexpected<Error> bad_iso(std::string_view text) {
  return fail(Errc::invalid_time,
              fmt::format("\"{}\" is not an ISO 8601 instant with an offset, like 2026-03-01T09:30:00Z or "
                          "2026-03-01T17:30:00+08:00",
                          text));
}

struct Decimal {
  std::int64_t whole = 0;       // saturates: no duration is that long
  std::int64_t billionths = 0;  // nine digits behind the point…
  bool more = false;            // …and whether something follows them
  std::size_t size = 0;
};

// Takes `12` or `12.5` from the front.
std::optional<Decimal> take_decimal(std::string_view& rest) {
  static constexpr std::int64_t kEnough = 1'000'000'000'000'000'000;
  Decimal number;
  std::int64_t place = 0;  // 0: before the point
  bool digits = false;
  for (; number.size < rest.size(); ++number.size) {
    const char c = rest[number.size];
    if (c == '.' && place == 0 && digits) {
      place = 100'000'000;
      digits = false;
      continue;
    }
    if (c < '0' || c > '9') break;
    digits = true;
    const int digit = c - '0';
    if (place == 0) {
      number.whole = std::min(number.whole, kEnough / 10 - 1) * 10 + digit;
    } else if (place > 0) {
      number.billionths += digit * place;
      place = place == 1 ? -1 : place / 10;
    } else {
      number.more = number.more || digit != 0;
    }
  }
  if (!digits) return std::nullopt;
  rest.remove_prefix(number.size);
  return number;
}

// Takes a unit from the front; its length in milliseconds.
std::optional<std::int64_t> take_unit(std::string_view& rest) {
  struct Unit {
    std::string_view name;
    std::int64_t millis;
  };
  // `ms` stands before `m`: the longer name must be tried first.
  static constexpr std::array kUnits{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000}, Unit{"h", 3'600'000},
                                     Unit{"d", 86'400'000}};
  for (const Unit& unit : kUnits) {
    if (!rest.starts_with(unit.name)) continue;
    rest.remove_prefix(unit.name.size());
    return unit.millis;
  }
  return std::nullopt;
}

std::optional<minutes> parse_offset(Scanner& scan) {
  if (scan.skip('Z') || scan.skip('z')) return minutes{0};
  const int sign = scan.peek() == '-' ? -1 : 1;
  if (!scan.skip('+') && !scan.skip('-')) return std::nullopt;
  const auto hour = scan.digits(2);
  if (!hour || *hour > 23) return std::nullopt;
  int minute = 0;
  const bool colon = scan.skip(':');
  if (colon || !scan.done()) {
    const auto value = scan.digits(2);
    if (!value || *value > 59) return std::nullopt;
    minute = *value;
  }
  return sign * (hours{*hour} + minutes{minute});
}

}  // namespace

WallTime saturating_add(WallTime start, Millis delay) {
  if (delay > kLatestTime - start) return kLatestTime;
  return start + delay;
}

std::string to_iso(WallTime time) {
  const auto date = std::chrono::floor<days>(time);
  const year_month_day civil{date};
  const auto of_day = time - date;
  const auto h = std::chrono::duration_cast<hours>(of_day);
  const auto m = std::chrono::duration_cast<minutes>(of_day - h);
  const auto s = std::chrono::duration_cast<seconds>(of_day - h - m);
  const auto ms = of_day - h - m - s;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(civil.year()),
                     static_cast<unsigned>(civil.month()), static_cast<unsigned>(civil.day()), h.count(), m.count(),
                     s.count(), ms.count());
}

Result<WallTime> parse_iso(std::string_view text) {
  Scanner scan(text);
  const auto y = scan.digits(4);
  if (!y || !scan.skip('-')) return bad_iso(text);
  const auto mo = scan.digits(2);
  if (!mo || !scan.skip('-')) return bad_iso(text);
  const auto d = scan.digits(2);
  if (!d || !(scan.skip('T') || scan.skip('t') || scan.skip(' '))) return bad_iso(text);
  const auto h = scan.digits(2);
  if (!h || !scan.skip(':')) return bad_iso(text);
  const auto mi = scan.digits(2);
  if (!mi) return bad_iso(text);
  int s = 0;
  int ms = 0;
  if (scan.skip(':')) {
    const auto value = scan.digits(2);
    if (!value) return bad_iso(text);
    s = *value;
    if (scan.skip('.') || scan.skip(',')) {
      const auto fraction = scan.fraction_up();
      if (!fraction) return bad_iso(text);
      ms = *fraction;
    }
  }
  const auto offset = parse_offset(scan);
  if (!offset || !scan.done()) return bad_iso(text);

  const year_month_day civil{year{*y}, month{static_cast<unsigned>(*mo)}, day{static_cast<unsigned>(*d)}};
  if (!civil.ok()) return fail(Errc::invalid_time, fmt::format("\"{}\" names a day that does not exist", text));
  if (*h > 23 || *mi > 59 || s > 59)
    return fail(Errc::invalid_time, fmt::format("\"{}\" names a time of day that does not exist", text));
  const WallTime time = sys_days{civil} + hours{*h} + minutes{*mi} + seconds{s} + Millis{ms} - *offset;
  if (time < kEarliestTime) return fail(Errc::invalid_time, fmt::format("\"{}\" is earlier than the year 1", text));
  if (time > kLatestTime) return fail(Errc::invalid_time, fmt::format("\"{}\" is later than the year 9999", text));
  return time;
}

Result<Millis> parse_duration(std::string_view text) {
  const auto bad = [text] {
    return fail(Errc::invalid_argument,
                fmt::format("\"{}\" is not a duration; write it like 90s, 1500ms, 5m, 2h, 1d or 1h30m", text));
  };
  const auto too_long = [text] { return fail(Errc::invalid_argument, fmt::format("\"{}\" is too long a time", text)); };
  // Milliseconds and billionths of one: sums are exact, and what is left over rounds up.
  static constexpr std::int64_t kBillion = 1'000'000'000;
  static constexpr std::int64_t kMost = 9'000'000'000'000'000;
  if (text.empty()) return bad();
  std::int64_t total = 0;
  std::int64_t billionths = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto number = take_decimal(rest);
    if (!number) return bad();
    const bool alone = number->size == text.size();
    const auto unit = alone ? std::optional<std::int64_t>(1000) : take_unit(rest);
    if (!unit) return bad();
    if (number->whole > kMost / *unit) return too_long();
    billionths += number->billionths * *unit;
    total += number->whole * *unit + billionths / kBillion;
    billionths = billionths % kBillion + (number->more ? 1 : 0);
    if (total > kMost) return too_long();
  }
  return Millis{total + (billionths > 0 ? 1 : 0)};
}

}  // namespace belfry
