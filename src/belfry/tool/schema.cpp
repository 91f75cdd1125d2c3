#include "belfry/tool/schema.h"

#include "belfry/tool/schema/checker.h"
#include "belfry/tool/schema/compiler.h"
#include "belfry/tool/schema/json_tree.h"

namespace belfry::tool {

std::string sentence(const Violation& violation) {
  if (violation.path.empty()) return "the arguments: " + violation.message;
  return violation.path.substr(1) + ": " + violation.message;
}

Result<Schema> Schema::compile(std::string_view text, Dialect unless_said) {
  auto program = std::make_unique<Program>();
  BELFRY_CHECK(Compiler(*program).run(text, unless_said));
  return Schema(std::move(program));
}

Schema::Schema(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Schema::Schema(Schema&&) noexcept = default;
Schema& Schema::operator=(Schema&&) noexcept = default;
Schema::~Schema() = default;

std::vector<Violation> Schema::check(json::Value instance) const {
  const auto tree = Tree::read(instance, kCheckValuesMax);
  if (!tree) return {{.path = "", .keyword = "", .message = tree.error().detail}};
  return Checker(*program_).run(tree->root());
}

}  // namespace belfry::tool
