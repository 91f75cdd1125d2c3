#include "belfry/run/removal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace belfry::run {
namespace {

constexpr int kReadFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// What is entered must be the owner's to read, to search and to change; so must what is moved.
constexpr mode_t kOwnersOwn = 0700;
// Somebody who goes on writing could keep us for ever.
constexpr int kPassesMax = 1'000;

// What has nothing to do with the folder, and passes.
bool is_passing(int error) {
  for (const int one : {EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EROFS, EIO, EINTR})
    if (error == one) return true;
  return false;
}

// Names that are used for folders that were moved up. One of a tool's may have the same: the next number is tried.
std::string moved_name(std::int64_t number) { return fmt::format(".{}", number); }

// By a path of our own making: chmod follows links, and what is opened with O_PATH cannot be changed directly.
void make_accessible(int parent, const char* name) {
  const Descriptor folder(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.open()) ::chmod(fmt::format("/proc/self/fd/{}", folder.number()).c_str(), kOwnersOwn);
}

bool is_dots(const char* name) { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

}  // namespace

void Removal::Folder::begin(Descriptor descriptor) {
  descriptor_ = std::move(descriptor);
  at_ = end_ = 0;
}

const char* Removal::Folder::next() {
  while (true) {
    if (at_ == end_) {
      errno = 0;
      const auto size = ::getdents64(descriptor_.number(), entries_.data(), entries_.size());
      if (size <= 0) return nullptr;
      at_ = 0;
      end_ = static_cast<std::size_t>(size);
    }
    const auto* const entry = reinterpret_cast<const dirent64*>(entries_.data() + at_);
    at_ += entry->d_reclen;
    if (!is_dots(entry->d_name)) return entry->d_name;
  }
}

void Removal::Folder::rewind() {
  ::lseek(descriptor_.number(), 0, SEEK_SET);
  at_ = end_ = 0;
}

Removal::Removal(const std::filesystem::path& root, std::string name)
    : root_(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), name_(std::move(name)) {
  if (root_.open()) return;
  gone_ = over_ = errno == ENOENT;
  if (!over_) not_now_ = errno;
}

Removal::State Removal::go_on(int entries) {
  for (int i = 0; i < entries && !over_ && not_now_ == 0; ++i)
    if (!step()) break;
  if (over_ || not_now_ != 0) return finish();
  return State::more;
}

// False: it is over.
bool Removal::step() {
  if (!top_ && !open_top()) return false;
  if (inner_) {
    step_inside();
    return true;
  }
  if (seen_ < moved_) {  // first what was moved up: else those would grow to many
    remove_or_enter(moved_name(++seen_).c_str());
    return true;
  }
  if (const char* const name = top_.next()) {
    remove_or_enter(name);
    return true;
  }
  if (errno != 0) note(errno);
  end_pass();
  return !over_;
}

bool Removal::open_top() {
  if (open_folder(root_.number(), name_.c_str(), top_)) return true;
  const int error = errno;
  // No folder at all: a file, or a link in its place.
  if (error == ENOENT || ::unlinkat(root_.number(), name_.c_str(), 0) == 0) {
    gone_ = true;
  } else {
    note(error);
  }
  over_ = true;
  return false;
}

// One entry of the inner folder; at its end the folder itself.
void Removal::step_inside() {
  if (const char* const name = inner_.next()) {
    if (!remove(inner_.number(), name)) move_up(name);
    return;
  }
  if (errno != 0) note(errno);
  inner_.close();
  remove(top_.number(), inner_name_.c_str());
}

void Removal::remove_or_enter(const char* name) {
  if (remove(top_.number(), name)) return;
  if (open_folder(top_.number(), name, inner_)) {
    inner_name_ = name;
  } else if (errno != ENOENT) {
    note(errno);
  }
}

// False: it is a folder that has something in it.
bool Removal::remove(int folder, const char* name) {
  if (::unlinkat(folder, name, 0) == 0 || (errno == EISDIR && ::unlinkat(folder, name, AT_REMOVEDIR) == 0)) {
    removed_ = true;
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  if (errno != ENOENT) note(errno);
  return true;
}

void Removal::move_up(const char* name) {
  const int from = inner_.number();
  const int to = top_.number();
  bool accessible = false;
  while (true) {
    // A number that is taken may be that of an empty folder, which this replaces, or is looked at in its turn.
    const int failed = ::renameat(from, name, to, moved_name(++moved_).c_str()) == 0 ? 0 : errno;
    if (failed == 0) {
      removed_ = true;
      return;
    }
    if (failed == EEXIST || failed == ENOTEMPTY || failed == ENOTDIR) continue;
    --moved_;
    if (failed == ENOENT) return;
    if (failed != EACCES || std::exchange(accessible, true)) return note(failed);
    make_accessible(from, name);
  }
}

bool Removal::open_folder(int parent, const char* name, Folder& into) {
  Descriptor folder(::openat(parent, name, kReadFolder));
  if (!folder.open() && errno == EACCES) {
    make_accessible(parent, name);
    folder = Descriptor(::openat(parent, name, kReadFolder));
  }
  if (!folder.open()) return false;
  struct stat about{};
  if (::fstat(folder.number(), &about) == 0 && (about.st_mode & kOwnersOwn) != kOwnersOwn)
    ::fchmod(folder.number(), kOwnersOwn);
  into.begin(std::move(folder));
  return true;
}

void Removal::note(int error) {
  if (is_passing(error)) {
    not_now_ = error;
  } else if (error != ENOENT) {  // somebody else was quicker
    resists_ = error;
  }
}

// Some file systems leave out entries while others are removed: all is looked at again as long as that helps.
void Removal::end_pass() {
  if (::unlinkat(root_.number(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
    gone_ = over_ = true;
  } else if (errno != ENOTEMPTY && errno != EEXIST) {
    note(errno);
  }
  if (!removed_ || ++passes_ == kPassesMax) over_ = true;
  if (over_) return;
  removed_ = false;
  resists_ = 0;
  top_.rewind();
}

Removal::State Removal::finish() {
  top_.close();
  inner_.close();
  over_ = true;
  if (gone_) return State::gone;
  if (not_now_ != 0 || resists_ == 0) {
    why_ = not_now_ != 0 ? std::strerror(not_now_) : "somebody else is at work there";
    return State::not_now;
  }
  why_ = std::strerror(resists_);
  ::renameat(root_.number(), name_.c_str(), root_.number(), fmt::format("{}{}", kSetAside, name_).c_str());
  return State::set_aside;
}

}  // namespace belfry::run
