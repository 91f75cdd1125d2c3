#include "belfry/agent/planner/planner_json.h"

#include "belfry/base/json.h"

namespace belfry::agent {

std::string turns_json(const std::vector<Turn>& turns) {
  json::Writer writer;
  writer.object().key("turns").array();
  for (const Turn& turn : turns) {
    writer.object().field("messageId", turn.message).field("conversation", turn.conversation).field("from", turn.from);
    writer.field("state", word(turn.state)).field("why", turn.why).field("taskId", turn.task);
    writer.field("createdAt", to_iso(turn.written_at)).field("beganAt", to_iso(turn.began_at));
    if (turn.ended_at) writer.field("endedAt", to_iso(*turn.ended_at));
    if (turn.failing_since) writer.field("failingSince", to_iso(*turn.failing_since)).field("failures", turn.failures);
    writer.end();
  }
  return writer.end().end().take();
}

std::string facts_json(const std::vector<Fact>& facts) {
  json::Writer writer;
  writer.object().key("facts").array();
  for (const Fact& fact : facts)
    writer.object()
        .field("number", fact.number)
        .field("text", fact.text)
        .field("sessionId", fact.session)
        .field("learntAt", to_iso(fact.learnt_at))
        .end();
  return writer.end().end().take();
}

}  // namespace belfry::agent
