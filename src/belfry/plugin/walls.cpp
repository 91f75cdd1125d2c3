#include "belfry/plugin/walls.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace belfry::plugin {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";

// ---- Landlock

constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kVersion = 1;  // of the first one's flags
constexpr int kPathBeneath = 1;

struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};
struct [[gnu::packed]] PathRule {
  std::uint64_t access = 0;
  std::int32_t folder = -1;
};

constexpr std::uint64_t kExecute = 1u << 0;
constexpr std::uint64_t kWriteFile = 1u << 1;
constexpr std::uint64_t kReadFile = 1u << 2;
constexpr std::uint64_t kReadFolder = 1u << 3;
constexpr std::uint64_t kTruncate = 1u << 14;
constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;
constexpr std::uint64_t kReading = kExecute | kReadFile | kReadFolder;
constexpr std::uint64_t kDeviceNodes = (1u << 6) | (1u << 11);  // to make them is nobody's
constexpr std::uint64_t kScopes = 3;                            // abstract sockets and signals: ABI 6

// The rights that an ABI knows: bits 0 to 12, then rename and link (13), truncate (14), ioctl of devices (15).
constexpr std::uint64_t rights_of(int abi) {
  const int known = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  return (1ull << known) - 1;
}
constexpr std::size_t size_of_ruleset(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

// ---- what every plugin may read

constexpr const char* kSystem[] = {"/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"};
// Looked at by the C library, resolvers, TLS and interpreters. Nothing in here is a secret.
constexpr const char* kEtc[] = {"ld.so.cache",
                                "ld.so.conf",
                                "ld.so.conf.d",
                                "ld.so.preload",
                                "passwd",
                                "group",
                                "nsswitch.conf",
                                "hosts",
                                "host.conf",
                                "resolv.conf",
                                "gai.conf",
                                "services",
                                "protocols",
                                "networks",
                                "localtime",
                                "timezone",
                                "ssl/certs",
                                "ssl/openssl.cnf",
                                "ssl/cert.pem",
                                "pki/tls/certs",
                                "pki/tls/cert.pem",
                                "pki/tls/openssl.cnf",
                                "pki/ca-trust",
                                "ca-certificates",
                                "ca-certificates.conf",
                                "alternatives",
                                "mime.types",
                                "magic",
                                "magic.mime",
                                "fonts",
                                "locale.alias",
                                "locale.conf",
                                "terminfo",
                                "os-release",
                                "debian_version",
                                "gitconfig",
                                "inputrc",
                                "openal",
                                "vulkan"};
constexpr const char* kEtcBegins[] = {"python3", "perl", "java",        "php",        "node",
                                      "ruby",    "lua",  "ImageMagick", "ghostscript"};
constexpr const char* kOthers[] = {"/dev/random", "/dev/urandom", "/sys/devices/system/cpu",
                                   "/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf"};
constexpr const char* kWritableDevices[] = {"/dev/null", "/dev/zero", "/dev/full"};
// Where the plugin has no /proc of its own.
constexpr const char* kHarmlessOfProc[] = {"/proc/cpuinfo",     "/proc/meminfo",    "/proc/stat",
                                           "/proc/loadavg",     "/proc/uptime",     "/proc/version",
                                           "/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm"};

// ---- seccomp

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// Denied as if the user had no right to it. Those that headers may lack stand with their numbers, which are the same on
// all architectures.
constexpr long kDenied[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    438 /* pidfd_getfd */,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    431 /* fsconfig */,
    432 /* fsmount */,
    433 /* fspick */,
    442 /* mount_setattr */,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    425 /* io_uring_setup */,
    426 /* io_uring_enter */,
    427 /* io_uring_register */,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    443 /* quotactl_fd */,
    SYS_acct,
    SYS_syslog,
    SYS_vhangup,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    // Memory that belongs to no process, and without a namespace outlives them all.
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
};
constexpr std::uint32_t kNewNamespaces =
    0x10000000 | 0x20000000 | 0x00020000 | 0x08000000 | 0x40000000 | 0x04000000 | 0x02000000 | 0x00000080;
constexpr std::uint32_t kOwnersRights = S_ISUID | S_ISGID;  // whoever starts such a file is somebody else
constexpr long kFchmodat2 = 452;
constexpr std::uint32_t kVsock = 40;
constexpr long kClone3 = 435;
constexpr long kOpenat2 = 437;
constexpr std::uint32_t kX32 = 0x40000000;

constexpr std::uint32_t refuse(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}
constexpr std::uint32_t kRefused = refuse(EPERM);

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    add(BPF_RET | BPF_K, refuse(ENOSYS));  // another architecture has other numbers
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    add(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1);
    add(BPF_RET | BPF_K, refuse(ENOSYS));
#endif
  }
  void deny(long call, std::uint32_t how = kRefused) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, how);
  }
  // Denied if any of these bits is set in an argument.
  void deny_bits(long call, int argument, std::uint32_t bits) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(argument);
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    add(BPF_RET | BPF_K, kRefused);
    load(offsetof(seccomp_data, nr));
  }
  // Denied unless an argument has this value.
  void deny_unless(long call, int argument, std::uint32_t value, std::uint32_t how = kRefused) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(argument);
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    add(BPF_RET | BPF_K, how);
    load(offsetof(seccomp_data, nr));
  }
  // Denied if an argument, as far as the mask goes, has this value.
  void deny_masked(long call, int argument, std::uint32_t mask, std::uint32_t value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 5);
    load_argument(argument);
    add(BPF_ALU | BPF_AND | BPF_K, mask);
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    add(BPF_RET | BPF_K, kRefused);
    load(offsetof(seccomp_data, nr));
  }
  std::vector<sock_filter> finish() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return std::move(steps_);
  }

 private:
  void add(int code, std::uint32_t k, int if_true = 0, int if_false = 0) {
    steps_.push_back(
        {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true), static_cast<std::uint8_t>(if_false), k});
  }
  void load(std::size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)); }
  // Its lower half: flags and families have no other.
  void load_argument(int number) {
    load(offsetof(seccomp_data, args) + (static_cast<std::size_t>(number) * sizeof(std::uint64_t)));
  }

  std::vector<sock_filter> steps_;
};

