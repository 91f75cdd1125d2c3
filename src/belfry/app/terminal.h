// The terminal behind stdout: how large it is, and what fits into it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::app {

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};
// As it is now; 24 rows of 80 columns if it does not say.
TerminalSize terminal_size();

// Text that came from somewhere, on one line and without what a terminal would obey: control characters, those of the second
// kind (U+009B is the beginning of a sequence, too), and marks that change the direction of what stands beside them.
std::string printable(std::string_view text);
// JSON with those of them that it does not escape by itself escaped: it says the same.
std::string escaped_for_terminal(std::string_view json);

// How many columns a text takes: Chinese characters and the like take two.
std::size_t columns_of(std::string_view text);
// As much of it as fits, with … where something was cut.
std::string fitted(std::string_view text, std::size_t columns);

}  // namespace belfry::app
