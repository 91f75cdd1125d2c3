// The plugins that there are: every folder with a config.json in the folders of plugins. A broken one is named and skipped.
//
// Lives on the kernel's thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/plugin/manifest.h"
#include "belfry/plugin/plugin.h"

namespace belfry::plugin {

class Catalog {
 public:
  using CheckSchema = plugin::CheckSchema;
  struct Broken {
    std::filesystem::path folder;
    std::string why;
    bool operator==(const Broken&) const = default;
  };

  // Of two plugins with one name the one in the later folder counts: so that one can replace what is bundled.
  Catalog(std::vector<std::filesystem::path> folders, CheckSchema check_schema);

  // Reads the folders again. True if there is anything new; work that is under way goes on with what it began with.
  bool scan();

  std::shared_ptr<const Plugin> find(std::string_view name) const;
  std::vector<std::shared_ptr<const Plugin>> all() const;  // by name
  const std::vector<Broken>& broken() const { return broken_; }
  const std::vector<std::filesystem::path>& folders() const { return folders_; }

 private:
  using Plugins = std::map<std::string, std::shared_ptr<const Plugin>, std::less<>>;
  struct Found;

  // One that was read before, and with its stamp: what a plugin writes into its folder is no reason to read it again.
  struct Known {
    std::shared_ptr<const Plugin> plugin;
    std::string stamp;
  };

  void read_folder(const std::filesystem::path& folder, Found& found) const;
  Result<Known> read_one(const std::filesystem::path& folder) const;
  void take_over_unchanged(Plugins& plugins) const;

  std::vector<std::filesystem::path> folders_;
  CheckSchema check_schema_;
  Plugins plugins_;
  std::map<std::filesystem::path, Known> known_;  // by its folder
  std::vector<Broken> broken_;
};

}  // namespace belfry::plugin
