#include "belfry/server/router.h"

#include <gtest/gtest.h>

namespace belfry::server {
namespace {

Task<Response> nothing(Request) { co_return Response{}; }

Router small_router() {
  Router router;
  router.add(Method::get, "/v1/things?", nothing);
  router.add(Method::get, "/page", nothing);
  router.add(Method::post, "/v1/things", nothing);
  router.add(Method::get, "/v1/things/{}", nothing);
  router.add(Method::post, "/v1/things/{}:ring", nothing);
  router.add_signed(Method::post, "/v1/things/{}/inbox", nothing, 1000);
  return router;
}

struct Found {
  std::string route;
  std::string parameter;
  std::string allow;
};

Found find(Method method, std::string path) {
  const Router router = small_router();
  Request request;
  request.method = method;
  request.path = std::move(path);
  Found found;
  const auto route = router.find(request, found.allow);
  found.route = route ? std::string((*route)->before) + "|" + std::string((*route)->after)
                      : std::string(word(route.error().code));
  found.parameter = request.parameter;
  return found;
}

TEST(Router, WhatStandsBehindTheQuestionMarkIsReadOrRefused) {
  const Router router = small_router();
  const auto ask = [&](Method method, std::string path) {
    Request request;
    request.method = method;
    request.path = std::move(path);
    request.query = "delayMs=5000&x=1";
    std::string allow;
    const auto route = router.find(request, allow);
    EXPECT_EQ(allow, "");
    return route ? "" : route.error().detail;
  };
  EXPECT_EQ(ask(Method::get, "/v1/things"), "");
  EXPECT_EQ(ask(Method::get, "/page"), "");
  EXPECT_EQ(ask(Method::post, "/v1/things/bell/inbox"), "");  // other programs add to an address that they were given
  EXPECT_EQ(ask(Method::post, "/v1/things"),
            "POST /v1/things takes nothing behind the question mark, and \"delayMs\" stands there");
  EXPECT_NE(ask(Method::get, "/v1/things/one"), "");
}

TEST(Router, FindsRoutesAndTheirParameter) {
  EXPECT_EQ(find(Method::get, "/v1/things").route, "/v1/things|");
  EXPECT_EQ(find(Method::head, "/v1/things").route, "/v1/things|");
  EXPECT_EQ(find(Method::get, "/v1/things/bell").parameter, "bell");
  EXPECT_EQ(find(Method::post, "/v1/things/bell:ring").parameter, "bell");
}

TEST(Router, KnowsWhatIsNotThere) {
  for (const char* path :
       {"", "/", "/v1/things/", "/v1/things/a/b", "/v1/things/a:b", "/v1/things/:ring", "/v1/thingsx"})
    EXPECT_EQ(find(Method::get, path).route, "not_found") << path;
}

TEST(Router, SaysWhichMethodsThereAre) {
  EXPECT_EQ(find(Method::remove, "/v1/things").route, "method_not_allowed");
  EXPECT_EQ(find(Method::remove, "/v1/things").allow, "GET, HEAD, POST");
  EXPECT_EQ(find(Method::get, "/v1/things/bell:ring").allow, "POST");
}

}  // namespace
}  // namespace belfry::server
