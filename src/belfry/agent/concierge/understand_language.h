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

}  // namespace belfry::agent
