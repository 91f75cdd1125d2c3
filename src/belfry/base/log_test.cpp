#include "belfry/base/log.h"

#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

namespace belfry::log {
namespace {

TEST(Log, OnATerminalOnlyValuesWithBlanksAreQuoted) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    Writer writer({.form = Form::terminal, .descriptor = pipe[1], .now = [] { return WallTime{}; }});
    info("a.event", "text",
         {{"path", "/var/lib/belfry"},
          {"two", "two words"},
          {"none", ""},
          {"count", 7},
          {"at", WallTime{}},
          {"escape", "\x1b[2J"}});
  }
  ::close(pipe[1]);
  std::array<char, 1024> bytes{};
  const ssize_t size = ::read(pipe[0], bytes.data(), bytes.size());
  ::close(pipe[0]);
  ASSERT_GT(size, 0);
  const std::string line(bytes.data(), static_cast<std::size_t>(size));

  EXPECT_NE(
      line.find(" path=/var/lib/belfry two=\"two words\" none=\"\" count=7 at=1970-01-01T00:00:00.000Z escape=?[2J"),
      std::string::npos)
      << line;
}

}  // namespace
}  // namespace belfry::log
