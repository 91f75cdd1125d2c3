#include "belfry/server/http_message.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/json.h"
#include "belfry/base/utf8.h"

namespace belfry::server {
namespace {

// When to come back after a refusal that is a matter of time. The disk empties its queue in a fraction of a second.
std::optional<Millis> retry_after(Errc code) {
  switch (code) {
    case Errc::overloaded: return Millis{200};
    case Errc::stopping: return Millis{2'000};
    default: return std::nullopt;
  }
}

// A message may quote what came; the answer is UTF-8 all the same.
std::string as_utf8(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const int length = utf8_sequence(std::string_view(text).substr(i));
    if (length == 0) text[i] = '?';
    i += static_cast<std::size_t>(std::max(length, 1));
  }
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string_view name(Method method) {
  switch (method) {
    case Method::get: return "GET";
    case Method::head: return "HEAD";
    case Method::post: return "POST";
    case Method::put: return "PUT";
    case Method::patch: return "PATCH";
    case Method::remove: return "DELETE";
    case Method::options: return "OPTIONS";
    case Method::other: return "?";
  }
  assertion_failed("a known method", __FILE__, __LINE__);
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 507: return "Insufficient Storage";
    default: return "";
  }
}

int status_of(Errc code) {
  switch (code) {
    case Errc::invalid_json:
    case Errc::invalid_argument:
    case Errc::invalid_id:
    case Errc::invalid_time:
    case Errc::not_a_time:
    case Errc::impossible_time:
    case Errc::ambiguous_time:
    case Errc::unknown_timezone:
    case Errc::quickReplies_invalid_type:
    case Errc::quickReplies_too_many:
    case Errc::quickReplies_empty_string:
    case Errc::not_private_chat:
    case Errc::empty_text:
    case Errc::invalid_schedule:
    case Errc::invalid_plan:
    case Errc::unknown_field: return 400;
    case Errc::unauthorized: return 401;
    case Errc::forbidden_host:
    case Errc::forbidden_origin:
    case Errc::bad_signature: return 403;
    case Errc::unknown_recipient:
    case Errc::unknown_tool:
    case Errc::not_found: return 404;
    case Errc::method_not_allowed: return 405;
    case Errc::timed_out: return 408;
    case Errc::already_exists:
    case Errc::key_conflict:
    case Errc::lease_lost:
    case Errc::already_delivered:
    case Errc::already_cancelled:
    case Errc::limit_exceeded:
    case Errc::already_answered:
    case Errc::question_closed:
    case Errc::already_sent:
    case Errc::being_sent:
    case Errc::not_configured:
    case Errc::wrong_state: return 409;
    case Errc::too_large: return 413;
    case Errc::overloaded: return 429;
    case Errc::storage_failed: return 500;
    case Errc::unsupported: return 501;
    case Errc::plugin_failed:
    case Errc::interrupted:
    case Errc::model_refused:
    case Errc::model_garbled: return 502;
    case Errc::stopping:
    case Errc::unavailable:
    case Errc::model_unavailable:
    case Errc::cancelled: return 503;
    case Errc::disk_full: return 507;
    case Errc::data_in_use: return 500;
  }
  assertion_failed("a known error code", __FILE__, __LINE__);
}

Response json_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

std::string error_json(const Error& error) {
  json::Writer writer;
  writer.object().field("error", word(error.code)).field("message", as_utf8(error.detail));
  if (const auto wait = retry_after(error.code)) writer.field("retryAfterMs", wait->count());
  return writer.end().take();
}

Response error_response(const Error& error) { return error_response(error, status_of(error.code)); }

Response error_response(const Error& error, int status) {
  Response response = json_response(status, error_json(error));
  if (const auto wait = retry_after(error.code))
    response.headers.push_back({"Retry-After", fmt::format("{}", (wait->count() + 999) / 1000)});
  if (error.code == Errc::unauthorized) response.headers.push_back({"WWW-Authenticate", "Bearer realm=\"belfry\""});
  return response;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> query_pairs(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!query.empty()) {
    const std::string_view piece = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const std::size_t equals = piece.find('=');
    const auto key = percent_decoded(piece.substr(0, equals), true);
    const auto value = percent_decoded(equals == std::string_view::npos ? "" : piece.substr(equals + 1), true);
    if (!key || !value)
      return fail(Errc::invalid_argument,
                  fmt::format("the query has a % without two hexadecimal digits: {}", piece.substr(0, 100)));
    if (std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == *key; }))
      return fail(Errc::invalid_argument,
                  fmt::format("the parameter \"{}\" stands twice in the query", key->substr(0, 100)));
    pairs.emplace_back(*key, *value);
  }
  return pairs;
}

}  // namespace belfry::server
