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
  for (const char* wrong : {"http://x:0", "", "localhost:7171", "ftp://x", "http://", "http:///x", "http://a:b",
                            "http://a/?q", "http://u@h/"})
    EXPECT_FALSE(parse_url(wrong)) << wrong;
  EXPECT_EQ(parse_url("https://x").error().code, Errc::unsupported);
}

TEST(Url, ReadsAddressesOfOthers) {
  const struct {
    const char* text;
    bool tls;
    const char* server;
    const char* target;
    const char* host;
  } table[] = {{"http://a.example", false, "a.example:80", "/", "a.example"},
               {"https://a.example/hook?x=1&y", true, "a.example:443", "/hook?x=1&y", "a.example"},
               {"https://a.example:8443?x", true, "a.example:8443", "/?x", "a.example:8443"},
               {"http://[::1]:9/a//b/", false, "[::1]:9", "/a//b/", "[::1]:9"},
               {"http://a.example:443/", false, "a.example:443", "/", "a.example:443"}};
  for (const auto& line : table) {
    const auto url = parse_web_url(line.text);
    ASSERT_TRUE(url) << line.text;
    EXPECT_EQ(url->tls, line.tls);
    EXPECT_EQ(url->server.text(), line.server);
    EXPECT_EQ(url->target, line.target);
    EXPECT_EQ(url->host(), line.host);
  }
  for (const char* wrong :
       {"", "a.example", "ftp://x", "http://", "https:///x", "http://a:b", "http://u@h/", "http://a:0/", "http://a/ b",
        "http://a/\r\nX: y", "http://a/#f", "http://a/\xc3\xa9", "HTTP://a/"})
    EXPECT_FALSE(parse_web_url(wrong)) << wrong;
}

TEST(Url, EncodesWhatAPathCannotCarry) {
  EXPECT_EQ(percent_encoded("worker_1.a-b~"), "worker_1.a-b~");
  EXPECT_EQ(percent_encoded("a/b c:é"), "a%2Fb%20c%3A%C3%A9");
}

}  // namespace
}  // namespace belfry::net
