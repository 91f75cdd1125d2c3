#include "belfry/store/file_reserve.h"

#include <fcntl.h>
#include <unistd.h>

namespace belfry::store {

bool FileReserve::hold() {
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return false;
  // Blocks, not a hole: a sparse file would set nothing aside.
  const bool held = ::posix_fallocate(file, 0, bytes_) == 0;
  ::close(file);
  if (!held) release();  // half a reserve would only take the space that somebody else frees
  return held;
}

void FileReserve::release() { ::unlink(path_.c_str()); }

}  // namespace belfry::store
