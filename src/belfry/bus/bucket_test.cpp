#include "belfry/bus/bucket.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::bus {
namespace {

constexpr std::int64_t kLatest = 253'402'300'799'999;  // the end of the year 9999
constexpr std::int64_t kNoon = 1'772'366'400'000;

// Distances of every magnitude, not only huge ones.
rc::Gen<std::int64_t> any_distance() {
  return rc::gen::mapcat(rc::gen::inRange(0, 48),
                         [](int bits) { return rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << bits); });
}

RC_GTEST_PROP(Bucket, HoldsTheMomentItWasMadeFor, ()) {
  const std::int64_t look = *rc::gen::inRange<std::int64_t>(0, kLatest + 1);
  const int level = *rc::gen::inRange(0, kLevels);

  const Bucket bucket = Bucket::around(level, look);

  RC_ASSERT(bucket.start_ms <= look);
  RC_ASSERT(look < bucket.start_ms + bucket_width(level));
  RC_ASSERT(bucket.start_ms % bucket_width(level) == 0);
}

RC_GTEST_PROP(Bucket, KeyGivesTheBucketBackAndSortsLikeIt, ()) {
  const auto any = rc::gen::apply([](int level, std::int64_t look) { return Bucket::around(level, look); },
                                  rc::gen::inRange(0, kLevels), rc::gen::inRange<std::int64_t>(0, kLatest + 1));
  const Bucket a = *any;
  const Bucket b = *any;

  RC_ASSERT(Bucket::from_key(a.key()) == a);
  RC_ASSERT((a < b) == (a.key() < b.key()));
  RC_ASSERT(a.key() >= 0);
}

RC_GTEST_PROP(Bucket, AtMostThirtyTwoOfItsKindLieBetweenNowAndThen, ()) {
  const std::int64_t distance = *any_distance();
  const std::int64_t look = std::min(kNoon + distance, kLatest);

  const Bucket bucket = bucket_for(look, kNoon);

  RC_ASSERT(bucket.level >= kFinestLevel);
  RC_ASSERT(bucket.level < kLevels);
  RC_ASSERT((look - kNoon) / bucket_width(bucket.level) < 32);
  RC_ASSERT(bucket.level == kFinestLevel || look - kNoon >= bucket_width(bucket.level));
}

RC_GTEST_PROP(Bucket, FartherIsNeverFiner, ()) {
  const std::int64_t a = *any_distance();
  const std::int64_t b = *any_distance();

  RC_ASSERT(level_for(std::min(a, b)) <= level_for(std::max(a, b)));
}

TEST(Bucket, LevelsChangeExactlyAtTheirWidth) {
  EXPECT_EQ(level_for(-1'000), kFinestLevel);
  EXPECT_EQ(level_for(0), kFinestLevel);
  for (int level = kFinestLevel + 1; level < kLevels; ++level) {
    EXPECT_EQ(level_for(bucket_width(level) - 1), level - 1);
    EXPECT_EQ(level_for(bucket_width(level)), level);
  }
  EXPECT_EQ(level_for(kLatest), kLevels - 1);
}

TEST(Bucket, WhatWasDueBeforeTheEpochLiesInTheFirstBucket) {
  EXPECT_EQ(Bucket::around(kFinestLevel, -5), (Bucket{kFinestLevel, 0}));
  EXPECT_EQ((Bucket{kFinestLevel, -1'024}.key()), (Bucket{kFinestLevel, 0}.key()));
}

}  // namespace
}  // namespace belfry::bus
