#include "belfry/tool/schema/messages.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "belfry/base/utf8.h"
#include "belfry/tool/schema/rules.h"

namespace belfry::tool {
namespace {

using json::Kind;

// Longer names than these are not compared: the work grows with the square.
constexpr std::size_t kComparedBytesMax = 32;
constexpr std::size_t kComparedNamesMax = 100;

// `delay_ms`, `delayMs` and `Delay-MS` are the same to people.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// How many letters must be put in, taken out, changed or swapped with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<std::size_t, kComparedBytesMax + 1>;
  Row before_last{};
  Row last{};
  Row row{};
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = last, last = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), row[j - 1] + 1, last[j] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string shortened(std::string_view text) {
  if (text.size() <= kQuotedBytesMax) return std::string(text);
  std::size_t length = kQuotedBytesMax;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) --length;
  return std::string(text.substr(0, length)) + "…";
}

std::string describe(const Node& node) {
  if (node.kind == Kind::null) return "null";
  return fmt::format("{} ({})", json::name(node.kind), shortened(node.raw));
}

std::string describe_types(std::uint8_t types) {
  static constexpr std::pair<std::uint8_t, std::string_view> kNames[] = {
      {kStringType, "a string"},
      {kFractionType, "a number"},
      {kIntegerType, "a whole number"},
      {kBooleanType, "true or false"},
      {kArrayType, "an array"},
      {kObjectType, "an object"},
      {kNullType, "null"},
  };
  if ((types & kFractionType) != 0) types &= static_cast<std::uint8_t>(~kIntegerType);
  std::vector<std::string> names;
  for (const auto& [bit, name] : kNames)
    if ((types & bit) != 0) names.emplace_back(name);
  return listed(names, "or");
}

std::string listed(const std::vector<std::string>& items, std::string_view last, std::size_t total) {
  total = std::max(total, items.size());
  const std::size_t shown = std::min(items.size(), kListedMax);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == total ? fmt::format(" {} ", last) : ", ";
    out += items[i];
  }
  if (shown < total) out += fmt::format(" {} {} more", last, total - shown);
  return out;
}

std::string listed_names(const std::vector<std::string_view>& names) {
  std::vector<std::string> quoted;
  for (const std::string_view name : names) {
    if (quoted.size() == kListedMax) break;
    quoted.push_back(shortened(json::quoted(name)));
  }
  return listed(quoted, "and", names.size());
}

std::string counted(std::uint64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known) {
  if (name.size() > kComparedBytesMax || known.size() > kComparedNamesMax) return {};
  const std::string wanted = folded(name);
  std::string_view best;
  std::size_t nearest = wanted.size() / 3 + 1;  // a third of the letters may be wrong
  for (const std::string_view candidate : known) {
    if (candidate.size() > kComparedBytesMax) continue;
    const std::string other = folded(candidate);
    if (std::max(other.size(), wanted.size()) - std::min(other.size(), wanted.size()) >= nearest) continue;
    const std::size_t apart = distance(wanted, other);
    if (apart < nearest) nearest = apart, best = candidate;
  }
  return best;
}

std::uint8_t type_of(const Node& node) {
  switch (node.kind) {
    case Kind::null: return kNullType;
    case Kind::boolean: return kBooleanType;
    case Kind::number: return Decimal(node.raw).is_integer() ? kIntegerType : kFractionType;
    case Kind::string: return kStringType;
    case Kind::array: return kArrayType;
    case Kind::object: return kObjectType;
  }
  return 0;
}

std::string hint_for_string(const Node& node, std::uint8_t types) {
  if (node.kind != Kind::string || (types & kStringType) != 0) return {};
  const auto inner = json::parse(node.text);
  if (!inner || (type_of(Node{.kind = inner->kind, .raw = inner->raw}) & types) == 0) return {};
  return ", without quotes around it";
}

}  // namespace belfry::tool
