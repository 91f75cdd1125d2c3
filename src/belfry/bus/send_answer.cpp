#include "belfry/bus/send_answer.h"

#include <algorithm>

#include "belfry/when/report.h"

namespace belfry::bus {
namespace {

void write_sent(json::Writer& writer, const Sent& sent, const std::vector<std::string>& warnings) {
  writer.field("messageId", to_text(sent.id));
  if (sent.scheduled_at) writer.field("scheduledDeliveryTime", to_iso(*sent.scheduled_at));
  write_warnings(writer, warnings, sent.warnings);
}

}  // namespace

void write_warnings(json::Writer& writer, const std::vector<std::string>& first,
                    const std::vector<std::string>& second) {
  if (first.empty() && second.empty()) return;
  writer.key("warnings").array();
  for (const std::string& one : first) writer.value(one);
  for (const std::string& one : second) writer.value(one);
  writer.end();
}

void write_understood(json::Writer& writer, const std::optional<Understood>& understood) {
  if (!understood) return;
  writer.key("understood").object();
  when::write_reading(writer, understood->reading, understood->text);
  writer.end();
}

std::string sent(const Sent& sent, const std::vector<std::string>& warnings, std::optional<Understood> understood) {
  json::Writer writer;
  writer.object();
  write_sent(writer, sent, warnings);
  // Words were read for the first send: what they mean now is another time than the message has.
  if (!sent.repeated) write_understood(writer, understood);
  return writer.end().take();
}

std::string sent_to_each(const SendRequest& request, const std::vector<Result<Sent>>& results) {
  json::Writer writer;
  writer.object().key("results").array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    writer.object().field("to", request.to[i]);
    if (results[i]) {
      write_sent(writer, *results[i], request.warnings);
    } else {
      writer.field("error", word(results[i].error().code)).field("message", results[i].error().detail);
    }
    writer.end();
  }
  writer.end();
  const auto repeated = [](const Result<Sent>& one) { return one && one->repeated; };
  if (std::ranges::none_of(results, repeated)) write_understood(writer, understood(request));
  return writer.end().take();
}

std::optional<Understood> understood(const SendRequest& request) {
  if (!request.understood) return std::nullopt;
  return Understood{*request.understood, request.schedule->text};
}

}  // namespace belfry::bus
