#include "belfry/net/url.h"

#include <gtest/gtest.h>

namespace belfry::net {
namespace {

TEST(Url, ReadsHostAndPort) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } table[] = {{"127.0.0.1:7171", "127.0.0.1", 7171}, {"localhost:0", "localhost", 0}, {"[::1]:65535", "::1", 65535}};
  for (const auto& line : table) {
    const auto read = parse_host_port(line.text);
    ASSERT_TRUE(read) << line.text;
    EXPECT_EQ(read->host, line.host);
    EXPECT_EQ(read->port, line.port);
    EXPECT_EQ(read->text(), line.text);
  }
  for (const char* wrong : {"", "localhost", ":7171", "localhost:", "localhost:x", "localhost:70000", "localhost:-1",
                            "::1:7171", "[::1]", "[::1:7171", "a b:1", "http://localhost:7171"})
    EXPECT_FALSE(parse_host_port(wrong)) << wrong;
}

TEST(Url, ReadsUrls) {
  const struct {
    const char* text;
    const char* server;
    const char* path;
  } table[] = {{"http://127.0.0.1:7171", "127.0.0.1:7171", ""},
               {"http://localhost/", "localhost:80", ""},
               {"http://[::1]:1/a/b/", "[::1]:1", "/a/b"}};
  for (const auto& line : table) {
    const auto url = parse_url(line.text);
    ASSERT_TRUE(url) << line.text;
    EXPECT_EQ(url->server.text(), line.server);
    EXPECT_EQ(url->path, line.path);
  }
  for (const char* wrong :
       {"", "localhost:7171", "ftp://x", "http://", "http:///x", "http://a:b", "http://a/?q", "http://u@h/"})
    EXPECT_FALSE(parse_url(wrong)) << wrong;
  EXPECT_EQ(parse_url("https://x").error().code, Errc::unsupported);
}

TEST(Url, EncodesWhatAPathCannotCarry) {
  EXPECT_EQ(percent_encoded("worker_1.a-b~"), "worker_1.a-b~");
  EXPECT_EQ(percent_encoded("a/b c:é"), "a%2Fb%20c%3A%C3%A9");
}

}  // namespace
}  // namespace belfry::net