void deny_owners_rights(Filter& filter) {
  filter.deny_bits(SYS_fchmod, 1, kOwnersRights);
  filter.deny_bits(SYS_fchmodat, 2, kOwnersRights);
  filter.deny_bits(kFchmodat2, 2, kOwnersRights);
  filter.deny_bits(SYS_openat, 3, kOwnersRights);
  filter.deny_bits(SYS_mkdirat, 2, kOwnersRights);
  filter.deny_bits(SYS_mknodat, 2, kOwnersRights);
#if defined(__x86_64__)
  filter.deny_bits(SYS_chmod, 1, kOwnersRights);
  filter.deny_bits(SYS_open, 2, kOwnersRights);
  filter.deny_bits(SYS_creat, 1, kOwnersRights);
  filter.deny_bits(SYS_mkdir, 1, kOwnersRights);
  filter.deny_bits(SYS_mknod, 1, kOwnersRights);
#endif
}

// The mode that is none of reading, writing and both asks Landlock for no right at all.
void deny_truncating(Filter& filter) {
  filter.deny(SYS_truncate);
  filter.deny(kOpenat2, refuse(ENOSYS));
  filter.deny_masked(SYS_openat, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
  filter.deny_masked(SYS_openat, 2, O_ACCMODE, O_ACCMODE);
#if defined(__x86_64__)
  filter.deny_masked(SYS_open, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
  filter.deny_masked(SYS_open, 1, O_ACCMODE, O_ACCMODE);
#endif
}

// 0 is the process itself.
void deny_reaching_others(Filter& filter) {
  for (const long call : {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
                          SYS_sched_setattr, SYS_migrate_pages, SYS_move_pages})
    filter.deny_unless(call, 0, 0);
  filter.deny_unless(SYS_setpriority, 1, 0);
  filter.deny_unless(SYS_ioprio_set, 1, 0);
}

// ---- namespaces

struct MountAttributes {
  std::uint64_t set = 0;
  std::uint64_t clear = 0;
  std::uint64_t propagation = 0;
  std::uint64_t user_namespace = 0;
};
constexpr long kMountSetattr = 442;
constexpr std::uint64_t kReadOnly = 1;

bool write_file(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const std::size_t size = std::strlen(text);
  const bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  ::close(fd);
  return written;
}

bool change_mount(const char* path, int flags, MountAttributes attributes) {
  return ::syscall(kMountSetattr, AT_FDCWD, path, flags, &attributes, sizeof attributes) == 0;
}

bool can_clone_namespaces() {
  const Identity identity = own_identity();
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone, kNamespaces | SIGCHLD, 0, 0, 0, 0));
  if (pid == 0) ::_exit(furnish_namespaces(identity, {}) ? 0 : 1);
  int status = 1;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

unsigned KernelWalls::walls() const {
  unsigned all = 0;
  if (landlock_abi > 0) all |= kFilesWall;
  if (namespaces) all |= kProcessesWall;
  if (seccomp) all |= kCallsWall;
  if (namespaces || seccomp) all |= kNetworkWall;
  return all;
}

KernelWalls walls_here() {
  return {.landlock_abi = landlock_abi(), .namespaces = can_clone_namespaces(), .seccomp = seccomp_here()};
}

bool seccomp_here() { return kArchitecture != 0 && ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0; }

int landlock_abi() {
  const long abi = ::syscall(kCreateRuleset, nullptr, 0, kVersion);
  return abi > 0 ? static_cast<int>(std::min(abi, 1'000L)) : 0;
}

std::vector<std::string> system_reads() {
  std::vector<std::string> out(std::begin(kSystem), std::end(kSystem));
  for (const char* const name : kEtc) out.push_back(fmt::format("/etc/{}", name));
  if (DIR* const etc = ::opendir("/etc")) {
    while (const dirent* const entry = ::readdir(etc)) {
      const std::string_view name(entry->d_name);
      if (std::ranges::any_of(kEtcBegins, [&](const char* begin) { return name.starts_with(begin); }))
        out.push_back(fmt::format("/etc/{}", name));
    }
    ::closedir(etc);
  }
  out.insert(out.end(), std::begin(kOthers), std::end(kOthers));
  return out;
}

Landlock::Landlock(const FileWall& wall, int abi_max) : abi_(std::min(landlock_abi(), abi_max)) {
  if (abi_ <= 0) return;
  const std::uint64_t all = rights_of(abi_);
  const Ruleset rules{.files = all, .network = 0, .scoped = abi_ >= 6 ? kScopes : 0};
  ruleset_ = Descriptor(::syscall(kCreateRuleset, &rules, size_of_ruleset(abi_), 0));
  if (!ruleset_.open()) return;
  for (const std::string& path : system_reads()) allow(path.c_str(), kReading);
  for (const char* const path : kWritableDevices) allow(path, kReadFile | kWriteFile | kTruncate);
  for (const char* const path : kHarmlessOfProc) allow(path, kReadFile | kReadFolder);
  for (const std::string& path : wall.reads) allow(path.c_str(), kReading);
  for (const std::string& path : wall.writes) allow(path.c_str(), all & ~kDeviceNodes);
}

void Landlock::allow_own_places() const {
  allow("/proc", kReadFile | kReadFolder);
  struct statvfs mount{};
  // Only if it is not the one of all others, which is read-only here.
  if (::statvfs(kSharedMemory, &mount) == 0 && (mount.f_flag & ST_RDONLY) == 0)
    allow(kSharedMemory, rights_of(abi_) & ~kDeviceNodes);
}

void Landlock::allow_own_process() const { allow("/proc/self", kReadFile | kReadFolder); }

// What is not there cannot be reached anyway.
bool Landlock::allow(const char* path, std::uint64_t access) const {
  const Descriptor opened(::open(path, O_PATH | O_CLOEXEC));
  struct stat about{};
  if (!opened.open() || ::fstat(opened.number(), &about) != 0) return false;
  if (!S_ISDIR(about.st_mode)) access &= kOfFiles;
  const PathRule rule{.access = access & rights_of(abi_), .folder = opened.number()};
  return ::syscall(kAddRule, ruleset_.number(), kPathBeneath, &rule, 0) == 0;
}

bool Landlock::enter() const { return ::syscall(kRestrictSelf, ruleset_.number(), 0) == 0; }

std::vector<sock_filter> call_filter(const CallWall& wall) {
  Filter filter;
  for (const long call : kDenied) filter.deny(call);
  filter.deny(kClone3, refuse(ENOSYS));  // its flags cannot be seen from here; the C library takes the older one then
  filter.deny_bits(SYS_clone, 0, kNewNamespaces & ~0x80u);  // that bit is the new time namespace of clone3 only
  filter.deny_bits(SYS_unshare, 0, kNewNamespaces);
  deny_owners_rights(filter);
  if (wall.no_machine) filter.deny_masked(SYS_socket, 0, ~0u, kVsock);
  if (wall.no_network) filter.deny_unless(SYS_socket, 0, AF_UNIX, refuse(EACCES));
  if (wall.no_truncate) deny_truncating(filter);
  if (wall.no_others) deny_reaching_others(filter);
  return filter.finish();
}

bool enter_call_filter(const std::vector<sock_filter>& filter) {
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                           .filter = const_cast<sock_filter*>(filter.data())};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

Identity own_identity() {
  return {.users = fmt::format("{0} {0} 1\n", ::geteuid()), .groups = fmt::format("{0} {0} 1\n", ::getegid())};
}

bool furnish_namespaces(const Identity& identity, const std::vector<std::string>& writes) {
  if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", identity.users.c_str()) ||
      !write_file("/proc/self/gid_map", identity.groups.c_str()))
    return false;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const std::string& path : writes)
    if (::mount(path.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) return false;
  if (!change_mount("/", AT_RECURSIVE, {.set = kReadOnly})) return false;
  for (const std::string& path : writes)
    if (!change_mount(path.c_str(), 0, {.clear = kReadOnly})) return false;
  constexpr unsigned long kBare = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  // Semaphores and shared memory of processes that work together, as in Python; without it the place stays read-only.
  ::mount("tmpfs", kSharedMemory, "tmpfs", kBare, "size=64m,nr_inodes=1000,mode=0700");
  return ::mount("proc", "/proc", "proc", kBare, nullptr) == 0;
}

void drop_capabilities() {
  for (int one = 0; ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one) ::prctl(PR_CAPBSET_DROP, one, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  const __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const std::array<__user_cap_data_struct, 2> none{};
  ::syscall(SYS_capset, &header, none.data());
}

}  // namespace belfry::plugin
