// A `belfry serve` of our own in another process, as users run it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "belfry/base/time.h"

namespace belfry::app::bench {

class ServerProcess {
 public:
  // Returns when the server has printed its address.
  explicit ServerProcess(std::filesystem::path data);
  ~ServerProcess();  // kills it if it still runs
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  int port() const { return port_; }
  std::int64_t peak_resident_bytes() const;
  void kill();
  // SIGTERM; returns how long the process took to end, and whether it ended with 0.
  struct Stop {
    Nanos took;
    bool clean;
  };
  Stop stop();

 private:
  int wait();

  std::filesystem::path data_;
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace belfry::app::bench
