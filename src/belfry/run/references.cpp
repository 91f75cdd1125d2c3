#include "belfry/run/references.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

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
// Each of them is looked for in a result that may be a megabyte.
constexpr std::size_t kReferencesMax = 100;

struct Reference {
  int step = 0;
  std::vector<std::string> path;  // into its result
};

std::unexpected<Error> too_many() {
  return fail(Errc::invalid_plan, fmt::format("the arguments refer to more than {} values", kReferencesMax));
}

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(Errc::invalid_plan, fmt::format("{{{{{}}}}} {}", shortened(text, kShown), why));
}

std::string_view trimmed_before(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

std::string_view trimmed(std::string_view text) {
  text = trimmed_before(text);
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

// `steps.0`, but not `steps.length`, which is somebody else's template.
bool names_a_step(std::string_view text) {
  if (!text.starts_with(kSteps)) return false;
  const char next = text.size() > kSteps.size() ? text[kSteps.size()] : '.';
  const bool is_letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || next == '_';
  return !is_letter;
}

// Calls `literal` and `reference` for the parts of a text in turn. Other things in double braces are left alone: a
// template of the tool's own may have them.
template <class Literal, class Refer>
Result<> each_part(std::string_view text, Literal literal, Refer refer) {
  while (!text.empty()) {
    const std::size_t open = text.find(kOpen);
    if (open == std::string_view::npos) break;
    // What it begins with decides: to look for its end first would take as long as the text for each of many.
    if (!names_a_step(trimmed_before(text.substr(open + kOpen.size())))) {
      // By one brace: the second and a third one may open a reference, as in {{{steps.0.result}}}.
      literal(text.substr(0, open + 1));
      text.remove_prefix(open + 1);
      continue;
    }
    const std::size_t close = text.find(kClose, open + kOpen.size());
    if (close == std::string_view::npos) break;
    const std::string_view inner = trimmed(text.substr(open + kOpen.size(), close - open - kOpen.size()));
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
    std::string_view value;
    int references = 0;
    bool only_reference = true;
    BELFRY_CHECK(each_part(
        text,
        [&](std::string_view literal) {
          if (!literal.empty()) only_reference = false;
          filled += literal;
        },
        [&](std::string_view inner) -> Result<> {
          BELFRY_TRY(const json::Value found, look_up(inner));
          value = found.raw;
          references += 1;
          filled += found.kind == json::Kind::string ? json::text(found) : found.raw;
          return check_size(filled);
        }));
    BELFRY_CHECK(check_size(filled));
    if (only_reference && references == 1) {
      writer_.raw(value);
    } else {
      writer_.value(filled);
    }
    return {};
  }

  Result<> check_size(const std::string& filled) const {
    if (filled.size() + writer_.str().size() <= kBodyBytesMax) return {};
    return fail(Errc::too_large,
                fmt::format("the arguments have more than {} bytes once they are filled in", kBodyBytesMax));
  }

  Result<json::Value> look_up(std::string_view inner) {
    if (const auto known = values_.find(inner); known != values_.end()) return known->second;
    if (values_.size() == kReferencesMax) return too_many();
    BELFRY_TRY(const Reference reference, read_reference(inner));
    const auto result = result_of(reference.step);
    if (!result) return bad(inner, fmt::format("cannot be filled in: step {} has no result", reference.step));
    const auto found = walk(*result, reference.path);
    if (!found)
      return bad(inner, fmt::format("cannot be filled in: the result of step {} has no such member", reference.step));
    return values_.emplace(inner, *found).first->second;
  }

  // Read once, however often it is referred to.
  std::optional<json::Value> result_of(int step) {
    auto& known = results_[step];
    if (!known) known = result_of_(step);
    if (!known) return std::nullopt;
    const auto parsed = json::parse(*known);
    return parsed ? std::optional(*parsed) : std::nullopt;
  }

  const ResultOf& result_of_;
  std::map<int, std::optional<std::string>> results_;
  std::map<std::string, json::Value, std::less<>> values_;  // by what stands between the braces; spans of `results_`
  json::Writer writer_;
};

}  // namespace

Result<std::vector<int>> referred_steps(std::string_view text) {
  BELFRY_TRY(const json::Value value, json::parse(text));
  std::vector<int> steps;
  std::set<std::string, std::less<>> different;
  const auto on_text = [&](const std::string& one) {
    return each_part(
        one, [](std::string_view) {},
        [&](std::string_view inner) -> Result<> {
          if (different.contains(inner)) return {};
          if (different.size() == kReferencesMax) return too_many();
          different.emplace(inner);
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
