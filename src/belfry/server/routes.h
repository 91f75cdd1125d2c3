// The routes of the API, one class a noun. Each lives on the kernel's thread and only borrows the parts it serves.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/private_messages.h"
#include "belfry/chat/webhooks.h"
#include "belfry/run/runs.h"
#include "belfry/server/panel.h"
#include "belfry/server/router.h"
#include "belfry/server/socket_wire.h"
#include "belfry/store/store.h"
#include "belfry/tool/executor.h"

namespace belfry::server {

class MessageRoutes {
 public:
  MessageRoutes(bus::MessageBus& bus, Clock& clock, const bus::TimeReader& times)
      : bus_(bus), clock_(clock), times_(times) {}
  void add_to(Router& router);
  // Resumes when every send that the bus has taken is answered, or at the deadline: for a stop.
  Task<void> finish_sends(BootTime deadline);

 private:
  // Counts sends on their way to the disk.
  class OnItsWay;

  Task<Response> send(Request request);
  Task<Response> send_batch(Request request, Exchange& exchange);
  Task<std::vector<Result<bus::Sent>>> send_chunk(std::vector<bus::Outgoing> messages);
  Task<Response> list(Request request);
  Task<Response> get(Request request);
  Task<Response> move(Request request);
  Task<Response> cancel(Request request);
  Task<Response> deliver(Request request);
  Task<Response> retry(Request request);
  Task<Response> drop(Request request);

  bus::MessageBus& bus_;
  Clock& clock_;
  const bus::TimeReader& times_;
  int on_their_way_ = 0;
  int batches_ = 0;
  Wake sends_done_;
};

class WhenRoutes {
 public:
  explicit WhenRoutes(const bus::TimeReader& times) : times_(times) {}
  void add_to(Router& router);

 private:
  Task<Response> read(Request request);

  const bus::TimeReader& times_;
};

class MailboxRoutes {
 public:
  MailboxRoutes(bus::MessageBus& bus, TaskGroup& tasks) : bus_(bus), tasks_(tasks) {}
  void add_to(Router& router);
  void stopping() { stopping_ = true; }

 private:
  Task<Response> counts(Request request);
  Task<Response> receive(Request request);
  Task<Response> ack(Request request);
  Task<Response> extend(Request request);
  Task<Response> release(Request request);

  bus::MessageBus& bus_;
  TaskGroup& tasks_;
  bool stopping_ = false;
};

// What the server can ask of whoever runs agents; it does not know them.
struct AgentControl {
  std::function<bool(const std::string& kind)> runs;  // agents of this kind are run by Belfry
  std::function<bool(const std::string& name)> is_stopped;
  std::function<Task<Result<>>(std::string name, bool stopped)> set_stopped;

  // Agents that think, of this kind. What they are like is JSON, written and read by whoever runs them.
  std::string thinking_kind;
  std::function<std::string(const std::string& name)> profile;
  std::function<Task<Result<>>(std::string name, std::string profile)> add;
  std::function<Task<Result<>>(std::string name, std::string profile)> change;
  std::function<Task<Result<std::vector<std::string>>>(std::string name)> remove;  // with those that it owns
  std::function<Task<Result<std::string>>(std::string name, int limit)> turns;     // what they did, as JSON
  // Ends what is being thought about in a session, by one agent or (empty) by all. Returns how many turns that were.
  std::function<Task<Result<int>>(std::string session, std::string agent)> cancel;
  // What is known about a person, as JSON; and what is not to be known any more (none: all of it).
  std::function<Task<Result<std::string>>(std::string person)> facts;
  std::function<Task<Result<std::int64_t>>(std::string person, std::optional<std::int64_t> number)> forget;
};

class AgentRoutes {
 public:
  AgentRoutes(bus::MessageBus& bus, AgentControl control) : bus_(bus), control_(std::move(control)) {}
  void add_to(Router& router);

 private:
  Task<Response> list(Request request);
  Task<Response> add(Request request);
  Task<Response> get(Request request);
  Task<Response> change(Request request);
  Task<Response> remove(Request request);
  Task<Response> turns(Request request);
  Task<Response> cancel(Request request);
  Task<Response> facts(Request request);
  Task<Response> forget(Request request);
  Task<Response> set_stopped(Request request, bool stopped);
  Task<Result<bus::RecipientRow>> add_thinking(std::string name, std::string profile);
  Result<bus::RecipientRow> find(const std::string& id) const;
  std::string written(const bus::RecipientRow& row) const;

