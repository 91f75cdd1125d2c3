// The two languages of the concierge; each knows its own frames.
#pragma once

#include "belfry/agent/concierge/utterance.h"
#include "belfry/agent/concierge/words.h"

namespace belfry::agent {

Utterance understand_english(Words words, const ReadTime& read);
Utterance understand_chinese(Words words, const ReadTime& read);

// The time in the text, taken away from it; says where it stood.
struct TimeInText {
  when::Reading reading;
  Span where;
};
// A time that cannot be is noted in `utterance`.
std::optional<TimeInText> take_time(Words& words, const ReadTime& read, Utterance& utterance);
// The same within a part of the text only.
std::optional<TimeInText> take_time_in(Span part, Words& words, const ReadTime& read, Utterance& utterance);

// Which one is meant: what both languages do alike, and what each does in its own way.
struct TargetReader {
  const re2::RE2& except;  // group: all but these
  const re2::RE2& all;
  const re2::RE2& several;                           // groups: the first of a list, and the others
  void (*take_place)(Words& words, Target& target);  // numbers, the last one
  void (*take_words)(Words& words, Target& target);  // what is left of it, without fillers
};
Target read_target(Words words, const TargetReader& reader, const ReadTime& read);
// A cancellation said the other way round: don't remind me about the plants, 不用提醒我浇花了. Not behind a `frame`: what
// one is to be reminded of may well be a refusal.
struct Refusal {
  const re2::RE2& refusal;
  const re2::RE2& frame;
  const re2::RE2& clear;  // it is about reminders, no doubt
};
bool read_refusal(Words words, const Refusal& refusal, const TargetReader& reader, const ReadTime& read,
                  Utterance& utterance);
// Names end where words end.
bool splits_a_word(const Words& words, Span name);

}  // namespace belfry::agent
