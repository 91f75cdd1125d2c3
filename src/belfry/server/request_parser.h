// Bytes to requests: Beast's synchronous parser behind a small face.
//
// One parser reads one request. The head comes first, so that a foreign request is turned away before its body is looked
// at; the body then fills request().body as it arrives, and whoever streams takes it out from there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "belfry/server/http_message.h"

namespace belfry::server {

// A head is a few hundred bytes; 16 KiB leave room for cookies and tokens and are nothing to hold.
inline constexpr std::size_t kHeadBytesMax = 16u << 10;
// The lines in front of chunks and the fields behind the last one, together: nobody here has anything to say there.
inline constexpr std::size_t kChunkTextBytesMax = 16u << 10;

struct ParseProblem {
  Error error;
  int status;
};

class RequestParser {
 public:
  RequestParser();
  ~RequestParser();

  // Takes what it can of `bytes` and returns how much that was; stops after the head.
  std::expected<std::size_t, ParseProblem> feed(std::string_view bytes);
  bool head_done() const;
  bool done() const;
  bool started() const;  // some of a request has come
  bool keep_alive() const;
  bool http_1_0() const;
  // What Content-Length says about the body; nothing for a chunked one.
  std::optional<std::uint64_t> announced_bytes() const;
  // Feeding stops with too_large when more than this has come in all.
  void set_body_limit(std::size_t bytes);
  Request& request();
  // What this keeps of the request: its fields, and what came of its body.
  std::size_t held_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::server
