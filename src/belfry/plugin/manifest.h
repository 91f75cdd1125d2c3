// Reads what a plugin's folder says about it: config.json, which may have comments, and .env.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/plugin/plugin.h"

namespace belfry::plugin {

// A manifest is written by hand; what is larger than this is another file under its name.
inline constexpr std::size_t kManifestBytesMax = 256u << 10;
inline constexpr std::size_t kVariablesMax = 256;
// The tool is called local__NAME, and a name of a tool has at most 64 bytes.
inline constexpr std::size_t kNameBytesMax = 56;

// Says why a text is no JSON Schema. Whoever knows schemas stands above this row.
using CheckSchema = std::function<Result<>(std::string_view schema)>;
using Variables = std::vector<std::pair<std::string, std::string>>;

// Letters, digits and _: nothing that could lead out of a folder.
Result<> check_plugin_name(std::string_view name);

// `folder` is the plugin's own; its last part must be the plugin's name. Looks at no file: the program is still as
// config.json has it, "handler" if it names none.
Result<Plugin> read_manifest(const std::filesystem::path& folder, std::string_view text, std::string_view env_text,
                             const CheckSchema& check_schema);

// All of it from the disk, with the program found and executable. Every refusal names the file.
Result<Plugin> read_plugin(const std::filesystem::path& folder, const CheckSchema& check_schema);

// How everything stands on the disk that `read_plugin` looked at: as long as this stays the same, so does what it gives.
std::string stamp_of(const Plugin& plugin);

// `//…` and `/*…*/` outside of strings as blanks, so that what is wrong elsewhere stays where it is.
std::string without_comments(std::string_view text);

// KEY=value lines. A refusal names the line and never what stands there: those are secrets.
Result<Variables> read_variables(std::string_view text);

}  // namespace belfry::plugin
