// What a person wants of the concierge, read from what they wrote, in Chinese or English.
//
// Pure: text in, wish out; times are read by the reader of time expressions, which the caller brings along. There is no
// model behind it: frames of sentences ("remind me … to …", 把…取消) are found by patterns, and what is left when the frame
// and the time are taken away is what it is about.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/when/when.h"

namespace belfry::agent {

enum class Wish {
  remind,
  tell,  // somebody else
  list,
  cancel,
  move,
  help,
  drop,  // never mind
  greet,
  thank,
  other,
};

// Which of the scheduled messages is meant. Everything that is said of it must hold.
struct Target {
  std::vector<int> numbers;  // as they were listed, from 1
  bool all = false;
  bool last = false;
  std::optional<when::Reading> at;
  std::vector<std::string> words;  // in its text
  std::vector<Target> except;      // all but these
  std::vector<Target> each;        // the same, read as a list of several

  bool only_words() const { return numbers.empty() && !all && !last && !at; }
  bool says_nothing() const { return only_words() && words.empty(); }
};

struct Utterance {
  Wish wish = Wish::other;
  when::Language language = when::Language::english;
  std::string what;                      // to be reminded of, to tell
  std::string to;                        // whom to tell; empty: a name that cannot be one of ours
  std::optional<when::Reading> at;       // when, or the new time
  std::optional<Error> impossible_time;  // there is a time, and it cannot be
  bool earlier = false;                  // moved by a duration, and towards now
  bool on_its_day = false;               // moved to a time of day, and no day was named
  bool several_people = false;           // to tell
  bool unsure = false;                   // which one is meant, even if there is only one
  Target target;
};

using ReadTime = std::function<Result<when::Reading>(std::string_view)>;

Utterance understand(std::string_view text, const ReadTime& read);

// The number that somebody types instead of pressing a button, from 1: 2, the second, 第二个.
std::optional<int> typed_number(std::string_view text);
enum class Half { morning, evening };
// Which half of a day a typed answer names: in the morning, 早上, pm.
std::optional<Half> typed_half(std::string_view text);
// Whether it agrees or refuses, and does nothing else.
std::optional<bool> typed_consent(std::string_view text);
// An answer without the "ok, …" or "no, …" before it.
std::string typed_answer(std::string_view text);
// "Not tomorrow", 明天不行, "will it rain tomorrow?": there is a time in it, and it is not the answer.
bool declines_time(std::string_view text);
// "Wait", 为什么: neither an answer nor another wish.
bool hesitates(std::string_view text);
bool names_a_day(std::string_view text);

}  // namespace belfry::agent
