// What a wall refuses looks to a plugin like a right that it lacks. This says of the words of one that failed which wall it
// may have been. Pure.
#pragma once

#include <string>
#include <string_view>

#include "belfry/plugin/plugin.h"

namespace belfry::plugin {

// One sentence; empty: nothing in there looks like it.
std::string refusal_of_walls(std::string_view words, const Plugin& plugin);

}  // namespace belfry::plugin
