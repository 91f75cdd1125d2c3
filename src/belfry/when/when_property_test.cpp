// What holds for every time: it can be said and read again; gaps and repetitions of daylight saving; bounded work.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <absl/time/civil_time.h>
#include <absl/time/time.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/when/sentence.h"

namespace belfry::when {
namespace {

WallTime at_seconds(std::int64_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

constexpr std::int64_t kFirst = 946'684'800;   // 2000
constexpr std::int64_t kLast = 4'102'444'800;  // 2100

const char* const kZones[] = {"UTC",          "Asia/Shanghai",  "America/New_York",    "Europe/London",
                              "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns",
                              "Pacific/Apia", "Africa/Cairo"};

// W: the sentence of an instant, read again at any moment and in any zone, is that instant.
RC_GTEST_PROP(WhenProperties, ASentenceThatIsReadAgainGivesTheSameInstant, ()) {
  const Zone zone = Zone::named(kZones[*rc::gen::inRange<std::size_t>(0, std::size(kZones))]).value();
  const WallTime now = at_seconds(*rc::gen::inRange(kFirst, kLast));
  const WallTime at = at_seconds(*rc::gen::inRange(kFirst, kLast));
  const Zone elsewhere = Zone::named(kZones[*rc::gen::inRange<std::size_t>(0, std::size(kZones))]).value();
  Reading reading{.kind = ReadingKind::instant, .at = at, .zone = zone};
  if (*rc::gen::arbitrary<bool>()) {
    reading.kind = ReadingKind::range;
    reading.end = at + std::chrono::seconds{*rc::gen::inRange(60, 1'000'000)};
  }
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string said = sentence(reading, language);
    const auto again = read(said, {now, elsewhere});
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->at == at);
    RC_ASSERT(again->end == reading.end);
    RC_ASSERT(again->kind == reading.kind);
  }
}

// W
RC_GTEST_PROP(WhenProperties, ADateThatIsSaidAndReadAgainIsTheSameDay, ()) {
  const Zone zone = Zone::named(kZones[*rc::gen::inRange<std::size_t>(0, std::size(kZones))]).value();
  const WallTime now = at_seconds(*rc::gen::inRange(kFirst, kLast));
  const Instant day{std::chrono::seconds{*rc::gen::inRange(kFirst, kLast)}};
  const Reading reading{.kind = ReadingKind::date, .at = day, .day_only = true, .zone = zone};
  for (const Language language : {Language::english, Language::chinese}) {
    const auto again = read(sentence(reading, language), {now, zone});
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->kind == ReadingKind::date);
    RC_ASSERT(zone.local(std::chrono::floor<Seconds>(again->at)).date == zone.local(day).date);
  }
}

Rule any_rule() {
  Rule rule;
  rule.unit = *rc::gen::element(Unit::minute, Unit::hour, Unit::day, Unit::week, Unit::month, Unit::year);
  rule.interval = *rc::gen::inRange(1, 13);
  if (rule.unit == Unit::minute || rule.unit == Unit::hour) return rule;
  rule.time = Seconds{*rc::gen::inRange(0, 24 * 60) * 60};
  if (rule.unit == Unit::week) {
    for (int day = 1; day <= 7; ++day)
      if (*rc::gen::inRange(0, 3) == 0) rule.weekdays.push_back({0, day});
    if (rule.weekdays.empty()) rule.weekdays.push_back({0, 3});
  } else if (rule.unit == Unit::month) {
    if (*rc::gen::arbitrary<bool>()) {
      rule.month_days = {*rc::gen::element(-1, 1, 2, 3, 11, 15, 22, 28, 31)};
    } else {
      rule.weekdays = {{*rc::gen::element(-1, 1, 2, 3, 4), *rc::gen::inRange(1, 8)}};
    }
  } else if (rule.unit == Unit::year) {
    rule.interval = 1;
    rule.month = *rc::gen::inRange(1, 13);
    rule.month_days = {*rc::gen::inRange(1, 29)};
  }
  return rule;
}

// W
RC_GTEST_PROP(WhenProperties, ARuleThatIsSaidAndReadAgainIsTheSameRule, ()) {
  const Zone zone = Zone::named("Asia/Shanghai").value();
  const WallTime now = at_seconds(*rc::gen::inRange(kFirst, kLast));
  const Rule rule = any_rule();
  const Reading reading{.kind = ReadingKind::recurrence, .at = now, .zone = zone, .rule = rule};
  for (const Language language : {Language::english, Language::chinese}) {
    const std::string said = sentence(reading, language);
    const auto again = read(said, {now, zone});
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->rule.has_value());
    RC_ASSERT(to_text(*again->rule) == to_text(rule));
    RC_ASSERT(again->at > now);
  }
}