  bus::MessageBus& bus_;
  AgentControl control_;
};

class SessionRoutes {
 public:
  explicit SessionRoutes(chat::Chats& chats) : chats_(chats) {}
  void add_to(Router& router);

 private:
  Task<Response> people(Request request);
  Task<Response> open(Request request);
  Task<Response> list(Request request);
  Task<Response> get(Request request);
  Task<Response> lines(Request request);
  Task<Response> post(Request request);
  Task<Response> draft(Request request);
  Task<Response> drafts(Request request);

  chat::Chats& chats_;
};

class ComingRoutes {
 public:
  ComingRoutes(Clock& clock, bus::MessageBus& bus, chat::Chats& chats, chat::PrivateMessages& scheduled,
               run::Runs& runs)
      : clock_(clock), bus_(bus), chats_(chats), scheduled_(scheduled), runs_(runs) {}
  void add_to(Router& router);

 private:
  Task<Response> coming(Request request);
  Task<Result<std::vector<wire::ComingItem>>> collect(std::string id);
  Task<Result<std::vector<wire::ComingItem>>> delayed_for(chat::Session session, std::string person);
  Task<Result<bool>> is_said_in(chat::Session session, bus::MessageInfo message);

  Clock& clock_;
  bus::MessageBus& bus_;
  chat::Chats& chats_;
  chat::PrivateMessages& scheduled_;
  run::Runs& runs_;
};

class PanelRoutes {
 public:
  explicit PanelRoutes(std::vector<PanelFile> files) : files_(std::move(files)) {}
  void add_to(Router& router);

 private:
  std::vector<PanelFile> files_;
};

class ScheduledRoutes {
 public:
  ScheduledRoutes(chat::PrivateMessages& scheduled, chat::Chats& chats, const bus::TimeReader& times)
      : scheduled_(scheduled), chats_(chats), times_(times) {}
  void add_to(Router& router);

 private:
  Task<Response> list(Request request);
  Task<Response> create(Request request);
  Task<Response> get(Request request);
  Task<Response> change(Request request);
  Task<Response> cancel(Request request);
  Task<Response> send_now(Request request);
  Task<Result<when::Reading>> read_time(std::string session_id, std::string text);

  chat::PrivateMessages& scheduled_;
  chat::Chats& chats_;
  const bus::TimeReader& times_;
};

class WebhookRoutes {
 public:
  explicit WebhookRoutes(chat::Webhooks& webhooks) : webhooks_(webhooks) {}
  void add_to(Router& router);

 private:
  Task<Response> set(Request request);
  Task<Response> get(Request request);
  Task<Response> remove(Request request);
  Task<Response> outbox(Request request);
  Task<Response> receive(Request request);

  chat::Webhooks& webhooks_;
};

class ToolRoutes {
 public:
  ToolRoutes(tool::Executor& tools, chat::Chats& chats) : tools_(tools), chats_(chats) {}
  void add_to(Router& router);

 private:
  Task<Response> list(Request request);
  Task<Response> call(Request request);
  Task<Response> calls(Request request);

  tool::Executor& tools_;
  chat::Chats& chats_;
};

class RunRoutes {
 public:
  explicit RunRoutes(run::Runs& runs) : runs_(runs) {}
  void add_to(Router& router);

 private:
  Task<Response> create(Request request);
  Task<Response> list(Request request);
  Task<Response> get(Request request);
  Task<Response> cancel(Request request);
  Task<Response> remove(Request request);
  Task<Response> events(Request request, Exchange& exchange);
  Task<Response> stream(run::EventsRequest wanted, Exchange& exchange);
  Task<Response> file(Request request);

  run::Runs& runs_;
};

class StatusRoutes {
 public:
  // `more_metrics`: lines of parts that the server does not know; may be empty.
  StatusRoutes(bus::MessageBus& bus, store::Store& store, bool needs_token, std::function<int()> connections,
               std::function<std::string()> more_metrics)
      : bus_(bus),
        store_(store),
        needs_token_(needs_token),
        connections_(std::move(connections)),
        more_metrics_(std::move(more_metrics)) {}
  void add_to(Router& router);
  void stopping() { stopping_ = true; }

 private:
  Task<Response> health(Request request);
  Task<Response> metrics(Request request);
  Task<Response> home(Request request);

  bus::MessageBus& bus_;
  store::Store& store_;
  bool needs_token_;
  std::function<int()> connections_;
  std::function<std::string()> more_metrics_;
  bool stopping_ = false;
};

}  // namespace belfry::server
