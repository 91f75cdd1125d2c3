#include "belfry/base/time.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;
using std::chrono::year;

const WallTime kFirst = sys_days{year{1} / 1 / 1};

// D5
RC_GTEST_PROP(Time, WrittenInstantsAreReadBack, ()) {
  const WallTime time = kFirst + Millis{*rc::gen::inRange<std::int64_t>(0, (kLatestTime - kFirst).count() + 1)};

  const auto read = parse_iso(to_iso(time));

  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == time);
}

RC_GTEST_PROP(Time, OffsetsMeanTheSameInstant, ()) {
  const WallTime time = wall_from_ms(*rc::gen::inRange<std::int64_t>(0, 4'000'000'000'000));
  const int offset = *rc::gen::inRange(-23 * 60 - 59, 24 * 60);
  std::string local = to_iso(time + std::chrono::minutes{offset});
  local.pop_back();
  const int minutes = std::abs(offset);
  local += offset < 0 ? '-' : '+';
  for (const int part : {minutes / 60, minutes % 60}) local += (part < 10 ? "0" : "") + std::to_string(part);

  RC_ASSERT(parse_iso(local).value() == time);
  local.insert(local.size() - 2, ":");
  RC_ASSERT(parse_iso(local).value() == time);
}

// G4: never early.
RC_GTEST_PROP(Time, FinerThanAMillisecondRoundsUp, ()) {
  const auto micros = *rc::gen::inRange(0, 1'000'000);
  std::string digits = std::to_string(1'000'000 + micros).substr(1);

  const auto read = parse_iso("2026-03-01T09:30:00." + digits + "Z").value();

  RC_ASSERT(read == parse_iso("2026-03-01T09:30:00Z").value() + Millis{(micros + 999) / 1000});
}

TEST(Time, ReadsTheFormsPeopleWrite) {
  const WallTime expected = sys_days{year{2026} / 3 / 1} + 9h + 30min;
  for (const char* text :
       {"2026-03-01T09:30:00Z", "2026-03-01T09:30Z", "2026-03-01t09:30:00z", "2026-03-01 09:30:00Z",
        "2026-03-01T09:30:00.000Z", "2026-03-01T09:30:00,0Z", "2026-03-01T17:30:00+08:00", "2026-03-01T17:30:00+0800",
        "2026-03-01T17:30:00+08", "2026-03-01T00:00-09:30", "2026-03-01T09:29:59.9999Z", "2026-03-01T09:30:00-00:00"}) {
    const auto read = parse_iso(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(*read, expected) << text;
  }
  EXPECT_EQ(to_iso(expected), "2026-03-01T09:30:00.000Z");
  EXPECT_EQ(to_iso(kLatestTime), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(to_iso(wall_from_ms(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(parse_iso("2024-02-29T00:00:00Z").value(), WallTime{sys_days{year{2024} / 2 / 29}});
}

TEST(Time, RefusesWhatIsNoInstant) {
  for (const char* text : {"",
                           "now",
                           "2026",
                           "2026-03-01",
                           "2026-03-01T09:30:00",
                           "2026-03-01T09:30:00+",
                           "2026-03-01T09:30:00+8:00",
                           "2026-03-01T09:30:00+08:",
                           "2026-03-01T09:30:00+24:00",
                           "2026-03-01T09:30:00+08:60",
                           "2026-03-01T09:30:00ZZ",
                           "2026-03-01T09:30:00Z ",
                           " 2026-03-01T09:30:00Z",
                           "2026-3-01T09:30:00Z",
                           "26-03-01T09:30:00Z",
                           "02026-03-01T09:30:00Z",
                           "+2026-03-01T09:30:00Z",
                           "-2026-03-01T09:30:00Z",
                           "2026/03/01T09:30:00Z",
                           "2026-03-01T9:30:00Z",
                           "2026-03-01T09:30:0Z",
                           "2026-03-01T09:30:00.Z",
                           "2026-03-01T09.30Z",
                           "20260301T093000Z",
                           "2026-02-29T00:00:00Z",
                           "2026-04-31T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-00T00:00:00Z",
                           "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z",
                           "2026-01-01T00:00:60Z",
                           "9999-12-31T23:59:59.9991Z",
                           "9999-12-31T23:59:59-00:01",
                           "0000-12-31T23:59:59Z",
                           "0001-01-01T00:00:00+00:01"}) {
    const auto read = parse_iso(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Errc::invalid_time) << text;
  }
}

TEST(Time, DelaysEndAtTheLatestInstant) {
  const WallTime now = wall_from_ms(1'772'366'400'000);

  EXPECT_EQ(saturating_add(now, 5min), now + 5min);
  EXPECT_EQ(saturating_add(now, kLatestTime - now), kLatestTime);
  EXPECT_EQ(saturating_add(now, kLatestTime - now + 1ms), kLatestTime);
  EXPECT_EQ(saturating_add(now, Millis::max()), kLatestTime);
}

TEST(Time, ReadsDurations) {
  struct Row {
    const char* text;
    Millis expected;
  };
  for (const Row& row : std::vector<Row>{{"0", 0ms},
                                         {"90", 90s},
                                         {"1.5", 1500ms},
                                         {"90s", 90s},
                                         {"1500ms", 1500ms},
                                         {"5m", 5min},
                                         {"2h", 2h},
                                         {"1d", 24h},
                                         {"1h30m", 90min},
                                         {"1d2h3m4s5ms", 24h + 2h + 3min + 4s + 5ms},
                                         {"1.5h", 90min},
                                         {"0.5ms", 1ms},
                                         {"0.0001s", 1ms},
                                         {"16.1s", 16'100ms},
                                         {"0.001s", 1ms},
                                         {"1.0000000000000001s", 1001ms},
                                         {"0s", 0ms}}) {
    const auto read = parse_duration(row.text);
    ASSERT_TRUE(read.has_value()) << row.text;
    EXPECT_EQ(*read, row.expected) << row.text;
  }
}

RC_GTEST_PROP(Time, DurationsInSecondsAreExactToTheMillisecond, ()) {
  const auto millis = *rc::gen::inRange<std::int64_t>(0, 100'000'000);
  const std::string fraction = std::to_string(1000 + millis % 1000).substr(1);

  const auto read = parse_duration(std::to_string(millis / 1000) + "." + fraction + "s");

  RC_ASSERT(read.value() == Millis{millis});
}

TEST(Time, RefusesWhatIsNoDuration) {
  for (const char* text : {"",
                           "s",
                           "five",
                           "-5s",
                           "-0",
                           "+5s",
                           "5x",
                           "5 s",
                           " 5s",
                           "5s ",
                           "1h5",
                           "0h5",
                           "1e3s",
                           "nan",
                           "nans",
                           "inf",
                           "infinity",
                           "0x10s",
                           "5S",
                           ".",
                           "1.2.3s",
                           "1..5s",
                           "h1",
                           "99999999999999999999d",
                           "9999999999d",
                           "10000000000000000000000000000000000000"}) {
    const auto read = parse_duration(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Errc::invalid_argument) << text;
  }
}

TEST(Time, RoundsInstantsOutwards) {
  const WallInstant instant{Nanos{1'500'000}};

  EXPECT_EQ(round_down(instant), wall_from_ms(1));
  EXPECT_EQ(round_up(instant), wall_from_ms(2));
  EXPECT_EQ(round_down(WallInstant{Nanos{-1}}), wall_from_ms(-1));
}

}  // namespace
}  // namespace belfry
