#include "belfry/app/timezone.h"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

namespace belfry::app {
namespace {

// F14: a plugin's own local time is that of the server.
TEST(TimeZone, OtherProgramsUnderstandIt) {
  const char* const before = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe): the tests are one thread
  const std::string kept = before ? before : "";
  for (const auto& [name, seconds] : std::initializer_list<std::pair<const char*, long>>{
           {"+08:00", 28'800}, {"-05:30", -19'800}, {"+00:00", 0}, {"Asia/Kolkata", 19'800}, {"UTC", 0}}) {
    ::setenv("TZ", tz_variable(*when::Zone::named(name)).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    ::tzset();
    const std::time_t when = 1'790'000'000;
    std::tm local{};
    ::localtime_r(&when, &local);
    EXPECT_EQ(local.tm_gmtoff, seconds) << name;
  }
  if (before) {
    ::setenv("TZ", kept.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  } else {
    ::unsetenv("TZ");  // NOLINT(concurrency-mt-unsafe)
  }
  ::tzset();
}

}  // namespace
}  // namespace belfry::app
