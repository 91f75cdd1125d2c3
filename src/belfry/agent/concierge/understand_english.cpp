#include <algorithm>
#include <array>
#include <cctype>

#include "belfry/agent/concierge/understand_language.h"

namespace belfry::agent {
namespace {

using re2::RE2;

struct Patterns {
  // Around a request.
  RE2 lead{
      R"((?i)^(?:hey|hi|hello|ok|okay|thanks?|thank you|great|nice|cool|perfect|good|got it|sure|yes|so|um|well|please|pls|plz|kindly|belfry|concierge|(?:can|could|would|will) (?:you|u|we)|you can|i(?:'d| would) like (?:you )?to|i(?: also)? (?:want|need) (?:you )?to|let'?s|now|also|and|then|actually|just|go ahead and|[,.!:;-])(?:[\s,.!:;-]+|$))"};
  RE2 trail{
      R"((?i)(?:^|[\s,.!?;-])(?:please|pls|plz|thanks?(?: you| a lot| so much)?|thx|ty|ok(?:ay)?|cheers|will you|would you|could you|can you|if you can|for me|[.!?;]+|:\)+)[\s.!?]*$)"};
  RE2 closing{R"([\s.!?,;:-]+$)"};

  // What is wanted.
  RE2 help{
      R"((?i)^(?:help|/help|\?+|help me|commands?|usage|instructions?|what (?:can|do) (?:you|u) (?:do|understand)\b.*|what (?:else )?can (?:you|u) (?:do|help)\b.*|how (?:do|can|does) (?:i|you|this|it|we|one)\b.*(?:use|work|remind|schedule|cancel|set)\b.*|what (?:is|are) (?:you|this|your commands)\b.*|who are you)$)"};
  RE2 drop{R"((?i)^(?:never ?mind|forget it|nvm|nothing|no worries|drop it|leave it)$)"};
  RE2 greet{
      R"((?i)^(?:hi|hello|hey|yo|hiya|howdy|good (?:morning|afternoon|evening|day)|greetings|sup|what'?s up|how are you|how'?s it going)\b.{0,24}$)"};
  RE2 thank{
      R"((?i)^(?:thanks?|thank you|thx|ty|cheers|great|cool|nice|perfect|awesome|good job|well done|ok|okay|got it|lol|haha)\b.{0,24}$)"};
  RE2 not_remind{
      R"((?i)\b(?:do not|don'?t|dont|no need to|needn'?t|no longer|stop|quit|never|not)(?: you)?(?: have to| need to)?(?: be)?(?: ever)? (?:remind(?:ing|ed)?|ping(?:ing)?|nudg(?:e|ing)|notify(?:ing)?|wake|waking|alert(?:ing)?|send(?:ing)? me|buzz(?:ing)?)(?: me(?: up)?)?\b|\b(?:do not|don'?t|dont|no longer) (?:need|want)(?: to be reminded| (?:a|an|the|that|this|any|my)(?: more)? ?(?:reminders?|alarm)?)\b|\bno (?:more )?reminders?\b)"};
  RE2 clear_refusal{R"((?i)remind|alarm|wak|ping|nudg|notify|alert|buzz)"};
  RE2 asks_cancelled{R"((?i)^(?:did|have) (?:you|i) (?:already )?cancel|^(?:is|was) .*cancel+ed$)"};
  RE2 not_forget{R"((?i)\b(?:do not|don'?t|dont) (?:you )?(?:let me )?forget\b)"};
  RE2 list{
      R"((?i)^(?:list|ls|/list|/scheduled)(?: (?:all|them|everything|my|the|of|scheduled|pending|reminders?|messages?|tasks?))*$|^(?:show|see|view|display|check|give|get|read|print)\b.*\b(?:reminders?|scheduled|schedule|pending|list|coming up|upcoming|planned|tasks|agenda)\b.*$|^(?:what|which|any|do i have|have i|are there|is there|how many)\b.*\b(?:reminders?|scheduled|pending|coming up|upcoming|planned|on my (?:list|schedule|agenda))\b.*$|^what(?:'s| is| have you got)?(?: still)? (?:coming|scheduled|pending|planned|next|left)\b.*$|^(?:my |all |pending |upcoming |scheduled )*(?:reminders?|schedule|agenda|list)$)"};
  RE2 list_asked{
      R"((?i)^what (?:all )?(?:have|did|should) (?:i|you) (?:asked?|told|tell|want)?.*\bremind\b.*$|^when(?:'s| is| are)\b.*\breminders?$)"};
  RE2 cancel{
      R"((?i)^(?:cancel|cancle|canel|cancell|delete|remove|drop|scrap|clear|kill|erase|discard|forget(?: about)?|get rid of|call off|take off|undo|unschedule|stop)\b)"};
  RE2 clear_cancel{R"((?i)^(?:cancel|cancle|canel|cancell|delete|remove|erase|call off|unschedule)\b)"};
  // Which one is open: said and taken back, or so many of them.
  RE2 corrects{R"((?i)\b(?:no,? wait|wait,? no|i mean(?:t)?|sorry|scratch that|oops)\b|, no\b)"};
  RE2 counts{
      R"((?i)^(?:the )?(?:first|last|next|other) (?:\d+|two|three|four|five|few|couple)\b|^(?:the )?(?:\d+|two|three|four|five|some|a few) (?:of (?:them|these|those|my)|(?:of my )?(?:reminders|messages|tasks|ones))\b)"};
  RE2 move{
      R"((?i)^(?:move|reschedule|re-schedule|postpone|push(?: back| out)?|delay|snooze|shift|change|bring(?: forward)?|put off|defer)\b)"};

