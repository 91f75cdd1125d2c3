#include "belfry/bus/quick_replies.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::bus {
namespace {

constexpr std::string_view kName = "quickReplies";

Result<> check_count(std::size_t count) {
  if (count > kQuickRepliesMax)
    return fail(Errc::quickReplies_too_many,
                fmt::format("quickReplies has {} entries; at most {} are taken", count, kQuickRepliesMax));
  return {};
}

Result<> check(const std::vector<std::string>& replies) {
  BELFRY_CHECK(check_count(replies.size()));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!is_utf8(replies[i]))
      return fail(Errc::quickReplies_invalid_type, fmt::format("quickReplies[{}] is not UTF-8", i));
    if (is_blank(replies[i]))
      return fail(Errc::quickReplies_empty_string,
                  fmt::format("quickReplies[{}] is {}; each needs a text that can be pressed and sent", i,
                              replies[i].empty() ? "empty" : "blank"));
  }
  return {};
}

void write(json::Writer& writer, const std::vector<std::string>& replies) {
  writer.key(kName).array();
  for (const std::string& reply : replies) writer.value(reply);
  writer.end();
}

// Most payloads have none: that much can be said without taking them apart. A key may be written with escapes.
bool may_have_some(std::string_view payload) {
  return payload.find(kName) != std::string_view::npos || payload.find('\\') != std::string_view::npos;
}

std::string rewritten(const std::vector<json::Member>& members, const std::vector<std::string>& replies) {
  json::Writer writer;
  writer.object();
  for (const json::Member& member : members)
    if (member.key != kName) writer.key(member.key).raw(member.value.raw);
  if (!replies.empty()) write(writer, replies);
  return writer.end().take();
}

}  // namespace

Result<std::vector<std::string>> read_quick_replies(json::Value value) {
  std::vector<std::string> replies;
  if (value.kind == json::Kind::null) return replies;
  if (value.kind != json::Kind::array)
    return fail(Errc::quickReplies_invalid_type,
                fmt::format("quickReplies is {}; a list of strings belongs there", json::name(value.kind)));
  const auto elements = json::elements(value);
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i].kind != json::Kind::string)
      return fail(Errc::quickReplies_invalid_type,
                  fmt::format("quickReplies[{}] is {}; a string belongs there", i, json::name(elements[i].kind)));
  BELFRY_CHECK(check_count(elements.size()));
  for (const json::Value element : elements) replies.push_back(json::text(element));
  BELFRY_CHECK(check(replies));
  return replies;
}

Result<std::string> with_quick_replies(std::string payload, const std::vector<std::string>& given) {
  BELFRY_CHECK(check(given));
  if (given.empty() && !may_have_some(payload)) return payload;
  BELFRY_TRY(const json::Value value, json::parse(payload));
  if (value.kind == json::Kind::string && !given.empty()) {
    json::Writer writer;
    writer.object().key("text").raw(value.raw);
    write(writer, given);
    return writer.end().take();
  }
  if (value.kind != json::Kind::object) {
    if (given.empty()) return payload;
    return fail(Errc::invalid_argument,
                fmt::format("payload is {}; with quickReplies it is an object or a text", json::name(value.kind)));
  }
  const std::vector<json::Member> members = json::every_member(value);
  const auto is_it = [](const json::Member& member) { return member.key == kName; };
  if (std::count_if(members.begin(), members.end(), is_it) > 1)
    return fail(Errc::invalid_json, "quickReplies stands twice in the payload");
  const auto inside = std::find_if(members.begin(), members.end(), is_it);
  if (inside == members.end()) return given.empty() ? payload : rewritten(members, given);
  BELFRY_TRY(const std::vector<std::string> replies, read_quick_replies(inside->value));
  if (replies.empty()) return rewritten(members, given);
  if (!given.empty() && given != replies)
    return fail(Errc::invalid_argument, "quickReplies and payload.quickReplies differ; give them once");
  return payload;
}

std::vector<std::string> quick_replies_of(std::string_view payload) {
  if (!may_have_some(payload)) return {};
  const auto value = json::parse(payload);
  if (!value || value->kind != json::Kind::object) return {};
  const auto found = json::find(*value, kName);
  if (!found) return {};
  return read_quick_replies(*found).value_or(std::vector<std::string>{});
}

}  // namespace belfry::bus
