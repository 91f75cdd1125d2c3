#include "belfry/base/result.h"

#include "belfry/base/assert.h"

namespace belfry {

std::string_view word(Errc code) {
  switch (code) {
    case Errc::invalid_json: return "invalid_json";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::invalid_id: return "invalid_id";
    case Errc::invalid_time: return "invalid_time";
    case Errc::not_a_time: return "not_a_time";
    case Errc::impossible_time: return "impossible_time";
    case Errc::ambiguous_time: return "ambiguous_time";
    case Errc::unknown_timezone: return "unknown_timezone";
    case Errc::unknown_field: return "unknown_field";
    case Errc::unknown_recipient: return "unknown_recipient";
    case Errc::not_found: return "not_found";
    case Errc::already_exists: return "already_exists";
    case Errc::key_conflict: return "key_conflict";
    case Errc::lease_lost: return "lease_lost";
    case Errc::too_large: return "too_large";
    case Errc::limit_exceeded: return "limit_exceeded";
    case Errc::overloaded: return "overloaded";
    case Errc::stopping: return "stopping";
    case Errc::disk_full: return "disk_full";
    case Errc::storage_failed: return "storage_failed";
    case Errc::data_in_use: return "data_in_use";
    case Errc::unauthorized: return "unauthorized";
    case Errc::forbidden_host: return "forbidden_host";
    case Errc::forbidden_origin: return "forbidden_origin";
    case Errc::method_not_allowed: return "method_not_allowed";
    case Errc::unsupported: return "unsupported";
    case Errc::timed_out: return "timed_out";
    case Errc::cancelled: return "cancelled";
    case Errc::already_delivered: return "already_delivered";
    case Errc::already_cancelled: return "already_cancelled";
    case Errc::wrong_state: return "wrong_state";
    case Errc::unavailable: return "unavailable";
    case Errc::quickReplies_invalid_type: return "quickReplies_invalid_type";
    case Errc::quickReplies_too_many: return "quickReplies_too_many";
    case Errc::quickReplies_empty_string: return "quickReplies_empty_string";
    case Errc::unknown_tool: return "unknown_tool";
    case Errc::already_answered: return "already_answered";
    case Errc::question_closed: return "question_closed";
    case Errc::not_private_chat: return "not_private_chat";
    case Errc::empty_text: return "empty_text";
    case Errc::already_sent: return "already_sent";
    case Errc::being_sent: return "being_sent";
    case Errc::bad_signature: return "bad_signature";
    case Errc::model_unavailable: return "model_unavailable";
    case Errc::model_refused: return "model_refused";
    case Errc::model_garbled: return "model_garbled";
    case Errc::invalid_schedule: return "invalid_schedule";
    case Errc::invalid_plan: return "invalid_plan";
    case Errc::plugin_failed: return "plugin_failed";
    case Errc::not_configured: return "not_configured";
    case Errc::interrupted: return "interrupted";
  }
  assertion_failed("a known error code", __FILE__, __LINE__);
}

std::optional<Errc> parse_errc(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Errc::interrupted); ++i)
    if (word(static_cast<Errc>(i)) == text) return static_cast<Errc>(i);
  return std::nullopt;
}

bool is_passing(Errc code) {
  return code == Errc::overloaded || code == Errc::stopping || code == Errc::disk_full || code == Errc::storage_failed;
}

}  // namespace belfry
