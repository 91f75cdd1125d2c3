// From the text of a schema to its rules.
//
// 1. Every subschema is read where the standard has one; `$id` and anchors are noted on the way.
// 2. References are followed; what they lead to may be a place that was not read yet, or a metaschema.
// 3. Whatever would go round in circles on one and the same value is refused.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/tool/schema/rules.h"

namespace belfry::tool {

// Schemas of tools are some kilobytes; these are far beyond, and bound what a hostile one can cost.
inline constexpr std::size_t kSchemaBytesMax = 256u << 10;
inline constexpr std::size_t kSchemaValuesMax = 20'000;
inline constexpr std::size_t kSchemaUriBytesMax = 2'000;  // each reference keeps its own
inline constexpr std::size_t kSchemaPatternsMax = 100;
inline constexpr std::size_t kSchemaPatternInstructionsMax = 100'000;  // of all patterns together

// What a refusal says in front: where in the schema. `#/properties/to/type: …`
std::unexpected<Error> bad_schema(const Node& place, std::string_view what);

class Compiler {
 public:
  explicit Compiler(Program& program) : program_(program) {}

  Result<> run(std::string_view text, Dialect dialect);

  // What stands around a subschema.
  struct Scope {
    ResourceId resource = kNone;
    Dialect dialect = Dialect::draft2020_12;
  };

  Result<RulesId> subschema(const Node& node, Scope scope);
  Result<const Pattern*> pattern(const Node& place, std::string_view source);
  Result<> refer(const Node& place, RulesId from, ResourceId base, bool dynamic);

 private:
  struct Reference {
    const Node* place;
    RulesId from;
    std::string uri;
    bool dynamic;
  };

  Result<ResourceId> add_document(std::string_view text, Dialect dialect);
  Result<> identify(const Node& node, RulesId id, Scope& scope);
  static Result<> identify_dialect(const Node& node, Scope& scope);
  Result<> identify_resource(const Node& node, RulesId id, Scope& scope);
  Result<> add_anchors(const Node& node, RulesId id, Scope scope);
  Result<> add_anchor(const Node& place, std::string_view name, RulesId id, ResourceId resource);
  Result<> add_resource(const Node& place, const Node& root, std::string uri, RulesId id, Scope& scope);

  Result<> follow(const Reference& reference);
  Result<ResourceId> resource(const Reference& reference);
  Result<RulesId> target(const Reference& reference, ResourceId resource);
  Result<RulesId> by_pointer(const Reference& reference, ResourceId resource, std::string_view pointer);

  Result<> refuse_circles() const;

  Program& program_;
  std::map<std::string, ResourceId, std::less<>> resources_;
  std::map<const Node*, RulesId> read_;
  std::vector<Reference> references_;
  std::size_t pattern_instructions_ = 0;
};

}  // namespace belfry::tool
