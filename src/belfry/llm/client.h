// The Model that runs elsewhere and speaks chat completions over HTTP.
//
// One request is tried several times, with pauses that double, and all tries together have one deadline. A server that fails
// request after request is left alone for a while (the circuit is open), then asked once; until that one was answered the
// others fail at once. The key goes into a header and nowhere else: what a server says about an error has the key cut out,
// and neither questions nor answers are logged.
//
// Lives on the kernel's thread. At a stop its callers cancel what they wait for; it has no tasks of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "belfry/base/random.h"
#include "belfry/base/secret.h"
#include "belfry/clock/clock.h"
#include "belfry/llm/model.h"
#include "belfry/net/web_client.h"

namespace belfry::llm {

struct ClientOptions {
  net::WebUrl base;     // https://api.openai.com/v1: what stands before /chat/completions
  std::string model;    // for requests that name none
  Secret key;           // empty: none is sent, as servers on the same machine want it
  std::string ca_file;  // certificates that are trusted instead of the system's

  Millis connect{10'000};
  Millis first_byte{60'000};  // a busy server lets a request wait before it begins
  Millis silence{60'000};     // one that thinks says nothing
  Millis whole{300'000};      // for all tries and the pauses between them

  int attempts = 4;
  int garbled_attempts =
      3;  // of them, those that had an answer which makes no sense: each has cost what an answer costs
  Millis pause_first{1'000};
  Millis pause_max{30'000};
  Millis retry_after_max{60'000};  // who wants a longer pause is not waited for

  int circuit_failures = 5;  // requests in a row, with all their tries
  Millis circuit_pause{30'000};
};

// Since the start.
struct Statistics {
  std::int64_t requests = 0;
  std::int64_t attempts = 0;
  std::int64_t answered = 0;
  std::int64_t refused = 0;
  std::int64_t garbled = 0;
  std::int64_t unavailable = 0;  // also those that an open circuit turned away
  std::int64_t cancelled = 0;
  std::int64_t circuit_opened = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

// The pause before the next try when `tries` were made: half of it is fixed, half is chance, so that those who were turned
// away together do not come back together.
Millis pause_after(int tries, const ClientOptions& options, std::uint64_t chance);

class Client final : public Model {
 public:
  Client(net::WebClient& web, Clock& clock, Random& random, ClientOptions options);

  Task<Result<ChatAnswer>> complete(ChatRequest request, Progress& progress, std::shared_ptr<Cancel> cancel) override;

  const Statistics& statistics() const { return statistics_; }

 private:
  struct Try;
  class Turn;

  Task<Result<ChatAnswer>> ask(std::string model, std::string body, Progress& progress, std::shared_ptr<Cancel> cancel);
  Task<Try> attempt(std::string body, BootTime deadline, Progress& progress, std::shared_ptr<Cancel> cancel);
  Task<void> pause(Millis duration, std::shared_ptr<Cancel> cancel);
  net::WebRequest web_request(std::string body, Millis timeout) const;
  Try judge(const net::WebAnswer& answer) const;
  Try refusal(const net::WebAnswer& answer) const;
  std::string said_by_server(const std::string& body) const;
  std::string without_key(std::string text) const;

  std::optional<Error> circuit_error() const;
  void note_end(const Result<ChatAnswer>& result);
  void note_failure();

  net::WebClient& web_;
  Clock& clock_;
  Random& random_;
  ClientOptions options_;
  Statistics statistics_;
  int failures_ = 0;  // requests in a row
  std::optional<BootTime> open_until_;
  bool probing_ = false;
};

}  // namespace belfry::llm
