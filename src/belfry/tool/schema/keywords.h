// The keywords of a subschema, one by one.
#pragma once

#include "belfry/base/result.h"
#include "belfry/tool/schema/compiler.h"

namespace belfry::tool {

// Reads the keywords of `node`, which is an object, into the rules `id`. What the dialect does not know is ignored.
Result<> read_keywords(Compiler& compiler, Rules& rules, RulesId id, const Node& node, Compiler::Scope scope);

}  // namespace belfry::tool
