// Outcomes as values: `Result<T>` holds a T or an `Error` that a caller can act on.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace belfry {

// The words users see in `error`; docs/errors.md explains each. Programs read the code, people the detail.
enum class Errc {
  invalid_json,
  invalid_argument,
  invalid_id,
  invalid_time,
  not_a_time,
  impossible_time,
  ambiguous_time,
  unknown_timezone,
  unknown_field,
  unknown_recipient,
  not_found,
  already_exists,
  key_conflict,
  lease_lost,
  too_large,
  limit_exceeded,
  overloaded,
  stopping,
  disk_full,
  storage_failed,
  data_in_use,
  unauthorized,
  forbidden_host,
  forbidden_origin,
  method_not_allowed,
  unsupported,
  timed_out,
  cancelled,
  already_delivered,
  already_cancelled,
  wrong_state,
  unavailable,
  quickReplies_invalid_type,  // NOLINT(readability-identifier-naming): the words of the tool's definition
  quickReplies_too_many,      // NOLINT(readability-identifier-naming)
  quickReplies_empty_string,  // NOLINT(readability-identifier-naming)
  unknown_tool,
  already_answered,
  question_closed,
  not_private_chat,
  empty_text,
  already_sent,
  being_sent,
  bad_signature,
  model_unavailable,
  model_refused,
  model_garbled,
  invalid_schedule,
  invalid_plan,
  plugin_failed,
  not_configured,
  interrupted,  // the last one: parse_errc() goes up to here
};

std::string_view word(Errc code);
// The code that has this word; nothing if none has.
std::optional<Errc> parse_errc(std::string_view word);

// Whether the trouble is Belfry's own or its machine's, and passes: the same request may well succeed later, and whoever
// made it has done nothing wrong.
bool is_passing(Errc code);

struct Error {
  Errc code;
  std::string detail;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Errc code, std::string detail) {
  return std::unexpected(Error{code, std::move(detail)});
}

}  // namespace belfry

#define BELFRY_CONCAT_(a, b) a##b
#define BELFRY_CONCAT(a, b) BELFRY_CONCAT_(a, b)
#define BELFRY_TRY_(exit, temporary, declaration, expression) \
  auto temporary = (expression); \
  if (!temporary) exit std::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)

// BELFRY_TRY(const Thing thing, make_thing()): binds the value or returns the error.
#define BELFRY_TRY(declaration, expression) \
  BELFRY_TRY_(return, BELFRY_CONCAT(result_, __LINE__), declaration, expression)
#define BELFRY_CO_TRY(declaration, expression) \
  BELFRY_TRY_(co_return, BELFRY_CONCAT(result_, __LINE__), declaration, expression)

// BELFRY_CHECK(do_thing()): the same where there is no value to bind.
#define BELFRY_CHECK(expression) \
  if (auto result_ = (expression); !result_) return std::unexpected(std::move(result_).error())
#define BELFRY_CO_CHECK(expression) \
  if (auto result_ = (expression); !result_) co_return std::unexpected(std::move(result_).error())
