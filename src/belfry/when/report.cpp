#include "belfry/when/report.h"

#include "belfry/when/sentence.h"

namespace belfry::when {

void write_reading(json::Writer& writer, const Reading& reading, std::string_view text) {
  writer.field("at", reading.zone.iso(reading.at)).field("kind", word(reading.kind));
  if (reading.end) writer.field("end", reading.zone.iso(*reading.end));
  if (reading.rule) writer.field("rule", to_text(*reading.rule)).field("next", reading.zone.iso(reading.at));
  writer.field("timezone", reading.zone.name()).field("timezoneSource", word(reading.zone_source));
  writer.field("past", reading.past);
  writer.key("alternatives").array();
  for (const WallTime other : reading.alternatives) writer.value(reading.zone.iso(other));
  writer.end();
  writer.field("text", text.substr(reading.begin_byte, reading.end_byte - reading.begin_byte));
  writer.key("span").array().value(reading.begin_byte).value(reading.end_byte).end();
  writer.key("sentence")
      .object()
      .field("en", sentence(reading, Language::english))
      .field("zh", sentence(reading, Language::chinese))
      .end();
}

}  // namespace belfry::when
