#include "belfry/plugin/guard.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

#include "belfry/plugin/amount.h"
#include "belfry/plugin/walls.h"

namespace belfry::plugin {
namespace {

// Enough for any program, and a bound on what one that leaks can take from the machine. Not the address space: V8 and
// others reserve far more of it than they use.
constexpr rlim_t kFilesMax = 256;
constexpr rlim_t kFileBytesMax = 256ull << 20;
constexpr rlim_t kDataBytesMax = 2ull << 30;
// How often to look again for what is still there after KILL.
constexpr int kLookAgainMs = 10;
constexpr int kKillRounds = 3;
constexpr rlim_t kSeenAbove = 16;
constexpr std::size_t kKilledAtOnce = 5'000;
constexpr int kNoProgram = 127;
// Between two looks at how much the plugin takes. Memory and output are looked at every so many of them, and output the less
// often the more of it there is.
constexpr int kCountMs = 25;
constexpr int kLooksAtMemory = 4;
constexpr int kLooksAtOutput = 10;
constexpr int kEntriesALook = 100;
constexpr int kNice = 5;
constexpr std::string_view kOomScore = "500";  // who takes too much goes before the server does
// The first ABI of Landlock that knows truncate.
constexpr int kTruncateAbi = 3;
constexpr char kFurnished = 'y';
constexpr char kNotFurnished = 'n';

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

// Everything that is prepared before the fork.
struct Room {
  std::optional<Landlock> files;
  std::vector<sock_filter> calls;  // empty: none
  Identity identity;
  bool namespaces = false;
};

// For the whole system: who is behind walls has no more right to it than others.
void step_back() {
  ::setpriority(PRIO_PROCESS, 0, std::max(::getpriority(PRIO_PROCESS, 0), kNice));
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto size = ::write(file, kOomScore.data(), kOomScore.size());
  ::close(file);
}

bool enter_walls(const GuardOrder& order, const Room& room) {
  if (order.sandbox == Sandbox::off) return true;
  step_back();
  drop_capabilities();
  // Counts only who is in this user's namespace, if it is one of its own; and root not at all. A little more than it may
  // have, so that the guard sees it and says why it ends.
  if (room.namespaces) limit(RLIMIT_NPROC, static_cast<rlim_t>(order.amounts.processes) + kSeenAbove);
  if (room.files && !room.namespaces) room.files->allow_own_process();
  if (room.files && room.files->open() && !room.files->enter()) return false;
  return room.calls.empty() || enter_call_filter(room.calls);
}

[[noreturn]] void become(GuardOrder& order, const Room& room, pid_t parent, int failure) {
  // Without its guard nobody would end it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNoProgram);
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
  if (::chdir(order.folder.c_str()) == 0 && enter_walls(order, room))
    ::execve(arguments[0], arguments.data(), environment.data());
  const int why = errno;
  [[maybe_unused]] const auto told = ::write(failure, &why, sizeof why);
  ::_exit(kNoProgram);
}

[[noreturn]] void become_leader(GuardOrder& order, const Room& room, pid_t guard, int failure) {
  ::setsid();
  // Not by the guard: the plugin might stop that one before it gets to it.
  report({GuardStatus::Kind::started, ::getpid()});
  become(order, room, guard, failure);
}

// They are the plugin's: it alone decides when they are closed.
void let_go_of_streams() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(nothing, fd);
  ::close(nothing);
}

// ---- the first process of the plugin's namespaces

// Says how the plugin has ended, and ends when there is nobody else any more. No signal but KILL from outside reaches it.
[[noreturn]] void be_first(GuardOrder& order, const Room& room, const int (&failure)[2], int furnished, int ended) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  bool good = furnish_namespaces(room.identity, order.writes);
  if (good && room.files) room.files->allow_own_places();
  // Nobody takes it: the guard has gone before its death could be noticed.
  const char word = good ? kFurnished : kNotFurnished;
  if (::write(furnished, &word, 1) != 1 || !good) ::_exit(kNoProgram);
  ::close(furnished);
  const pid_t plugin = ::fork();
  if (plugin == 0) become(order, room, ::getppid(), failure[1]);
  if (plugin < 0) {
    const int why = errno;
    [[maybe_unused]] const auto told = ::write(failure[1], &why, sizeof why);
  }
  forget_signals();
  for (const int fd : {failure[0], failure[1], kGuardControl, kGuardStatus}) ::close(fd);
  let_go_of_streams();
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, 0)) > 0 || errno == EINTR;) {
    if (pid != plugin) continue;
    [[maybe_unused]] const auto told = ::write(ended, &status, sizeof status);
  }
  ::_exit(0);
}

