#include "belfry/chat/question.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/fields.h"

namespace belfry::chat {
namespace {

// A reminder more often than this is a nuisance, more of them than this too.
constexpr Millis kReminderEveryMin{1'000};
constexpr Millis kReminderEveryMax{366LL * 86'400'000};
constexpr int kRemindersMax = 100;

std::unexpected<Error> wrong(std::string detail) { return fail(Errc::invalid_argument, std::move(detail)); }

// Milliseconds, or a text like "10m".
Result<Millis> read_every(json::Value value) {
  Millis every{0};
  if (value.kind == json::Kind::string) {
    BELFRY_TRY(every, parse_duration(json::text(value)));
  } else {
    const auto ms = value.kind == json::Kind::number ? json::integer(value) : std::nullopt;
    if (!ms) return wrong("onTimeout.every is a time between reminders: milliseconds, or a text like \"10m\"");
    every = Millis{*ms};
  }
  if (every < kReminderEveryMin || every > kReminderEveryMax)
    return wrong("onTimeout.every is too short or too long; a second to a year are possible");
  return every;
}

Result<int> read_number(std::string_view name, json::Value value, int least, int most) {
  const auto number = value.kind == json::Kind::number ? json::integer(value) : std::nullopt;
  if (!number || *number < least || *number > most)
    return wrong(fmt::format("onTimeout.{} is {}; a whole number from {} to {} belongs there", name,
                             value.raw.substr(0, 40), least, most));
  return static_cast<int>(*number);
}

Result<> read_member(const json::Member& member, int replies, OnTimeout& late) {
  const bool of_default = late.action == OnTimeout::Action::default_answer;
  const bool of_reminder = late.action == OnTimeout::Action::remind;
  if (member.key == "action") return {};
  if (of_default && member.key == "index") {
    BELFRY_TRY(late.index, read_number("index", member.value, 0, replies - 1));
  } else if (of_reminder && member.key == "text") {
    if (member.value.kind != json::Kind::string) return wrong("onTimeout.text is the text of the reminder, a string");
    late.text = json::text(member.value);
  } else if (of_reminder && member.key == "every") {
    BELFRY_TRY(late.every, read_every(member.value));
  } else if (of_reminder && member.key == "times") {
    BELFRY_TRY(late.times, read_number("times", member.value, 1, kRemindersMax));
  } else {
    return fail(Errc::unknown_field, fmt::format("onTimeout has an unknown field \"{}\"; {}", member.key.substr(0, 100),
                                                 of_default    ? "\"default\" knows index"
                                                 : of_reminder ? "\"remind\" knows text, every, times"
                                                               : "\"expire\" knows none"));
  }
  return {};
}

// A null stands for "not given", as in every request.
std::optional<json::Value> given(json::Value object, std::string_view name) {
  const auto value = json::find(object, name);
  return value && value->kind != json::Kind::null ? value : std::nullopt;
}

}  // namespace

Result<OnTimeout> read_on_timeout(json::Value value, int replies) {
  static constexpr const char* kForms =
      "onTimeout is {\"action\":\"default\",\"index\":N}, {\"action\":\"remind\",\"text\",\"every\",\"times\"} or"
      " {\"action\":\"expire\"}";
  if (value.kind != json::Kind::object) return wrong(kForms);
  BELFRY_TRY(const std::vector<json::Member> members, json::members(value));
  const auto action = json::find(value, "action");
  const std::string name = action && action->kind == json::Kind::string ? json::text(*action) : "";
  OnTimeout late;
  if (name == "default") {
    late.action = OnTimeout::Action::default_answer;
    if (!json::find(value, "index"))
      return wrong("onTimeout.index is missing: which quick reply is the default answer");
  } else if (name == "remind") {
    late.action = OnTimeout::Action::remind;
  } else if (name != "expire") {
    return wrong(kForms);
  }
  for (const json::Member& member : members) BELFRY_CHECK(read_member(member, replies, late));
  return late;
}

void write_on_timeout(json::Writer& writer, const OnTimeout& late) {
  writer.object();
  switch (late.action) {
    case OnTimeout::Action::expire: writer.field("action", "expire"); break;
    case OnTimeout::Action::default_answer: writer.field("action", "default").field("index", late.index); break;
    case OnTimeout::Action::remind:
      writer.field("action", "remind");
      if (!late.text.empty()) writer.field("text", late.text);
      writer.field("every", late.every.count()).field("times", late.times);
      break;
  }
  writer.end();
}

Result<Deadline> read_deadline(std::string_view payload, int replies) {
  Deadline deadline;
  const auto value = json::parse(payload);
  if (!value || value->kind != json::Kind::object) return deadline;
  const auto by = given(*value, "answerBy");
  const auto late = given(*value, "onTimeout");
  if (!by && late) return wrong("onTimeout stands without answerBy; say until when");
  if (!by) return deadline;
  if (replies == 0) return wrong("answerBy stands without quickReplies; only a question has a deadline");
  if (by->kind != json::Kind::string)
    return json::wrong_type("answerBy", *by, "an instant like \"2027-01-01T09:00:00Z\"");
  const auto at = parse_iso(json::text(*by));
  if (!at) return fail(at.error().code, "answerBy: " + at.error().detail);
  deadline.answer_by = *at;
  if (late) {
    BELFRY_TRY(deadline.on_timeout, read_on_timeout(*late, replies));
  }
  return deadline;
}

}  // namespace belfry::chat
