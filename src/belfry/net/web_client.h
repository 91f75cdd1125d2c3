// Requests that Belfry makes of others, from the kernel's thread: one request, one answer, one connection.
//
// What matters to whoever asks is what a failure means: a request that was not sent can be made again; one that was sent and
// not answered may have been acted on. Redirects are answers like others and are not followed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belfry/base/asio.h"
#include "belfry/base/cancel.h"
#include "belfry/base/time.h"
#include "belfry/net/url.h"

namespace belfry::net {

struct WebRequest {
  std::string method = "POST";
  WebUrl url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Millis timeout{10'000};  // for all of it: name, connection, request and answer
  std::size_t answer_bytes_max = 64u << 10;
  std::string ca_file;  // certificates that are trusted instead of the system's; empty: the system's
};

// How long the steps of a streamed request may take; its `timeout` ends it in any case.
struct Patience {
  Millis connect{10'000};     // name, connection and TLS
  Millis first_byte{60'000};  // from there to the first byte of the answer
  Millis silence{60'000};     // between two pieces of it
};

enum class Fate {
  not_sent,    // no byte of the request has left: no such name, refused, no trust in the certificate
  unanswered,  // some of it may have arrived, and no answer came
  answered,
};

struct WebAnswer {
  Fate fate = Fate::not_sent;
  int status = 0;
  std::string body;                   // as much of it as came, up to the limit
  std::optional<Millis> retry_after;  // when the other side wants to be asked again
  bool complete = false;              // the body came to the end that it should have
  std::string what;                   // what went wrong, for people
};

// Hears an answer as it comes.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // Once, before any of the body.
  virtual void began(int status, std::optional<Millis> retry_after) = 0;
  // The next bytes of the body, without what the transfer put around them. False: it has enough, the rest is not read.
  virtual bool piece(std::string_view bytes) = 0;
};

class WebClient {
 public:
  virtual ~WebClient() = default;
  virtual Task<WebAnswer> call(WebRequest request) = 0;
  // The same with a body that goes to `sink` piece by piece, if the status is 2xx; otherwise what the other side has to say
  // stands in the answer's body, up to kRefusalBytesMax. `sink` must live until it returns. `cancel`, if there is one, ends
  // it at once: the answer is what it has come to.
  virtual Task<WebAnswer> stream(WebRequest request, Patience patience, AnswerSink& sink,
                                 std::shared_ptr<Cancel> cancel) = 0;
  // Ends all calls that are under way, for a stop: they return what they have come to.
  virtual void abandon() = 0;
};

// Enough for any message of an error; what is longer is a page for people.
inline constexpr std::size_t kRefusalBytesMax = 64u << 10;

}  // namespace belfry::net