// ---- the guard itself

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
    look_at_output();
    report({GuardStatus::Kind::all_gone, 0});
    return 0;
  }

 private:
  bool start() {
    int failure[2];
    if (::pipe2(failure, O_CLOEXEC) != 0) return false;
    if (order_.sandbox != Sandbox::off) prepare_walls(failure);
    if (lacks_ != 0) report({may_start() ? GuardStatus::Kind::lacks : GuardStatus::Kind::no_walls, lacks_word()});
    if (!may_start()) return true;
    if (!room_.namespaces) {
      const pid_t self = ::getpid();
      plugin_ = ::fork();
      if (plugin_ == 0) become_leader(order_, room_, self, failure[1]);
    }
    ::close(failure[1]);
    let_go_of_streams();
    int why = plugin_ < 0 ? errno : 0;
    const bool failed = ::read(failure[0], &why, sizeof why) == sizeof why || plugin_ < 0;
    ::close(failure[0]);
    if (failed) tell({GuardStatus::Kind::not_started, why});
    return plugin_ > 0;
  }

  // With namespaces the plugin starts in here: only then it is known whether this system lets us.
  void prepare_walls(const int (&failure)[2]) {
    room_.files.emplace(FileWall{.reads = order_.reads, .writes = order_.writes}, order_.landlock_abi_max);
    if (!room_.files->open()) lacks_ |= kFilesWall;
    const bool has_calls = seccomp_here();
    if (!has_calls) lacks_ |= kCallsWall;
    if (has_calls) room_.calls = call_filter({.no_machine = order_.no_network});
    room_.identity = own_identity();
    if (order_.sandbox == Sandbox::strict && lacks_ != 0) return;
    room_.namespaces = true;
    if (start_in_namespaces(failure)) return;
    room_.namespaces = false;
    lacks_ |= kProcessesWall;
    // What the namespaces would have kept out.
    if (has_calls)
      room_.calls = call_filter(
          {.no_network = order_.no_network, .no_truncate = room_.files->abi() < kTruncateAbi, .no_others = true});
    if (!has_calls && order_.no_network) lacks_ |= kNetworkWall;
  }

  bool start_in_namespaces(const int (&failure)[2]) {
    int furnished[2];
    int ended[2];
    if (::pipe2(furnished, O_CLOEXEC) != 0 || ::pipe2(ended, O_CLOEXEC) != 0) return false;
    const unsigned long flags = kNamespaces | (order_.no_network ? kNetworkNamespace : 0) | SIGCHLD;
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone, flags, 0, 0, 0, 0));
    if (pid == 0) {
      ::close(furnished[0]);
      be_first(order_, room_, failure, furnished[1], ended[1]);
    }
    ::close(furnished[1]);
    ::close(ended[1]);
    char word = 0;
    const bool good = pid > 0 && ::read(furnished[0], &word, 1) == 1 && word == kFurnished;
    ::close(furnished[0]);
    if (!good) {
      ::close(ended[0]);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
      return false;
    }
    plugin_ = pid;
    ended_ = ended[0];
    report({GuardStatus::Kind::started, pid});
    return true;
  }

  // A plugin that asks to have no network is not started with one.
  bool may_start() const {
    const unsigned needed = (order_.sandbox == Sandbox::strict ? kWallsAlways : 0) | kNetworkWall;
    return (lacks_ & needed) == 0;
  }
  int lacks_word() const { return static_cast<int>(lacks_); }

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
    take_end();
    told_end(status);
  }

  void told_end(int status) {
    if (WIFSIGNALED(status)) {
      tell({GuardStatus::Kind::signalled, WTERMSIG(status)});
    } else {
      tell({GuardStatus::Kind::exited, WEXITSTATUS(status)});
    }
    end();
  }

  // From the first process of the plugin's namespaces; it goes on as long as there is anybody.
  void take_end() {
    if (ended_ < 0) return;
    int status = 0;
    const bool has_ended = ::read(ended_, &status, sizeof status) == sizeof status;
    ::close(std::exchange(ended_, -1));
    if (has_ended) told_end(status);
  }

  void wait() {
    pollfd waiting[] = {{signals_, POLLIN, 0}, {timer_, POLLIN, 0}, {control_, POLLIN, 0}, {ended_, POLLIN, 0}};
    ::poll(waiting, 4, killing_ ? kLookAgainMs : order_.sandbox == Sandbox::off ? -1 : kCountMs);
    if (waiting[0].revents != 0) take_signals();
    if (waiting[1].revents != 0) kill_all();
    if (waiting[2].revents != 0) obey();
    if (waiting[3].revents != 0) take_end();
    if (order_.sandbox != Sandbox::off && !killing_) count();
  }

  // What costs more is looked at less often.
  void count() {
    const auto most = static_cast<std::size_t>(order_.amounts.processes);
    const auto [all, threads] = descendants_of(::getpid(), most + 1);
    if (all.size() > most || threads > most + 1) return refuse(Excess::processes);
    if (++looks_ % kLooksAtMemory == 0 && memory_of(all) > std::int64_t{order_.amounts.memory_mib} << 20)
      return refuse(Excess::memory);
    if (looks_ < next_output_) return;
    look_at_output(nameless_bytes_of(all));
  }

  void look_at_output(std::int64_t nameless = 0) {
    if (order_.sandbox == Sandbox::off || order_.output.empty()) return;
    Output output = output_in(order_.output, order_.amounts);
    output.bytes += nameless;
    next_output_ = looks_ + kLooksAtOutput + (output.entries / kEntriesALook);
    if (const Excess what = excess(output, order_.amounts); what != Excess::none) refuse(what);
  }

  void refuse(Excess what) {
    if (!std::exchange(refused_, true)) report({GuardStatus::Kind::too_much, static_cast<int>(what)});
    kill_all();
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
    for (const pid_t pid : descendants_of(::getpid(), kKilledAtOnce).processes)
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
    // The first process takes all others with it.
    if (room_.namespaces && plugin_ > 0) {
      ::kill(plugin_, SIGKILL);
      return;
    }
    // Some fork while others are killed.
    for (int round = 0; round < kKillRounds; ++round) signal_all(SIGKILL);
  }

  GuardOrder order_;
  Room room_;
  unsigned lacks_ = 0;
  // Or the first process of its namespaces. 0 once it has ended: its number may soon be somebody else's.
  pid_t plugin_ = -1;
  int control_ = kGuardControl;
  int signals_ = -1;
  int timer_ = -1;
  int ended_ = -1;
  int looks_ = 0;
  int next_output_ = kLooksAtOutput;
  bool refused_ = false;
  bool told_ = false;
  bool ending_ = false;
  bool killing_ = false;
};

}  // namespace

