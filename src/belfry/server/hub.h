// The panels that are connected: each hears what is said in the chats it looks at, in order and without gaps, and that
// something happened in its person's other chats (G9).
//
// A subscription catches up from the number that the client knows, page by page and no faster than the client reads, and is
// live from then on. What is said meanwhile is only noted, and read with the next page: so nothing is sent twice or left out.
// One that does not read catches up again when it does: lines are on the disk, and not kept in memory for it. Events of runs
// that it watches go the same way.
//
// Lives on the kernel's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/clock.h"
#include "belfry/run/runs.h"
#include "belfry/server/guard.h"
#include "belfry/server/router.h"
#include "belfry/server/socket_wire.h"

namespace belfry::server {

class Hub final : public chat::Listener, public run::Listener {
 public:
  Hub(asio::io_context& context, Clock& clock, bus::MessageBus& bus, chat::Chats& chats, run::Runs& runs,
      const Guard& guard, TaskGroup& tasks, std::string timezone);
  ~Hub() override;
  void add_to(Router& router);

  // Whom to tell that a person wants an agent to stop writing in a chat of theirs. None: nobody hears of it.
  using Stopper = std::function<void(std::string session, std::string agent)>;
  void on_stop(Stopper stopper) { stopper_ = std::move(stopper); }

  // About once a second: counts that have changed, drafts that nobody writes any more.
  void tick();
  // Says so; the connections go on until the server closes them.
  void stopping();
  std::size_t clients() const { return clients_.size(); }

  void said(const std::string& session, const chat::Line& line) override;
  void drafted(const std::string& session, const chat::Draft& draft, bool ended) override;
  void coming_in(const std::string& session) override;
  void coming_for(const std::string& person) override;

  void happened(const run::Event& event) override;
  void changed(const run::Run& run) override;
  void progressed(const run::Run& run, int step, const std::string& progress) override;

 private:
  struct Subscription {
    std::int64_t sent = 0;   // the last number that the client was given
    std::int64_t heard = 0;  // the last one that was said while it was catching up
    bool live = false;
  };
  struct Client {
    Socket* socket = nullptr;  // null once it is gone
    std::string person;
    std::unordered_map<std::string, Subscription> sessions;
    std::string counts;                                  // as they were last said
    std::unordered_map<std::string, Subscription> runs;  // that it hears of
  };
  using Clients = std::unordered_set<std::shared_ptr<Client>>;
  using People = std::vector<std::string>;

  Task<void> serve(Request request, Socket& socket);
  Task<bool> greet(std::shared_ptr<Client> client);
  Task<void> obey(std::shared_ptr<Client> client, wire::ClientFrame frame);
  Task<void> post(std::shared_ptr<Client> client, chat::Post post);
  Task<void> stop(std::shared_ptr<Client> client, wire::Stop wanted);
  Task<void> watch(std::shared_ptr<Client> client, wire::WatchRun wanted);
  void unwatch(const std::shared_ptr<Client>& client, const std::string& run);
  Task<bool> may_see(const std::shared_ptr<Client>& client, const run::Run& run);
  void tell_session(const std::string& session, const std::string& text);
  void subscribe(const std::shared_ptr<Client>& client, const wire::Hello::Known& known);
  void unsubscribe(const std::shared_ptr<Client>& client, const std::string& session);
  void leave(const std::shared_ptr<Client>& client);

  Task<void> catch_up(std::shared_ptr<Client> client, std::string session);
  Task<std::optional<int>> next_lines(std::shared_ptr<Client> client, std::string session, int limit);
  static Subscription* find_run(const std::shared_ptr<Client>& client, const std::string& run);
  Task<void> follow(std::shared_ptr<Client> client, std::string run);
  Task<bool> next_events(std::shared_ptr<Client> client, std::string run);
  SharedFrame frame_of(const std::string& session, const chat::Line& line);
  Task<void> wait_for_turn();
  void end_turn();
  class Turn;
  static Subscription* find(const std::shared_ptr<Client>& client, const std::string& session);
  Task<void> find_people(std::string session, chat::Line line);
  void tell_others(const std::string& session, const People& people, const chat::Line& line);
  void flush_coming();

  static void send(Client& client, const std::string& text);
  WallTime now() const { return round_down(clock_.now().wall); }

  asio::io_context& context_;
  Clock& clock_;
  bus::MessageBus& bus_;
  chat::Chats& chats_;
  run::Runs& runs_;
  const Guard& guard_;
  TaskGroup& tasks_;
  std::string timezone_;
  std::unordered_map<std::shared_ptr<Client>, BootTime> strangers_;  // have not said hello; until when they may
  Clients clients_;
  std::unordered_map<std::string, Clients> by_session_;
  std::unordered_map<std::string, Clients> by_person_;
  std::unordered_map<std::string, Clients> by_run_;
  std::unordered_map<std::string, People> people_;  // of sessions; they do not change
  std::unordered_set<std::string> coming_;          // sessions whose panels are told soon, once for many changes
  // Of lines that somebody still has to be sent: thousands who come at once share them.
  std::unordered_map<std::string, std::weak_ptr<Frame>> frames_;
  std::size_t tidy_frames_at_ = 0;
  int reading_ = 0;  // pages, for those who catch up
  std::deque<Resume<int>> turns_;
  Stopper stopper_;
  bool flush_posted_ = false;
  bool stopping_ = false;
};

}  // namespace belfry::server
