#include "belfry/server/guard.h"

#include <gtest/gtest.h>

namespace belfry::server {
namespace {

Request request_to(std::string host) {
  Request request;
  request.host = std::move(host);
  request.hosts = 1;
  return request;
}

Request from_page(std::string origin) {
  Request request = request_to("localhost:7171");
  request.origin = std::move(origin);
  request.has_origin = true;
  return request;
}

// G19
TEST(Guard, KnowsItsOwnNamesOnly) {
  const Guard guard({.listen_host = "192.0.2.1", .port = 7171, .allow_hosts = {"bells.example", "other.example:8080"}});
  for (const char* known : {"192.0.2.1:7171", "localhost:7171", "LocalHost:7171", "127.0.0.1:7171", "[::1]:7171",
                            "bells.example", "bells.example:443", "other.example:8080"})
    EXPECT_TRUE(guard.check(request_to(known))) << known;
  for (const char* foreign :
       {"", "localhost", "localhost:7172", "evil.example:7171", "localhost:7171.evil.example", "bells.example.evil",
        "other.example", "other.example:1", "[::1]", "[::1", "::1:7171", ":7171"}) {
    const auto checked = guard.check(request_to(foreign));
    ASSERT_FALSE(checked) << foreign;
    EXPECT_EQ(checked.error().code, Errc::forbidden_host) << foreign;
  }
}

TEST(Guard, ThePortMayBeLeftOutWhereItIsTheUsualOne) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 80});
  EXPECT_TRUE(guard.check(request_to("localhost")));
  EXPECT_FALSE(guard.check(request_to("evil.example")));
}

// G19
TEST(Guard, WantsExactlyOneHost) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171});
  Request request = request_to("localhost:7171");
  request.hosts = 2;
  EXPECT_EQ(guard.check(request).error().code, Errc::forbidden_host);
  request.hosts = 0;
  EXPECT_EQ(guard.check(request).error().code, Errc::forbidden_host);
  request = request_to("");
  EXPECT_EQ(guard.check(request).error().code, Errc::forbidden_host);
  EXPECT_NE(guard.check(request).error().detail.find("Host header is empty"), std::string::npos);
}

// G19
TEST(Guard, TheHostOfAnAbsoluteUriIsLookedAtLikeTheHeader) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171});
  Request request = request_to("localhost:7171");
  request.has_authority = true;
  for (const char* foreign : {"", "evil.example", "localhost", "user@localhost:7171"}) {
    request.authority = foreign;
    EXPECT_EQ(guard.check(request).error().code, Errc::forbidden_host) << foreign;
  }
  request.authority = "127.0.0.1:7171";
  EXPECT_TRUE(guard.check(request));
}

// G19
TEST(Guard, PagesOfOtherSitesMayLinkAndLoadNothing) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171});
  const auto asked = [&](Method method, const char* site, const char* mode, const char* dest) {
    Request request = request_to("localhost:7171");
    request.method = method;
    request.fetch_site = site;
    request.fetch_mode = mode;
    request.fetch_dest = dest;
    return guard.check(request);
  };
  EXPECT_TRUE(asked(Method::get, "cross-site", "navigate", "document"));
  EXPECT_TRUE(asked(Method::get, "none", "navigate", "document"));
  EXPECT_TRUE(asked(Method::get, "same-origin", "no-cors", "image"));
  EXPECT_TRUE(asked(Method::post, "same-origin", "cors", "empty"));
  EXPECT_TRUE(asked(Method::post, "", "", "")) << "no browser";
  const std::pair<const char*, const char*> table[] = {{"no-cors", "image"},      {"no-cors", "script"},
                                                       {"cors", "empty"},         {"navigate", "iframe"},
                                                       {"navigate", "embed"},     {"", ""},
                                                       {"websocket", "websocket"}};
  for (const auto& [mode, dest] : table) {
    const auto checked = asked(Method::get, "cross-site", mode, dest);
    ASSERT_FALSE(checked) << mode;
    EXPECT_EQ(checked.error().code, Errc::forbidden_origin);
  }
  EXPECT_FALSE(asked(Method::post, "cross-site", "navigate", "document")) << "a form";
  Request request = from_page("http://localhost:7171");
  request.fetch_site = "cross-site";
  EXPECT_TRUE(guard.check(request)) << "its origin says more";
}

// G19
TEST(Guard, ANameThatWasAllowedMayStandBeforeAProxyWithTlsOnItsPort) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171, .allow_hosts = {"bells.example", "two.example:8443"}});
  for (const char* own : {"https://bells.example", "https://bells.example:8443", "https://two.example:8443"})
    EXPECT_TRUE(guard.check(from_page(own))) << own;
  for (const char* foreign : {"https://two.example", "https://two.example:8444", "https://localhost:7171"})
    EXPECT_FALSE(guard.check(from_page(foreign))) << foreign;
}

// G19
TEST(Guard, PagesOfOtherSitesAreTurnedAway) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171, .allow_hosts = {"bells.example"}});
  for (const char* own : {"http://localhost:7171", "http://127.0.0.1:7171", "http://[::1]:7171",
                          "https://bells.example", "http://bells.example"})
    EXPECT_TRUE(guard.check(from_page(own))) << own;
  for (const char* foreign : {"", "null", "http://evil.example", "https://localhost:7171", "http://localhost",
                              "http://localhost:7171/", "file://", "http://localhost:7171.evil.example"}) {
    const auto checked = guard.check(from_page(foreign));
    ASSERT_FALSE(checked) << foreign;
    EXPECT_EQ(checked.error().code, Errc::forbidden_origin) << foreign;
  }
}

// G19
TEST(Guard, AsksForTheToken) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171, .token = "correct-horse"});
  Request request = request_to("localhost:7171");
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer correct-hors", "Bearer correct-horsf",
                            "Bearer correct-horsee", "Basic correct-horse", "correct-horse"}) {
    request.authorization = wrong;
    const auto checked = guard.check(request);
    ASSERT_FALSE(checked) << wrong;
    EXPECT_EQ(checked.error().code, Errc::unauthorized) << wrong;
  }
  for (const char* right : {"Bearer correct-horse", "bearer correct-horse"}) {
    request.authorization = right;
    EXPECT_TRUE(guard.check(request)) << right;
  }
}

// P13, G19: what is signed needs no token, and comes from nowhere else all the same.
TEST(Guard, ThePlaceIsCheckedWithoutTheToken) {
  const Guard guard({.listen_host = "127.0.0.1", .port = 7171, .token = "correct-horse"});
  EXPECT_TRUE(guard.check_place(request_to("localhost:7171")));
  EXPECT_EQ(guard.check_place(request_to("evil.example")).error().code, Errc::forbidden_host);
  EXPECT_EQ(guard.check_place(from_page("http://evil.example")).error().code, Errc::forbidden_origin);
}

TEST(Guard, ComparesWholeTexts) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_in_constant_time("abab", "ab"));
  EXPECT_FALSE(equal_in_constant_time("a", ""));
  EXPECT_FALSE(equal_in_constant_time("", "a"));
}

}  // namespace
}  // namespace belfry::server
