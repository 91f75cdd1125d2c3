#include "belfry/llm/sse.h"

#include <utility>

namespace belfry::llm {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::vector<Event> EventParser::feed(std::string_view bytes) {
  std::vector<Event> events;
  while (!bytes.empty() && !too_long_) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    take(bytes.substr(0, end));
    if (end == std::string_view::npos || too_long_) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(events);
  }
  return events;
}

std::optional<Event> EventParser::finish() {
  if (too_long_) return std::nullopt;
  std::vector<Event> events;
  if (!line_.empty()) end_line(events);
  end_line(events);
  if (events.empty()) return std::nullopt;
  return std::move(events.front());
}

void EventParser::take(std::string_view part) {
  too_long_ = line_.size() + event_.data.size() + part.size() > bytes_max_;
  if (!too_long_) line_ += part;
}

void EventParser::end_line(std::vector<Event>& events) {
  const std::string whole = std::exchange(line_, {});
  std::string_view line = whole;
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    if (has_data_) events.push_back(std::move(event_));
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  field(line.substr(0, colon), value);
}

// A comment has an empty name.
void EventParser::field(std::string_view name, std::string_view value) {
  if (name == "event") event_.type = value;
  if (name != "data") return;
  if (std::exchange(has_data_, true)) event_.data += '\n';
  event_.data += value;
}

}  // namespace belfry::llm
