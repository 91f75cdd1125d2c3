// One running plugin and its guard, as the host sees it: what it writes, and that it is gone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "belfry/base/asio.h"
#include "belfry/base/result.h"
#include "belfry/base/task_group.h"
#include "belfry/plugin/amount.h"
#include "belfry/plugin/guard.h"

namespace belfry::plugin {

// Lives on the kernel's thread. Shared by its tasks and by whoever started it.
class Process : public std::enable_shared_from_this<Process> {
 public:
  // Called one after the other, never from within a call of this class.
  struct Listener {
    std::function<void(std::string_view bytes)> output;
    // Look again: its input or output is closed, it is gone, it wrote too many errors.
    std::function<void()> changed;
  };

  explicit Process(asio::io_context& context);
  // Runs `guard __plugin-guard name`; its tasks belong to `tasks`.
  Result<> start(const std::string& guard, const std::string& name, const GuardOrder& order, Listener listener,
                 TaskGroup& tasks);

  enum class Then { keep, close };
  // Without waiting for the plugin, which may never read it.
  void write(std::string text, Then then);
  // TERM, and KILL after the grace of the order.
  void end() { tell(kGuardEnd); }
  void kill() { tell(kGuardKill); }
  // For a guard that does not do as it is told: KILL for it and for the plugin's process group. What the plugin has forked
  // elsewhere is left to Orphans.
  void destroy();
  // Even that did not help: it counts as gone, whatever still runs.
  void abandon();

  bool output_closed() const { return output_closed_; }
  // It did not take what was written: it reads no more.
  bool input_refused() const { return input_refused_; }
  // The guard has ended or was abandoned, and all the plugin wrote was handed over.
  bool gone() const { return tasks_running_ == 0; }
  // The guard has seen that nothing of the plugin runs any more. One that was killed has not.
  bool all_gone() const { return all_gone_; }
  pid_t guard() const { return guard_; }
  // How its main process ended. Nothing while it runs, and if the guard itself was killed.
  const std::optional<GuardStatus>& status() const { return status_; }
  // Walls that this system lacks, and whether it was not started because of that.
  unsigned walls_lacking() const { return walls_lacking_; }
  bool needs_walls() const { return needs_walls_; }
  // What it took too much of.
  Excess excess() const { return excess_; }
  // The end of what it wrote to stderr, and how much that was.
  const std::string& errors() const { return errors_; }
  std::size_t error_bytes() const { return error_bytes_; }
  void forget_error_bytes() { error_bytes_ = 0; }

 private:
  using Stream = asio::posix::stream_descriptor;

  void tell(char wish);
  void changed();
  Task<void> read_output();
  Task<void> read_errors();
  Task<void> write_input();
  Task<void> wait_for_end();
  Task<void> read_status();
  Task<std::size_t> read_some(Stream& stream, char* into, std::size_t size);
  void take_errors(std::string_view bytes);
  void take_status(const GuardStatus& status);

  Listener listener_;
  TaskGroup* tasks_ = nullptr;
  Stream input_;
  Stream output_;
  Stream errors_pipe_;
  Stream control_;
  Stream status_pipe_;
  Stream ended_;  // a pidfd of the guard
  pid_t guard_ = -1;
  pid_t group_ = 0;  // of the plugin, once it has started
  bool guard_gone_ = false;
  bool all_gone_ = false;
  std::size_t rest_max_;  // how much is still read when the guard is gone
  bool output_closed_ = false;
  bool input_refused_ = false;
  int tasks_running_ = 0;
  std::string to_write_;
  bool writing_ = false;
  bool close_input_ = false;
  std::optional<GuardStatus> status_;
  unsigned walls_lacking_ = 0;
  bool needs_walls_ = false;
  Excess excess_ = Excess::none;
  std::string errors_;
  std::size_t error_bytes_ = 0;
};

}  // namespace belfry::plugin