  // Reminders. Weak ones are only meant if a time stands beside them.
  RE2 remind{
      R"((?i)(?:\b(?:and |do(?:n'?t| not) forget to |remember to |make sure to |be sure to )*)\b(?:(remind|remidn|remid|remnid|rmind|reming)|ping|nudge|alert|notify|buzz|poke|(wake)) me(?: up)?\b|\bdo(?:n'?t| not|nt) let me forget\b|\bmake sure (?:that )?i (?:(?:do not|don'?t|dont|never) forget|remember)\b|\b(?:set|create|make|add|schedule|put|give me|get me|i need|i want|i'd like|start|new)(?: up| in)?(?: me)?(?: a| an| another| one| the| my)?(?: new| quick| little)? ?(?:(reminder)|(alarm)|(timer)|wake-?up call)\b(?: for me)?|^(reminder)\b|\b(?:i (?:need|want|have) to )?(?:be|get) reminded\b|\bremember to remind me\b)"};
  RE2 remind_me{R"((?i)\bremind me\b)"};
  RE2 weak{R"((?i)\b(?:tell|message|msg|text|call|write|send) me(?: a (?:message|note|text))?\b)"};
  RE2 subject{
      R"((?i)\b(?:you|it|this|that|he|she|they|which|who|songs?|photos?|always|really)\s*$|\b(?:not|never|n't|forgot|did|didn'?t|will|won'?t|would|wouldn'?t|should|shouldn'?t|does|doesn'?t|used to)\b[^.,;:!]*$|n't\b[^.,;:!]*$)"};

  // Telling somebody.
  RE2 let_know{R"((?i)^let ([\w.-]+) know\b(?:[ ,:-]+(?:that|about)\b)?[ :,-]*(.+)$)"};
  RE2 send_to{
      R"((?i)^(?:send|write|drop|leave)(?: (?:a|the|this))? ?(?:message|note|text|msg|word|line)? (?:to|for) ([\w.-]+)\b(?:[ ,:-]+(?:that|saying|to say|telling (?:him|her|them))\b)?[ :,-]*(.+)$)"};
  RE2 send_it_to{R"((?i)^(?:send|say|write|pass on|forward) (.+) to ([\w.-]+)$)"};
  RE2 send_somebody{
      R"((?i)^(?:(?:send|drop|leave) ([\w.-]+) (?:a|the) (?:message|note|text|msg|reminder|line)|send ([\w.-]+))(?:[ ,:-]+(?:that|saying|to say|to)\b)?[ :,-]*(.+)$)"};
  RE2 and_others{R"((?i)^(?:and|&|,|or) *[\w.-]+\b)"};
  RE2 tell{
      R"((?i)^(?:tell|message|msg|text|notify|inform|remind|ping|write|ask)(?: to)? ([\w.-]+)\b(?:[ ,:-]+(?:that|to|about|saying)\b)?[ :,-]*(.+)$)"};
  RE2 no_name{
      R"((?i)^(?:me|myself|us|him|her|it|them|you|everyone|everybody|someone|somebody|anyone|the|a|an|my|your|our|his|their|this|that|all|what|how|why|when|if|about|any|some|more|no|message|note|text|word)$)"};
  RE2 state_before{
      R"((?i)\b(?:is|are|was|were|be|been|being|starts?|begins?|opens?|closes?|ends?|leaves|leave|arrives?|moved|due|until|from|since|happens?|takes place)(?: to)? *$)"};
  RE2 plan_before{
      R"((?i)\b(?:i'll|i will|i'm|i am|i'd|we'll|we will|we're|we are|he'll|she'll|they'll|he's|she's|they're|it's|will|gonna|going to)\b)"};
  RE2 said_as{R"((?i)^\S+ \S+?(?: know)?(?:[:,] | that | saying )\s*\S)"};

