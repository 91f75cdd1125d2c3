// Where what comes with the program is.
#pragma once

#include <filesystem>

namespace belfry::app {

// The folder of the bundled plugins: in the source tree that the program was built in, where it was installed, or beside it.
// Empty if there is none.
std::filesystem::path bundled_plugins();

// Of a program that stands there. What others could have put in such a place does not count: what is in it is run.
std::filesystem::path bundled_plugins_of(const std::filesystem::path& program);

}  // namespace belfry::app
