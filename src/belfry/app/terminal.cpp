#include "belfry/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::app {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};
// East Asian scripts, their punctuation and full-width forms, and pictures.
constexpr Range kWide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                           {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

bool is_in(const auto& ranges, char32_t character) {
  return std::ranges::any_of(
      ranges, [character](const Range& range) { return character >= range.first && character <= range.last; });
}

// What ASCII has no room for and a terminal obeys all the same: the second set of controls, the marks of direction, and
// the ends of lines and paragraphs.
constexpr Range kObeyed[] = {{0x80, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

std::size_t width_of(char32_t character) { return is_in(kWide, character) ? 2 : 1; }

// Calls `visit(bytes, columns)` for each character until it says no.
template <class Visit>
void each_character(std::string_view text, Visit visit) {
  while (!text.empty()) {
    char32_t character = 0;
    const auto bytes = static_cast<std::size_t>(std::max(1, utf8_sequence(text, &character)));
    if (!visit(bytes, width_of(character))) return;
    text.remove_prefix(std::min(bytes, text.size()));
  }
}

// Calls `write(bytes, character)` for each character; bytes that are none go one by one, as U+FFFD.
template <class Write>
void each_sequence(std::string_view text, Write write) {
  while (!text.empty()) {
    char32_t character = 0xfffd;
    const int length = utf8_sequence(text, &character);
    write(length > 0 ? text.substr(0, static_cast<std::size_t>(length)) : std::string_view("\xef\xbf\xbd"), character);
    text.remove_prefix(static_cast<std::size_t>(std::max(1, length)));
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  each_sequence(text, [&out](std::string_view bytes, char32_t character) {
    const bool obeyed = character < 0x20 || character == 0x7f || is_in(kObeyed, character);
    out += obeyed ? " " : bytes;
  });
  return out;
}

std::string escaped_for_terminal(std::string_view json) {
  std::string out;
  each_sequence(json, [&out](std::string_view bytes, char32_t character) {
    if (character == 0x7f || is_in(kObeyed, character)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      out += bytes;
    }
  });
  return out;
}

TerminalSize terminal_size() {
  winsize size{};
  TerminalSize known;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return known;
  if (size.ws_row > 0) known.rows = size.ws_row;
  if (size.ws_col > 0) known.columns = size.ws_col;
  return known;
}

std::size_t columns_of(std::string_view text) {
  std::size_t all = 0;
  each_character(text, [&](std::size_t, std::size_t columns) {
    all += columns;
    return true;
  });
  return all;
}

std::string fitted(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t bytes = 0;
  std::size_t used = 1;  // for the …
  each_character(text, [&](std::size_t more_bytes, std::size_t more_columns) {
    if (used + more_columns > columns) return false;
    bytes += more_bytes;
    used += more_columns;
    return true;
  });
  return std::string(text.substr(0, bytes)) + "…";
}

}  // namespace belfry::app