std::string encode(const GuardOrder& order) {
  std::string out;
  const Amounts& most = order.amounts;
  for (const int number :
       {order.grace_ms, static_cast<int>(order.sandbox), order.landlock_abi_max, static_cast<int>(order.no_network),
        most.processes, most.memory_mib, most.entries, most.levels, most.output_mib})
    append(out, std::to_string(number));
  for (const std::string& text : {order.folder, order.output}) append(out, text);
  for (const auto* const list : {&order.command, &order.environment, &order.reads, &order.writes}) {
    append(out, std::to_string(list->size()));
    for (const std::string& text : *list) append(out, text);
  }
  return out;
}

std::optional<GuardOrder> decode_order(std::string_view bytes) {
  Parts parts(bytes);
  GuardOrder order;
  Amounts& most = order.amounts;
  int sandbox = 0;
  int no_network = 0;
  for (int* const number : {&order.grace_ms, &sandbox, &order.landlock_abi_max, &no_network, &most.processes,
                            &most.memory_mib, &most.entries, &most.levels, &most.output_mib}) {
    const auto read = parts.number();
    if (!read) return std::nullopt;
    *number = *read;
  }
  for (std::string* const text : {&order.folder, &order.output}) {
    auto read = parts.text();
    if (!read) return std::nullopt;
    *text = std::move(*read);
  }
  for (auto* const list : {&order.command, &order.environment, &order.reads, &order.writes})
    if (!parts.texts(*list)) return std::nullopt;
  if (order.command.empty()) return std::nullopt;
  order.sandbox = static_cast<Sandbox>(sandbox);
  order.no_network = no_network != 0;
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
