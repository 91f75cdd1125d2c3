// The words of both languages, found while a text is read letter by letter.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

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

class Dictionary {
 public:
  struct Entry {
    std::uint64_t hash = 0;
    std::string_view text;
    const Word* word = nullptr;  // nothing: only the first word of phrases
    int words_most = 1;          // of the longest phrase that begins with it
  };

  // Made when the first text is read.
  static const Dictionary& get();

  // What has this hash: a word, or the first word of phrases. Whether it is the text that was hashed, the caller must see.
  const Entry* find(std::uint64_t hash) const {
    for (std::size_t slot = hash % kSlots;; slot = (slot + 1) % kSlots) {
      const std::uint16_t number = slots_[slot];
      if (number == 0) return nullptr;
      if (entries_[number - 1].hash == hash) return &entries_[number - 1];
    }
  }
  const Word* word(std::string_view text) const;
  // Bit n: a word of n characters begins with this Chinese character.
  std::uint32_t lengths(char32_t first) const {
    return first >= kHanBegin && first < kHanEnd ? lengths_[first - kHanBegin] : 0;
  }

 private:
  static constexpr std::size_t kSlots = 16'384;

  Dictionary();
  Entry& entry(WordHash hash, std::string_view text);
  void add(const Word& word);

  std::vector<Word> holidays_;
  std::vector<Entry> entries_;
  std::array<std::uint16_t, kSlots> slots_{};  // one more than the place in `entries_`; 0 is free
  std::array<std::uint16_t, kHanEnd - kHanBegin> lengths_{};
};

}  // namespace belfry::when
