// Ends what a guard leaves that was itself killed, for example because memory ran out.
//
// The kernel ends only the plugin's main process with its guard. What that has forked would be handed to init, where nobody
// knows whose it is, and would run on for ever. So this process becomes a subreaper: whatever loses its guard becomes a child
// of ours, however often it has forked and whatever session it has made. A child of ours that is no guard can then only be
// such an orphan, unless it was there before.
#pragma once

#include <sys/types.h>

#include <set>

namespace belfry::plugin {

// One in a process, which starts no other children while it lives.
class Orphans {
 public:
  Orphans();
  ~Orphans();  // the process is what it was before
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;

  // KILL for every child but these, and takes in who has ended. True if there is none any more; otherwise ask again soon:
  // an orphan's own children come to us when it has ended. Never waits.
  bool end_all_but(const std::set<pid_t>& guards) const;

 private:
  std::set<pid_t> before_;
  int was_subreaper_ = 0;
};

}  // namespace belfry::plugin
