#include "belfry/server/request_parser.h"

#include <memory>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace belfry::server {
namespace {

struct Parsed {
  std::unique_ptr<RequestParser> parser = std::make_unique<RequestParser>();
  std::optional<ParseProblem> problem;
  std::string rest;
  std::size_t most_pending = 0;  // of what came and was not taken
};

// Feeds `text` in pieces of `step` bytes, as a network might.
Parsed parse(const std::string& text, std::size_t step, std::size_t body_max = 1'000) {
  Parsed parsed;
  parsed.parser->set_body_limit(body_max);
  std::string pending;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::min(step, text.size() - at);
    pending += text.substr(at, size);
    at += size;
    parsed.most_pending = std::max(parsed.most_pending, pending.size());
    while (!pending.empty() && !parsed.parser->done()) {
      const auto taken = parsed.parser->feed(pending);
      if (!taken) {
        parsed.problem = taken.error();
        return parsed;
      }
      pending.erase(0, *taken);
      if (*taken == 0) break;
    }
  }
  parsed.rest = pending;
  return parsed;
}

TEST(RequestParser, ReadsARequestHoweverItIsCut) {
  const std::string text =
      "POST /v1/a%20b?x=1&y=2 HTTP/1.1\r\nHost: h\r\nOrigin: o\r\nAuthorization: Bearer t\r\n"
      "Content-Type: application/json\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n";
  for (std::size_t step = 1; step < text.size(); ++step) {
    const Parsed parsed = parse(text, step);
    ASSERT_FALSE(parsed.problem) << step;
    ASSERT_TRUE(parsed.parser->done()) << step;
    const Request& request = parsed.parser->request();
    EXPECT_EQ(request.method, Method::post);
    EXPECT_EQ(request.path, "/v1/a b");
    EXPECT_EQ(request.query, "x=1&y=2");
    EXPECT_EQ(request.host, "h");
    EXPECT_TRUE(request.has_origin);
    EXPECT_EQ(request.authorization, "Bearer t");
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(parsed.rest, "GET / HTTP/1.1\r\n");
  }
}

TEST(RequestParser, ReadsChunksHoweverTheyAreCut) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nHost: evil\r\n\r\n";
  for (std::size_t step = 1; step < text.size(); ++step) {
    const Parsed parsed = parse(text, step);
    ASSERT_FALSE(parsed.problem) << step;
    ASSERT_TRUE(parsed.parser->done()) << step;
    EXPECT_EQ(parsed.parser->request().body, "hello world");
    EXPECT_EQ(parsed.parser->request().host, "h") << "a trailer is no header";
    EXPECT_EQ(parsed.parser->request().hosts, 1);
  }
}

// G15: in a build with assertions, too
TEST(RequestParser, TheEndOfABodyMayComeInAnyPieces) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string body : {"", "x"}) {
    const std::string text = head + (body.empty() ? "" : "1\r\nx\r\n") + "0\r\n\r\n";
    for (std::size_t first = head.size(); first < text.size(); ++first) {
      for (std::size_t second = first; second < text.size(); ++second) {
        Parsed parsed;
        parsed.parser->set_body_limit(10);
        std::size_t at = 0;
        for (const std::size_t end : {head.size(), first, second, text.size()})
          for (std::size_t taken = 1; taken > 0 && at < end && !parsed.parser->done(); at += taken)
            taken = parsed.parser->feed(std::string_view(text).substr(at, end - at)).value();
        EXPECT_TRUE(parsed.parser->done()) << first << " " << second;
        EXPECT_EQ(parsed.parser->request().body, body);
      }
    }
  }
}

