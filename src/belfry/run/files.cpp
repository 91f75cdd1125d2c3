#include "belfry/run/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "belfry/base/descriptor.h"
#include "belfry/base/utf8.h"

namespace belfry::run {
namespace {

std::unexpected<Error> no_file() { return fail(Errc::not_found, "there is no such file"); }

std::unexpected<Error> not_written(int error) {
  return fail(Errc::storage_failed,
              fmt::format("what it left could not be written to the disk: {}", std::strerror(error)));
}

bool is_plain(const std::string& name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && is_utf8(name);
}

constexpr int kReadFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// So many are synced one by one; of more, or deeper ones, the whole file system at once.
constexpr int kSyncedMax = 100;
constexpr int kSyncedLevels = 8;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// A folder and what is in it, one by one.
class Syncing {
 public:
  explicit Syncing(const Sync& sync) : sync_(sync) {}

  // False: not all of it, because there is too much or something cannot be opened.
  bool below(int folder, int levels) {
    Descriptor again(::openat(folder, ".", kReadFolder));
    const std::unique_ptr<DIR, CloseFolder> entries(again.open() ? ::fdopendir(again.number()) : nullptr);
    if (!entries) return false;
    again.release();
    while (const dirent* const entry = ::readdir(entries.get())) {
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      if (!one(folder, entry->d_name, levels)) return false;
    }
    note(folder);
    return true;
  }
  void note(int descriptor) {
    if (sync_(descriptor) != 0 && failed_ == 0) failed_ = errno;
  }
  int failed() const { return failed_; }

 private:
  bool one(int folder, const char* name, int levels) {
    if (++count_ > kSyncedMax) return false;
    struct stat status{};
    if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return true;  // its name is all there is of it
    const Descriptor opened(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!opened.open()) return false;
    if (S_ISDIR(status.st_mode)) return levels > 1 && below(opened.number(), levels - 1);
    note(opened.number());
    return true;
  }

  const Sync& sync_;
  int count_ = 0;
  int failed_ = 0;
};

bool is_empty(int folder) {
  Descriptor again(::openat(folder, ".", kReadFolder));
  const std::unique_ptr<DIR, CloseFolder> entries(again.open() ? ::fdopendir(again.number()) : nullptr);
  if (!entries) return false;
  again.release();
  int count = 0;
  while (count <= 2 && ::readdir(entries.get())) ++count;
  return count <= 2;
}

}  // namespace

Result<> sync_files(const std::filesystem::path& root, const std::string& run, int step, const Sync& sync) {
  const Descriptor files(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Descriptor of_run(::openat(files.number(), run.c_str(), kReadFolder));
  const Descriptor folder(::openat(of_run.number(), std::to_string(step).c_str(), kReadFolder));
  if (!folder.open() || is_empty(folder.number())) return {};  // nothing was left
  Syncing syncing(sync);
  if (!syncing.below(folder.number(), kSyncedLevels) && ::syncfs(folder.number()) != 0) return not_written(errno);
  syncing.note(of_run.number());
  syncing.note(files.number());
  if (syncing.failed() != 0) return not_written(syncing.failed());
  return {};
}

Result<std::string> read_file(const std::filesystem::path& root, const std::string& run, int step,
                              const std::string& name) {
  if (root.empty() || !is_plain(run) || !is_plain(name)) return no_file();
  const Descriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return no_file();
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const std::string path = fmt::format("{}/{}/{}", run, step, name);
  const Descriptor file(::syscall(SYS_openat2, folder.number(), path.c_str(), &how, sizeof how));
  struct stat status{};
  if (!file.open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1)
    return no_file();
  if (static_cast<std::size_t>(status.st_size) > kFileBytesMax)
    return fail(Errc::too_large, fmt::format("the file has more than {} bytes", kFileBytesMax));
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t read = 0;
  while (read < bytes.size()) {
    const ssize_t some = ::read(file.number(), bytes.data() + read, bytes.size() - read);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    read += static_cast<std::size_t>(some);
  }
  bytes.resize(read);
  return bytes;
}

}  // namespace belfry::run
