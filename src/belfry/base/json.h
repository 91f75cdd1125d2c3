// JSON as checked bytes.
//
// A message's payload is kept and forwarded as the bytes that came, so reading means: check the whole text once (grammar,
// UTF-8, depth), then look at spans of it. Numbers stay text until somebody asks, so `1e400` and 17-digit numbers are
// exact. Writing appends to a string. docs/adr/0004 says why this is not a library.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/base/result.h"

namespace belfry::json {

enum class Kind { null, boolean, number, string, array, object };

// A span of a checked text; lives as long as that text.
struct Value {
  Kind kind = Kind::null;
  std::string_view raw;
};

struct Member {
  std::string key;
  Value value;
};

// Refuses what is not exactly one JSON value in UTF-8, or is nested deeper than `depth_max`. Says where.
Result<Value> parse(std::string_view text, int depth_max = kJsonDepthMax);
// How the refusal of a text begins that is nested too deeply.
inline constexpr std::string_view kTooDeep = "nesting deeper than";

// The members of a checked object in order; a key that stands twice is refused, since readers disagree on what it means.
Result<std::vector<Member>> members(Value object);
// As they stand, however many and also those that stand twice: for a reader that has its own limits and looks itself.
std::vector<Member> every_member(Value object);
std::vector<Value> elements(Value array);
std::string text(Value string);
bool boolean(Value value);
// The number as a 64-bit integer if it is one exactly (`5`, `5.0`, `5e0`).
std::optional<std::int64_t> integer(Value number);

// Looks up one member of a checked object; `null` kind with an empty span if there is none.
std::optional<Value> find(Value object, std::string_view key);
// A member's text; empty if there is none, or it is something else. For objects that somebody else wrote.
std::string text_in(Value object, std::string_view key);

std::string_view name(Kind kind);

// Writes an object or array, member by member:  Writer w; w.object(); w.field("id", id); w.end(); w.take()
class Writer {
 public:
  Writer& object() { return open('{', '}'); }
  Writer& array() { return open('[', ']'); }
  Writer& end();
  Writer& key(std::string_view name);
  Writer& value(std::string_view text);
  Writer& value(const char* text) { return value(std::string_view(text)); }
  Writer& value(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Writer& value(T number) {
    if constexpr (std::unsigned_integral<T>) {
      return unsigned_value(number);
    } else {
      return integer_value(number);
    }
  }
  Writer& value(double number);
  Writer& raw(std::string_view checked_json);
  Writer& null() { return raw("null"); }
  template <class T>
  Writer& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  Writer& open(char first, char last);
  Writer& integer_value(std::int64_t number);
  Writer& unsigned_value(std::uint64_t number);
  void separate();

  std::string out_;
  std::string closers_;
  bool first_ = true;
};

// What is not UTF-8 in `text` is written as U+FFFD.
void append_quoted(std::string& out, std::string_view text);
std::string quoted(std::string_view text);

}  // namespace belfry::json
