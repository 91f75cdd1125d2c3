#include "belfry/agent/concierge/intent.h"

#include <algorithm>
#include <array>

namespace belfry::agent {
namespace {

constexpr std::size_t kTimesMax = 4;

constexpr std::array<std::pair<Ask, std::string_view>, 8> kAsks{{{Ask::nothing, "nothing"},
                                                                 {Ask::when, "when"},
                                                                 {Ask::what, "what"},
                                                                 {Ask::which_time, "which_time"},
                                                                 {Ask::once, "once"},
                                                                 {Ask::cancel, "cancel"},
                                                                 {Ask::move, "move"},
                                                                 {Ask::new_time, "new_time"}}};
constexpr std::array<std::pair<Wish, std::string_view>, 4> kWishes{
    {{Wish::remind, "remind"}, {Wish::tell, "tell"}, {Wish::cancel, "cancel"}, {Wish::move, "move"}}};

template <class T, std::size_t N>
std::string_view word_of(const std::array<std::pair<T, std::string_view>, N>& words, T wanted) {
  for (const auto& [value, word] : words)
    if (value == wanted) return word;
  return "";
}

template <class T, std::size_t N>
T value_of(const std::array<std::pair<T, std::string_view>, N>& words, std::string_view wanted, T otherwise) {
  for (const auto& [value, word] : words)
    if (word == wanted) return value;
  return otherwise;
}

bool flag_in(json::Value object, std::string_view key) {
  const auto found = json::find(object, key);
  return found && found->kind == json::Kind::boolean && json::boolean(*found);
}

std::vector<std::string> texts_in(json::Value object, std::string_view key) {
  std::vector<std::string> texts;
  const auto found = json::find(object, key);
  if (!found || found->kind != json::Kind::array) return texts;
  for (const json::Value one : json::elements(*found))
    if (one.kind == json::Kind::string) texts.push_back(json::text(one));
  return texts;
}

}  // namespace

std::optional<Note> read_note(std::string_view payload) {
  const auto whole = json::parse(payload);
  if (!whole || whole->kind != json::Kind::object) return std::nullopt;
  const auto found = json::find(*whole, "concierge");
  if (!found || found->kind != json::Kind::object) return std::nullopt;
  Note note;
  note.ask = value_of(kAsks, json::text_in(*found, "asks"), Ask::nothing);
  note.tasks = texts_in(*found, "tasks");
  note.told = json::text_in(*found, "told");
  note.told_in = json::text_in(*found, "told_in");
  Intent& intent = note.intent;
  intent.wish = value_of(kWishes, json::text_in(*found, "wish"), Wish::other);
  intent.language = json::text_in(*found, "language") == "zh" ? when::Language::chinese : when::Language::english;
  intent.what = json::text_in(*found, "what");
  intent.to = json::text_in(*found, "to");
  intent.task = json::text_in(*found, "task");
  intent.recurs = flag_in(*found, "recurs");
  intent.on_its_day = flag_in(*found, "on_its_day");
  for (const std::string& text : texts_in(*found, "times"))
    if (const auto time = parse_iso(text)) intent.times.push_back(*time);
  const auto shift = json::find(*found, "shift_ms");
  if (shift && shift->kind == json::Kind::number) intent.shift = Millis{json::integer(*shift).value_or(0)};
  return note;
}

void write_note(json::Writer& writer, const Note& note) {
  const Intent& intent = note.intent;
  writer.object().field("asks", word_of(kAsks, note.ask));
  writer.field("language", intent.language == when::Language::chinese ? "zh" : "en");
  if (intent.wish != Wish::other) writer.field("wish", word_of(kWishes, intent.wish));
  if (!intent.what.empty()) writer.field("what", intent.what);
  if (!intent.to.empty()) writer.field("to", intent.to);
  if (!intent.task.empty()) writer.field("task", intent.task);
  if (intent.recurs) writer.field("recurs", true);
  if (intent.on_its_day) writer.field("on_its_day", true);
  if (intent.shift != Millis{0}) writer.field("shift_ms", intent.shift.count());
  const auto write_texts = [&writer](std::string_view key, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    writer.key(key).array();
    for (const std::string& text : texts) writer.value(text);
    writer.end();
  };
  std::vector<std::string> times;
  for (const WallTime time : intent.times) times.push_back(to_iso(time));
  write_texts("times", times);
  write_texts("tasks", note.tasks);
  if (!note.told.empty()) writer.field("told", note.told);
  if (!note.told_in.empty()) writer.field("told_in", note.told_in);
  writer.end();
}

std::vector<WallTime> possible_times(const when::Reading& reading, WallTime now) {
  std::vector<WallTime> times{reading.at};
  if (reading.kind != when::ReadingKind::recurrence)
    times.insert(times.end(), reading.alternatives.begin(), reading.alternatives.end());
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const bool some_to_come = times.back() > now;
  if (some_to_come) std::erase_if(times, [now](WallTime time) { return time <= now; });
  if (times.size() > kTimesMax) times.resize(kTimesMax);
  return times;
}

Intent intent_of(const Utterance& utterance, WallTime now) {
  Intent intent{.wish = utterance.wish,
                .language = utterance.language,
                .what = utterance.what,
                .to = utterance.to,
                .on_its_day = utterance.on_its_day};
  if (!utterance.at) return intent;
  const when::Reading& reading = *utterance.at;
  const bool shifts = utterance.wish == Wish::move && reading.kind == when::ReadingKind::duration;
  if (shifts) {
    intent.shift = (reading.at - now) * (utterance.earlier ? -1 : 1);
  } else {
    intent.times = possible_times(reading, now);
    intent.recurs = reading.kind == when::ReadingKind::recurrence;
  }
  return intent;
}

}  // namespace belfry::agent
