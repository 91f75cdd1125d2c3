#include "belfry/plugin/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace belfry::plugin {
namespace {

// Enough for any program, and a bound on what one that leaks can take from the machine. Not the address space: V8 and
// others reserve far more of it than they use.
constexpr rlim_t kFilesMax = 256;
constexpr rlim_t kFileBytesMax = 256ull << 20;
constexpr rlim_t kDataBytesMax = 2ull << 30;
// How often to look again for what is still there after KILL.
constexpr int kLookAgainMs = 50;
constexpr int kNoProgram = 127;

void append(std::string& out, std::string_view text) {
  out += text;
  out += '\0';
}

class Parts {
 public:
  explicit Parts(std::string_view bytes) : rest_(bytes) {}
  std::optional<std::string> text() {
    const auto end = rest_.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return out;
  }
  std::optional<int> number() {
    const auto digits = text();
    int out = 0;
    if (!digits || std::from_chars(digits->data(), digits->data() + digits->size(), out).ec != std::errc{}) return {};
    return out;
  }
  bool texts(std::vector<std::string>& into) {
    const auto count = number();
    for (int i = 0; count && i < *count; ++i) {
      auto one = text();
      if (!one) return false;
      into.push_back(std::move(*one));
    }
    return count.has_value();
  }

 private:
  std::string_view rest_;
};

std::string read_all(int fd) {
  std::string out;
  char piece[4096];
  for (ssize_t count = 0; (count = ::read(fd, piece, sizeof piece)) > 0;)
    out.append(piece, static_cast<std::size_t>(count));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// ---- in the plugin's process, between fork and exec

void limit(int what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(what), &now) == 0) most = std::min(most, now.rlim_max);
  const rlimit wanted{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(what), &wanted);
}

void forget_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void report(GuardStatus status) { [[maybe_unused]] const auto size = ::write(kGuardStatus, &status, sizeof status); }

[[noreturn]] void become(GuardOrder& order, pid_t guard, int failure) {
  ::setsid();
  // Not by the guard: the plugin might stop that one before it gets to it.
  report({GuardStatus::Kind::started, ::getpid()});
  // Without its guard nobody would end it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(kNoProgram);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // or it could start what nobody here may end
  forget_signals();
  ::umask(077);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, kFilesMax);
  limit(RLIMIT_FSIZE, kFileBytesMax);
  limit(RLIMIT_DATA, kDataBytesMax);
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  auto arguments = pointers(order.command);
  auto environment = pointers(order.environment);
  if (::chdir(order.folder.c_str()) == 0) ::execve(arguments[0], arguments.data(), environment.data());
  const int why = errno;
  [[maybe_unused]] const auto told = ::write(failure, &why, sizeof why);
  ::_exit(kNoProgram);
}

// ---- the guard itself

// The parent of a process, as /proc says; 0 if it is gone.
pid_t parent_of(const char* pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const auto size = ::read(fd, text, sizeof text);
  ::close(fd);
  const std::string_view stat(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  // `12 (a name) S 7 …`: the name may have anything in it, also a parenthesis.
  const auto behind = stat.rfind(") ");
  if (behind == std::string_view::npos || behind + 4 > stat.size()) return 0;
  pid_t parent = 0;
  std::from_chars(stat.data() + behind + 4, stat.data() + stat.size(), parent);
  return parent;
}

std::vector<std::pair<pid_t, pid_t>> processes_and_parents() {
  std::vector<std::pair<pid_t, pid_t>> out;
  DIR* const folder = ::opendir("/proc");
  if (!folder) return out;
  while (const dirent* const entry = ::readdir(folder)) {
    pid_t pid = 0;
    const std::string_view name(entry->d_name);
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) continue;
    if (const pid_t parent = parent_of(entry->d_name); pid > 0 && parent > 0) out.emplace_back(pid, parent);
  }
  ::closedir(folder);
  return out;
}

// Everything below this process, the nearest first.
std::vector<pid_t> descendants() {
  const auto all = processes_and_parents();
  std::vector<pid_t> out{::getpid()};
  for (std::size_t i = 0; i < out.size(); ++i)
    for (const auto& [pid, parent] : all)
      if (parent == out[i]) out.push_back(pid);
  out.erase(out.begin());
  return out;
}

int signals_descriptor() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::sigaddset(&wanted, number);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  return ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

class Guard {
 public:
  explicit Guard(GuardOrder order) : order_(std::move(order)) {}

  int run() {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    signals_ = signals_descriptor();
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (signals_ < 0 || timer_ < 0 || !start()) return 1;
    while (!nothing_left()) wait();
    report({GuardStatus::Kind::all_gone, 0});
    return 0;
  }

