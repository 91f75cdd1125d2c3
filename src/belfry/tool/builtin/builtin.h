// The tools that Belfry brings along.
#pragma once

#include <memory>
#include <vector>

#include "belfry/bus/message_bus.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/private_messages.h"
#include "belfry/tool/tool.h"

namespace belfry::tool {

// What they work with; outlives them.
struct Surroundings {
  Clock& clock;
  bus::MessageBus& bus;
  const bus::TimeReader& times;
  chat::PrivateMessages& scheduled;
};

std::unique_ptr<Tool> make_send_message(Surroundings around);
std::unique_ptr<Tool> make_ask(Surroundings around);
// An agent's own delayed messages: list_messages, cancel_message, reschedule_message.
std::unique_ptr<Tool> make_list_messages(Surroundings around);
std::unique_ptr<Tool> make_cancel_message(Surroundings around);
std::unique_ptr<Tool> make_reschedule_message(Surroundings around);
// What is said later in a private chat.
std::unique_ptr<Tool> make_schedule_private_message(Surroundings around);
std::unique_ptr<Tool> make_list_scheduled_private_messages(Surroundings around);
std::unique_ptr<Tool> make_cancel_scheduled_private_message(Surroundings around);
std::unique_ptr<Tool> make_reschedule_scheduled_private_message(Surroundings around);

std::vector<std::unique_ptr<Tool>> make_builtin_tools(Surroundings around);

}  // namespace belfry::tool
