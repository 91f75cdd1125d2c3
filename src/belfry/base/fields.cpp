#include "belfry/base/fields.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace belfry::json {
namespace {

constexpr std::int64_t kYearOneMs = 62'135'596'800'000;  // from 0001-01-01 to 1970-01-01

std::string joined(Fields::Names names) {
  std::string out;
  for (const std::string_view one : names) out += fmt::format("{}{}", out.empty() ? "" : ", ", one);
  return out;
}

}  // namespace

std::unexpected<Error> wrong_type(std::string_view field, json::Value value, std::string_view wanted) {
  return fail(Errc::invalid_argument, fmt::format("{} is {}; {} belongs there", field, json::name(value.kind), wanted));
}

Result<Fields> Fields::read(std::string_view what, std::string_view body, Names known) {
  Fields fields;
  if (body.empty()) return fields;
  BELFRY_TRY(const json::Value value, json::parse(body));
  if (value.kind != json::Kind::object)
    return fail(
        Errc::invalid_argument,
        known.size() == 0
            ? fmt::format("the body is {}; {} takes none, or an empty object", json::name(value.kind), what)
            : fmt::format("the body is {}; {} is an object with: {}", json::name(value.kind), what, joined(known)));
  BELFRY_TRY(fields.members_, json::members(value));
  for (const json::Member& member : fields.members_) {
    if (std::find(known.begin(), known.end(), member.key) == known.end())
      return fail(Errc::unknown_field, known.size() == 0 ? fmt::format("unknown field \"{}\"; {} takes no fields",
                                                                       member.key.substr(0, 100), what)
                                                         : fmt::format("unknown field \"{}\"; {} knows: {}",
                                                                       member.key.substr(0, 100), what, joined(known)));
  }
  return fields;
}

std::optional<Value> Fields::find(std::string_view name) const {
  for (const json::Member& member : members_)
    if (member.key == name && member.value.kind != json::Kind::null) return member.value;
  return std::nullopt;
}
std::optional<Value> Fields::find_any(std::string_view name) const {
  for (const json::Member& member : members_)
    if (member.key == name) return member.value;
  return std::nullopt;
}

Result<> Fields::text(std::string_view name, std::string& into) const {
  const auto value = find(name);
  if (!value) return {};
  if (value->kind != json::Kind::string) return wrong_type(name, *value, "a string");
  into = json::text(*value);
  return {};
}

Result<> Fields::whole(std::string_view name, std::int64_t& into) const {
  const auto value = find(name);
  if (!value) return {};
  if (value->kind != json::Kind::number) return wrong_type(name, *value, "a whole number");
  const auto number = json::integer(*value);
  if (!number || std::abs(*number) > 2'000'000'000'000)
    return fail(Errc::invalid_argument,
                fmt::format("{} is {}; a whole number of ordinary size belongs there", name, value->raw.substr(0, 40)));
  into = *number;
  return {};
}

Result<> Fields::flag(std::string_view name, bool& into) const {
  const auto value = find(name);
  if (!value) return {};
  if (value->kind != json::Kind::boolean) return wrong_type(name, *value, "true or false");
  into = value->raw == "true";
  return {};
}

Result<> Fields::instant(std::string_view name, std::optional<WallTime>& into) const {
  const auto value = find(name);
  if (!value) return {};
  if (value->kind == json::Kind::string) {
    auto parsed = parse_iso(json::text(*value));
    if (!parsed) return fail(parsed.error().code, fmt::format("{}: {}", name, parsed.error().detail));
    into = *parsed;
    return {};
  }
  if (value->kind != json::Kind::number)
    return wrong_type(name, *value, "an instant (\"2027-01-01T09:00:00Z\" or milliseconds since 1970)");
  const auto ms = json::integer(*value);
  if (!ms || *ms < -kYearOneMs || *ms > to_ms(kLatestTime))
    return fail(Errc::invalid_time,
                fmt::format("{} is {}; milliseconds since 1970 are a whole number up to {} (the end of the year 9999)",
                            name, value->raw.substr(0, 40), to_ms(kLatestTime)));
  into = wall_from_ms(*ms);
  return {};
}

Result<> Fields::texts(std::string_view name, std::size_t most, std::vector<std::string>& into) const {
  const auto value = find(name);
  if (!value) return {};
  if (value->kind != json::Kind::array) return wrong_type(name, *value, "a list of strings");
  const auto elements = json::elements(*value);
  if (elements.size() > most)
    return fail(Errc::invalid_argument,
                fmt::format("{} has {} entries; at most {} are taken", name, elements.size(), most));
  into.reserve(elements.size());
  for (const json::Value element : elements) {
    if (element.kind != json::Kind::string) return wrong_type(fmt::format("an entry of {}", name), element, "a string");
    into.push_back(json::text(element));
  }
  return {};
}

}  // namespace belfry::json
