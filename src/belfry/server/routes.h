// The routes of the API, one class a noun. Each lives on the kernel's thread and only borrows the parts it serves.
#pragma once

#include <functional>
#include <string>

#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/bus/time_reader.h"
#include "belfry/server/router.h"
#include "belfry/store/store.h"

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

class AgentRoutes {
 public:
  explicit AgentRoutes(bus::MessageBus& bus) : bus_(bus) {}
  void add_to(Router& router);

 private:
  Task<Response> list(Request request);
  Task<Response> add(Request request);
  Task<Response> get(Request request);
  Task<Response> remove(Request request);

  bus::MessageBus& bus_;
};

class StatusRoutes {
 public:
  StatusRoutes(bus::MessageBus& bus, store::Store& store, bool needs_token, std::function<int()> connections)
      : bus_(bus), store_(store), needs_token_(needs_token), connections_(std::move(connections)) {}
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
  bool stopping_ = false;
};

}  // namespace belfry::server