  // Which one.
  RE2 several{R"((?i)^(.+?)(?:,? and |, ?| & )(.+)$)"};
  RE2 all{R"((?i)\b(?:all|everything|every one|both of them|them all)\b)"};
  RE2 except{R"((?i)\b(?:all|everything|every one|any)\b.*?\b(?:except|but|apart from|besides)(?: for)? (.+)$)"};
  RE2 last{R"((?i)\b(?:last|latest|most recent|newest|previous)(?: (?:one|reminder|message|task))?\b)"};
  RE2 digits{
      R"((?i)^(?:(?:the|my|reminders?|messages?|tasks?|number|numbers|no\.?|nr\.?|item|#) *)*((?:#? *\d{1,3}(?:st|nd|rd|th)?)(?:(?: *,? *and +| *[,&] *| +)#? *\d{1,3}(?:st|nd|rd|th)?)*)(?: (?:one|ones|reminders?|messages?|please))*$)"};
  RE2 ordinals{
      R"((?i)\b(first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|next)(?: (?:one|reminder|message|task))?\b)"};
  RE2 filler{
      R"((?i)^(?:the|my|a|an|one|ones|reminders?|messages?|tasks?|alarms?|scheduled|about|for|to|of|that|at|on|in|me|it|this|please|from|with|'s|due|is|was|which|i|don't|need|anymore|longer|any|more|again|set|up|and|thing|want|no|you|have|them|those|these|forward|back|time)$)"};

  // Another time.
  RE2 by_duration{
      R"((?i)^(.*?)(?:\bby |\bfor )?((?:\d+(?:\.\d+)?|an?|half an?|one|two|three|five|ten|fifteen|twenty|thirty) ?(?:s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?|weeks?))(?: (later|earlier|more|sooner|back|forward))?$)"};
  RE2 time_of_day{R"((?i)^(?:at )?(?:\d{1,2}(?:[:.]\d\d)? ?(?:[ap]\.?m\.?)?|noon|midnight)(?: (?:instead|sharp))?$)"};
  RE2 forward{R"((?i)^bring\b.*\bforward\b|\b(?:earlier|sooner)\b)"};

  // What is left of what it is about.
  RE2 about_lead{
      R"((?i)^(?:(?:to|that|about|of|for|on|at|by|with|and|saying|so|which says|called|named|regarding)\b|[\s:,;.!?'"“”：，-])+)"};
  RE2 about_trail{R"((?i)(?:[\s:,;.!?'"“”-]|(?:^|\s)(?:at|on|by|in|for|and|to|please|that|then|from now)$)+$)"};
};

const Patterns& patterns() {
  static const Patterns all;
  return all;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string about(Words words) {
  const Patterns& p = patterns();
  words.take_all(p.about_lead);
  words.take_all(p.about_trail);
  return words.said();
}

// --- which one ---

void take_numbers(Words& words, Target& target) {
  const Patterns& p = patterns();
  if (const auto found = words.find(p.digits)) {
    const std::string numbers = words.said(found->groups[0]);
    std::string digits;
    for (const char c : numbers + " ") {
      if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
        digits.push_back(c);
      } else if (!digits.empty()) {
        target.numbers.push_back(std::stoi(digits));
        digits.clear();
      }
    }
    words.take(found->whole);
    return;
  }
  static const std::array<std::string_view, 10> names{"first", "second",  "third",  "fourth", "fifth",
                                                      "sixth", "seventh", "eighth", "ninth",  "tenth"};
  while (const auto found = words.find(p.ordinals)) {
    const std::string name = lower(words.said(found->groups[0]));
    const auto* const place = std::find(names.begin(), names.end(), name);
    target.numbers.push_back(place == names.end() ? 1 : static_cast<int>(place - names.begin()) + 1);
    words.take(found->whole);
  }
}

void take_place(Words& words, Target& target) {
  take_numbers(words, target);
  const auto found = words.find(patterns().last);
  if (!found) return;
  target.last = true;
  words.take(found->whole);
}

