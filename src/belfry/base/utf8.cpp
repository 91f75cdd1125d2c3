#include "belfry/base/utf8.h"

#include <algorithm>

namespace belfry {
namespace {

bool is_blank_point(char32_t c) {
  return c == U' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200B) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 ||
         c == 0xFEFF;
}

}  // namespace

int utf8_sequence(std::string_view text, char32_t* code_point) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) {
    if (code_point) *code_point = first;
    return 1;
  }
  int length = 0;
  unsigned point = 0;
  unsigned least = 0;
  if ((first & 0xE0) == 0xC0) {
    length = 2, point = first & 0x1F, least = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    length = 3, point = first & 0x0F, least = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    length = 4, point = first & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (text.size() < static_cast<std::size_t>(length)) return 0;
  for (int i = 1; i < length; ++i) {
    const unsigned next = byte(static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return 0;
    point = (point << 6) | (next & 0x3F);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < least || point > 0x10FFFF || surrogate) return 0;
  if (code_point) *code_point = point;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const int length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

bool is_blank(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const int length = utf8_sequence(text, &c);
    if (length == 0 || !is_blank_point(c)) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

std::string_view first_characters(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t count = 0; count < most && end < text.size(); ++count)
    end += static_cast<std::size_t>(std::max(1, utf8_sequence(text.substr(end))));
  return text.substr(0, end);
}

void append_utf8(std::string& out, unsigned code_point) {
  char bytes[4];
  out.append(bytes, write_utf8(bytes, code_point));
}

std::string_view beginning(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

std::string shortened(std::string_view text, std::size_t bytes) {
  const std::string_view shown = beginning(text, bytes);
  return shown.size() == text.size() ? std::string(text) : std::string(shown) + "…";
}

}  // namespace belfry
