// Every body and query that a route reads. The first byte says which.
#include <cstdint>
#include <string>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/server/wire.h"
#include "refusal.h"

namespace wire = belfry::server::wire;

namespace {

using belfry::fuzz::check;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 9) {
    case 0: {
      const auto send = wire::read_send(text);
      check(send);
      if (!send) break;
      BELFRY_ASSERT(!send->to.empty());
      BELFRY_ASSERT(belfry::json::parse(send->message.payload).has_value());
      for (const std::string& recipient : send->to)
        BELFRY_ASSERT(belfry::bus::message_for(*send, recipient).to == recipient);
      break;
    }
    case 1: check(wire::read_move(text)); break;
    case 2: check(wire::read_receive(text)); break;
    case 3: check(wire::read_ack(text)); break;
    case 4: check(wire::read_extend(text)); break;
    case 5: check(wire::read_release(text)); break;
    case 6: check(wire::read_agent(text, "model")); break;
    case 7: check(wire::read_list_query(text)); break;
    default: check(wire::read_page_query(text)); break;
  }
  return 0;
}
