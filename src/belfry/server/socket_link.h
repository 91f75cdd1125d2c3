// A connection that has become a WebSocket. Internal to the server, like Connection.
//
// One coroutine reads (whoever serves the client, through receive()); what is sent is written at once where the socket
// takes it, and by a task of its own where it does not. Pings tell a client that is gone from one that is silent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/tcp.hpp>

#include "belfry/base/task_group.h"
#include "belfry/base/time.h"
#include "belfry/net/websocket.h"
#include "belfry/server/crowd.h"
#include "belfry/server/frames.h"
#include "belfry/server/http_message.h"

namespace belfry::server {

class SocketLink final : public Socket {
 public:
  // `already_read` came behind the request that asked for the change. `stranger` is the client's place among those who
  // have proved nothing, `laggards` those who do not read; all of them outlive this.
  SocketLink(asio::ip::tcp::socket& socket, std::string already_read, TaskGroup& tasks, Crowd::Member& stranger,
             Crowd& laggards, BootTime now);

  Task<std::optional<std::string>> receive() override;
  bool has_room(std::size_t bytes) const override;
  void send(SharedFrame frame) override;
  Task<void> drained() override;
  void close(int code, std::string_view reason) override;
  void proved() override;

  // From the watchdog, once a second.
  void tick(BootTime now);
  void abort();
  // Resumes when nothing refers to this any more; await it before destroying it.
  Task<void> finish();

 private:
  void say(net::websocket::Opcode opcode, std::string_view payload);
  void write_now();
  void cut_off();
  Task<void> pump();
  void read_now();
  void note_held();
  std::optional<std::string> take(net::websocket::Message message);
  void left();

  asio::ip::tcp::socket& socket_;
  std::string input_;
  net::websocket::Reader reader_;
  Crowd& laggards_;
  Frames frames_;
  Crowd::Member laggard_;  // while something waits
  TaskGroup& tasks_;
  Crowd::Member& stranger_;
  BootTime ping_at_;
  BootTime end_by_ = BootTime::max();  // a close that was said and not answered
  std::optional<std::string> ping_;    // of the client's, not answered yet
  bool ping_unanswered_ = false;
  bool pumping_ = false;
  bool closing_ = false;  // a close was sent: nothing follows it
  bool ended_ = false;
  bool failed_ = false;               // nothing more can be written
  std::vector<Resume<int>> waiting_;  // for everything to have left
};

}  // namespace belfry::server
