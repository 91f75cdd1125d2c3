#include "belfry/run/references.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"
#include "belfry/run/plan.h"

namespace belfry::run {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";
constexpr std::string_view kSteps = "steps.";
constexpr std::size_t kShown = 100;

struct Reference {
  int step = 0;
  std::vector<std::string> path;  // into its result
};

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Errc::invalid_plan, fmt::format("{{{{{}}}}} {}", shortened(text, kShown), why));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const auto dot = text.find('.');
    parts.emplace_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

// What stands between the braces: steps.N.result or steps.N.result.a.b.0
Result<Reference> read_reference(std::string_view inner) {
  const std::vector<std::string> parts = split(inner);
  constexpr std::string_view kWanted = "is no reference; one looks like {{steps.0.result.url}}";
  if (parts.size() < 3 || parts[2] != "result") return bad(inner, kWanted);
  Reference reference;
  const std::string& number = parts[1];
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), reference.step);
  if (error != std::errc{} || end != number.data() + number.size() || reference.step < 0) return bad(inner, kWanted);
  reference.path.assign(parts.begin() + 3, parts.end());
  if (std::ranges::any_of(reference.path, [](const std::string& part) { return part.empty(); }))
    return bad(inner, kWanted);
  return reference;
}

// Calls `literal` and `reference` for the parts of a text in turn. Other things in double braces are left alone: a
// template of the tool's own may have them.
template <class Literal, class Refer>
Result<> each_part(std::string_view text, Literal literal, Refer refer) {
  while (!text.empty()) {
    std::size_t open = text.find(kOpen);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find(kClose, open + kOpen.size());
    if (close == std::string_view::npos) break;
    const std::string_view inner = trimmed(text.substr(open + kOpen.size(), close - open - kOpen.size()));
    if (!inner.starts_with(kSteps)) {
      literal(text.substr(0, open + kOpen.size()));
      text.remove_prefix(open + kOpen.size());
      continue;
    }
    literal(text.substr(0, open));
    BELFRY_CHECK(refer(inner));
    text.remove_prefix(close + kClose.size());
  }
  literal(text);
  return {};
}

template <class OnText>
Result<> each_text(json::Value value, const OnText& on_text) {
  if (value.kind == json::Kind::string) return on_text(json::text(value));
  if (value.kind == json::Kind::array) {
    for (const json::Value one : json::elements(value)) BELFRY_CHECK(each_text(one, on_text));
  } else if (value.kind == json::Kind::object) {
    for (const json::Member& member : json::every_member(value)) BELFRY_CHECK(each_text(member.value, on_text));
  }
  return {};
}

std::optional<json::Value> walk(json::Value value, const std::vector<std::string>& path) {
  for (const std::string& part : path) {
    if (value.kind == json::Kind::object) {
      const auto found = json::find(value, part);
      if (!found) return std::nullopt;
      value = *found;
    } else if (value.kind == json::Kind::array) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      const std::vector<json::Value> all = json::elements(value);
      if (error != std::errc{} || end != part.data() + part.size() || index >= all.size()) return std::nullopt;
      value = all[index];
    } else {
      return std::nullopt;
    }
  }
  return value;
}

class Filler {
 public:
  explicit Filler(const ResultOf& result_of) : result_of_(result_of) {}

  Result<> fill(json::Value value) {
    if (value.kind == json::Kind::string) return fill_text(json::text(value));
    if (value.kind == json::Kind::array) {
      writer_.array();
      for (const json::Value one : json::elements(value)) BELFRY_CHECK(fill(one));
      writer_.end();
    } else if (value.kind == json::Kind::object) {
      writer_.object();
      for (const json::Member& member : json::every_member(value)) {
        writer_.key(member.key);
        BELFRY_CHECK(fill(member.value));
      }
      writer_.end();
    } else {
      writer_.raw(value.raw);
    }
    return {};
  }
  std::string take() { return writer_.take(); }

 private:
  Result<> fill_text(const std::string& text) {
    std::string filled;
    std::vector<std::string> values;
    bool only_reference = true;
    BELFRY_CHECK(each_part(
        text,
        [&](std::string_view literal) {
          if (!literal.empty()) only_reference = false;
          filled += literal;
        },
        [&](std::string_view inner) -> Result<> {
          BELFRY_TRY(const std::string value, look_up(inner));
          values.push_back(value);
          const auto parsed = json::parse(value);
          filled += parsed->kind == json::Kind::string ? json::text(*parsed) : value;
          return {};
        }));
    if (filled.size() + writer_.str().size() > kBodyBytesMax)
      return fail(Errc::too_large,
                  fmt::format("the arguments have more than {} bytes once they are filled in", kBodyBytesMax));
    if (only_reference && values.size() == 1) {
      writer_.raw(values.front());
    } else {
      writer_.value(filled);
    }
    return {};
  }

  Result<std::string> look_up(std::string_view inner) const {
    BELFRY_TRY(const Reference reference, read_reference(inner));
    const auto result = result_of_(reference.step);
    if (!result) return bad(inner, fmt::format("cannot be filled in: step {} has no result", reference.step));
    const auto value = json::parse(*result);
    const auto found = value ? walk(*value, reference.path) : std::nullopt;
    if (!found)
      return bad(inner, fmt::format("cannot be filled in: the result of step {} has no such member", reference.step));
    return std::string(found->raw);
  }

  const ResultOf& result_of_;
  json::Writer writer_;
};

}  // namespace

Result<std::vector<int>> referred_steps(std::string_view text) {
  BELFRY_TRY(const json::Value value, json::parse(text));
  std::vector<int> steps;
  const auto on_text = [&steps](const std::string& one) {
    return each_part(
        one, [](std::string_view) {},
        [&steps](std::string_view inner) -> Result<> {
          BELFRY_TRY(const Reference reference, read_reference(inner));
          if (std::ranges::find(steps, reference.step) == steps.end()) steps.push_back(reference.step);
          return {};
        });
  };
  BELFRY_CHECK(each_text(value, on_text));
  return steps;
}

Result<std::string> fill_references(std::string_view text, const ResultOf& result_of) {
  BELFRY_TRY(const json::Value value, json::parse(text));
  Filler filler(result_of);
  BELFRY_CHECK(filler.fill(value));
  std::string filled = filler.take();
  BELFRY_CHECK(check_depth(filled));
  return filled;
}

}  // namespace belfry::run
