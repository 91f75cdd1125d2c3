// A request on its way to being complete: what is known of it, and what was asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/agent/concierge/utterance.h"
#include "belfry/base/json.h"

namespace belfry::agent {

struct Intent {
  Wish wish = Wish::other;
  when::Language language = when::Language::english;
  std::string what;
  std::string to;
  std::string task;             // which one is moved
  std::vector<WallTime> times;  // the possible ones; several: somebody has to choose
  bool recurs = false;          // was wished again and again: the next time is in `times`
  Millis shift{0};              // moved by so much instead
  bool on_its_day = false;
};

enum class Ask { nothing, when, what, which_time, once, cancel, move, new_time };

// What the concierge said, as it noted it in its line.
struct Note {
  Ask ask = Ask::nothing;
  Intent intent;
  std::vector<std::string> tasks;  // those it listed or offered, in order
  // The message in which somebody will be told what `intent` says: its id, and the conversation it is scheduled in. None:
  // it is for an agent, and on the bus.
  std::string told;
  std::string told_in;
};

// Nothing if the payload has none.
std::optional<Note> read_note(std::string_view payload);
void write_note(json::Writer& writer, const Note& note);

// Of what was read: nothing is possible that is past, unless everything is.
Intent intent_of(const Utterance& utterance, WallTime now);
std::vector<WallTime> possible_times(const when::Reading& reading, WallTime now);

}  // namespace belfry::agent
