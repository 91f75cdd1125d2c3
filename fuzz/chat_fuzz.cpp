// Every body and query that the routes of conversations, tools and webhooks read, and the deadline of a payload. The first byte says
// which.
#include <cstdint>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/chat/question.h"
#include "belfry/server/chat_wire.h"
#include "belfry/server/tool_wire.h"
#include "belfry/server/webhook_wire.h"
#include "refusal.h"

namespace wire = belfry::server::wire;

namespace {

using belfry::fuzz::check;

// What was read as a deadline is written so that it is read again.
void check_deadline(std::string_view payload) {
  constexpr int kReplies = 3;
  const auto deadline = belfry::chat::read_deadline(payload, kReplies);
  check(deadline);
  if (!deadline || !deadline->answer_by) return;
  belfry::json::Writer writer;
  belfry::chat::write_on_timeout(writer, deadline->on_timeout);
  const std::string written = writer.take();
  const auto value = belfry::json::parse(written);
  BELFRY_ASSERT(value && belfry::chat::read_on_timeout(*value, kReplies));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 10) {
    case 0: {
      const auto wanted = wire::read_session(text);
      check(wanted);
      if (wanted) BELFRY_ASSERT(wanted->people.size() <= belfry::chat::kMembersMax);
      break;
    }
    case 1: check(wire::read_post(text)); break;
    case 2: {
      const auto wanted = wire::read_lines_query(text);
      check(wanted);
      if (wanted) BELFRY_ASSERT(wanted->lines.after >= 0 && wanted->lines.wait >= belfry::Millis{0});
      break;
    }
    case 3: check(wire::read_sessions_query(text)); break;
    case 4: check(wire::read_call(text)); break;
    case 5: check(wire::read_calls_query(text)); break;
    case 6: check_deadline(text); break;
    case 7: check(wire::read_incoming(text)); break;
    case 8: check(wire::read_draft(text)); break;
    default: check(wire::read_webhook(text)); break;
  }
  return 0;
}
