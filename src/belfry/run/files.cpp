#include "belfry/run/files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "belfry/base/utf8.h"

namespace belfry::run {
namespace {

class Descriptor {
 public:
  explicit Descriptor(long number) : number_(static_cast<int>(number)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }

 private:
  int number_;
};

std::unexpected<Error> no_file() { return fail(Errc::not_found, "there is no such file"); }

bool is_plain(const std::string& name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos && is_utf8(name);
}

}  // namespace

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
  if (!file.open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return no_file();
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
