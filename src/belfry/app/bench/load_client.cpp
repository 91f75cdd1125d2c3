#include "belfry/app/bench/load_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace belfry::app::bench {

HttpConnection::HttpConnection(int port) : port_(port), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd_ < 0 || connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to the server");
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

HttpConnection::~HttpConnection() {
  if (fd_ >= 0) close(fd_);
}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept
    : port_(other.port_), fd_(std::exchange(other.fd_, -1)), input_(std::move(other.input_)) {}

void HttpConnection::send(std::string_view method, std::string_view path, std::string_view body) {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\r\n", method, path,
                                    port_, body.size());
  request += body;
  std::string_view rest = request;
  while (!rest.empty()) {
    const ssize_t written = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (written <= 0) throw std::runtime_error("the server closed the connection");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool HttpConnection::advance() {
  char buffer[65536];
  const ssize_t size = recv(fd_, buffer, sizeof buffer, 0);
  if (size <= 0) throw std::runtime_error("the server closed the connection");
  input_.append(buffer, static_cast<std::size_t>(size));
  return whole();
}

bool HttpConnection::readable() const {
  pollfd one{fd_, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

bool HttpConnection::whole() {
  if (head_bytes_ == 0) {
    const auto end = input_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    head_bytes_ = end + 4;
    const std::string_view head = std::string_view(input_).substr(0, head_bytes_);
    const auto length = head.find("Content-Length: ");
    chunked_ = length == std::string_view::npos;
    body_bytes_ = 0;
    if (!chunked_) std::from_chars(head.data() + length + 16, head.data() + head.size(), body_bytes_);
  }
  return chunked_ ? input_.ends_with("0\r\n\r\n") : input_.size() >= head_bytes_ + body_bytes_;
}

HttpAnswer HttpConnection::take() {
  HttpAnswer answer;
  std::from_chars(input_.data() + 9, input_.data() + 12, answer.status);
  answer.body = input_.substr(head_bytes_, chunked_ ? std::string::npos : body_bytes_);
  input_.erase(0, chunked_ ? input_.size() : head_bytes_ + body_bytes_);
  head_bytes_ = 0;
  return answer;
}

HttpAnswer HttpConnection::call(std::string_view method, std::string_view path, std::string_view body) {
  send(method, path, body);
  while (!advance()) {
  }
  return take();
}

double keep_posting(int port, int connections, Nanos duration, const std::string& path,
                    const std::vector<std::string>& bodies, Samples* latencies) {
  std::vector<HttpConnection> all;
  std::vector<pollfd> polls;
  std::vector<Nanos> begun;
  std::size_t next = 0;
  const auto begin = [&](std::size_t i) {
    begun[i] = elapsed_now();
    all[i].send("POST", path, bodies[next++ % bodies.size()]);
  };
  for (int i = 0; i < connections; ++i) {
    all.emplace_back(port);
    polls.push_back({all.back().descriptor(), POLLIN, 0});
    begun.emplace_back();
  }
  const Nanos start = elapsed_now();
  for (std::size_t i = 0; i < all.size(); ++i) begin(i);
  std::int64_t done = 0;
  std::size_t outstanding = all.size();
  while (outstanding > 0) {
    if (poll(polls.data(), polls.size(), 10'000) <= 0) throw std::runtime_error("the server does not answer");
    const bool over = elapsed_now() - start >= duration;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((polls[i].revents & POLLIN) == 0 || !all[i].advance()) continue;
      const HttpAnswer answer = all[i].take();
      if (answer.status != 201) throw std::runtime_error("a send was refused: " + answer.body);
      if (latencies) latencies->add(elapsed_now() - begun[i]);
      ++done;
      if (over) {
        --outstanding;
        polls[i].fd = -1;
      } else {
        begin(i);
      }
    }
  }
  return static_cast<double>(done) / (static_cast<double>((elapsed_now() - start).count()) / 1e9);
}

}  // namespace belfry::app::bench
