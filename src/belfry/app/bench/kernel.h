// The kernel without a network: bus, conversations, tools and agents on a real disk, on this thread.
#pragma once

#include <filesystem>

#include "belfry/agent/processor.h"
#include "belfry/base/random.h"
#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/outbox.h"
#include "belfry/chat/private_messages.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/socket_client.h"
#include "belfry/store/store.h"
#include "belfry/tool/executor.h"

namespace belfry::app::bench {

struct Kernel {
  Kernel(const std::filesystem::path& folder, int agents_at_once);

  // Until `task` has ended.
  void run(Task<void> task);
  // The last thing that is done with it.
  void stop();

  asio::io_context context;
  RealClock clock;
  SystemRandom random;
  net::SocketClient client;
  store::Store store;
  Timekeeper timekeeper;
  bus::MessageBus bus;
  chat::Chats chats;
  chat::Outbox outbox;
  chat::PrivateMessages scheduled;
  tool::Executor tools;
  agent::Processor agents;
  TaskGroup tasks;

 private:
  Task<void> stop_parts();
};

}  // namespace belfry::app::bench
