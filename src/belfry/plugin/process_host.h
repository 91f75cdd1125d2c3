// Runs plugins as processes: one for each job, or one that stays for a plugin that says so (`"mode":"persistent"`).
//
// A plugin gets argv without a shell, its folder as the working directory, three pipes and an environment of its own, and
// is ended with everything it has forked (guard.h). What is said on the pipes is in dialogue.h. Which outcome counts:
//
//   it says success and exits with 0                    the success
//   it says success and exits otherwise by itself       crashed: it did not get to its end
//   it says failure                                     that failure, however it exits
//   it has said its result and does not exit            ended after the grace; the result counts
//   it ends without a result                            crashed, with the end of what it wrote to stderr
//   it closes its output without a result and goes on   ended after the grace: bad_output
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/plugin/host.h"
#include "belfry/plugin/sandbox.h"

namespace belfry::plugin {

struct HostOptions {
  std::string guard = "/proc/self/exe";  // the belfry program
  Millis term_grace = kTermGrace;        // from TERM to KILL, and from a result to the end of the process
  std::string timezone;                  // TZ for the plugins; empty: that of the machine
  std::size_t line_max = 1u << 20;       // one line of output; the last one is a result, and goes into a message
  std::size_t output_max = 4u << 20;     // all of it, for one request
  std::size_t errors_max = 16u << 20;    // on stderr: only its end is kept, but endless chatter is a fault
  // What stands around plugins, and around those that the settings name.
  Sandbox sandbox = Sandbox::off;
  std::map<std::string, Sandbox> sandboxes{};
  Amounts amounts{};
  int landlock_abi_max = kLandlockNewest;
  // Where a process that stays gets a folder of its own, how its name begins (not as those of an earlier life), and who
  // removes it (by its name there) when the process has ended; empty: it writes to the folder of its first job.
  std::filesystem::path work{};
  std::string work_prefix{};
  std::function<void(const std::string& name)> discard{};
  // What a killed guard leaves is ended, too (orphans.h). For a process whose children are all its own plugins'.
  bool adopt_orphans = false;
};

// Lives on the kernel's thread. SIGPIPE is ignored from its construction on: a plugin may close what we write to.
class ProcessHost final : public Host {
 public:
  ProcessHost(asio::io_context& context, Clock& clock, HostOptions options = {});
  ~ProcessHost() override;  // after stop()

  // Jobs of one persistent plugin follow each other; the time of one begins with its turn.
  Task<Outcome> perform(Job job, Progress progress, std::shared_ptr<Cancel> cancel) override;
  // After a scan: ends what stays of plugins that are gone or are not what they were, once they have answered.
  void renew(const std::vector<std::shared_ptr<const Plugin>>& plugins);
  // Ends everything: jobs under way are cancelled. What still runs at the deadline is killed, and what then still does not
  // end is given up: it returns at most a second later, whatever happens.
  Task<void> stop(BootTime deadline);
  // Processes that run, guards not counted.
  int running() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::plugin
