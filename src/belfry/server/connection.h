// One client's connection. Internal to the server: only http_server.cpp and connection.cpp see sockets.
#pragma once

#include <array>
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "belfry/base/task_group.h"
#include "belfry/clock/clock.h"
#include "belfry/server/crowd.h"
#include "belfry/server/guard.h"
#include "belfry/server/output.h"
#include "belfry/server/request_parser.h"
#include "belfry/server/router.h"
#include "belfry/server/socket_link.h"

namespace belfry::server {

// Whoever has proved nothing holds no more than this, all of them together, beside what a silent connection costs. It is 32
// MiB with what an allocator wastes on buffers that grow and go.
inline constexpr std::size_t kStrangersBytesMax = 24u << 20;
// What may wait for panels and streams that do not read, all of them together: 64 MiB with what is wasted.
inline constexpr std::size_t kLaggardsBytesMax = 48u << 20;

// What the connections of a server share.
struct Shared {
  const Guard& guard;
  const Router& router;
  TaskGroup& tasks;
  BootTime now;      // as of the watchdog's last look: deadlines need no more
  std::string date;  // for the Date header, of the same moment
  bool closing = false;
  Crowd strangers{kStrangersBytesMax};
  Crowd laggards{kLaggardsBytesMax};
  int leaving = 0;                            // connections that were let go and have not ended yet
  std::array<char, 16u << 10> thrown_away{};  // where bytes are read that nobody looks at
};

// Bytes that came and were not parsed yet.
class InputBuffer {
 public:
  std::string_view data() const { return {bytes_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  // Room for at least `size` bytes behind the data.
  char* prepare(std::size_t size);
  std::size_t room() const { return capacity_ - end_; }
  std::size_t capacity() const { return capacity_; }
  void commit(std::size_t size) { end_ += size; }
  void consume(std::size_t size);
  // Gives back what a large body needed.
  void shrink();
  void free();

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

class Connection final : public Exchange, public ClientWatch {
 public:
  Connection(Shared& shared, asio::ip::tcp::socket socket);
  ~Connection() override;

  Task<void> run();
  // From the watchdog: the deadline has passed. Whoever waits on the socket ends.
  void check_deadline();
  // The server closes: an idle connection ends now, a busy one after its answer.
  void end_if_idle();
  void abort();

  // Exchange
  Task<Result<std::string>> read_some() override;
  void set_content_type(std::string_view type) override { stream_type_ = type; }
  Task<Result<>> write(std::string piece) override;
  Task<Result<>> drain() override;
  // ClientWatch
  void begin(std::shared_ptr<bus::Departure> departure) override;

 private:
  enum class Input { some, ended, timed_out };

  Task<bool> serve_one();
  Task<bool> read_head();
  Task<bool> read_body(std::size_t body_bytes_max);
  Result<const Router::Route*> admit(Response& refusal);
  void note_who_asks(bool known);
  void note_held();
  void let_go();
  Task<Response> handle(const Router::Route& route);
  Task<Response> answer(const Router::Route& route);
  Task<Input> read_input(std::size_t size);
  Task<bool> finish(Response response);
  Task<bool> finish_stream();
  Task<bool> flush();
  Task<bool> refuse(ParseProblem problem);
  Task<bool> become_socket(const Router::Route& route);
  Task<void> linger();
  Task<void> watch();
  Task<void> end_watch();
  bool write_now() { return output_.write_now(socket_); }
  bool client_gone();
  void append_head(const Response& response, bool keep, std::optional<std::size_t> length);
  void wait_at_most(Nanos duration) { deadline_ = shared_.now + duration; }

  Shared& shared_;
  asio::ip::tcp::socket socket_;
  InputBuffer input_;
  Output output_;
  std::unique_ptr<SocketLink> link_;  // once it is a WebSocket
  std::unique_ptr<RequestParser> parser_;
  BootTime deadline_ = BootTime::max();
  Crowd::Member stranger_;  // from the first moment on, and whenever it asks for something without proving who it is
  Crowd::Member laggard_;   // a stream that waits for its client to read
  bool idle_ = false;       // between two requests
  bool let_go_ = false;
  bool timed_out_ = false;
  bool stream_begun_ = false;
  Nanos patience_{0};             // for the rest of a batch
  std::string_view stream_type_;  // a literal
  bool read_failed_ = false;
  Method method_ = Method::other;

  std::shared_ptr<bus::Departure> departure_;
  bool watching_ = false;
  bool watch_ending_ = false;
  bool gone_ = false;
  Resume<int> watch_ended_;
};

}  // namespace belfry::server
