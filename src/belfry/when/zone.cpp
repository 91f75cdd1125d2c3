#include "belfry/when/zone.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

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

constexpr std::int64_t kTableBegin = -2'208'988'800;  // 1900
constexpr std::int64_t kTableEnd = 4'102'444'800;     // 2100

absl::CivilSecond civil(const Local& local) {
  const absl::CivilDay day(year_of(local.date), month_of(local.date), day_of(local.date));
  return absl::CivilSecond(day) + local.time.count();
}

}  // namespace

struct Zone::Kept {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<const Data>, std::less<>> zones;
};

Zone::Kept& Zone::kept() {
  static Kept all;
  return all;
}

const Zone::Data* Zone::find(std::string_view name) {
  const std::shared_lock lock(kept().mutex);
  const auto found = kept().zones.find(name);
  return found == kept().zones.end() ? nullptr : found->second.get();
}

const Zone::Data* Zone::keep(std::string_view name, const absl::TimeZone& zone) {
  auto data = std::make_unique<const Data>(name, zone);
  const std::unique_lock lock(kept().mutex);
  return kept().zones.try_emplace(data->name, std::move(data)).first->second.get();
}

Zone::Zone() {
  static const Data* const utc_data = keep("UTC", absl::UTCTimeZone());
  data_ = utc_data;
}

Result<Zone> Zone::named(std::string_view name) {
  if (const auto offset = parse_offset(name)) return fixed(*offset);
  if (const Data* known = find(name)) return Zone(known);
  absl::TimeZone loaded;
  if (!is_zone_name(name) || !absl::LoadTimeZone(std::string(name), &loaded))
    return fail(Errc::unknown_timezone,
                fmt::format("\"{}\" is not a time zone; an IANA name like Asia/Shanghai or an offset like +08:00 is",
                            name.substr(0, 64)));
  return Zone(keep(name, loaded));
}

Zone Zone::fixed(int offset_seconds) {
  constexpr int kMinutesMost = 18 * 60;  // of parse_offset; whoever asks for more gets the nearest
  static std::array<std::atomic<const Data*>, 2 * kMinutesMost + 1> known{};
  const int minutes = std::clamp(offset_seconds / 60, -kMinutesMost, kMinutesMost);
  const int index = minutes + kMinutesMost;
  std::atomic<const Data*>& slot = known[static_cast<std::size_t>(index)];
  if (const Data* data = slot.load(std::memory_order_acquire)) return Zone(data);
  const std::string name =
      fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', std::abs(minutes) / 60, std::abs(minutes) % 60);
  const Data* data = keep(name, absl::FixedTimeZone(minutes * 60));
  slot.store(data, std::memory_order_release);
  return Zone(data);
}

Zone::Data::Data(std::string_view called, const absl::TimeZone& loaded)
    : name(called), zone(loaded), first_offset(loaded.At(absl::FromUnixSeconds(kTableBegin)).offset) {
  absl::TimeZone::CivilTransition change;
  std::int64_t at = kTableBegin;
  while (zone.NextTransition(absl::FromUnixSeconds(at), &change)) {
    at = absl::ToUnixSeconds(zone.At(change.to).trans);
    if (at >= kTableEnd) break;
    const int before = changes.empty() ? first_offset : changes.back().after;
    const Change found{at, before, zone.At(absl::FromUnixSeconds(at)).offset};
    in_table =
        in_table && (changes.empty() || changes.back().local_end() <= std::min(found.local_begin(), at + before));
    changes.push_back(found);
  }
}

bool Zone::in_table(std::int64_t seconds) const {
  constexpr std::int64_t kMargin = 2 * 86'400;  // local times differ from instants by less
  return data_->in_table && seconds >= kTableBegin + kMargin && seconds < kTableEnd - kMargin;
}

int Zone::offset_seconds(Instant instant) const {
  const std::int64_t seconds = instant.time_since_epoch().count();
  if (!in_table(seconds)) return data_->zone.At(absl::FromUnixSeconds(seconds)).offset;
  const auto& changes = data_->changes;
  if (!changes.empty() && seconds >= changes.back().at) return changes.back().after;  // many zones change no more
  const auto next = std::upper_bound(changes.begin(), changes.end(), seconds,
                                     [](std::int64_t at, const Change& change) { return at < change.at; });
  return next == changes.begin() ? data_->first_offset : std::prev(next)->after;
}

Local Zone::local(Instant instant) const {
  const Seconds there = instant.time_since_epoch() + Seconds{offset_seconds(instant)};
  const Days day = std::chrono::floor<Days>(there);
  return {Date{day}, there - day};
}

template <class Threshold>
Instant Zone::instant_by_table(std::int64_t local, Threshold threshold) const {
  const auto& changes = data_->changes;
  if (!changes.empty() && local >= std::invoke(threshold, changes.back()))
    return Instant{Seconds{local - changes.back().after}};
  const auto next = std::upper_bound(changes.begin(), changes.end(), local, [&](std::int64_t at, const Change& change) {
    return at < std::invoke(threshold, change);
  });
  const int offset = next == changes.begin() ? data_->first_offset : std::prev(next)->after;
  return Instant{Seconds{local - offset}};
}

// Before the step is where a skipped time moves forward from, and the first of two.
Instant Zone::instant(const Local& local) const {
  const std::int64_t seconds = (local.date.time_since_epoch() + local.time).count();
  if (in_table(seconds)) return instant_by_table(seconds, &Change::local_end);
  return Instant{Seconds{absl::ToUnixSeconds(data_->zone.At(civil(local)).pre)}};
}

Instant Zone::later_instant(const Local& local) const {
  const std::int64_t seconds = (local.date.time_since_epoch() + local.time).count();
  if (in_table(seconds)) return instant_by_table(seconds, &Change::local_begin);
  const auto at = data_->zone.At(civil(local));
  return Instant{Seconds{absl::ToUnixSeconds(at.kind == absl::TimeZone::TimeInfo::REPEATED ? at.post : at.pre)}};
}

std::int64_t Zone::next_change(std::int64_t seconds) const {
  absl::TimeZone::CivilTransition change;
  const absl::Time from = absl::FromUnixSeconds(seconds);
  if (!data_->zone.NextTransition(from, &change)) return INT64_MAX;
  const auto info = data_->zone.At(change.to);
  return absl::ToUnixSeconds(info.trans);
}

std::string Zone::iso(WallTime at) const {
  const Instant instant = std::chrono::floor<Seconds>(at);
  if (offset_seconds(instant) % 60 != 0) return utc().iso(at);  // local mean time: no offset can be written for it
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
