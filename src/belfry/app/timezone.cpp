#include "belfry/app/timezone.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace belfry::app {
namespace {

std::string zone_of_localtime() {
  std::error_code ec;
  const std::string target = std::filesystem::read_symlink("/etc/localtime", ec).string();
  const std::string_view folder = "zoneinfo/";
  const std::size_t at = target.find(folder);
  return ec || at == std::string::npos ? "" : target.substr(at + folder.size());
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

when::Zone system_zone() {
  const char* const variable = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  std::string given = variable ? variable : "";
  if (given.starts_with(':')) given.erase(0, 1);
  for (const std::string& name : {given, zone_of_localtime(), first_line("/etc/timezone")}) {
    if (name.empty()) continue;
    if (auto zone = when::Zone::named(name)) return *zone;
  }
  return *when::Zone::named("UTC");
}

std::string tz_variable(const when::Zone& zone) {
  const std::string& name = zone.name();
  if (!name.starts_with('+') && !name.starts_with('-')) return name;
  const std::string hours = name.substr(1, 2);
  const std::string minutes = name.substr(4);
  return fmt::format("<{0}{1}{2}>{3}{1}:{2}", name.front(), hours, minutes, name.front() == '+' ? '-' : '+');
}

Locale locale_of(const Config& config) {
  if (config.timezone.empty()) return {system_zone(), when::ZoneSource::server, config.language};
  return {*when::Zone::named(config.timezone), when::ZoneSource::user, config.language};
}

}  // namespace belfry::app
