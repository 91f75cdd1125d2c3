#include "belfry/app/bench/server_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "belfry/app/bench/report.h"

namespace belfry::app::bench {

ServerProcess::ServerProcess(std::filesystem::path data) : data_(std::move(data)) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    dup2(output[1], 1);
    const std::string folder = data_.string();
    execl("/proc/self/exe", "belfry", "serve", "--listen", "127.0.0.1:0", "--data", folder.c_str(), "--log-level",
          "warn", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(output[1]);
  std::string line;
  char c = 0;
  while (read(output[0], &c, 1) == 1 && c != '\n') line += c;
  close(output[0]);
  const auto colon = line.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error("the server did not start");
  port_ = std::stoi(line.substr(colon + 1));
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) kill();
}

std::int64_t ServerProcess::peak_resident_bytes() const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  std::string line;
  while (std::getline(status, line)) {
    long long kib = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kib) == 1) return kib * 1024;
  }
  return 0;
}

int ServerProcess::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

void ServerProcess::kill() {
  ::kill(pid_, SIGKILL);
  wait();
}

ServerProcess::Stop ServerProcess::stop() {
  const Nanos start = elapsed_now();
  ::kill(pid_, SIGTERM);
  const int status = wait();
  return {elapsed_now() - start, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

}  // namespace belfry::app::bench
