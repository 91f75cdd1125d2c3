#include "belfry/plugin/catalog.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

// In one folder. Each is a tool that models are told of; a folder with more is some other folder.
constexpr std::size_t kPluginsMax = 500;

struct Listing {
  std::vector<fs::path> folders;  // in order, so that two scans say the same
  std::string problem;
};

Listing list_folders(const fs::path& folder) {
  Listing listing;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code ignored;
    const bool hidden = at->path().filename().string().starts_with('.');
    if (!hidden && at->is_directory(ignored) && fs::exists(at->path() / "config.json", ignored))
      listing.folders.push_back(at->path());
  }
  if (ec) listing.problem = fmt::format("{}: the folder cannot be read: {}", folder.string(), ec.message());
  std::sort(listing.folders.begin(), listing.folders.end());
  if (listing.folders.size() > kPluginsMax) {
    listing.problem = fmt::format("{}: {} plugins in one folder; at most {} are taken", folder.string(),
                                  listing.folders.size(), kPluginsMax);
    listing.folders.resize(kPluginsMax);
  }
  return listing;
}

// As it is written, but from the root and without a slash at its end: the last part is a name.
fs::path rooted(const fs::path& folder) {
  std::error_code ec;
  fs::path path = fs::absolute(folder, ec).lexically_normal();
  if (ec) return folder;
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

struct Catalog::Found {
  Plugins plugins;
  std::map<fs::path, Known> known;
  std::vector<Broken> broken;
};

Catalog::Catalog(std::vector<fs::path> folders, CheckSchema check_schema)
    : folders_(std::move(folders)), check_schema_(std::move(check_schema)) {
  for (fs::path& folder : folders_) folder = rooted(folder);
}

void Catalog::read_folder(const fs::path& folder, Found& found) const {
  const Listing listing = list_folders(folder);
  if (!listing.problem.empty()) found.broken.push_back({folder, listing.problem});
  for (const fs::path& one : listing.folders) {
    auto read = read_one(one);
    if (!read) {
      found.broken.push_back({one, read.error().detail});
      // It stands in the place of an earlier one: to use that instead would be somebody's surprise.
      found.plugins.erase(one.filename().string());
      continue;
    }
    found.plugins[read->plugin->name] = read->plugin;
    found.known.emplace(one, std::move(*read));
  }
}

// Broken ones are read again every time: who knows what they lack.
Result<Catalog::Known> Catalog::read_one(const fs::path& folder) const {
  if (const auto known = known_.find(folder);
      known != known_.end() && stamp_of(*known->second.plugin) == known->second.stamp)
    return known->second;
  BELFRY_TRY(const Plugin first, read_plugin(folder, check_schema_));
  // Which files count is known only now. What changes while it is read again has changed after the stamp.
  std::string stamp = stamp_of(first);
  BELFRY_TRY(Plugin plugin, read_plugin(folder, check_schema_));
  return Known{.plugin = std::make_shared<const Plugin>(std::move(plugin)), .stamp = std::move(stamp)};
}

// Whoever compares by address sees only what really is new.
void Catalog::take_over_unchanged(Plugins& plugins) const {
  for (auto& [name, plugin] : plugins) {
    const auto before = plugins_.find(name);
    if (before != plugins_.end() && *before->second == *plugin) plugin = before->second;
  }
}

bool Catalog::scan() {
  Found found;
  for (const fs::path& folder : folders_) read_folder(folder, found);
  take_over_unchanged(found.plugins);
  for (const Broken& one : found.broken)
    if (std::find(broken_.begin(), broken_.end(), one) == broken_.end())
      log::warn("plugin.broken", one.why, {{"folder", one.folder.string()}});
  const bool changed = found.plugins != plugins_ || found.broken != broken_;
  plugins_ = std::move(found.plugins);
  known_ = std::move(found.known);
  broken_ = std::move(found.broken);
  return changed;
}

std::shared_ptr<const Plugin> Catalog::find(std::string_view name) const {
  const auto found = plugins_.find(name);
  return found == plugins_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const Plugin>> Catalog::all() const {
  std::vector<std::shared_ptr<const Plugin>> out;
  out.reserve(plugins_.size());
  for (const auto& [name, plugin] : plugins_) out.push_back(plugin);
  return out;
}

}  // namespace belfry::plugin
