// References between schemas are URIs; this is RFC 3986, section 5.2, on text.
#pragma once

#include <string>
#include <string_view>

namespace belfry::tool {

// Where `reference` leads for somebody who stands at `base`. Both may be relative; then so is the answer.
std::string resolve_uri(std::string_view base, std::string_view reference);
// In front of `#` and behind it; without a `#` the second is empty.
std::string_view without_fragment(std::string_view uri);
std::string_view fragment_of(std::string_view uri);
// `%2F` is a slash. What is no escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace belfry::tool
