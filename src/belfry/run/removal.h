// Removes a folder that a tool has left, whatever is in it: any depth, any number, names as long as names can be.
//
// All is done below descriptors, so no path grows. A folder that stands in another one is moved up, beside that one, before
// it is entered: so at any time at most four descriptors are open, and memory does not depend on what is there. What is
// half done after a crash is a flatter folder of the same name; whoever begins again goes on with it. Links are removed, not
// followed.
//
// One that does not let itself be removed (immutable, somebody else's) keeps what resists and is set aside under a name
// with kSetAside in front; nobody tries again.
#pragma once

#include <dirent.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "belfry/base/descriptor.h"

namespace belfry::run {

inline constexpr std::string_view kSetAside = ".set-aside-";

class Removal {
 public:
  enum class State {
    more,       // go on
    gone,       // or was never there
    set_aside,  // what is left resists; see why()
    not_now,    // the system lacks something at the moment, or somebody else is at work there; a later one may have it
  };

  Removal(const std::filesystem::path& root, std::string name);
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;

  // Looks at so many entries at most. Any thread, one after the other; after anything but `more` it is over.
  State go_on(int entries);
  const std::string& why() const { return why_; }

 private:
  // readdir asks for memory for each folder, and there are many.
  class Folder {
   public:
    explicit operator bool() const { return descriptor_.open(); }
    int number() const { return descriptor_.number(); }
    void begin(Descriptor descriptor);
    // Of the next entry but . and ..; null: there is none, or errno says why it cannot be read.
    const char* next();
    void rewind();
    void close() { descriptor_ = Descriptor(); }

   private:
    Descriptor descriptor_;
    alignas(dirent64) std::array<char, 8192> entries_{};
    std::size_t at_ = 0;
    std::size_t end_ = 0;
  };

  bool open_top();
  bool step();
  void step_inside();
  void end_pass();
  void remove_or_enter(const char* name);
  bool remove(int folder, const char* name);
  void move_up(const char* name);
  static bool open_folder(int parent, const char* name, Folder& into);
  void note(int error);
  State finish();

  Descriptor root_;
  std::string name_;
  Folder top_;
  Folder inner_;            // a folder in it whose entries are being removed
  std::string inner_name_;  // its name
  std::int64_t moved_ = 0;  // folders that were moved up so far; the last one's number
  std::int64_t seen_ = 0;   // … and of those, the ones that have been looked at
  int passes_ = 0;
  int resists_ = 0;       // errno, of this pass
  int not_now_ = 0;       // errno, once and for all
  bool removed_ = false;  // anything, in this pass
  bool over_ = false;
  bool gone_ = false;
  std::string why_;
};

}  // namespace belfry::run
