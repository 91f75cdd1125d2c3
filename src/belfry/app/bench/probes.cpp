#include "belfry/app/bench/probes.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

namespace belfry::app::bench {
namespace {

void require(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

double probe_fdatasync(const std::filesystem::path& folder) {
  static constexpr int kPages = 256;
  static constexpr Nanos kDuration = std::chrono::seconds{3};
  const std::filesystem::path path = folder / "probe";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0, "open the probe file");
  std::array<char, 4096> page{};
  for (int i = 0; i < kPages; ++i) require(write(fd, page.data(), page.size()) == 4096, "write the probe file");
  require(fsync(fd) == 0, "fsync");
  const Nanos start = elapsed_now();
  std::int64_t syncs = 0;
  while (elapsed_now() - start < kDuration) {
    page.fill(static_cast<char>(syncs));
    require(pwrite(fd, page.data(), page.size(), (syncs % kPages) * 4096) == 4096, "pwrite");
    require(fdatasync(fd) == 0, "fdatasync");
    ++syncs;
  }
  const double seconds = static_cast<double>((elapsed_now() - start).count()) / 1e9;
  close(fd);
  std::filesystem::remove(path);
  return static_cast<double>(syncs) / seconds;
}

Samples probe_timer() {
  Samples samples;
  const int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
  require(fd >= 0, "timerfd_create");
  for (int i = 0; i < 500; ++i) {
    const Nanos due = elapsed_now() + std::chrono::microseconds{1'500 + 37 * (i % 20)};
    itimerspec spec{};
    spec.it_value = {static_cast<time_t>(due.count() / 1'000'000'000), static_cast<long>(due.count() % 1'000'000'000)};
    require(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, nullptr) == 0, "timerfd_settime");
    std::uint64_t expirations = 0;
    require(read(fd, &expirations, sizeof expirations) == sizeof expirations, "read the timer");
    samples.add(elapsed_now() - due);
  }
  close(fd);
  return samples;
}

double stolen_ms() {
  std::ifstream stat("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  stat >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
  return stat ? steal * 1e3 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace belfry::app::bench
