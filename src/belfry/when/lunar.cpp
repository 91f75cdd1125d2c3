#include "belfry/when/lunar.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace belfry::when {
namespace {

// A year each: bit i is set if its i-th month (a leap month counted) has 30 days; then the month after which a leap month
// comes, or 0 (from bit 13); month (17) and day (19) of the first day. From ICU's calendar, put right where its new moon
// falls on the wrong side of midnight in China (1954, 1955, 1999, 2012, 2018, 2027, 2030, 2070).
constexpr std::array<std::uint32_t, kLunarLastYear - kLunarFirstYear + 1> kYears{
    0xfb16d2, 0x9c0752, 0x440ea5, 0xeab64a, 0x84064b, 0x240a9b, 0xca9556, 0x6c056a, 0x140b59, 0xb25752, 0x540752,
    0xf2db25, 0x940b25, 0x340a4b, 0xd2b4ab, 0x7402ad, 0x1c056b, 0xba6b69, 0x5c0da9, 0x0cfd92, 0xa40e92, 0x440d25,
    0xe2da4d, 0x840a56, 0x2c02b6, 0xc295b5, 0x6c06d4, 0x140ea9, 0xba5e92, 0x540e92, 0xf2cd26, 0x8c052b, 0x340a57,
    0xd2b2b6, 0x740b5a, 0x2406d4, 0xc26ec9, 0x5c0749, 0xfaf693, 0x9c0a93, 0x44052b, 0xdaca5b, 0x7c0aad, 0x2c056a,
    0xca9b55, 0x6c0ba4, 0x140b49, 0xb25a93, 0x540a95, 0xeaf52d, 0x8c0536, 0x340aad, 0xdab5aa, 0x7405b2, 0x1c0da5,
    0xc27d4a, 0x640d4a, 0xfb0a95, 0x940a97, 0x440556, 0xe2cab5, 0x7c0ad5, 0x2c06d2, 0xca8ea5, 0x6c0ea5, 0x14064a,
    0xaa6c97, 0x4c0a9b, 0xf2f55a, 0x8c056a, 0x340b69, 0xdab752, 0x7c0b52, 0x1c0b25, 0xba964b, 0x5c0a4b, 0xfb14ab,
    0x9402ad, 0x3c056d, 0xe2cb69, 0x840da9, 0x2c0d92, 0xca9d25, 0x6c0d25, 0x155a4d, 0xa40a56, 0x4c02b6, 0xeae5b5,
    0x8c06d5, 0x340ea9, 0xdabe92, 0x7c0e92, 0x240d26, 0xba6a56, 0x540a57, 0xfb14d6, 0x9c035a, 0x3c06d5, 0xe2b6c9,
    0x840749, 0x2c0693, 0xc2952b, 0x64052b, 0x0c0a5b, 0xb2555a, 0x4c056a, 0xeafb55, 0x940ba4, 0x3c0b49, 0xd2ba93,
    0x740a95, 0x1c052d, 0xba8aad, 0x540ab5, 0xfb35aa, 0x9c05d2, 0x440da5, 0xe2dd4a, 0x840d4a, 0x2c0c95, 0xca952e,
    0x640556, 0x0c0ab5, 0xb255b2, 0x5406d2, 0xeacea5, 0x8c0725, 0x34064b, 0xd2ac97, 0x6c0cab, 0x1c055a, 0xba6ad6,
    0x5c0b69, 0xfb7752, 0x9c0b52, 0x440b25, 0xe2da4b, 0x7c0a4b, 0x2404ab, 0xc2a55b, 0x6405ad, 0x0c0b6a, 0xb25b52,
    0x540d92, 0xf2fd25, 0x8c0d25, 0x340a55, 0xd2b4ad, 0x7404b6, 0x1405b5, 0xba6daa, 0x5c0ec9, 0x0d1e92, 0x9c0e92,
    0x440d26, 0xe2ca56, 0x7c0a57, 0x2404d6, 0xc286d5, 0x640755, 0x140749, 0xaa6e93, 0x4c0693, 0xeaf52b, 0x8c052b,
    0x2c0a5b, 0xd2b55a, 0x74056a, 0x1c0b65, 0xba974a, 0x5c0b4a, 0xfb1a95, 0x9c0a95, 0x3c052d, 0xdacaad, 0x7c0ab5,
    0x2c05aa, 0xc28ba5, 0x640da5, 0x140d4a, 0xb27c95, 0x4c0c96, 0xeaf94e, 0x8c0556, 0x340ab5, 0xd2b5b2, 0x7406d2,
    0x1c0ea5, 0xc28e4a, 0x54068b, 0xf30c97, 0x9404ab, 0x3c055b, 0xdacad6, 0x7c0b6a, 0x2c0752, 0xca9725, 0x640b45,
    0x0c0a8b, 0xaa549b, 0x4c04ab,
};

struct Year {
  std::uint32_t bits;

