#include "belfry/agent/concierge/utterance.h"

#include <algorithm>
#include <array>

#include "belfry/agent/concierge/understand_language.h"
#include "belfry/base/utf8.h"

namespace belfry::agent {
namespace {

using re2::RE2;

// Nobody asks for a reminder in a letter.
constexpr std::size_t kUtteranceBytesMax = 4'000;
constexpr std::size_t kPartsMax = 12;

bool has_han(std::string_view text) {
  while (!text.empty()) {
    char32_t point = 0;
    const int size = utf8_sequence(text, &point);
    if (size == 0) return false;
    if (point >= 0x4E00 && point <= 0x9FFF) return true;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return false;
}

bool matches(std::string_view text, const re2::RE2& pattern) { return Words(text, has_han(text)).has(pattern); }

}  // namespace

std::optional<TimeInText> take_time_in(Span part, Words& words, const ReadTime& read, Utterance& utterance) {
  std::string text = words.plain().substr(part.begin, part.end - part.begin);
  // "in 10 minutes about tomorrow's trip": whose trip it is does not matter, if there is another time.
  static const re2::RE2 whose(
      R"((?i)\b(?:today|tomorrow|tonight|yesterday|\w+day|week|month|year|morning|evening)('s)\b)");
  std::string others = text;
  for (re2::StringPiece rest(text), marks; RE2::FindAndConsume(&rest, whose, &marks);) {
    const auto end = static_cast<std::size_t>(marks.data() + marks.size() - text.data());
    for (std::size_t at = end; at > 0 && text[at - 1] != ' '; --at) others[at - 1] = '#';
  }
  auto reading = read(others);
  if (!reading) reading = read(text);
  if (!reading) {
    if (reading.error().code == Errc::impossible_time) utterance.impossible_time = reading.error();
    return std::nullopt;
  }
  const Span where{part.begin + reading->begin_byte, part.begin + reading->end_byte};
  words.take(where);
  return TimeInText{*reading, where};
}

std::optional<TimeInText> take_time(Words& words, const ReadTime& read, Utterance& utterance) {
  return take_time_in({0, words.plain().size()}, words, read, utterance);
}

namespace {

// The parts of a list: a, b and c. None if there are more than anybody would name.
std::vector<Words> parts_of(Words words, const RE2& several) {
  std::vector<Words> parts;
  while (const auto found = words.find(several)) {
    if (parts.size() == kPartsMax) return {};
    Words first = words;
    first.keep(found->groups[0]);
    parts.push_back(std::move(first));
    words.keep(found->groups[1]);
  }
  if (!parts.empty()) parts.push_back(std::move(words));
  return parts;
}

Target read_one_target(Words words, const TargetReader& reader, const ReadTime& read) {
  Target target;
  reader.take_place(words, target);
  Utterance ignored;
  if (const auto time = take_time(words, read, ignored)) target.at = time->reading;
  if (const auto found = words.find(reader.all); found && target.numbers.empty() && !target.last) {
    target.all = true;
    words.take(found->whole);
  }
  reader.take_words(words, target);
  return target;
}

// One, or a list of several.
Target read_some_target(Words words, const TargetReader& reader, const ReadTime& read) {
  Target target = read_one_target(words, reader, read);
  if (!target.only_words()) return target;
  for (Words& part : parts_of(std::move(words), reader.several))
    target.each.push_back(read_one_target(std::move(part), reader, read));
  return target;
}

}  // namespace

Target read_target(Words words, const TargetReader& reader, const ReadTime& read) {
  const auto found = words.find(reader.except);
  if (!found) return read_some_target(std::move(words), reader, read);
  Target target{.all = true};
  words.keep(found->groups[0]);
  target.except.push_back(read_some_target(std::move(words), reader, read));
  return target;
}

bool splits_a_word(const Words& words, Span name) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  return name.end < words.plain().size() && in_name(words.plain()[name.end]) && in_name(words.plain()[name.end - 1]);
}

bool read_refusal(Words words, const Refusal& refusal, const TargetReader& reader, const ReadTime& read,
                  Utterance& utterance) {
  const auto found = words.find(refusal.refusal);
  if (!found) return false;
  const auto frame = words.find(refusal.frame);
  if (frame && frame->whole.begin < found->whole.begin) return false;
  utterance.unsure = !words.has(refusal.clear);
  words.take(found->whole);
  utterance.wish = Wish::cancel;
  utterance.target = read_target(std::move(words), reader, read);
  return true;
}

Utterance understand(std::string_view text, const ReadTime& read) {
  const bool chinese = has_han(text);
  Utterance nothing{.language = chinese ? when::Language::chinese : when::Language::english};
  if (is_blank(text) || text.size() > kUtteranceBytesMax) return nothing;
  Words words(text, chinese);
  return chinese ? understand_chinese(std::move(words), read) : understand_english(std::move(words), read);
}

std::optional<int> typed_number(std::string_view text) {
  static const re2::RE2 digits(
      R"((?i)^(?:#|no\.? ?|number |option |第)?(\d{1,2})(?:\.|个|条|项|号|st|nd|rd|th)?(?: one)?[.!。！]?$)");
  const std::string answer = typed_answer(text);
  const Words words(answer, has_han(answer));
  if (const auto found = words.find(digits)) return std::stoi(words.said(found->groups[0]));
  struct Named {
    re2::RE2 pattern;
    int number;
  };
  static const std::array<Named, 5> named{{
      {R"((?i)^(?:the )?first(?: one)?$|^第?一[个条]?$|^前(?:者|一个)$)", 1},
      {R"((?i)^(?:the )?second(?: one)?$|^第?二[个条]?$|^后(?:者|一个)$)", 2},
      {R"((?i)^(?:the )?third(?: one)?$|^第?三[个条]?$)", 3},
      {R"((?i)^(?:the )?fourth(?: one)?$|^第?四[个条]?$)", 4},
      {R"((?i)^(?:the )?fifth(?: one)?$|^第?五[个条]?$)", 5},
  }};
  for (const Named& one : named)
    if (words.has(one.pattern)) return one.number;
  return std::nullopt;
}

std::optional<Half> typed_half(std::string_view text) {
  static const re2::RE2 morning(
      R"((?i)^(?:in )?(?:the )?morning\b|^a\.?m\.?$|^(?:是)?(?:早上|上午|早晨|凌晨|早)(?:的|吧|啊)?(?:那个)?[.!。！]?$)");
  static const re2::RE2 evening(
      R"((?i)^(?:in |at )?(?:the )?(?:evening|afternoon|night)\b|^p\.?m\.?$|^(?:是)?(?:晚上|下午|傍晚|夜里|晚)(?:的|吧|啊)?(?:那个)?[.!。！]?$)");
  const std::string answer = typed_answer(text);
  if (matches(answer, morning)) return Half::morning;
  if (matches(answer, evening)) return Half::evening;
  return std::nullopt;
}

std::optional<bool> typed_consent(std::string_view text) {
  static const re2::RE2 yes(
      R"((?i)^(?:yes|yeah|yep|yup|ok|okay|sure|fine|please do|yes,? please|go ahead|do it|just once|once)(?:[,.! ]+(?:please|thanks|thank you|thx))?[.! ]*$|^(?:好|好的|好吧|好啊|行|可以|嗯|是|是的|对|要|就一次|一次|那就一次|一次就好|一次也行)(?:[，, ]*(?:谢谢|多谢)(?:你|您)?)?[。！!，,吧]*$)");
  static const re2::RE2 no(
      R"((?i)^(?:no|nope|nah|no,? thanks|no,? thank you|don'?t|never ?mind|forget it|not now|cancel|stop)[.! ]*$|^(?:不|不用|不用了|不要|不要了|不了|算了|不必|不行|别|取消|没事|没事了|先不了)(?:吧|啦|谢谢)?[。！!，,]*$)");
  if (matches(text, yes)) return true;
  if (matches(text, no)) return false;
  return std::nullopt;
}

std::string typed_answer(std::string_view text) {
  static const re2::RE2 before(
      R"((?i)^(?:ok(?:ay)?|yes|yeah|yep|sure|well|hm+|um+|no|nope|wait|so|好的?|好吧|行|嗯+|是的?|对|那就?|不|不是|等等)[,，.。!！:：、]+\s*)");
  Words words(text, has_han(text));
  words.take_all(before);
  return words.said();
}

bool declines_time(std::string_view text) {
  static const re2::RE2 declines(
      R"((?i)\b(?:not|never|but|except|cannot|(?:ca|wo|do|does|is|are|would|should)n'?t)\b|^(?:will|is|are|do|does|did|what|why|who)\b|不(?:行|要|能|可以|好|方便|想|在)|别|除了|吗[？?。！!]*$)");
  return matches(text, declines);
}

bool hesitates(std::string_view text) {
  static const re2::RE2 pattern(
      R"((?i)^(?:wait|hold on|one (?:moment|sec|second)|just a (?:moment|sec|second)|hm+|um+|uh+|why|what|huh|sorry)[.?! ]*$|^(?:等一下|等等|等下|稍等|为什么|什么|啥|嗯+|呃+)[。？?！!，,…]*$)");
  return matches(text, pattern);
}

bool names_a_day(std::string_view text) {
  static const re2::RE2 day(
      R"((?i)\b(?:today|tonight|tomorrow|tmrw|tmr|yesterday|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|next|this|weekend|jan\w*|feb\w*|mar(?:ch)?|apr\w*|may|june?|july?|aug\w*|sept?\w*|oct\w*|nov\w*|dec\w*)\b|\bin (?:\d|an? |half|one|two|three|four|five|six)|\d{1,2}[/-]\d{1,2}|\d(?:st|nd|rd|th)\b|今|明|后天|昨|周|星期|礼拜|月|号|日|后)");
  return matches(text, day);
}

}  // namespace belfry::agent
