#include "belfry/bus/send_request.h"

#include <unordered_set>

#include <fmt/format.h>

#include "belfry/base/limits.h"
#include "belfry/bus/delay.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/bus/recipients.h"

namespace belfry::bus {
namespace {

Result<> read_recipients(const json::Fields& fields, SendRequest& request) {
  const auto to = fields.find("to");
  if (!to) return fail(Errc::invalid_argument, "to is missing: the id of a recipient, or a list of them");
  if (to->kind == json::Kind::array) {
    request.to_is_list = true;
    BELFRY_CHECK(fields.texts("to", kRecipientsPerSendMax, request.to));
    if (request.to.empty()) return fail(Errc::invalid_argument, "to is an empty list; name at least one recipient");
    std::unordered_set<std::string_view> seen;
    for (const std::string& name : request.to)
      if (!seen.insert(name).second)
        return fail(Errc::invalid_argument,
                    fmt::format("\"{}\" stands twice in to; each recipient gets the message once", name.substr(0, 80)));
    return {};
  }
  if (to->kind != json::Kind::string) return json::wrong_type("to", *to, "the id of a recipient or a list of them");
  request.to.push_back(json::text(*to));
  return check_id("to", request.to.front());
}

}  // namespace

Result<> read_schedule(const json::Fields& fields, std::optional<TimeText>& into) {
  const auto value = fields.find("schedule");
  if (!value) return {};
  TimeText time;
  if (value->kind == json::Kind::object) {
    BELFRY_TRY(const json::Fields inner, json::Fields::read("schedule", value->raw, {"when", "timezone", "language"}));
    BELFRY_CHECK(inner.text("when", time.text));
    BELFRY_CHECK(inner.text("timezone", time.timezone));
    BELFRY_CHECK(inner.text("language", time.language));
  } else if (value->kind == json::Kind::string) {
    time.text = json::text(*value);
  } else {
    return json::wrong_type("schedule", *value,
                            "a time like \"tomorrow at 9\", or an object with when, timezone, language");
  }
  into = std::move(time);
  return {};
}

Result<> check_speaker(std::string_view field, std::string_view name) {
  static constexpr std::string_view kBelfry = "belfry";
  if (name.empty()) return {};
  if (name == kBelfry)
    return fail(
        Errc::invalid_argument,
        fmt::format("{} is \"belfry\", the name that Belfry itself speaks under: take that of whoever speaks", field));
  return check_id(field, name);
}

Result<SendRequest> read_send(const json::Fields& fields) {
  SendRequest request;
  BELFRY_CHECK(read_recipients(fields, request));
  const auto payload = fields.find_any("payload");
  if (!payload) return fail(Errc::invalid_argument, "payload is missing: any JSON value may stand there");
  Outgoing& message = request.message;
  message.payload = payload->raw;
  BELFRY_CHECK(fields.text("from", message.from));
  BELFRY_CHECK(check_speaker("from", message.from));
  BELFRY_CHECK(fields.text("taskId", message.task_id));
  BELFRY_CHECK(fields.text("sessionId", message.session_id));
  BELFRY_CHECK(fields.instant("deliverAt", message.deliver_at));
  BELFRY_CHECK(fields.instant("expiresAt", message.expires_at));
  if (fields.find("taskId") && message.task_id.empty())
    return fail(Errc::invalid_argument, "taskId is empty; give it a name, or leave it out");
  BELFRY_CHECK(fields.text("key", message.key));
  if (fields.find("key") && message.key.empty())
    return fail(Errc::invalid_argument, "key is empty; give each send a name of its own, or leave it out");
  if (const auto replies = fields.find("quickReplies")) {
    BELFRY_TRY(message.quick_replies, read_quick_replies(*replies));
  }
  BELFRY_CHECK(read_schedule(fields, request.schedule));
  if (request.schedule && (message.deliver_at || fields.find("delayMs")))
    return fail(Errc::invalid_argument, "schedule stands beside deliverAt or delayMs; one message has one time");
  if (const auto delay = fields.find("delayMs")) {
    DelayReading reading = read_delay(*delay);
    if (!reading.warning.empty() && message.deliver_at)
      return fail(Errc::invalid_argument, "delayMs and deliverAt were both given; one message has one time");
    message.delay = reading.delay;
    if (!reading.warning.empty()) request.warnings.push_back(std::move(reading.warning));
  }
  // Each recipient's own key must fit as well.
  const std::size_t key_max = request.to_is_list ? kKeyBytesMax - kIdBytesMax - 1 : kKeyBytesMax;
  if (message.key.size() > key_max)
    return fail(Errc::invalid_argument, fmt::format("key has {} bytes; at most {} are taken{}", message.key.size(),
                                                    key_max, request.to_is_list ? " with a list in to" : ""));
  return request;
}

Result<> resolve_schedule(SendRequest& request, const TimeReader& times) {
  if (!request.schedule) return {};
  const TimeText& wanted = *request.schedule;
  BELFRY_TRY(Scheduled scheduled, times.read_schedule(wanted));
  if (scheduled.after) {
    request.message.delay = *scheduled.after;
  } else {
    request.message.deliver_at = scheduled.reading.at;
  }
  request.message.schedule = fmt::format("{}\n{}\n{}", wanted.text, wanted.timezone, wanted.language);
  request.understood = std::move(scheduled.reading);
  return {};
}

Outgoing message_for(const SendRequest& request, const std::string& recipient) {
  Outgoing message = request.message;
  message.to = recipient;
  if (request.to_is_list && !message.key.empty()) message.key += "\n" + recipient;
  if (request.to_is_list && !message.once.empty()) message.once += "\n" + recipient;
  return message;
}

}  // namespace belfry::bus
