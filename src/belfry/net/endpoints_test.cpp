#include "belfry/net/endpoints.h"

#include <gtest/gtest.h>

namespace belfry::net {
namespace {

std::vector<std::string> known(const char* host) {
  std::vector<std::string> all;
  for (const auto& endpoint : known_endpoints({host, 7171}))
    all.push_back(endpoint.address().to_string() + " " + std::to_string(endpoint.port()));
  return all;
}

TEST(Endpoints, LocalhostIsThisMachineWithoutAHostsFile) {
  const std::vector<std::string> loopback{"127.0.0.1 7171", "::1 7171"};
  EXPECT_EQ(known("localhost"), loopback);
  EXPECT_EQ(known("LocalHost"), loopback);
}

TEST(Endpoints, AnAddressIsItselfAndOtherNamesAreAskedFor) {
  EXPECT_EQ(known("192.0.2.7"), std::vector<std::string>{"192.0.2.7 7171"});
  EXPECT_EQ(known("2001:db8::7"), std::vector<std::string>{"2001:db8::7 7171"});
  for (const char* name : {"", "localhost.example", "bells.example", "127.1", "300.1.1.1"})
    EXPECT_TRUE(known(name).empty()) << name;
}

}  // namespace
}  // namespace belfry::net
