// How values and names are told to whoever wrote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/tool/schema/json_tree.h"

namespace belfry::tool {

// At most so many bytes of a value are quoted: enough to recognise it.
inline constexpr std::size_t kQuotedBytesMax = 60;
// Of known names and allowed values, so many are listed.
inline constexpr std::size_t kListedMax = 20;

// Cut between two characters, with an ellipsis.
std::string shortened(std::string_view text);
// `a string ("soon")`, `null`
std::string describe(const Node& node);
// `a string or null` for a set of TypeBit.
std::string describe_types(std::uint8_t types);
// `"a", "b" and 12 more`; `total` if there are more than were put together.
std::string listed(const std::vector<std::string>& items, std::string_view last = "and", std::size_t total = 0);
std::string listed_names(const std::vector<std::string_view>& names);
// `1 element`, `2 elements`
std::string counted(std::uint64_t count, std::string_view one);

// The known name that was probably meant by `name`; empty if none is near.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

// Whether a string holds what was wanted bare: `"5"` for 5, `"{}"` for {}.
std::string hint_for_string(const Node& node, std::uint8_t types);
// The type of a value, as TypeBit.
std::uint8_t type_of(const Node& node);

}  // namespace belfry::tool
