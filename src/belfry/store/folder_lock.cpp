#include "belfry/store/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace belfry::store {

Result<FolderLock> FolderLock::take(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return fail(Errc::storage_failed,
                fmt::format("cannot use the data directory {}: {}", folder, std::generic_category().message(errno)));
  FolderLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK)
    return fail(Errc::data_in_use, fmt::format("another Belfry is using the data in {}", folder));
  return fail(
      Errc::storage_failed,
      fmt::format("the file system of {} cannot lock it ({}), so a second server could not be kept out; --data takes "
                  "a directory on another one",
                  folder, std::generic_category().message(errno)));
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace belfry::store