// G15
TEST(RequestParser, WhatStandsAroundTheChunksHasABound) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto extension = [](std::size_t bytes) { return "1;" + std::string(bytes - 4, 'a') + "\r\n"; };
  const auto trailer = [](std::size_t bytes) { return "X: " + std::string(bytes - 5, 'y') + "\r\n"; };
  std::string trailers;
  while (trailers.size() < kChunkTextBytesMax) trailers += "X: yyyyyyyyyy\r\n";
  const std::string last = "0\r\n";
  const std::size_t most = kChunkTextBytesMax;
  const std::pair<std::string, bool> table[] = {
      {extension(most) + "x\r\n0\r\n\r\n", false},  // nothing is left for the last one
      {extension(most - 20) + "x\r\n0\r\n\r\n", true},
      {extension(most + 1) + "x\r\n0\r\n\r\n", false},
      {last + trailer(most - 5) + "\r\n", true},
      {last + trailer(most - 4) + "\r\n", false},
      {last + trailers + "\r\n", false},
      {extension(most / 2) + "x\r\n" + extension(most / 2) + "x\r\n0\r\n\r\n", false},
      {extension(most / 2) + "x\r\n0\r\n" + trailer(most / 2 - 20) + "\r\n", true},
      {extension(most / 2) + "x\r\n0\r\n" + trailer(most / 2 + 1) + "\r\n", false},
      {std::string(most, '0') + "1\r\nx\r\n0\r\n\r\n", false},
      {"10;" + std::string(4 * most, 'a'), false},  // however much more would come
      {last + "X: " + std::string(4 * most, 'y'), false},
  };
  int row = 0;
  for (const auto& [body, fits] : table) {
    for (const std::size_t step : {head.size() + body.size(), std::size_t{7'000}, std::size_t{9}}) {
      const Parsed parsed = parse(head + body, step);
      EXPECT_EQ(parsed.parser->done(), fits) << row << " " << step;
      ASSERT_EQ(parsed.problem.has_value(), !fits) << row << " " << step;
      if (!fits) EXPECT_EQ(parsed.problem->status, 431) << row << " " << step;
      EXPECT_LT(parsed.most_pending, 2 * most + step) << row << " " << step;
    }
    ++row;
  }
}

// G19
TEST(RequestParser, AnAbsoluteUriHasAHostAndAPath) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"http://a.example:1/v1/x?y=http://b/", "a.example:1", "/v1/x"},
      {"http://a.example?y=/z", "a.example", ""},
      {"http:///v1/x", "", "/v1/x"},
      {"http://", "", ""},
  };
  for (const auto& [target, host, path] : table) {
    const Parsed parsed = parse(fmt::format("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", target), 1'000);
    ASSERT_TRUE(parsed.parser->done()) << target;
    EXPECT_TRUE(parsed.parser->request().has_authority);
    EXPECT_EQ(parsed.parser->request().authority, host);
    EXPECT_EQ(parsed.parser->request().path, path);
  }
  EXPECT_FALSE(parse("GET /http://a HTTP/1.1\r\nHost: h\r\n\r\n", 1'000).parser->request().has_authority);
}

// G19
TEST(RequestParser, WhatABrowserSaysAboutThePageIsHeard) {
  const Parsed parsed = parse(
      "GET / HTTP/1.1\r\nHost: h\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n\r\n",
      1'000);
  EXPECT_EQ(parsed.parser->request().fetch_site, "cross-site");
  EXPECT_EQ(parsed.parser->request().fetch_mode, "navigate");
  EXPECT_EQ(parsed.parser->request().fetch_dest, "document");
}

TEST(RequestParser, TheHeadComesBeforeTheBody) {
  RequestParser parser;
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(parser.feed(head + "hello").value(), head.size());
  EXPECT_TRUE(parser.head_done());
  EXPECT_FALSE(parser.done());
  EXPECT_EQ(parser.announced_bytes(), 5u);
}

TEST(RequestParser, RefusesWhatItCannotRead) {
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::pair<std::string, int> table[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\n\r\n", 400},
      {start + "Content-Length: x\r\n\r\n", 400},
      {start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {start + "Transfer-Encoding: gzip\r\n\r\n", 501},
      {start + "Content-Encoding: br\r\n\r\n", 415},
      {start + "Expect: a-miracle\r\n\r\n", 417},
      {start + "X: " + std::string(kHeadBytesMax, 'x') + "\r\n\r\n", 431},
      {"GET /" + std::string(kHeadBytesMax, 'x') + " HTTP/1.1\r\n\r\n", 431},
      {start + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'), 413},
      {start + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x'), 413},
      {start + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
  };
  for (const auto& [text, status] : table) {
    for (const std::size_t step : {text.size(), std::size_t{7}}) {
      const Parsed parsed = parse(text, step);
      ASSERT_TRUE(parsed.problem) << text.substr(0, 80);
      EXPECT_EQ(parsed.problem->status, status) << text.substr(0, 80);
    }
  }
}

}  // namespace
}  // namespace belfry::server
