// The words of both languages, found while a text is read letter by letter.
#pragma once

#include <cstdint>
#include <string_view>

#include "belfry/when/token.h"

namespace belfry::when {

// Grows with every character, so that all the beginnings of a text are hashed on the way.
class WordHash {
 public:
  void add(char32_t c) { hash_ = (hash_ ^ c) * 0x9E3779B97F4A7C15u, hash_ ^= hash_ >> 29; }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

struct WordEntry {
  std::string_view text;
  const Word* word = nullptr;  // nothing: only the first word of phrases
  int words_most = 1;          // of the longest phrase that begins with it
};
// Nothing if the tables have neither a word nor a phrase that begins with this word.
const WordEntry* find_entry(WordHash hash, std::string_view text);

// Bit n: a word of n characters begins with this Chinese character.
std::uint32_t lengths_of_words(char32_t first);

}  // namespace belfry::when
