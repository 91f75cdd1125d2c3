// Results of earlier steps in the arguments of later ones: {{steps.0.result.url}} (F9).
//
// A text that is nothing but a reference becomes the value itself, whatever it is; within a text it becomes text. What was
// filled in is not looked at again.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"

namespace belfry::run {

// The steps that a JSON text refers to. Refuses what begins like a reference and is none.
Result<std::vector<int>> referred_steps(std::string_view json);

// The result of a step as JSON; nothing if it has none.
using ResultOf = std::function<std::optional<std::string>(int step)>;
// A JSON text with every reference filled in. Refuses one whose result, or whose path in it, is not there.
Result<std::string> fill_references(std::string_view json, const ResultOf& result_of);

}  // namespace belfry::run
