// One owner for a folder of data (G21): also where its files were taken away and made anew, and between two owners in one
// process. SQLite's own lock belongs to a file, and goes with it.
#pragma once

#include <string>
#include <utility>

#include "belfry/base/descriptor.h"
#include "belfry/base/result.h"

namespace belfry::store {

class FolderLock {
 public:
  // Refuses where somebody else has it (data_in_use), and where the file system knows no locks.
  static Result<FolderLock> take(const std::string& folder);

 private:
  explicit FolderLock(Descriptor folder) : folder_(std::move(folder)) {}

  Descriptor folder_;
};

}  // namespace belfry::store
