#include "belfry/app/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

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

std::size_t width_of(char32_t character) {
  const bool wide = std::ranges::any_of(
      kWide, [character](const Range& range) { return character >= range.first && character <= range.last; });
  return wide ? 2 : 1;
}

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

}  // namespace

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
