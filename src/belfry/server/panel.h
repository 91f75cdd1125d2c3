// The files of the web panel: built into the program, or read from a folder by those who work on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"

namespace belfry::server {

struct PanelFile {
  std::string path;  // as the browser asks for it
  std::string_view content_type;
  std::string bytes;
  std::string compressed;  // gzip; empty: none
  std::string tag;         // changes with its content
};

// An empty folder: the files in the program.
Result<std::vector<PanelFile>> load_panel(const std::string& folder);

}  // namespace belfry::server