  int leap() const { return static_cast<int>(bits >> 13 & 15); }
  int month_days(int index) const { return (bits >> index & 1) != 0 ? 30 : 29; }
};

std::optional<Year> year_at(int year) {
  if (year < kLunarFirstYear || year > kLunarLastYear) return std::nullopt;
  return Year{kYears[static_cast<std::size_t>(year - kLunarFirstYear)]};
}

Date new_year(int year, Year info) {
  return date_of(year, static_cast<int>(info.bits >> 17 & 3), static_cast<int>(info.bits >> 19 & 31));
}

// The sun's apparent longitude in degrees, good to a hundredth: a few minutes of time.
double sun_longitude(double days_since_2000) {
  const double t = days_since_2000 / 36525;
  const double rad = std::numbers::pi / 180;
  const double mean = 280.46646 + t * (36000.76983 + t * 0.0003032);
  const double anomaly = (357.52911 + t * (35999.05029 - t * 0.0001537)) * rad;
  const double centre = (1.914602 - t * (0.004817 + t * 0.000014)) * std::sin(anomaly) +
                        (0.019993 - 0.000101 * t) * std::sin(2 * anomaly) + 0.000289 * std::sin(3 * anomaly);
  const double node = (125.04 - 1934.136 * t) * rad;
  return mean + centre - 0.00569 - 0.00478 * std::sin(node);
}

}  // namespace

std::optional<Date> lunar_date(int year, int month, int day, bool leap_month) {
  const auto info = year_at(year);
  if (!info || month < 1 || month > 12 || day < 1 || day > 30) return std::nullopt;
  const int leap = info->leap();
  if (leap_month && leap != month) return std::nullopt;
  const int index = month - 1 + ((leap != 0 && month > leap) || leap_month ? 1 : 0);
  const bool eve = month == 12 && day == 30;
  if (day > info->month_days(index) && !eve) return std::nullopt;
  int days = 0;
  for (int i = 0; i < index; ++i) days += info->month_days(i);
  return new_year(year, *info) + Days{days + std::min(day, info->month_days(index)) - 1};
}

int lunar_year_of(Date date) {
  const int year = year_of(date);
  const auto info = year_at(year);
  return info && date < new_year(year, *info) ? year - 1 : year;
}

Date solar_term(int year, int term) {
  // 小寒 is at 285 degrees, early in January; each further term is 15 degrees on.
  const double wanted = 285 + 15 * term;
  const Date epoch = date_of(2000, 1, 1);
  double day = static_cast<double>((date_of(year, 1, 6) - epoch).count()) - 0.5 + term * 15.2184;
  for (int i = 0; i < 6; ++i) {
    double off = std::fmod(wanted - sun_longitude(day), 360);
    if (off > 180) off -= 360;
    if (off < -180) off += 360;
    day += off * 365.2422 / 360;
    if (std::abs(off) < 1e-6) break;  // a tenth of a second
  }
  // From noon of 1 January 2000 in universal time (less some seconds) to the day in China.
  const double minute_and_some = 70.0 / 86400;
  return epoch + Days{static_cast<int>(std::floor(day + 0.5 - minute_and_some + 8.0 / 24))};
}

}  // namespace belfry::when
