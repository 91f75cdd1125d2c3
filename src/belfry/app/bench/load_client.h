// HTTP connections for load: as little as possible between the socket and the clock.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/app/bench/report.h"

namespace belfry::app::bench {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

class HttpConnection {
 public:
  explicit HttpConnection(int port);
  ~HttpConnection();
  HttpConnection(HttpConnection&& other) noexcept;
  HttpConnection& operator=(HttpConnection&&) = delete;

  int descriptor() const { return fd_; }
  // Sends a request whole.
  void send(std::string_view method, std::string_view path, std::string_view body);
  // Reads what has come; true when the answer is whole.
  bool advance();
  // True if something has come: advance() would not wait.
  bool readable() const;
  HttpAnswer take();
  HttpAnswer call(std::string_view method, std::string_view path, std::string_view body = {});

 private:
  bool whole();

  int port_;
  int fd_ = -1;
  std::string input_;
  std::size_t head_bytes_ = 0;  // 0 until the header is whole
  std::size_t body_bytes_ = 0;
  bool chunked_ = false;
};

// Many connections with one request outstanding each, until `duration` is over. Requests a second.
double keep_posting(int port, int connections, Nanos duration, const std::string& path,
                    const std::vector<std::string>& bodies, Samples* latencies = nullptr);

// Sends `count` messages through :batch, made by `line(i)`; returns how many a second were acknowledged.
template <class Line>
double post_batches(int port, std::int64_t count, std::int64_t per_request, Line line) {
  HttpConnection connection(port);
  const Nanos start = elapsed_now();
  for (std::int64_t first = 0; first < count; first += per_request) {
    std::string body;
    const std::int64_t last = std::min(count, first + per_request);
    for (std::int64_t i = first; i < last; ++i) {
      body += line(i);
      body += '\n';
    }
    const HttpAnswer answer = connection.call("POST", "/v1/messages:batch", body);
    if (answer.status != 200 || answer.body.find("\"error\"") != std::string::npos)
      throw std::runtime_error("a batch was refused: " + answer.body.substr(0, 200));
  }
  return static_cast<double>(count) / (static_cast<double>((elapsed_now() - start).count()) / 1e9);
}

}  // namespace belfry::app::bench
