// Requests and answers as plain values: what routes see of HTTP.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/result.h"
#include "belfry/bus/message_bus.h"

namespace belfry::server {

enum class Method { get, head, post, put, patch, remove, options, other };

std::string_view name(Method method);

// Watches the client's connection while its request waits, and tells `departure` when it is gone.
class ClientWatch {
 public:
  virtual ~ClientWatch() = default;
  virtual void begin(std::shared_ptr<bus::Departure> departure) = 0;
};

struct Request {
  Method method = Method::other;
  std::string path;       // decoded
  std::string query;      // as it came, without the question mark
  std::string parameter;  // what stood in the place of {} in the route
  std::string host;
  std::string origin;
  std::string authorization;
  std::string content_type;
  std::string accept_language;
  std::string accept_encoding;
  std::string if_none_match;
  std::string last_event_id;      // Last-Event-ID: where a stream of events is to go on
  std::string signature;          // Belfry-Signature
  std::string upgrade;            // what the connection is to become
  std::string websocket_key;      // Sec-WebSocket-Key
  std::string websocket_version;  // Sec-WebSocket-Version
  std::string authority;          // whom an absolute URI names
  std::string fetch_site;         // Sec-Fetch-Site and the like: what a browser says about the page that asks
  std::string fetch_mode;
  std::string fetch_dest;
  int hosts = 0;  // how many Host headers came: only one is right
  bool has_authority = false;
  bool has_origin = false;
  bool expects_continue = false;
  std::string body;
  ClientWatch* watch = nullptr;  // lives as long as the request is handled
  // For a handler that finds out by itself who sent this: from here on it is no stranger's. Set where that is so.
  std::function<void()> proved;
};

struct Header {
  std::string_view name;
  std::string value;
};

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string_view cache_control = "no-store";
  std::string body;
  std::vector<Header> headers;
  // Called if the client was gone before all of the answer was written: gives back what it was handed. `partly`: some of
  // it went out.
  std::move_only_function<void(bool partly)> unsent;
};

// A body that is taken in as it comes, and an answer that goes out as it is made: for batches.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Some more of the body; nothing at its end.
  virtual Task<Result<std::string>> read_some() = 0;
  // What the answer is, before its first piece; NDJSON if nobody says.
  virtual void set_content_type(std::string_view type) = 0;
  // Adds to the answer. The first call begins it with status 200.
  virtual Task<Result<>> write(std::string piece) = 0;
  // Waits until all of it has left, for what is to be read now and not with the next piece.
  virtual Task<Result<>> drain() = 0;
};

struct Frame;
using SharedFrame = std::shared_ptr<Frame>;

// A WebSocket, as routes see it. Lives as long as its handler runs.
class Socket {
 public:
  virtual ~Socket() = default;
  // The next text; nothing when the connection has ended.
  virtual Task<std::optional<std::string>> receive() = 0;
  // Whether a frame of this size may be sent that can as well be read again later. One that reads takes what it is sent at
  // once; for the others as little as possible is kept.
  virtual bool has_room(std::size_t bytes) const = 0;
  // Queues a whole frame. A client that does not read what it is sent is cut off: it comes back and reads what it missed.
  virtual void send(SharedFrame frame) = 0;
  // Resumes when what was queued has left, or the connection has ended.
  virtual Task<void> drained() = 0;
  // Says why, and ends.
  virtual void close(int code, std::string_view reason) = 0;
  // Its client has said who it is, and why that is to be believed: the bounds of strangers no longer hold.
  virtual void proved() = 0;
};

std::string_view reason_phrase(int status);
// For every answer: pages of other sites neither show nor read what comes from here.
inline constexpr std::string_view kCrossOriginHeaders =
    "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Embedder-Policy: require-corp\r\n";
// The status that docs/errors.md gives each word.
int status_of(Errc code);
Response json_response(int status, std::string body);
Response error_response(const Error& error);
Response error_response(const Error& error, int status);
std::string error_json(const Error& error);

// Undoes %41 and the like; nothing if it is not well formed.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);
// The pairs of a query, decoded; refuses one that is not well formed or has a name twice.
Result<std::vector<std::pair<std::string, std::string>>> query_pairs(std::string_view query);

}  // namespace belfry::server
