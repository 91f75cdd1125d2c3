#include "belfry/when/when.h"

#include <cstdlib>
#include <ctime>
#include <utility>

#include <gtest/gtest.h>

#include "belfry/base/time.h"
#include "belfry/when/holidays.h"
#include "belfry/when/lunar.h"

namespace belfry::when {
namespace {

WallTime at(const char* iso) { return parse_iso(iso).value(); }

// Wednesday afternoon in Shanghai.
constexpr const char* kNow = "2026-11-18T15:20:00+08:00";

std::string in_shanghai(std::string_view text) {
  const Zone zone = Zone::named("Asia/Shanghai").value();
  const auto reading = read(text, {at(kNow), zone});
  return reading ? zone.iso(reading->at) : std::string(word(reading.error().code));
}

struct Line {
  const char* text;
  const char* expected;
};

// W: worked out by hand.
TEST(When, ReadsWhatPeopleWrite) {
  static constexpr Line kLines[] = {
      {"in 20 minutes", "2026-11-18T15:40:00+08:00"},
      {"in an hour and a half", "2026-11-18T16:50:00+08:00"},
      {"45 seconds from now", "2026-11-18T15:20:45+08:00"},
      {"tomorrow at 9am", "2026-11-19T09:00:00+08:00"},
      {"the day after tomorrow at half past four pm", "2026-11-20T16:30:00+08:00"},
      {"next Friday at 8:15", "2026-11-27T08:15:00+08:00"},
      {"Monday at noon", "2026-11-23T12:00:00+08:00"},
      {"quarter to seven tomorrow morning", "2026-11-19T06:45:00+08:00"},
      {"March 3rd at 10:00", "2027-03-03T10:00:00+08:00"},
      {"2027-02-01T08:00:00Z", "2027-02-01T16:00:00+08:00"},
      {"tomorrow 9am UTC+1", "2026-11-19T16:00:00+08:00"},
      {"三刻钟后", "2026-11-18T16:05:00+08:00"},
      {"两个半小时后", "2026-11-18T17:50:00+08:00"},
      {"明天早上九点一刻", "2026-11-19T09:15:00+08:00"},
      {"下周二下午三点半", "2026-11-24T15:30:00+08:00"},
      {"下下周一上午10点", "2026-11-30T10:00:00+08:00"},
      {"今晚十二点", "2026-11-19T00:00:00+08:00"},
      {"大后天晚上八点", "2026-11-21T20:00:00+08:00"},
      {"兩分鐘後", "2026-11-18T15:22:00+08:00"},
      {"星期三十三點三刻", "2026-11-25T13:45:00+08:00"},
      {"12月31日23点59分", "2026-12-31T23:59:00+08:00"},
      {"除夕晚上八点", "2027-02-05T20:00:00+08:00"},
      {"remind me tomorrow at 7 pm to call home", "2026-11-19T19:00:00+08:00"},
      {"明天下午三点提醒我开会", "2026-11-19T15:00:00+08:00"},
  };
  for (const Line& line : kLines) EXPECT_EQ(in_shanghai(line.text), line.expected) << line.text;
}

// W
TEST(When, RefusesWhatIsNoTimeOrCannotBe) {
  static constexpr Line kLines[] = {
      {"", "not_a_time"},
      {"banana", "not_a_time"},
      {"随便", "not_a_time"},
      {"二月三十日", "impossible_time"},
      {"25:00", "impossible_time"},
      {"tomorrow at 25:00", "impossible_time"},
      {"星期八", "impossible_time"},
      {"Feb 30", "impossible_time"},
      {"\x01", "invalid_argument"},
      {"\xff", "invalid_argument"},
  };
  for (const Line& line : kLines) EXPECT_EQ(in_shanghai(line.text), line.expected) << line.text;
  EXPECT_EQ(in_shanghai(std::string(kTextBytesMax + 1, '1')), "too_large");
}

// W
TEST(When, ATimeInAGapMovesForwardAndARepeatedOneIsTheFirst) {
  const Zone zone = Zone::named("America/New_York").value();
  const auto spring = read("tomorrow 2:30am", {at("2026-03-07T12:00:00-05:00"), zone});
  EXPECT_EQ(zone.iso(spring->at), "2026-03-08T03:30:00-04:00");
  const auto autumn = read("tomorrow 1:30am", {at("2026-10-31T12:00:00-04:00"), zone});
  EXPECT_EQ(zone.iso(autumn->at), "2026-11-01T01:30:00-04:00");
}

TEST(When, SaysWhichPartOfASentenceItUsed) {
  const Zone zone = Zone::utc();
  const std::string_view text = "please call me in 5 minutes about the report";
  const auto reading = read(text, {at(kNow), zone});
  ASSERT_TRUE(reading);
  EXPECT_EQ(text.substr(reading->begin_byte, reading->end_byte - reading->begin_byte), "in 5 minutes");
}

// W: every expression of the delayed-feedback texts, in three zones and on machines that are set to others.
TEST(When, ReadsTheExpressionsOfDelayedFeedbackInAnyZoneOnAnyMachine) {
  struct Expected {
    const char* text;
    const char* shanghai;
    const char* new_york;
    const char* utc;
  };
  static constexpr Expected kExpected[] = {
      {"in 2 minutes", "2026-11-18T15:22:00+08:00", "2026-11-18T02:22:00-05:00", "2026-11-18T07:22:00+00:00"},
      {"in 30 seconds", "2026-11-18T15:20:30+08:00", "2026-11-18T02:20:30-05:00", "2026-11-18T07:20:30+00:00"},
      {"in 1 hour", "2026-11-18T16:20:00+08:00", "2026-11-18T03:20:00-05:00", "2026-11-18T08:20:00+00:00"},
      {"in 5 minutes", "2026-11-18T15:25:00+08:00", "2026-11-18T02:25:00-05:00", "2026-11-18T07:25:00+00:00"},
      {"in 10 minutes", "2026-11-18T15:30:00+08:00", "2026-11-18T02:30:00-05:00", "2026-11-18T07:30:00+00:00"},
      {"tomorrow 9am", "2026-11-19T09:00:00+08:00", "2026-11-19T09:00:00-05:00", "2026-11-19T09:00:00+00:00"},
      {"1分钟后", "2026-11-18T15:21:00+08:00", "2026-11-18T02:21:00-05:00", "2026-11-18T07:21:00+00:00"},
      {"2分钟后", "2026-11-18T15:22:00+08:00", "2026-11-18T02:22:00-05:00", "2026-11-18T07:22:00+00:00"},
      {"3分钟后", "2026-11-18T15:23:00+08:00", "2026-11-18T02:23:00-05:00", "2026-11-18T07:23:00+00:00"},
      {"5分钟后", "2026-11-18T15:25:00+08:00", "2026-11-18T02:25:00-05:00", "2026-11-18T07:25:00+00:00"},
      {"30分钟后", "2026-11-18T15:50:00+08:00", "2026-11-18T02:50:00-05:00", "2026-11-18T07:50:00+00:00"},
      {"30秒后", "2026-11-18T15:20:30+08:00", "2026-11-18T02:20:30-05:00", "2026-11-18T07:20:30+00:00"},
      {"1小时后", "2026-11-18T16:20:00+08:00", "2026-11-18T03:20:00-05:00", "2026-11-18T08:20:00+00:00"},
      {"明天09:00", "2026-11-19T09:00:00+08:00", "2026-11-19T09:00:00-05:00", "2026-11-19T09:00:00+00:00"},
      {"明天早上9点", "2026-11-19T09:00:00+08:00", "2026-11-19T09:00:00-05:00", "2026-11-19T09:00:00+00:00"},
      {"2分钟后告诉我结果", "2026-11-18T15:22:00+08:00", "2026-11-18T02:22:00-05:00", "2026-11-18T07:22:00+00:00"},
      {"2026-12-30T15:42:00.000+08:00", "2026-12-30T15:42:00+08:00", "2026-12-30T02:42:00-05:00",
       "2026-12-30T07:42:00+00:00"},
  };
  for (const char* const machine : {"UTC", "Asia/Tokyo", "America/Los_Angeles"}) {
    ::setenv("TZ", machine, 1);  // NOLINT(concurrency-mt-unsafe): the tests are one thread
    ::tzset();
    for (const Expected& one : kExpected)
      for (const auto& [name, expected] : {std::pair("Asia/Shanghai", one.shanghai),
                                           std::pair("America/New_York", one.new_york), std::pair("UTC", one.utc)}) {
        const Zone zone = Zone::named(name).value();
        const auto reading = read(one.text, {at(kNow), zone});
        EXPECT_EQ(reading ? zone.iso(reading->at) : reading.error().detail, expected) << one.text << " in " << name;
      }
  }
  ::unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
  ::tzset();
}

// W: what counts from now counts from this very moment, and never comes early.
TEST(When, SpansKeepTheFractionOfTheSecond) {
  const Zone zone = Zone::utc();
  const WallTime now = at("2026-11-18T15:20:00.700Z");
  EXPECT_EQ(read("in 90 seconds", {now, zone})->at, now + Millis{90'000});
  EXPECT_EQ(read("两分钟后", {now, zone})->at, now + Millis{120'000});
  EXPECT_EQ(zone.iso(read("in 1s", {now, zone})->at), "2026-11-18T15:20:01.700+00:00");
  EXPECT_EQ(zone.iso(read("tomorrow at 9am", {now, zone})->at), "2026-11-19T09:00:00+00:00");
  EXPECT_EQ(zone.iso(read("2026-12-01T08:00:00.250Z", {now, zone})->at), "2026-12-01T08:00:00.250+00:00");
}

// W
TEST(When, NamesOtherReadingsAndStrictModeRefusesThem) {
  const Zone zone = Zone::named("Asia/Shanghai").value();
  const auto open = read("tomorrow at 7", {at(kNow), zone});
  ASSERT_TRUE(open);
  ASSERT_EQ(open->alternatives.size(), 1u);
  EXPECT_EQ(zone.iso(open->alternatives[0]), "2026-11-19T19:00:00+08:00");
  EXPECT_EQ(zone.iso(read("3/4", {at(kNow), zone})->alternatives.at(0)), "2027-04-03T09:00:00+08:00");
  for (const char* text : {"tomorrow at 7", "3/4", "明天9点"}) {
    const auto strict = read(text, {.now = at(kNow), .zone = zone, .strict = true});
    ASSERT_FALSE(strict) << text;
    EXPECT_EQ(strict.error().code, Errc::ambiguous_time);
  }
  for (const char* text : {"tomorrow at 7pm", "tomorrow at 07:00", "25/12", "明天早上9点", "2027-03-04", "noon"})
    EXPECT_TRUE(read(text, {.now = at(kNow), .zone = zone, .strict = true})) << text;
}

// W
TEST(When, TheZoneOfTheTextCountsFirstAndIsNamed) {
  const Zone zone = Zone::named("Asia/Shanghai").value();
  const auto own = read("tomorrow 9am Europe/Paris", {.now = at(kNow), .zone = zone, .zone_source = ZoneSource::user});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->zone.name(), "Europe/Paris");
  EXPECT_EQ(own->zone_source, ZoneSource::text);
  EXPECT_EQ(zone.iso(own->at), "2026-11-19T16:00:00+08:00");
  const auto users = read("tomorrow 9am", {.now = at(kNow), .zone = zone, .zone_source = ZoneSource::user});
  EXPECT_EQ(users->zone_source, ZoneSource::user);
}

// W
TEST(When, ReferencesAndLanguagesOutOfRangeAreRefused) {
  const Zone zone = Zone::utc();
  EXPECT_EQ(read("noon", {at("1800-01-01T00:00:00Z"), zone}).error().code, Errc::invalid_time);
  EXPECT_EQ(read("noon", {at("2200-01-01T00:00:00Z"), zone}).error().code, Errc::invalid_time);
  EXPECT_EQ(parse_language("tlh").error().code, Errc::invalid_argument);
  EXPECT_EQ(parse_language("zh-CN").value(), Language::chinese);
  EXPECT_EQ(read("in 99999999 years", {at(kNow), zone}).error().code, Errc::impossible_time);
}

// W: rules that call each other could try the same text over and over.
TEST(When, WorkIsBoundedForAnyNumberOfAnchors) {
  const Zone zone = Zone::utc();
  for (const char* piece :
       {"a week after ", "the day before ", "for 3 hours after ", "every ", "from ", "周一", "the "}) {
    std::string text;
    while (text.size() + 20 < kTextBytesMax) text += piece;
    for (const char* end : {"", "xyz", "tomorrow"}) {
      long steps = 0;
      const auto reading = read_counting(text + end, {at(kNow), zone}, steps);
      EXPECT_TRUE(reading || reading.error().code == Errc::not_a_time || reading.error().code == Errc::impossible_time);
      EXPECT_LE(steps, kStepsPerByteMax * static_cast<long>(text.size())) << piece << end;
    }
  }
}

TEST(Lunar, KnowsTheNewYearsThatPeopleCelebrated) {
  EXPECT_EQ(lunar_date(2024, 1, 1), date_of(2024, 2, 10));
  EXPECT_EQ(lunar_date(2025, 1, 1), date_of(2025, 1, 29));
  EXPECT_EQ(lunar_date(2027, 1, 1), date_of(2027, 2, 6));  // the new moon is four minutes before midnight
  EXPECT_EQ(lunar_date(2030, 1, 1), date_of(2030, 2, 3));
  EXPECT_EQ(lunar_date(2026, 8, 15), date_of(2026, 9, 25));
  EXPECT_EQ(lunar_date(2025, 6, 1, true), date_of(2025, 7, 25));  // a leap month
  EXPECT_EQ(solar_term(2026, 6), date_of(2026, 4, 5));
  EXPECT_EQ(solar_term(2024, 23), date_of(2024, 12, 21));
}

TEST(Zone, RefusesNamesThatAreNoZones) {
  for (const char* name : {"", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Fixed/UTC+01:00:00", "localtime",
                           "file:/usr/share/zoneinfo/Asia/Tokyo", "libc:localtime", "posixrules", "Factory", "Asia"})
    EXPECT_FALSE(Zone::named(name)) << name;
  EXPECT_FALSE(Zone::named(std::string_view("Asia/Tokyo\0junk", 15)));
  EXPECT_EQ(Zone::named("+05:30")->offset_seconds(std::chrono::floor<Seconds>(at(kNow))), 19'800);
}

// W: the weekday and the date disagree.
TEST(When, AWeekdayThatIsNotTheDatesIsAnotherReading) {
  const Zone zone = Zone::utc();
  const auto reading = read("Friday, November 19 at 9am", {at("2026-11-18T15:20:00Z"), zone});
  ASSERT_TRUE(reading);
  EXPECT_EQ(zone.iso(reading->at), "2026-11-19T09:00:00+00:00");
  ASSERT_EQ(reading->alternatives.size(), 1u);
  EXPECT_EQ(zone.iso(reading->alternatives[0]), "2026-11-20T09:00:00+00:00");
  EXPECT_TRUE(read("Thursday, November 19 at 9am", {at("2026-11-18T15:20:00Z"), zone})->alternatives.empty());
}

// W: an offset of seconds cannot be written in ISO 8601.
TEST(Zone, WritesLocalMeanTimeInUtc) {
  EXPECT_EQ(Zone::named("Asia/Shanghai")->iso(at("1900-06-01T00:00:00Z")), "1900-06-01T00:00:00+00:00");
  EXPECT_EQ(Zone::named("Asia/Shanghai")->iso(at("1902-06-01T00:00:00Z")), "1902-06-01T08:00:00+08:00");
}

}  // namespace
}  // namespace belfry::when
