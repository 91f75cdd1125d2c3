// JSON Schema: do the arguments with which a model calls a tool fit, and if not, what would?
//
// Dialects 2020-12 and draft 7. docs/schema.md says what is claimed and what is not. Nothing is ever fetched, `format` is
// only a remark, and every check ends within kCheckStepsMax steps.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/tool/schema_dialect.h"

namespace belfry::tool {

// What a model can act on at once; what is wrong beyond shows when these are mended.
inline constexpr std::size_t kViolationsMax = 32;
// One schema looking at one value is a step. Large arguments take some ten thousand; a million are a
// fraction of a second, or one with the worst patterns there are.
inline constexpr std::size_t kCheckStepsMax = 1'000'000;
// Schemas applied within schemas: the deepest JSON with eight at every level. Bounds the stack of a check.
inline constexpr int kCheckDepthMax = 512;
// Values in the arguments; a model writes them word by word.
inline constexpr std::size_t kCheckValuesMax = 100'000;

// One place in the arguments that does not fit.
struct Violation {
  std::string path;     // JSON Pointer into the arguments; empty is the whole
  std::string keyword;  // of the schema, such as "type"; empty if the check itself could not be finished
  std::string message;  // what is there and what belongs there
};

// `to/0: is a number (5); a string belongs there`
std::string sentence(const Violation& violation);

struct Program;

// Compiled once, then immutable; may be used by several threads.
class Schema {
 public:
  // Refuses a schema that is wrong or goes beyond what is claimed, and says where (`#/properties/to/type: …`). `unless_said`
  // is the dialect of a schema without `$schema`.
  static Result<Schema> compile(std::string_view text, Dialect unless_said = Dialect::draft2020_12);

  Schema(Schema&&) noexcept;
  Schema& operator=(Schema&&) noexcept;
  ~Schema();

  // Everything that does not fit, up to kViolationsMax; empty if all does.
  std::vector<Violation> check(json::Value instance) const;

 private:
  explicit Schema(std::unique_ptr<const Program> program);

  std::unique_ptr<const Program> program_;
};

}  // namespace belfry::tool