 private:
  bool start() {
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return false;
    const pid_t self = ::getpid();
    plugin_ = ::fork();
    if (plugin_ == 0) become(order_, self, failure[1]);
    ::close(failure[1]);
    let_go_of_streams();
    int why = plugin_ < 0 ? errno : 0;
    const bool failed = ::read(failure[0], &why, sizeof why) == sizeof why || plugin_ < 0;
    ::close(failure[0]);
    if (failed) tell({GuardStatus::Kind::not_started, why});
    return plugin_ > 0;
  }

  // They are the plugin's: it alone decides when they are closed.
  static void let_go_of_streams() {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; ++fd) ::dup2(nothing, fd);
    ::close(nothing);
  }

  void tell(GuardStatus status) {
    if (!std::exchange(told_, true)) report(status);
  }

  // Takes in who has ended. True when there is nobody any more: the children of those who end are handed to us.
  bool nothing_left() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0)
      if (pid == plugin_) plugin_ended(status);
    if (pid < 0 && errno == ECHILD) return true;
    if (killing_) kill_all();
    return false;
  }

  void plugin_ended(int status) {
    plugin_ = 0;
    if (WIFSIGNALED(status)) {
      tell({GuardStatus::Kind::signalled, WTERMSIG(status)});
    } else {
      tell({GuardStatus::Kind::exited, WEXITSTATUS(status)});
    }
    end();
  }

  void wait() {
    pollfd waiting[] = {{signals_, POLLIN, 0}, {timer_, POLLIN, 0}, {control_, POLLIN, 0}};
    ::poll(waiting, 3, killing_ ? kLookAgainMs : -1);
    if (waiting[0].revents != 0) take_signals();
    if (waiting[1].revents != 0) kill_all();
    if (waiting[2].revents != 0) obey();
  }

  void take_signals() {
    signalfd_siginfo one{};
    while (::read(signals_, &one, sizeof one) == sizeof one)
      if (one.ssi_signo != SIGCHLD) end();
  }

  void obey() {
    char wish = 0;
    const auto size = ::read(control_, &wish, 1);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) control_ = -1;  // the server is gone; poll skips what is negative
    if (wish == kGuardKill) {
      kill_all();
    } else {
      end();
    }
  }

  void signal_all(int number) const {
    const pid_t group = plugin_;
    if (group > 0) ::kill(-group, number);
    // Once each: some take a second TERM for impatience.
    for (const pid_t pid : descendants())
      if (group <= 0 || ::getpgid(pid) != group) ::kill(pid, number);
  }

  void end() {
    if (std::exchange(ending_, true)) return;
    signal_all(SIGTERM);
    if (order_.grace_ms <= 0) return kill_all();
    itimerspec grace{};
    grace.it_value.tv_sec = order_.grace_ms / 1000;
    grace.it_value.tv_nsec = static_cast<long>(order_.grace_ms % 1000) * 1'000'000;
    ::timerfd_settime(timer_, 0, &grace, nullptr);
  }

  void kill_all() {
    ending_ = killing_ = true;
    std::uint64_t expirations = 0;
    [[maybe_unused]] const auto size = ::read(timer_, &expirations, sizeof expirations);
    signal_all(SIGKILL);
  }

  GuardOrder order_;
  pid_t plugin_ = -1;  // 0 once it has ended: its number may soon be somebody else's
  int control_ = kGuardControl;
  int signals_ = -1;
  int timer_ = -1;
  bool told_ = false;
  bool ending_ = false;
  bool killing_ = false;
};

}  // namespace

std::string encode(const GuardOrder& order) {
  std::string out;
  append(out, std::to_string(order.grace_ms));
  append(out, order.folder);
  for (const auto* const list : {&order.command, &order.environment}) {
    append(out, std::to_string(list->size()));
    for (const std::string& text : *list) append(out, text);
  }
  return out;
}

std::optional<GuardOrder> decode_order(std::string_view bytes) {
  Parts parts(bytes);
  GuardOrder order;
  const auto grace = parts.number();
  auto folder = parts.text();
  if (!grace || !folder || !parts.texts(order.command) || !parts.texts(order.environment)) return std::nullopt;
  if (order.command.empty()) return std::nullopt;
  order.grace_ms = *grace;
  order.folder = std::move(*folder);
  return order;
}

int run_guard() {
  for (const int fd : {kGuardControl, kGuardStatus, kGuardOrder}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  auto order = decode_order(read_all(kGuardOrder));
  ::close(kGuardOrder);
  if (!order) {
    std::fputs("error: this is how Belfry runs plugins; it is no command\n", stderr);
    return 2;
  }
  Guard guard(std::move(*order));
  ::_exit(guard.run());  // what is registered for an exit is the server's, not the guard's
}

}  // namespace belfry::plugin
