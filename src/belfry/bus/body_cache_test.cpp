#include "belfry/bus/body_cache.h"

#include <gtest/gtest.h>

namespace belfry::bus {
namespace {

Body body_of(std::size_t bytes) {
  Body body;
  body.payload = std::string(bytes, 'x');
  return body;
}

TEST(BodyCacheTest, GivesBackWhatWasPutInOnce) {
  BodyCache cache(1'000);
  cache.put(7, body_of(10));
  ASSERT_NE(cache.find(7), nullptr);
  EXPECT_EQ(cache.take(7)->payload.size(), 10u);
  EXPECT_FALSE(cache.take(7));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BodyCacheTest, WhatIsReadForATakenMessageDoesNotStay) {
  BodyCache cache(1'000);
  cache.expect(7);
  EXPECT_TRUE(cache.contains(7));
  EXPECT_FALSE(cache.take(7));  // received before its body was read
  cache.fill(7, body_of(10));
  EXPECT_FALSE(cache.contains(7));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BodyCacheTest, ABodyThatCannotBeReadLeavesNoPlace) {
  BodyCache cache(1'000);
  cache.expect(7);
  cache.fill(7, std::nullopt);
  EXPECT_FALSE(cache.contains(7));
}

TEST(BodyCacheTest, TheOldestMakesRoomForANewOne) {
  BodyCache cache(3 * body_of(100).bytes());
  for (std::int64_t i = 1; i <= 3; ++i) cache.put(i, body_of(100));
  cache.expect(4);
  cache.fill(4, body_of(100));
  EXPECT_FALSE(cache.contains(1));
  EXPECT_TRUE(cache.find(2) && cache.find(3) && cache.find(4));
  cache.put(5, body_of(100));
  EXPECT_FALSE(cache.contains(2));
  EXPECT_LE(cache.bytes(), 3 * body_of(100).bytes());
}

TEST(BodyCacheTest, OneThatIsLargerThanTheCacheIsNotKept) {
  BodyCache cache(100);
  cache.put(1, body_of(1'000));
  EXPECT_FALSE(cache.contains(1));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(BodyCacheTest, ManyThatComeAndGoBesideOneThatStaysTakeNoMemory) {
  BodyCache cache(1'000'000);
  cache.put(0, body_of(10));
  for (std::int64_t i = 1; i < 100'000; ++i) {
    cache.put(i, body_of(10));
    cache.drop(i);
  }
  EXPECT_TRUE(cache.find(0));
  EXPECT_EQ(cache.bytes(), body_of(10).bytes());
}

TEST(BodyCacheTest, CountsABodyOnceHoweverOftenItComes) {
  BodyCache cache(1'000);
  cache.expect(7);
  cache.put(7, body_of(10));
  const std::size_t once = cache.bytes();
  cache.fill(7, body_of(10));
  cache.put(7, body_of(10));
  EXPECT_EQ(cache.bytes(), once);
  cache.drop(7);
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace belfry::bus
