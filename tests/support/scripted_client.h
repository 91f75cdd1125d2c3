// Whoever answers webhooks and speaks for a model in a simulation: what it says is scripted, what it heard is kept, and it
// lives on when the kernel dies.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/net/web_client.h"

namespace belfry::testing {

// An answer that comes piece by piece, each some time after the one before.
struct ScriptedStream {
  struct Piece {
    Millis after{0};
    std::string bytes;
  };
  enum class End { clean, cut, hang };

  Millis connect{0};     // how long the connection takes
  net::WebAnswer head;   // fate, status, what goes wrong, and the body if the status is not 2xx
  Millis first_byte{0};  // until the head comes
  std::vector<Piece> pieces;
  bool endless = false;  // the last piece comes again and again
  End end = End::clean;
};

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
  // The same for requests whose answer is streamed.
  std::function<ScriptedStream(const net::WebRequest&)> stream = [](const net::WebRequest&) {
    return ScriptedStream{};
  };
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
  // Keeps the deadlines as the real one does, on simulated time.
  Task<net::WebAnswer> stream(net::WebRequest request, net::Patience patience, net::AnswerSink& sink,
                              std::shared_ptr<Cancel> cancel) override {
    ++receiver_.calls;
    const ScriptedStream script = receiver_.stream(request);
    const BootTime last = clock_.now().boot + request.timeout;
    if (!cancel) cancel = std::make_shared<Cancel>();
    net::WebAnswer answer{.fate = net::Fate::not_sent};
    std::string trouble = co_await wait(script.connect, patience.connect, last, cancel);
    if (!trouble.empty() || script.head.fate == net::Fate::not_sent) {
      answer.what = trouble.empty() ? script.head.what : "cannot be reached: " + trouble;
      co_return answer;
    }
    receiver_.heard.push_back({request, round_down(clock_.now().wall)});
    answer.fate = net::Fate::unanswered;
    trouble = co_await wait(script.first_byte, patience.first_byte, last, cancel);
    if (!trouble.empty() || script.head.fate == net::Fate::unanswered) {
      answer.what = trouble.empty() ? script.head.what : "did not answer: " + trouble;
      co_return answer;
    }
    answer = script.head;
    sink.began(answer.status, answer.retry_after);
    answer.complete = answer.status < 200 || answer.status > 299;
    if (answer.complete) co_return answer;
    std::size_t left = request.answer_bytes_max;
    for (std::size_t i = 0; i < script.pieces.size() || (script.endless && !script.pieces.empty()); ++i) {
      const ScriptedStream::Piece& piece = script.pieces[std::min(i, script.pieces.size() - 1)];
      trouble = co_await wait(piece.after, patience.silence, last, cancel);
      if (!trouble.empty()) break;
      const bool fits = piece.bytes.size() <= left;
      left -= std::min(left, piece.bytes.size());
      if (!sink.piece(piece.bytes)) co_return answer;
      if (!fits) trouble = "the answer is too long";
      if (!fits) break;
    }
    if (trouble.empty() && script.end == ScriptedStream::End::hang)
      trouble = co_await wait(request.timeout * 2, patience.silence, last, cancel);
    if (trouble.empty() && script.end == ScriptedStream::End::cut) trouble = "the connection ended";
    answer.complete = trouble.empty();
    answer.what = trouble.empty() ? "" : "breaks off: " + trouble;
    co_return answer;
  }
  void abandon() override {
    abandoned_ = true;
    for (Wake* const wake : waiting_) wake->ring();
  }

 private:
  // Lets time pass until something comes; what went wrong if a deadline or somebody else was first.
  Task<std::string> wait(Millis needed, Millis allowed, BootTime last, std::shared_ptr<Cancel> cancel) {
    const BootTime start = clock_.now().boot;
    const BootTime deadline = std::min(start + allowed, last);
    const BootTime end = std::min(start + needed, deadline);
    Wake wake;
    struct Listen {
      ScriptedClient& client;
      Cancel& cancel;
      Wake& wake;
      Listen(ScriptedClient& one, Cancel& ended, Wake& bell) : client(one), cancel(ended), wake(bell) {
        client.waiting_.push_back(&wake);
        cancel.on_cancel([&bell] { bell.ring(); });
      }
      ~Listen() {
        cancel.on_cancel(nullptr);
        std::erase(client.waiting_, &wake);
      }
    } listen(*this, *cancel, wake);
    while (!abandoned_ && !cancel->cancelled() && clock_.now().boot < end) co_await clock_.sleep_until(end, wake);
    if (cancel->cancelled()) co_return "it was cancelled";
    if (abandoned_) co_return "the server is stopping";
    co_return needed > deadline - start ? "it took too long" : "";
  }

  Clock& clock_;
  ScriptedReceiver& receiver_;
  std::vector<Wake*> waiting_;
  bool abandoned_ = false;
};

}  // namespace belfry::testing
