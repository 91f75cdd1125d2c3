#include "belfry/plugin/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <fmt/format.h>

#include "belfry/base/descriptor.h"

namespace belfry::plugin {
namespace {

using boost::system::error_code;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 16u << 10;
// Of stderr: what stands in the message of a crash is cut from its end.
constexpr std::size_t kErrorsKept = 4u << 10;
// Descriptors that are handed over are first moved up here, so that none stands where another one goes.
constexpr int kAbove = 16;
// No pipe holds more unless root made it so. Somebody who still writes when the guard is gone could go on for ever.
constexpr std::size_t kRestMax = 4u << 20;

struct Pipe {
  Descriptor read;
  Descriptor write;
};

bool open_pipe(Pipe& pipe) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  pipe = {Descriptor(fds[0]), Descriptor(fds[1])};
  return true;
}

// A file in memory that nobody else can see.
Descriptor file_with(const std::string& text) {
  Descriptor file(::memfd_create("belfry-order", MFD_CLOEXEC));
  for (std::size_t written = 0; file.number() >= 0 && written < text.size();) {
    const auto count = ::write(file.number(), text.data() + written, text.size() - written);
    if (count < 0) return {};
    written += static_cast<std::size_t>(count);
  }
  if (file.number() >= 0) ::lseek(file.number(), 0, SEEK_SET);
  return file;
}

// posix_spawn: a plain fork of a server with threads and much memory is slow, and only exec is allowed after it.
int spawn_guard(const std::string& guard, const std::string& name, const std::array<int, 6>& descriptors, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (int target = 0; target < static_cast<int>(descriptors.size()); ++target)
    ::posix_spawn_file_actions_adddup2(&actions, descriptors[static_cast<std::size_t>(target)], target);
  // Sockets of the server may lack the flag that closes them.
  ::posix_spawn_file_actions_addclosefrom_np(&actions, static_cast<int>(descriptors.size()));
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own: Ctrl-C is for the server, which then ends its plugins in order.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string program = "belfry";
  std::string command(kGuardCommand);
  std::string label = name;
  char* const arguments[] = {program.data(), command.data(), label.data(), nullptr};
  char* const environment[] = {nullptr};  // that of the plugin is in the order
  const int failed = ::posix_spawn(&pid, guard.c_str(), &actions, &attributes, arguments, environment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Process::Process(asio::io_context& context)
    : input_(context),
      output_(context),
      errors_pipe_(context),
      control_(context),
      status_pipe_(context),
      ended_(context),
      rest_max_(kRestMax) {}

Result<> Process::start(const std::string& guard, const std::string& name, const GuardOrder& order, Listener listener,
                        TaskGroup& tasks) {
  const auto refused = [](int why) { return fail(Errc::unavailable, std::strerror(why)); };
  Pipe input, output, errors, control, status;
  for (Pipe* const pipe : {&input, &output, &errors, &control, &status})
    if (!open_pipe(*pipe)) return refused(errno);
  const Descriptor order_file = file_with(encode(order));
  if (order_file.number() < 0) return refused(errno);
  std::array<Descriptor, 6> moved;
  std::array<int, 6> numbers{};
  const int theirs[] = {input.read.number(),   output.write.number(), errors.write.number(),
                        control.read.number(), status.write.number(), order_file.number()};
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = Descriptor(::fcntl(theirs[i], F_DUPFD_CLOEXEC, kAbove));
    if (moved[i].number() < 0) return refused(errno);
    numbers[i] = moved[i].number();
  }
  if (const int failed = spawn_guard(guard, name, numbers, guard_); failed != 0) return refused(failed);
  // It is ours and not waited for, so its number cannot be another's yet.
  Descriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, guard_, 0)));
  if (ended.number() < 0) {
    const int why = errno;
    ::kill(guard_, SIGKILL);
    ::waitpid(guard_, nullptr, 0);
    return refused(why);
  }
  input_.assign(input.write.release());
  output_.assign(output.read.release());
  errors_pipe_.assign(errors.read.release());
  control_.assign(control.write.release());
  status_pipe_.assign(status.read.release());
  ended_.assign(ended.release());
  listener_ = std::move(listener);
  tasks_ = &tasks;
  tasks_running_ = 4;
  tasks.spawn("output of a plugin", read_output());
  tasks.spawn("errors of a plugin", read_errors());
  tasks.spawn("status of a plugin", read_status());
  tasks.spawn("end of a plugin", wait_for_end());
  return {};
}

void Process::changed() {
  if (listener_.changed) listener_.changed();
  if (gone()) listener_ = {};  // it may hold whoever holds us
}

void Process::tell(char wish) {
  if (!control_.is_open()) return;
  // A byte into an empty pipe never waits, and without a reader SIGPIPE is ignored.
  [[maybe_unused]] const auto size = ::write(control_.native_handle(), &wish, 1);
}

