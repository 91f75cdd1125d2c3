// JSON to types and back, for every route: what the API looks like stands here and nowhere else.
//
// Reading refuses what it does not know: a field with a typing mistake must not be dropped silently. Each refusal names the
// field and what would be right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/bus/message_bus.h"
#include "belfry/bus/send_answer.h"
#include "belfry/when/when.h"

namespace belfry::server::wire {

// --- requests ---

Result<bus::TimeText> read_when(std::string_view body);

using bus::SendRequest;
Result<SendRequest> read_send(std::string_view body);

struct MoveRequest {
  std::optional<bus::TimeText> schedule;
  std::optional<WallTime> deliver_at;
  Millis delay{0};  // counts if there is neither
};
Result<MoveRequest> read_move(std::string_view body);

Result<bus::ReceiveRequest> read_receive(std::string_view body);

struct AckRequest {
  std::vector<std::string> leases;
  std::vector<std::string> ids;  // one of the two is there
};
Result<AckRequest> read_ack(std::string_view body);

struct ExtendRequest {
  std::vector<std::string> leases;
  Millis lease = kLeaseDefault;
};
Result<ExtendRequest> read_extend(std::string_view body);

struct ReleaseRequest {
  std::vector<std::string> leases;
  Millis delay{0};
};
Result<ReleaseRequest> read_release(std::string_view body);

struct AgentRequest {
  std::string id;
  std::string kind;
  std::string profile;  // the other members, for kinds that take any; an empty object else
};
// `thinking_kind` is the kind that has a profile.
Result<AgentRequest> read_agent(std::string_view body, std::string_view thinking_kind);
// {"agent": …} or nothing: whose turn is cancelled; empty: everybody's.
Result<std::string> read_cancel(std::string_view body);
// ?limit=, and ?number= of a fact.
Result<int> read_limit_query(std::string_view query);
Result<std::optional<std::int64_t>> read_number_query(std::string_view query);

Result<bus::ListRequest> read_list_query(std::string_view query);

struct PageQuery {
  std::string after;  // a name; the page begins behind it
  int limit = kListPageMax;
};
Result<PageQuery> read_page_query(std::string_view query);

// For routes whose body says nothing: nothing, or an empty object.
Result<> read_nothing(std::string_view body);

// --- answers ---

using bus::sent;
using bus::sent_to_each;
using bus::Understood;
std::string reading(const when::Reading& reading, std::string_view text);
std::string info(const bus::MessageInfo& info, const std::vector<std::string>& warnings = {},
                 std::optional<Understood> understood = std::nullopt);
std::string list(const bus::ListResult& result);
std::string deliveries(const std::vector<bus::Delivery>& deliveries, bool stopping);
// `counted` is the name of the number: acked, extended, released.
std::string outcome(std::string_view counted, const bus::AckOutcome& outcome);
// Until what a stop left behind is sorted in, what is due of it counts as delayed: then it says that, too.
std::string counts(const std::string& recipient, const bus::Counts& counts, bool caught_up = true);
// `profile`: of one that thinks, JSON; empty: it has none.
std::string agent(const bus::RecipientRow& row, const bus::Counts& counts, bool stopped, const std::string& profile);
// `written` are agents as JSON with commas between them; `next` is where the following page begins, empty at the end.
std::string agents(std::string_view written, std::string_view next);
std::string removed_agent(const std::string& id, const std::vector<std::string>& all);
std::string counted(std::string_view what, std::int64_t number);
std::string changed(bus::MessageId id);

}  // namespace belfry::server::wire
