// The JSON reader against Boost.JSON: both take or both refuse a text, and what is read writes back to the same value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <boost/json/src.hpp>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/limits.h"

namespace {

namespace peer = boost::json;
using belfry::json::Kind;
using belfry::json::Value;

bool has_duplicate_key(Value object) { return !belfry::json::members(object).has_value(); }

// The same value in both readers. A key that stands twice is read differently on purpose.
void compare(Value ours, const peer::value& theirs) {
  switch (ours.kind) {
    case Kind::null: BELFRY_ASSERT(theirs.is_null()); break;
    case Kind::boolean: BELFRY_ASSERT(theirs.is_bool() && theirs.get_bool() == belfry::json::boolean(ours)); break;
    case Kind::number: {
      BELFRY_ASSERT(theirs.is_number());
      const auto whole = belfry::json::integer(ours);
      if (theirs.is_int64()) BELFRY_ASSERT(whole == theirs.get_int64());
      break;
    }
    case Kind::string: BELFRY_ASSERT(theirs.is_string() && belfry::json::text(ours) == theirs.get_string()); break;
    case Kind::array: {
      const auto elements = belfry::json::elements(ours);
      BELFRY_ASSERT(theirs.is_array() && theirs.get_array().size() == elements.size());
      for (std::size_t i = 0; i < elements.size(); ++i) compare(elements[i], theirs.get_array()[i]);
      break;
    }
    case Kind::object: {
      if (has_duplicate_key(ours)) break;
      const auto members = belfry::json::members(ours);
      BELFRY_ASSERT(theirs.is_object() && theirs.get_object().size() == members->size());
      for (const auto& member : *members) {
        compare(member.value, theirs.get_object().at(member.key));
        BELFRY_ASSERT(belfry::json::find(ours, member.key)->raw == member.value.raw);
      }
      break;
    }
  }
}

int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  for (const char c : text) {
    depth += (c == '[' || c == '{') ? 1 : (c == ']' || c == '}') ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Any text at all can be quoted and read back.
  const std::string quoted = belfry::json::quoted(text);
  const auto again = belfry::json::parse(quoted);
  BELFRY_ASSERT(again.has_value() && again->kind == Kind::string);
  BELFRY_ASSERT(belfry::json::quoted(belfry::json::text(*again)) == quoted);

  const auto ours = belfry::json::parse(text);
  if (depth_of(text) >= belfry::kJsonDepthMax) return 0;  // brackets in strings count here, in the readers not
  boost::system::error_code refused;
  peer::parse_options options;
  options.max_depth = 1'000;
  const peer::value theirs = peer::parse(text, refused, {}, options);
  if (refused == peer::error::exponent_overflow) return 0;  // a number like any other to JSON, and to us
  BELFRY_ASSERT(ours.has_value() == !refused);
  if (ours) compare(*ours, theirs);
  return 0;
}
