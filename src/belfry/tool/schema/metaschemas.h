// The schemas of schemas, of both dialects, so that a schema can refer to them without anything being fetched.
#pragma once

#include <optional>
#include <string_view>

namespace belfry::tool {

// The text of the metaschema with this URI (without a fragment).
std::optional<std::string_view> metaschema(std::string_view uri);

}  // namespace belfry::tool
