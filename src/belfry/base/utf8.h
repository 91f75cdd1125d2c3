// UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belfry {

// Length in bytes of the valid sequence at the front, and what it stands for; 0 if there is none.
int utf8_sequence(std::string_view text, char32_t* code_point = nullptr);
bool is_utf8(std::string_view text);
void append_utf8(std::string& out, unsigned code_point);
// The same into four bytes or more of room; how many were written.
std::size_t write_utf8(char* out, unsigned code_point);

}  // namespace belfry
