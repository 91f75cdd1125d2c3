#include "belfry/server/panel.h"

#include <array>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "belfry/base/digest.h"

// The files themselves, as panel/embed.S has them: the bytes and where they end.
extern "C" {
extern const char belfry_panel_html[];
extern const char belfry_panel_html_end[];
extern const char belfry_panel_html_gz[];
extern const char belfry_panel_html_gz_end[];
extern const char belfry_panel_js[];
extern const char belfry_panel_js_end[];
extern const char belfry_panel_js_gz[];
extern const char belfry_panel_js_gz_end[];
extern const char belfry_panel_css[];
extern const char belfry_panel_css_end[];
extern const char belfry_panel_css_gz[];
extern const char belfry_panel_css_gz_end[];
}

namespace belfry::server {
namespace {

struct Embedded {
  const char* name;  // in a folder
  const char* path;
  std::string_view content_type;
  std::string_view bytes;
  std::string_view compressed;
};

std::array<Embedded, 3> embedded() {
  return {{{"index.html",
            "/",
            "text/html; charset=utf-8",
            {belfry_panel_html, belfry_panel_html_end},
            {belfry_panel_html_gz, belfry_panel_html_gz_end}},
           {"panel.js",
            "/panel.js",
            "text/javascript; charset=utf-8",
            {belfry_panel_js, belfry_panel_js_end},
            {belfry_panel_js_gz, belfry_panel_js_gz_end}},
           {"panel.css",
            "/panel.css",
            "text/css; charset=utf-8",
            {belfry_panel_css, belfry_panel_css_end},
            {belfry_panel_css_gz, belfry_panel_css_gz_end}}}};
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Result<std::vector<PanelFile>> load_panel(const std::string& folder) {
  std::vector<PanelFile> files;
  for (const Embedded& one : embedded()) {
    PanelFile file{.path = one.path, .content_type = one.content_type};
    if (folder.empty()) {
      file.bytes = one.bytes;
      file.compressed = one.compressed;
    } else {
      auto bytes = read_file(fmt::format("{}/{}", folder, one.name));
      if (!bytes)
        return fail(Errc::invalid_argument,
                    fmt::format("the panel cannot be read: there is no {}/{}", folder, one.name));
      file.bytes = std::move(*bytes);
    }
    const Digest mark = digest(file.bytes);
    file.tag = fmt::format("\"{:016x}\"", static_cast<std::uint64_t>(mark.high));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace belfry::server
