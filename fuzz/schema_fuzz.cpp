// JSON Schema: any text is compiled or refused, and any value checked, with bounded work. The input is a schema, a zero
// byte and a value; without a value the schema is checked against itself.
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/base/utf8.h"
#include "belfry/tool/schema.h"
#include "belfry/tool/schema/pattern.h"

namespace {

using namespace belfry;
using namespace belfry::tool;

void check_violations(const std::vector<Violation>& violations) {
  BELFRY_ASSERT(violations.size() <= kViolationsMax);
  for (const Violation& violation : violations) {
    BELFRY_ASSERT(is_utf8(violation.path) && is_utf8(violation.message));
    BELFRY_ASSERT(!violation.message.empty() && violation.message != "does not fit the schema");
    BELFRY_ASSERT(violation.path.empty() || violation.path.front() == '/');
  }
}

// The outcome without telling, which the check of an excluded schema uses, is the outcome with telling. In draft 7
// nothing beside `$ref` counts and references would lead elsewhere, so only what has none is compared.
void compare_with_not(std::string_view schema, json::Value value, bool valid) {
  if (schema.find('$') != std::string_view::npos || schema.find('\\') != std::string_view::npos) return;
  const auto negated = Schema::compile(R"({"not": )" + std::string(schema) + "}");
  if (!negated) return;  // a level deeper than there may be
  const auto violations = negated->check(value);
  const bool decided = violations.empty() || violations.front().keyword == "not";
  BELFRY_ASSERT(!decided || violations.empty() == !valid);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view schema_text = text.substr(0, text.find('\0'));
  const std::string_view value_text =
      schema_text.size() < text.size() ? text.substr(schema_text.size() + 1) : schema_text;

  if (const auto pattern = Pattern::compile(schema_text)) pattern->found_in(value_text);
  const auto value = json::parse(value_text);
  for (const Dialect dialect : {Dialect::draft2020_12, Dialect::draft7}) {
    const auto schema = Schema::compile(schema_text, dialect);
    if (!schema) {
      BELFRY_ASSERT(schema.error().code == Errc::invalid_argument && !schema.error().detail.empty());
      continue;
    }
    if (!value) continue;
    const auto violations = schema->check(*value);
    check_violations(violations);
    const bool decided = violations.empty() || !violations.front().keyword.empty();
    if (decided && dialect == Dialect::draft2020_12) compare_with_not(schema_text, *value, violations.empty());
  }
  return 0;
}
