#include "belfry/server/crowd.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace belfry::server {
namespace {

struct People {
  explicit People(std::size_t bytes_max = Crowd::kNoLimit) : crowd(bytes_max) {}
  Crowd::Member& enter() {
    const auto number = static_cast<char>('a' + members.size());
    members.push_back(std::make_unique<Crowd::Member>([this, number] { gone += number; }));
    crowd.enter(*members.back());
    return *members.back();
  }

  Crowd crowd;
  std::string gone;
  std::vector<std::unique_ptr<Crowd::Member>> members;
};

// G23
TEST(Crowd, WhoeverHasBeenSilentForLongestIsLetGo) {
  People people;
  Crowd::Member& first = people.enter();
  people.enter();
  people.enter();
  first.heard(5'000);

  EXPECT_TRUE(people.crowd.let_one_go());
  EXPECT_TRUE(people.crowd.let_one_go());
  EXPECT_EQ(people.gone, "bc");
  EXPECT_TRUE(first.is_in());
  EXPECT_TRUE(people.crowd.let_one_go());
  EXPECT_FALSE(people.crowd.let_one_go());
  EXPECT_EQ(people.crowd.let_go(), 3u);
}

// G23
TEST(Crowd, SingleBytesKeepNobodysPlace) {
  People people;
  Crowd::Member& drips = people.enter();
  people.enter();
  for (int i = 0; i < 4'000; ++i) drips.heard(1);
  people.crowd.let_one_go();
  EXPECT_EQ(people.gone, "a");
}

// G23
TEST(Crowd, WhatAllHoldTogetherHasABound) {
  People people(100);
  Crowd::Member& first = people.enter();
  Crowd::Member& second = people.enter();
  Crowd::Member& third = people.enter();
  first.hold(60);
  second.hold(40);
  EXPECT_EQ(people.gone, "");
  second.hold(30);
  third.hold(10);
  EXPECT_EQ(people.gone, "");
  EXPECT_EQ(people.crowd.bytes(), 100u);

  third.hold(11);
  EXPECT_EQ(people.gone, "a");
  EXPECT_EQ(people.crowd.bytes(), 41u);
  third.hold(101);
  EXPECT_EQ(people.gone, "abc") << "one that holds too much alone goes, too";
  EXPECT_EQ(people.crowd.bytes(), 0u);
}

TEST(Crowd, WhoHasLeftHoldsNothingAndIsNotLetGo) {
  People people(100);
  Crowd::Member& first = people.enter();
  first.hold(90);
  first.leave();
  first.hold(200);
  first.heard(10'000);
  EXPECT_EQ(people.crowd.bytes(), 0u);
  people.enter().hold(90);
  people.members.pop_back();
  EXPECT_EQ(people.crowd.bytes(), 0u);
  EXPECT_EQ(people.crowd.size(), 0u);
  people.crowd.enter(first);
  people.crowd.enter(first);
  EXPECT_EQ(people.crowd.size(), 1u);
  EXPECT_EQ(people.gone, "");
}

}  // namespace
}  // namespace belfry::server
