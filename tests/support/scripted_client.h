// Whoever answers webhooks in a simulation: what it says is scripted, what it heard is kept, and it lives on when the
// kernel dies.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/net/web_client.h"

namespace belfry::testing {

struct ScriptedReceiver {
  struct Heard {
    net::WebRequest request;
    WallTime at;
    std::string header(std::string_view name) const {
      for (const auto& [key, value] : request.headers)
        if (key == name) return value;
      return {};
    }
    std::string key() const { return header("Idempotency-Key"); }
  };

  static net::WebAnswer status(int code) { return {.fate = net::Fate::answered, .status = code}; }
  static net::WebAnswer busy(Millis retry_after) {
    return {.fate = net::Fate::answered, .status = 429, .retry_after = retry_after};
  }
  static net::WebAnswer refused() { return {.fate = net::Fate::not_sent, .what = "connection refused"}; }
  static net::WebAnswer silent() { return {.fate = net::Fate::unanswered, .what = "the connection ended"}; }

  // Called for every request, in order. A request that is not sent is not heard, but it is called for.
  std::function<net::WebAnswer(const net::WebRequest&)> answer = [](const net::WebRequest&) { return status(200); };
  Millis takes{0};           // until it answers; beyond the request's timeout it counts as no answer
  std::vector<Heard> heard;  // what has arrived, or may have
  int calls = 0;
};

// The kernel's side of it, one a life.
class ScriptedClient final : public net::WebClient {
 public:
  ScriptedClient(Clock& clock, ScriptedReceiver& receiver) : clock_(clock), receiver_(receiver) {}

  Task<net::WebAnswer> call(net::WebRequest request) override {
    ++receiver_.calls;
    net::WebAnswer answer = receiver_.answer(request);
    if (answer.fate != net::Fate::not_sent) receiver_.heard.push_back({request, round_down(clock_.now().wall)});
    if (receiver_.takes == Millis{0}) co_return answer;
    Wake wake;
    waiting_.push_back(&wake);
    const BootTime done = clock_.now().boot + std::min(receiver_.takes, request.timeout);
    const bool too_long = receiver_.takes > request.timeout;
    while (!abandoned_ && clock_.now().boot < done) co_await clock_.sleep_until(done, wake);
    std::erase(waiting_, &wake);
    if (too_long || abandoned_) co_return ScriptedReceiver::silent();
    co_return answer;
  }
  void abandon() override {
    abandoned_ = true;
    for (Wake* const wake : waiting_) wake->ring();
  }

 private:
  Clock& clock_;
  ScriptedReceiver& receiver_;
  std::vector<Wake*> waiting_;
  bool abandoned_ = false;
};

}  // namespace belfry::testing
