#include "belfry/tool/builtin/builtin.h"

namespace belfry::tool {

std::vector<std::unique_ptr<Tool>> make_builtin_tools(Surroundings around) {
  std::vector<std::unique_ptr<Tool>> tools;
  tools.push_back(make_send_message(around));
  tools.push_back(make_ask(around));
  tools.push_back(make_list_messages(around));
  tools.push_back(make_cancel_message(around));
  tools.push_back(make_reschedule_message(around));
  tools.push_back(make_schedule_private_message(around));
  tools.push_back(make_list_scheduled_private_messages(around));
  tools.push_back(make_cancel_scheduled_private_message(around));
  tools.push_back(make_reschedule_scheduled_private_message(around));
  return tools;
}

}  // namespace belfry::tool
