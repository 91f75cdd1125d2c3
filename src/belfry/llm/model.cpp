#include "belfry/llm/model.h"

#include "belfry/base/assert.h"

namespace belfry::llm {

std::string_view word(Role role) {
  switch (role) {
    case Role::system: return "system";
    case Role::user: return "user";
    case Role::assistant: return "assistant";
    case Role::tool: return "tool";
  }
  assertion_failed("a known role", __FILE__, __LINE__);
}

}  // namespace belfry::llm
