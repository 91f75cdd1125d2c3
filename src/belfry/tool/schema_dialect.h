// The dialects of JSON Schema that Belfry reads.
#pragma once

namespace belfry::tool {

enum class Dialect { draft7, draft2020_12 };

}  // namespace belfry::tool