// W: whatever stands there, the work is bounded and the answer is one of the known ones.
RC_GTEST_PROP(WhenProperties, AnyTextIsReadOrRefusedWithBoundedWork, ()) {
  static const std::vector<std::string> kPieces = {
      "in ", "5",  " minutes", "tomorrow ", "at ",  "9",      ":30",     "每",   "周",  "五",    "下午", "3点",
      "半",  "后", "from ",    "to ",       "and",  "every ", "Monday ", "第",   "三",  "个",    "月",   "底",
      "-",   "/",  " ",        "of ",       "the ", "last ",  "next ",   "年",   "号",  "noon ", "1st ", ",",
      "to",  "(",  ")",        "UTC",       "+08",  "half ",  "past ",   "周末", "除夕"};
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces));
  std::string text;
  for (const std::string& piece : pieces)
    if (text.size() + piece.size() < 1'000) text += piece;
  long steps = 0;
  const Zone zone = Zone::named("America/New_York").value();
  const auto reading = read_counting(text, {at_seconds(1'790'000'000), zone}, steps);
  RC_ASSERT(steps <= kStepsPerByteMax * static_cast<long>(std::max<std::size_t>(text.size(), 1)));
  if (!reading) RC_ASSERT(reading.error().code == Errc::not_a_time || reading.error().code == Errc::impossible_time);
}

std::vector<std::string> all_zones() {
  std::vector<std::string> names;
  const std::filesystem::path root = "/usr/share/zoneinfo";
  for (auto it = std::filesystem::recursive_directory_iterator(root);
       it != std::filesystem::recursive_directory_iterator(); ++it) {
    const std::string name = std::filesystem::relative(it->path(), root).string();
    if (name == "right" || name == "posix") it.disable_recursion_pending();
    if (!it->is_regular_file() || name.find('.') != std::string::npos || name == "leapseconds" || name == "tzdata.zi")
      continue;
    if (Zone::named(name)) names.push_back(name);
  }
  return names;
}

std::string clock_of(Seconds time) {
  const auto s = time.count();
  return fmt::format("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// W: zones keep a table of their own, for speed; the library is right.
TEST(WhenZones, EveryZoneShowsTheClocksThatTheLibraryShows) {
  std::int64_t looks = 0;
  for (const std::string& name : all_zones()) {
    const Zone zone = Zone::named(name).value();
    absl::TimeZone library;
    ASSERT_TRUE(absl::LoadTimeZone(name, &library));
    const auto look = [&](std::int64_t seconds) {
      ++looks;
      const Instant instant{Seconds{seconds}};
      const auto info = library.At(absl::FromUnixSeconds(seconds));
      ASSERT_EQ(zone.offset_seconds(instant), info.offset) << name << " " << seconds;
      // Every clock near a change: as it is shown, skipped and repeated.
      const Local local = zone.local(instant + Seconds{1'800});
      const auto back = library.At(absl::CivilSecond(info.cs) + 1'800);
      if (absl::CivilSecond(info.cs) + 1'800 == library.At(absl::FromUnixSeconds(seconds + 1'800)).cs) {
        ASSERT_EQ(zone.instant(local).time_since_epoch().count(), absl::ToUnixSeconds(back.pre)) << name << seconds;
        const bool twice = back.kind == absl::TimeZone::TimeInfo::REPEATED;
        ASSERT_EQ(zone.later_instant(local).time_since_epoch().count(),
                  absl::ToUnixSeconds(twice ? back.post : back.pre))
            << name << seconds;
      }
    };
    constexpr std::int64_t kBegin = -4'000'000'000;  // before and behind the table, too
    constexpr std::int64_t kEnd = 5'000'000'000;
    for (std::int64_t at = zone.next_change(kBegin); at < kEnd; at = zone.next_change(at))
      for (const std::int64_t beside : {-90'000, -3'601, -1'801, -1, 0, 1, 1'799, 3'600, 90'000}) look(at + beside);
  }
  EXPECT_GT(looks, 500'000);
}

// W: every zone and every change of its clocks from 2000 to 2100. A local time that a change skips moves forward by the
// gap; one that comes twice is the first.
TEST(WhenZones, GapsAndRepetitionsOfEveryZoneAreReadByTheRule) {
  const auto zones = all_zones();
  ASSERT_GT(zones.size(), 400u);
  std::int64_t changes = 0;
  for (const std::string& name : zones) {
    const Zone zone = Zone::named(name).value();
    for (std::int64_t at = zone.next_change(kFirst); at < kLast; at = zone.next_change(at)) {
      ++changes;
      const Instant change{std::chrono::seconds{at}};
      const int before = zone.offset_seconds(change - Seconds{1});
      const int after = zone.offset_seconds(change);
      const int step = after - before;
      if (step == 0) continue;
      // The middle of the gap, or of the hour that comes twice, as clocks before the change show it.
      const Instant middle = change + Seconds{step / 2};
      const Local local{std::chrono::floor<Days>(middle + Seconds{before}),
                        (middle + Seconds{before}) - std::chrono::floor<Days>(middle + Seconds{before})};
      const std::string date =
          fmt::format("{:04}-{:02}-{:02} ", year_of(local.date), month_of(local.date), day_of(local.date));
      const auto reading = read(date + clock_of(local.time), {at_seconds(at - 86'400 * 3), zone});
      ASSERT_TRUE(reading) << name << " " << date << clock_of(local.time);
      // Both: the instant that the old offset gives. In a gap that is past the change, and shows a later clock.
      ASSERT_EQ(std::chrono::floor<Seconds>(reading->at), middle) << name << " " << date << clock_of(local.time);
      if (step > 0) {
        const Local shown = zone.local(middle);
        ASSERT_EQ(shown.date + shown.time, local.date + local.time + Seconds{step}) << name;
      }
    }
  }
  EXPECT_GT(changes, 10'000);
}

}  // namespace
}  // namespace belfry::when
