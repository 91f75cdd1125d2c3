#include "belfry/tool/schema/uri.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace belfry::tool {
namespace {

struct Parts {
  std::optional<std::string_view> scheme;
  std::optional<std::string_view> authority;
  std::string_view path;
  std::optional<std::string_view> query;
  std::optional<std::string_view> fragment;
};

bool is_scheme(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto other = [](char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  if (text.empty() || !letter(text.front())) return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || other(c); });
}

// Takes what stands behind the first `mark` off the end of `text`.
std::optional<std::string_view> cut_tail(std::string_view& text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view tail = text.substr(at + 1);
  text = text.substr(0, at);
  return tail;
}

Parts split(std::string_view uri) {
  Parts parts;
  parts.fragment = cut_tail(uri, '#');
  parts.query = cut_tail(uri, '?');
  if (const std::size_t colon = uri.find(':'); colon != std::string_view::npos && is_scheme(uri.substr(0, colon))) {
    parts.scheme = uri.substr(0, colon);
    uri.remove_prefix(colon + 1);
  }
  if (uri.starts_with("//")) {
    const std::size_t slash = std::min(uri.find('/', 2), uri.size());
    parts.authority = uri.substr(2, slash - 2);
    uri.remove_prefix(slash);
  }
  parts.path = uri;
  return parts;
}

// `a/./b/../c` is `a/c`.
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t next = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, next);
    path.remove_prefix(next);
    const std::string_view name = segment.starts_with('/') ? segment.substr(1) : segment;
    if (name == "..") out.resize(std::min(out.rfind('/'), out.size()) == out.size() ? 0 : out.rfind('/'));
    if (name != "." && name != "..") {
      out += segment;
    } else if (path.empty()) {
      out += '/';
    }
  }
  return out;
}

std::string merged(const Parts& base, std::string_view path) {
  if (base.authority && base.path.empty()) return "/" + std::string(path);
  const std::size_t slash = base.path.rfind('/');
  if (slash == std::string_view::npos) return std::string(path);
  return std::string(base.path.substr(0, slash + 1)) + std::string(path);
}

std::string joined(const Parts& parts, std::string_view path) {
  std::string uri;
  if (parts.scheme) uri.append(*parts.scheme).append(":");
  if (parts.authority) uri.append("//").append(*parts.authority);
  uri.append(path);
  if (parts.query) uri.append("?").append(*parts.query);
  if (parts.fragment) uri.append("#").append(*parts.fragment);
  return uri;
}

}  // namespace

std::string resolve_uri(std::string_view base_text, std::string_view reference) {
  const Parts base = split(base_text);
  Parts target = split(reference);
  if (target.scheme) return joined(target, target.authority ? without_dots(target.path) : std::string(target.path));
  target.scheme = base.scheme;
  if (target.authority) return joined(target, without_dots(target.path));
  target.authority = base.authority;
  if (target.path.empty()) {
    if (!target.query) target.query = base.query;
    return joined(target, base.path);
  }
  return joined(target,
                without_dots(target.path.starts_with('/') ? std::string(target.path) : merged(base, target.path)));
}

std::string_view without_fragment(std::string_view uri) { return uri.substr(0, uri.find('#')); }

std::string_view fragment_of(std::string_view uri) {
  const std::size_t at = uri.find('#');
  return at == std::string_view::npos ? std::string_view() : uri.substr(at + 1);
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace belfry::tool
