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
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open())
    return fail(Errc::storage_failed,
                fmt::format("cannot use the data directory {}: {}", folder, std::generic_category().message(errno)));
  if (::flock(opened.number(), LOCK_EX | LOCK_NB) == 0) return FolderLock(std::move(opened));
  if (errno == EWOULDBLOCK)
    return fail(Errc::data_in_use, fmt::format("another Belfry is using the data in {}", folder));
  return fail(
      Errc::storage_failed,
      fmt::format("the file system of {} cannot lock it ({}), so a second server could not be kept out; --data takes "
                  "a directory on another one",
                  folder, std::generic_category().message(errno)));
}

}  // namespace belfry::store
