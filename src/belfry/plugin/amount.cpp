#include "belfry/plugin/amount.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "belfry/base/descriptor.h"

namespace belfry::plugin {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kBlock = 512;  // of st_blocks

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int parent, const char* name) {
  Descriptor opened(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Folder folder(opened.open() ? ::fdopendir(opened.number()) : nullptr);
  if (folder) opened.release();
  return folder;
}

// The next name but . and ..
const char* next_in(const Folder& folder) {
  while (const dirent* const entry = ::readdir(folder.get()))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return entry->d_name;
  return nullptr;
}

std::string text_of(const char* path) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string out;
  char piece[4096];
  for (ssize_t count = 0; file.open() && (count = ::read(file.number(), piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<std::size_t>(count));
  return out;
}

std::int64_t blocks_of(int folder, const char* name, int flags, bool nameless) {
  struct stat about{};
  if (::fstatat(folder, name, &about, flags) != 0 || (nameless && (about.st_nlink > 0 || !S_ISREG(about.st_mode))))
    return 0;
  return about.st_blocks * kBlock;
}

void add_children(pid_t process, Descendants& into) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", process);
  const Folder tasks = open_folder(AT_FDCWD, path);
  while (const char* const task = tasks ? next_in(tasks) : nullptr) {
    ++into.threads;
    char file[320];
    std::snprintf(file, sizeof file, "%s/%s/children", path, task);
    const std::string text = text_of(file);
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      pid_t child = 0;
      const auto read = std::from_chars(at, end, child);
      if (child > 0) into.processes.push_back(child);
      at = read.ptr + 1;
    }
  }
}

// A number of /proc/PID/status, in KiB.
std::int64_t number_in(std::string_view status, std::string_view name) {
  const auto at = status.find(name);
  if (at == std::string_view::npos) return 0;
  status.remove_prefix(at + name.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  std::int64_t number = 0;
  std::from_chars(status.data(), status.data() + status.size(), number);
  return number;
}

void add_output(const Folder& folder, int level, const Amounts& most, Output& output) {
  output.levels = std::max(output.levels, level);
  while (const char* const name = next_in(folder)) {
    ++output.entries;
    output.bytes += blocks_of(::dirfd(folder.get()), name, AT_SYMLINK_NOFOLLOW, false);
    if (excess(output, most) != Excess::none) return;
    if (const Folder below = open_folder(::dirfd(folder.get()), name)) add_output(below, level + 1, most, output);
  }
}

}  // namespace

Descendants descendants_of(pid_t process, std::size_t most) {
  Descendants out{.processes = {process}};
  auto& all = out.processes;
  for (std::size_t i = 0; i < all.size() && out.threads <= most && all.size() <= most + 1; ++i)
    add_children(pid_t{all[i]}, out);
  all.erase(all.begin());
  return out;
}

std::int64_t memory_of(const std::vector<pid_t>& processes) {
  std::int64_t sum = 0;
  for (const pid_t process : processes) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/status", process);
    const std::string status = text_of(path);
    sum += (number_in(status, "RssAnon:") + number_in(status, "RssShmem:") + number_in(status, "VmSwap:")) << 10;
  }
  return sum;
}

std::int64_t nameless_bytes_of(const std::vector<pid_t>& processes) {
  std::int64_t sum = 0;
  for (const pid_t process : processes) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd", process);
    const Folder descriptors = open_folder(AT_FDCWD, path);
    while (const char* const name = descriptors ? next_in(descriptors) : nullptr)
      sum += blocks_of(::dirfd(descriptors.get()), name, 0, true);
  }
  return sum;
}

Output output_in(const std::string& folder, const Amounts& most) {
  Output output;
  if (const Folder opened = open_folder(AT_FDCWD, folder.c_str())) add_output(opened, 0, most, output);
  return output;
}

Excess excess(const Output& output, const Amounts& most) {
  if (output.entries > most.entries) return Excess::entries;
  if (output.levels > most.levels) return Excess::levels;
  if (output.bytes > most.output_mib * kMiB) return Excess::bytes;
  return Excess::none;
}

}  // namespace belfry::plugin
