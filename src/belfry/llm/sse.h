// Server-Sent Events: bytes as they come to events. Any split of the bytes gives the same events.
//
// Lines end with LF, CR or CRLF; `data` in several lines is joined by LF; comments, `id` and `retry` are skipped. An event is
// bounded, and so is a line: of a server that sends more nothing more is read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belfry::llm {

struct Event {
  std::string type;  // empty: a message like any other
  std::string data;

  bool operator==(const Event&) const = default;
};

// The arguments of one call, escaped as badly as JSON can, with room around them.
inline constexpr std::size_t kEventBytesMax = 2u << 20;

class EventParser {
 public:
  explicit EventParser(std::size_t bytes_max = kEventBytesMax) : bytes_max_(bytes_max) {}

  // The events that end in these bytes.
  std::vector<Event> feed(std::string_view bytes);
  // After a clean end of the bytes: the last event of a server that forgets the empty line behind it.
  std::optional<Event> finish();
  // A line or an event was too long. What came before it was given; nothing of what follows is read.
  bool too_long() const { return too_long_; }

 private:
  void end_line(std::vector<Event>& events);
  void field(std::string_view name, std::string_view value);
  void take(std::string_view part);

  std::size_t bytes_max_;
  std::string line_;
  Event event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // an LF belongs to the CR before it
  bool first_line_ = true;
  bool too_long_ = false;
};

}  // namespace belfry::llm
