#include "belfry/when/zone.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace belfry::when {
namespace {

std::optional<int> parse_offset(std::string_view text) {
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  for (const std::size_t i : {1u, 2u, 4u, 5u})
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
  const int hours = (text[1] - '0') * 10 + text[2] - '0';
  const int minutes = (text[4] - '0') * 10 + text[5] - '0';
  if (hours > 18 || minutes > 59) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

// A file of the zone data, by a name that can be nothing else: the library would also open `file:` and `libc:`, and it
// never forgets a name that it was asked for.
bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() >= 64 || name.front() < 'A' || name.front() > 'Z' || name == "Factory") return false;
  for (const char c : name) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-' || c == '+' || c == '/';
    if (!fits) return false;
  }
  if (name == "UTC") return true;
  const char* const folder = std::getenv("TZDIR");  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  std::error_code ec;
  return std::filesystem::is_regular_file(std::filesystem::path(folder ? folder : "/usr/share/zoneinfo") / name, ec);
}

}  // namespace

Result<Zone> Zone::named(std::string_view name) {
  if (const auto offset = parse_offset(name)) return fixed(*offset);
  Zone zone;
  if (!is_zone_name(name) || !absl::LoadTimeZone(std::string(name), &zone.zone_))
    return fail(Errc::unknown_timezone,
                fmt::format("\"{}\" is not a time zone; an IANA name like Asia/Shanghai or an offset like +08:00 is",
                            name.substr(0, 64)));
  zone.name_ = name;
  return zone;
}

std::string_view known_zone(const std::string& name) {
  const auto zone = Zone::named(name);
  if (!zone) return {};
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return *names.insert(name).first;
}

Zone Zone::fixed(int offset_seconds) {
  Zone zone;
  zone.zone_ = absl::FixedTimeZone(offset_seconds);
  const int minutes = std::abs(offset_seconds) / 60;
  zone.name_ = fmt::format("{}{:02}:{:02}", offset_seconds < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return zone;
}

Local Zone::local(Instant instant) const {
  const auto at = zone_.At(absl::FromUnixSeconds(instant.time_since_epoch().count()));
  const absl::CivilSecond& cs = at.cs;
  return {date_of(static_cast<int>(cs.year()), cs.month(), cs.day()),
          Seconds{cs.hour() * 3600 + cs.minute() * 60 + cs.second()}};
}

int Zone::offset_seconds(Instant instant) const {
  return zone_.At(absl::FromUnixSeconds(instant.time_since_epoch().count())).offset;
}

Instant Zone::instant(const Local& local) const {
  const absl::CivilDay day(year_of(local.date), month_of(local.date), day_of(local.date));
  // Before the step is where a skipped time moves forward from, and the first of two.
  const auto at = zone_.At(absl::CivilSecond(day) + local.time.count());
  return Instant{Seconds{absl::ToUnixSeconds(at.pre)}};
}

Instant Zone::later_instant(const Local& local) const {
  const absl::CivilDay day(year_of(local.date), month_of(local.date), day_of(local.date));
  const auto at = zone_.At(absl::CivilSecond(day) + local.time.count());
  return Instant{Seconds{absl::ToUnixSeconds(at.kind == absl::TimeZone::TimeInfo::REPEATED ? at.post : at.pre)}};
}

std::int64_t Zone::next_change(std::int64_t seconds) const {
  absl::TimeZone::CivilTransition change;
  const absl::Time from = absl::FromUnixSeconds(seconds);
  if (!zone_.NextTransition(from, &change)) return INT64_MAX;
  const auto info = zone_.At(change.to);
  return absl::ToUnixSeconds(info.trans);
}

std::string Zone::iso(WallTime at) const {
  const Instant instant = std::chrono::floor<Seconds>(at);
  const Local local_time = local(instant);
  const int offset = offset_seconds(instant) / 60;
  const auto time = local_time.time.count();
  const auto fraction = (at - instant).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}{:02}:{:02}", year_of(local_time.date),
                     month_of(local_time.date), day_of(local_time.date), time / 3600, time / 60 % 60, time % 60,
                     fraction == 0 ? "" : fmt::format(".{:03}", fraction), offset < 0 ? '-' : '+',
                     std::abs(offset) / 60, std::abs(offset) % 60);
}

}  // namespace belfry::when