void take_words(Words& words, Target& target) {
  std::string word;
  for (const char c : words.said() + " ") {
    if (!std::string_view(" ,.\"'?!").contains(c)) {
      word.push_back(c);
      continue;
    }
    if (!word.empty() && !RE2::FullMatch(word, patterns().filler) && word != "s") target.words.push_back(lower(word));
    word.clear();
  }
}

const TargetReader& target_reader() {
  const Patterns& p = patterns();
  static const TargetReader reader{p.except, p.all, p.several, take_place, take_words};
  return reader;
}

Target target_of(Words words, const ReadTime& read) { return read_target(std::move(words), target_reader(), read); }

// --- another time ---

struct NewTime {
  when::Reading reading;
  bool earlier = false;
  bool on_its_day = false;
};

// The part behind `to` that is a time; the words before it stay.
std::optional<NewTime> take_new_time(Words& words, const ReadTime& read) {
  const Patterns& p = patterns();
  const bool earlier = words.has(p.forward);
  if (const auto found = words.find(p.by_duration)) {
    const auto reading = read("in " + words.said(found->groups[1]));
    static const RE2 from_now(R"((?i)(?:^|\s)in $)");
    if (reading && !RE2::PartialMatch(words.said(found->groups[0]), from_now)) {
      NewTime time{.reading = *reading, .earlier = earlier};
      time.reading.kind = when::ReadingKind::duration;
      words.keep(found->groups[0]);
      return time;
    }
  }
  for (const char* const word : {" to ", " until ", " till ", " for ", " at ", " on "}) {
    const std::size_t at = words.plain().rfind(word);
    if (at == std::string::npos) continue;
    const Span right{at + std::string_view(word).size(), words.plain().size()};
    const std::string text = words.plain().substr(right.begin);
    const auto reading = read(text);
    if (!reading) continue;
    NewTime time{.reading = *reading, .earlier = earlier, .on_its_day = RE2::FullMatch(text, p.time_of_day)};
    words.take({at, right.end});
    return time;
  }
  return std::nullopt;
}

void read_move(Words words, const ReadTime& read, Utterance& utterance) {
  const auto verb = words.find(patterns().move);
  const bool forward = words.has(patterns().forward);
  words.take(verb->whole);
  utterance.wish = Wish::move;
  if (auto time = take_new_time(words, read)) {
    utterance.at = time->reading;
    utterance.earlier = time->earlier || forward;
    utterance.on_its_day = time->on_its_day;
  }
  utterance.target = target_of(std::move(words), read);
}

// --- telling ---

std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

struct Telling {
  std::string to;
  std::string text;
  bool and_others = false;
};

std::optional<Telling> telling(const Words& words) {
  const Patterns& p = patterns();
  const auto with = [&](const RE2& pattern, std::size_t name, std::size_t text) -> std::optional<Telling> {
    const auto found = words.find(pattern);
    if (!found || splits_a_word(words, found->groups[name])) return std::nullopt;
    const std::string to = words.said(found->groups[name]);
    if (RE2::FullMatch(to, p.no_name)) return std::nullopt;
    Words rest = words;
    rest.keep(found->groups[text]);
    rest.take_all(p.closing);
    if (rest.empty()) return std::nullopt;
    return Telling{lower(to), unquoted(rest.said()), rest.has(p.and_others)};
  };
  if (auto told = with(p.let_know, 0, 1)) return told;
  if (auto told = with(p.send_to, 0, 1)) return told;
  if (auto told = with(p.send_it_to, 1, 0)) return told;
  const auto somebody = words.find(p.send_somebody);
  if (auto told = with(p.send_somebody, somebody && somebody->groups[0].empty() ? 1 : 0, 2)) return told;
  return with(p.tell, 0, 1);
}

bool read_tell(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  Words rest = words;
  Utterance noted;
  const auto time = take_time(rest, read, noted);
  auto told = telling(rest);
  if (!told) return false;
  if (time) {
    // "that the meeting is at 3pm" says when the meeting is, not when to tell.
    Words before = words;
    before.keep({0, time->where.begin});
    const bool plans = before.has(p.plan_before) && telling(before).has_value();  // I'll be there at 5pm
    const bool in_the_text =
        plans || before.has(p.state_before) || (before.has(p.said_as) && telling(before).has_value());
    if (in_the_text) {
      told = telling(words);
      if (!told) return false;
    } else {
      utterance.at = time->reading;
    }
  }
  utterance.impossible_time = noted.impossible_time;
  utterance.wish = Wish::tell;
  utterance.to = told->to;
  utterance.what = told->text;
  utterance.several_people = told->and_others;
  return true;
}

// --- cancelling ---

