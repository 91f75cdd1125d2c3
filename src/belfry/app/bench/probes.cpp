#include "belfry/app/bench/probes.h"

#include <fcntl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "belfry/store/sqlite/sqlite_connection.h"

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

double probe_store(const std::filesystem::path& folder) {
  static constexpr int kGroup = 1'000;
  static constexpr int kPlaces = 28;
  static constexpr int kLogPages = 1'000;
  static constexpr Nanos kDuration = std::chrono::seconds{2};
  const std::filesystem::path path = folder / "probe.db";
  const std::string text(200, 'x');
  std::int64_t messages = 0;
  double seconds = 0;
  {
    const auto connection = store::sqlite::open({.path = path.string()});
    connection->execute(
        "CREATE TABLE said(id INTEGER PRIMARY KEY, recipient INTEGER, due INTEGER, created INTEGER, text TEXT);"
        "CREATE TABLE due(place INTEGER, id INTEGER, due INTEGER, recipient INTEGER, PRIMARY KEY(place, id))"
        " WITHOUT ROWID");
    const Nanos start = elapsed_now();
    while (elapsed_now() - start < kDuration) {
      connection->run("BEGIN IMMEDIATE");
      for (int i = 0; i < kGroup; ++i) {
        const std::int64_t id = ++messages;
        connection->run("INSERT INTO said VALUES(?1,?2,?3,?4,?5)", id, id % 1'000, start.count() + id, start.count(),
                        text);
        connection->run("INSERT INTO due VALUES(?1,?2,?3,?4)", id * 7919 % kPlaces, id, start.count() + id, id % 1'000);
      }
      connection->run("COMMIT");
      if (connection->log_pages() >= kLogPages) connection->checkpoint();
    }
    seconds = static_cast<double>((elapsed_now() - start).count()) / 1e9;
  }
  for (const char* ending : {"", "-wal"}) std::filesystem::remove(path.string() + ending);
  return static_cast<double>(messages) / seconds;
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
