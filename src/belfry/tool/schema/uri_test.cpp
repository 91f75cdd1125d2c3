#include "belfry/tool/schema/uri.h"

#include <gtest/gtest.h>

namespace belfry::tool {
namespace {

TEST(ToolUri, ResolvesReferencesAsRfc3986Does) {
  constexpr std::string_view kBase = "http://a/b/c/d;p?q";
  const std::pair<std::string_view, std::string_view> examples[] = {
      {"g:h", "g:h"},
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q#s"},
      {"g#s", "http://a/b/c/g#s"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"g/../h", "http://a/b/c/h"},
  };
  for (const auto& [reference, expected] : examples) EXPECT_EQ(resolve_uri(kBase, reference), expected) << reference;
}

TEST(ToolUri, ResolvesWithoutABaseAndWithOneThatHasNoPath) {
  EXPECT_EQ(resolve_uri("", "node"), "node");
  EXPECT_EQ(resolve_uri("", "#/a"), "#/a");
  EXPECT_EQ(resolve_uri("/x/base.json", "int.json"), "/x/int.json");
  EXPECT_EQ(resolve_uri("urn:uuid:1-2", "#a"), "urn:uuid:1-2#a");
  EXPECT_EQ(resolve_uri("http://a", "b"), "http://a/b");
}

TEST(ToolUri, DecodesEscapesAndLeavesOthersAlone) {
  EXPECT_EQ(percent_decoded("/a%25b%22"), "/a%b\"");
  EXPECT_EQ(percent_decoded("%"), "%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%zz"), "%zz");
}

}  // namespace
}  // namespace belfry::tool