void read_cancel(Words words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  utterance.wish = Wish::cancel;
  utterance.unsure = !words.has(p.clear_cancel);
  words.take(words.find(p.cancel)->whole);
  const bool open = words.has(p.corrects) || words.has(p.counts);
  if (open) {
    utterance.unsure = true;
    return;
  }
  utterance.target = target_of(std::move(words), read);
}

// --- reminding ---

// "3:30" is a time of two halves of the day for people, though it is one on a clock of 24 hours.
when::Reading both_halves(when::Reading reading, const std::string& text, const ReadTime& read) {
  static const RE2 open(R"((?i)(?:^|\s)(?:[1-9]|1[01]):[0-5]\d(?:\s|$))");
  static const RE2 settled(R"((?i)\d ?[ap]\.?m|morning|afternoon|evening|night|noon)");
  const auto now = read("now");
  if (!now || !reading.alternatives.empty() || !RE2::PartialMatch(text, open) || RE2::PartialMatch(text, settled))
    return reading;
  constexpr std::chrono::hours half{12};
  const bool any_day = RE2::FullMatch(text, patterns().time_of_day);
  const bool sooner = any_day && reading.at - half > now->at;
  reading.alternatives.push_back(sooner ? reading.at - half : reading.at + half);
  return reading;
}

bool beside(Span frame, Span time) {
  const std::size_t gap =
      time.begin >= frame.end ? time.begin - frame.end : frame.begin - std::min(frame.begin, time.end);
  return gap <= 2;
}

bool read_remind(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  Words rest = words;
  Utterance noted;
  const auto time = take_time(rest, read, noted);
  rest.take_all(p.lead);
  auto frame = rest.find(p.remind);
  const bool strong = frame.has_value();
  if (!strong && time) {
    const auto weak = words.find(p.weak);
    if (weak && beside(weak->whole, time->where)) frame = rest.find(p.weak);
    // "in 10 minutes: tea"
    const bool colon =
        time->where.begin == 0 && time->where.end < words.plain().size() &&
        std::string_view(":-").contains(
            words.plain()[std::min(words.plain().size() - 1, words.plain().find_first_not_of(' ', time->where.end))]);
    if (!frame && colon) frame = Found{};
  }
  if (!frame) return false;
  Words before = rest;
  before.keep({0, frame->whole.begin});
  if (before.has(p.subject)) return false;  // "you remind me of my brother"
  const bool wakes = strong && !frame->groups[1].empty();
  const bool rings = strong && (!frame->groups[3].empty() || !frame->groups[4].empty());
  rest.take(frame->whole);
  rest.take_all(p.lead);
  rest.take_all(p.trail);
  utterance.wish = Wish::remind;
  utterance.what = about(std::move(rest));
  if (utterance.what.empty() && wakes) utterance.what = "wake up";
  if (utterance.what.empty() && rings) utterance.what = "time is up";
  if (time) utterance.at = both_halves(time->reading, words.said(time->where), read);
  utterance.impossible_time = noted.impossible_time;
  return true;
}

}  // namespace

Utterance understand_english(Words words, const ReadTime& read) {
  const Patterns& p = patterns();
  Utterance utterance{.language = when::Language::english};
  const auto is = [&](Wish wish) {
    utterance.wish = wish;
    return utterance;
  };
  const Words whole = words;
  words.take_all(p.trail);
  words.take_all(p.closing);
  words.take_all(p.lead);
  if (words.has(p.help) || whole.has(p.help)) return is(Wish::help);
  if (words.has(p.drop)) return is(Wish::drop);
  const bool refuses = !words.has(p.not_forget);
  const Refusal refusal{p.not_remind, p.remind, p.clear_refusal};
  if (refuses && read_refusal(words, refusal, target_reader(), read, utterance)) return utterance;
  if (words.has(p.asks_cancelled)) return is(Wish::list);
  if (words.has(p.list_asked) || (words.has(p.list) && !words.has(p.remind_me))) return is(Wish::list);
  if (words.has(p.cancel)) {
    read_cancel(words, read, utterance);
    return utterance;
  }
  if (words.has(p.move)) {
    read_move(words, read, utterance);
    return utterance;
  }
  if (read_tell(words, read, utterance)) return utterance;
  if (read_remind(words, read, utterance)) return utterance;
  // Only what asks for nothing else is small talk: "hi, cancel 2" is not.
  if (whole.has(p.greet)) return is(Wish::greet);
  if (words.empty() || whole.has(p.thank)) return is(Wish::thank);
  return utterance;
}

}  // namespace belfry::agent
