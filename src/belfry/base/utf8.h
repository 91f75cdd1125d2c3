// UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belfry {

// Length in bytes of the valid sequence at the front, and what it stands for; 0 if there is none.
int utf8_sequence(std::string_view text, char32_t* code_point = nullptr);
bool is_utf8(std::string_view text);
// The beginning, of so many characters at most; what is no UTF-8 counts byte by byte.
std::string_view first_characters(std::string_view text, std::size_t most);
// Nothing that could be seen: empty, or only what Unicode calls white space and two marks that take no room at all.
bool is_blank(std::string_view text);
// As many whole characters from the beginning as fit into `bytes`.
std::string_view beginning(std::string_view text, std::size_t bytes);
// That, with an ellipsis where something is missing.
std::string shortened(std::string_view text, std::size_t bytes);
void append_utf8(std::string& out, unsigned code_point);
// The same into four bytes or more of room; how many were written.
inline std::size_t write_utf8(char* out, unsigned code_point) {
  const auto tail = [code_point](int shift) { return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    out[0] = static_cast<char>(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    out[0] = static_cast<char>(0xC0 | (code_point >> 6));
    out[1] = tail(0);
    return 2;
  }
  if (code_point < 0x10000) {
    out[0] = static_cast<char>(0xE0 | (code_point >> 12));
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | (code_point >> 18));
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

}  // namespace belfry
