// UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF.
#pragma once

#include <string>
#include <string_view>

namespace belfry {

// Length in bytes of the valid sequence at the front; 0 if there is none.
int utf8_sequence(std::string_view text);
bool is_utf8(std::string_view text);
void append_utf8(std::string& out, unsigned code_point);

}  // namespace belfry