void Process::destroy() {
  if (guard_gone_) return;
  // The group first, and only until its end was told: as long as its guard has not waited for it, its number is no other's.
  if (group_ > 1 && !status_) ::kill(-group_, SIGKILL);
  ::syscall(SYS_pidfd_send_signal, ended_.native_handle(), SIGKILL, nullptr, 0);
}

void Process::abandon() {
  error_code ec;
  if (!guard_gone_) ended_.cancel(ec);  // wait_for_end does the rest
}

void Process::write(std::string text, Then then) {
  to_write_ += text;
  close_input_ = close_input_ || then == Then::close;
  if (!std::exchange(writing_, true)) tasks_->spawn("input of a plugin", write_input());
}

Task<void> Process::write_input() {
  const auto self = shared_from_this();
  while (!to_write_.empty() && input_.is_open()) {
    const std::string text = std::exchange(to_write_, {});
    for (std::size_t written = 0; written < text.size() && input_.is_open();) {
      const auto wrote =
          co_await input_.async_write_some(asio::buffer(text.data() + written, text.size() - written), kAwait);
      const auto& [failed, count] = wrote;
      if (failed) {  // it does not read on; what it answers counts nevertheless
        error_code ignored;
        input_.close(ignored);
        input_refused_ = true;
        if (listener_.changed) listener_.changed();
      }
      written += count;
    }
  }
  writing_ = false;
  error_code ignored;
  if (close_input_) input_.close(ignored);
}

// As long as the guard lives it is waited for more; then only what is in the pipe already is taken: somebody outside of
// the guard's reach may have been handed its other end.
Task<std::size_t> Process::read_some(Stream& stream, char* into, std::size_t size) {
  error_code ec;
  if (!guard_gone_) {
    const auto read = co_await stream.async_read_some(asio::buffer(into, size), kAwait);
    ec = std::get<0>(read);
    if (!ec) co_return std::get<1>(read);
    if (ec != asio::error::operation_aborted) co_return 0;
  }
  stream.non_blocking(true, ec);
  const std::size_t count = stream.read_some(asio::buffer(into, std::min(size, rest_max_)), ec);
  if (ec) co_return 0;
  rest_max_ -= count;
  co_return count;
}

Task<void> Process::read_output() {
  const auto self = shared_from_this();
  std::string piece(kReadBytes, '\0');
  while (true) {
    const std::size_t count = co_await read_some(output_, piece.data(), piece.size());
    if (count == 0) break;
    if (listener_.output) listener_.output(std::string_view(piece.data(), count));
  }
  output_closed_ = true;
  --tasks_running_;
  changed();
}

void Process::take_errors(std::string_view bytes) {
  error_bytes_ += bytes.size();
  errors_ += bytes;
  if (errors_.size() > kErrorsKept) errors_.erase(0, errors_.size() - kErrorsKept);
}

Task<void> Process::read_errors() {
  const auto self = shared_from_this();
  std::string piece(kReadBytes, '\0');
  while (true) {
    const std::size_t count = co_await read_some(errors_pipe_, piece.data(), piece.size());
    if (count == 0) break;
    take_errors(std::string_view(piece.data(), count));
    if (listener_.changed) listener_.changed();
  }
  --tasks_running_;
  changed();
}

Task<void> Process::wait_for_end() {
  const auto self = shared_from_this();
  const auto waited = co_await ended_.async_wait(Stream::wait_read, kAwait);
  // No zombie is left; the guard has ended, so this does not wait.
  ::waitpid(guard_, nullptr, std::get<0>(waited) ? WNOHANG : 0);
  guard_gone_ = true;
  error_code ec;
  for (Stream* const stream : {&output_, &errors_pipe_, &status_pipe_}) stream->cancel(ec);
  for (Stream* const stream : {&input_, &control_, &ended_}) stream->close(ec);
  --tasks_running_;
  changed();
}

void Process::take_status(const GuardStatus& status) {
  switch (status.kind) {
    case GuardStatus::Kind::started: group_ = status.number; break;
    case GuardStatus::Kind::all_gone: all_gone_ = true; break;
    case GuardStatus::Kind::no_walls: needs_walls_ = true; [[fallthrough]];
    case GuardStatus::Kind::lacks: walls_lacking_ = static_cast<unsigned>(status.number); break;
    case GuardStatus::Kind::too_much: excess_ = static_cast<Excess>(status.number); break;
    // As soon as the main process has ended; what that one has forked may still be there.
    case GuardStatus::Kind::exited:
    case GuardStatus::Kind::signalled:
    case GuardStatus::Kind::not_started: status_ = status; break;
  }
}

Task<void> Process::read_status() {
  const auto self = shared_from_this();
  while (true) {
    GuardStatus status;
    // Each is written as a whole, and a pipe does not tear what is so short.
    const std::size_t count = co_await read_some(status_pipe_, reinterpret_cast<char*>(&status), sizeof status);
    if (count != sizeof status) break;
    take_status(status);
    if (listener_.changed) listener_.changed();
  }
  --tasks_running_;
  changed();
}

}  // namespace belfry::plugin
