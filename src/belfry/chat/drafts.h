// What agents are writing right now, in memory only: a reader who comes in the middle sees what there is so far.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/base/time.h"
#include "belfry/chat/conversation.h"

namespace belfry::chat {

class Drafts {
 public:
  static Result<> check(const Draft& draft);
  // Keeps it in place of what it was before; an empty text ends it. Refuses one too many.
  Result<> put(const std::string& session, const Draft& draft, BootTime now);
  std::vector<Draft> of(const std::string& session) const;
  // The draft whose place this line takes, which is over then.
  std::optional<Draft> said(const std::string& session, const Line& line);
  // Drops those whose writers have been silent for long, and says which.
  std::vector<std::pair<std::string, Draft>> forget_old(BootTime now);

 private:
  struct Kept {
    Draft draft;
    BootTime touched;
  };
  std::unordered_map<std::string, std::vector<Kept>> kept_;  // by session
  std::size_t count_ = 0;
};

}  // namespace belfry::chat
