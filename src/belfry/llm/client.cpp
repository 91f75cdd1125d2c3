#include "belfry/llm/client.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/llm/completion.h"

namespace belfry::llm {
namespace {

// On the wire every few letters of a streamed answer come with some hundred bytes around them: the longest text that is
// taken fits, and a stream that never ends does not run for its whole time.
constexpr std::size_t kAnswerBytesMax = 64u << 20;
// Of what a server says about an error: a sentence or two.
constexpr std::size_t kSaidBytesMax = 500;
constexpr std::string_view kKeyShown = "[key]";
// A beginning of the key that stands where a text was cut.
constexpr std::size_t kKeyBeginningMin = 4;

class Reader final : public net::AnswerSink {
 public:
  Reader(std::uint64_t seed, Progress& progress) : reader_(seed), progress_(progress) {}

  void began(int, std::optional<Millis>) override {}
  bool piece(std::string_view bytes) override {
    const std::size_t before = reader_.text().size();
    const auto fed = reader_.feed(bytes);
    if (reader_.text().size() > before) progress_.wrote(reader_.text());
    return fed.has_value() && !reader_.done();
  }
  Result<ChatAnswer> finish(bool clean_end, std::size_t request_bytes) {
    return reader_.finish(clean_end, request_bytes);
  }

 private:
  CompletionReader reader_;
  Progress& progress_;
};

bool is_good(const net::WebAnswer& answer) {
  return answer.fate == net::Fate::answered && answer.status >= 200 && answer.status < 300;
}

// The same request may well succeed later; 409 is how some say that a request met another one.
bool passes(int status) { return status == 408 || status == 409 || status == 429 || status >= 500; }

std::string in_seconds(Millis duration) { return fmt::format("{} s", (duration.count() + 999) / 1'000); }

}  // namespace

// What came of one try.
struct Client::Try {
  Result<ChatAnswer> result;
  std::string why;  // for the log: our own words, none of the server's
  std::optional<Millis> retry_after{};
  bool hopeless = false;  // another try makes no sense
};

// One request on its way. The one that finds the circuit's pause over is the probe.
class Client::Turn {
 public:
  explicit Turn(Client& client) : client_(client), probe_(client.open_until_.has_value()) {
    if (probe_) client_.probing_ = true;
  }
  ~Turn() {
    if (probe_) client_.probing_ = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Client& client_;
  bool probe_;
};

Millis pause_after(int tries, const ClientOptions& options, std::uint64_t chance) {
  Millis pause = options.pause_first;
  for (int i = 1; i < tries && pause < options.pause_max; ++i) pause *= 2;
  const std::int64_t half = std::min(pause, options.pause_max).count() / 2;
  return Millis{half + static_cast<std::int64_t>(chance % static_cast<std::uint64_t>(half + 1))};
}

Client::Client(net::WebClient& web, Clock& clock, Random& random, ClientOptions options)
    : web_(web), clock_(clock), random_(random), options_(std::move(options)) {}

Task<Result<ChatAnswer>> Client::complete(ChatRequest request, Progress& progress, std::shared_ptr<Cancel> cancel) {
  ++statistics_.requests;
  if (!cancel) cancel = std::make_shared<Cancel>();
  const std::string model = request.model.empty() ? options_.model : request.model;
  BELFRY_CO_TRY(std::string body, request_body(request, model));
  if (auto closed = circuit_error()) {
    ++statistics_.unavailable;
    co_return std::unexpected(std::move(*closed));
  }
  const Turn turn(*this);
  auto result = co_await ask(model, std::move(body), progress, std::move(cancel));
  note_end(result);
  co_return result;
}

Task<Result<ChatAnswer>> Client::ask(std::string model, std::string body, Progress& progress,
                                     std::shared_ptr<Cancel> cancel) {
  const BootTime start = clock_.now().boot;
  const BootTime deadline = start + options_.whole;
  int garbled = 0;
  for (int tries = 1;; ++tries) {
    if (cancel->cancelled()) co_return fail(Errc::cancelled, "the request to the model was cancelled");
    log::debug("llm.asked", "", {{"model", model}, {"attempt", tries}, {"bytes", body.size()}});
    Try tried = co_await attempt(body, deadline, progress, cancel);
    if (cancel->cancelled()) co_return fail(Errc::cancelled, "the request to the model was cancelled");
    const auto ms = std::chrono::floor<Millis>(clock_.now().boot - start);
    if (tried.result) {
      const Usage& usage = tried.result->usage;
      log::debug("llm.answered", "",
                 {{"model", model},
                  {"ms", ms},
                  {"promptTokens", usage.prompt_tokens},
                  {"completionTokens", usage.completion_tokens}});
      co_return std::move(tried.result);
    }
    if (tried.result.error().code == Errc::model_garbled) ++garbled;
    const Millis wait = std::max(pause_after(tries, options_, random_.next()), tried.retry_after.value_or(Millis{0}));
    // A probe is one try. If the circuit has been opened meanwhile, others have failed, too.
    const bool last = tries >= options_.attempts || garbled >= options_.garbled_attempts || open_until_;
    if (tried.hopeless || last || clock_.now().boot + wait >= deadline) {
      Error error = std::move(tried.result.error());
      if (tries > 1) error.detail += fmt::format(" (after {} tries)", tries);
      co_return std::unexpected(std::move(error));
    }
    log::warn("llm.retry", "the model's server is asked again",
              {{"model", model}, {"attempt", tries}, {"pause", wait}, {"what", tried.why}});
    co_await pause(wait, cancel);
  }
}

Task<Client::Try> Client::attempt(std::string body, BootTime deadline, Progress& progress,
                                  std::shared_ptr<Cancel> cancel) {
  ++statistics_.attempts;
  const std::size_t request_bytes = body.size();
  const Millis left = std::chrono::ceil<Millis>(deadline - clock_.now().boot);
  Reader reader(random_.next(), progress);
  const net::Patience patience{options_.connect, options_.first_byte, options_.silence};
  net::WebRequest request = web_request(std::move(body), left);
  const net::WebAnswer answer = co_await web_.stream(std::move(request), patience, reader, std::move(cancel));
  if (!is_good(answer)) co_return judge(answer);
  auto result = reader.finish(answer.complete, request_bytes);
  if (result) co_return Try{.result = std::move(result), .why = {}};
  // What the connection says about a break is more than "it breaks off".
  Error error = result.error();
  if (error.code == Errc::model_garbled && !answer.what.empty()) error.detail = answer.what;
  error.detail = shortened(without_key(std::move(error.detail)), kSaidBytesMax);
  const bool refused = error.code == Errc::model_refused;
  std::string why = error.code == Errc::model_garbled ? error.detail : "an error in the stream";
  co_return Try{.result = std::unexpected(std::move(error)), .why = std::move(why), .hopeless = refused};
}

net::WebRequest Client::web_request(std::string body, Millis timeout) const {
  net::WebRequest request{
      .url = options_.base,
      .headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream, application/json"}},
      .body = std::move(body),
      .timeout = timeout,
      .answer_bytes_max = kAnswerBytesMax,
      .ca_file = options_.ca_file};
  // A query (`?api-version=…`) stays behind the path.
  std::string& target = request.url.target;
  const std::size_t query = std::min(target.find('?'), target.size());
  std::string path = target.substr(0, query);
  while (path.ends_with('/')) path.pop_back();
  target = path + "/chat/completions" + target.substr(query);
  if (!options_.key.empty()) request.headers.emplace_back("Authorization", "Bearer " + options_.key.reveal());
  return request;
}

// Of an answer that is none, or not 2xx.
Client::Try Client::judge(const net::WebAnswer& answer) const {
  if (answer.fate != net::Fate::answered) {
    std::string what = without_key(answer.what);
    return {.result = fail(Errc::model_unavailable, what), .why = what};
  }
  if (!passes(answer.status)) return refusal(answer);
  std::string why = fmt::format("status {}", answer.status);
  std::string detail = fmt::format("the model's server answered {}{}", answer.status, said_by_server(answer.body));
  const bool too_long = answer.retry_after && *answer.retry_after > options_.retry_after_max;
  if (too_long) detail += fmt::format("; it wants to be asked again in {}", in_seconds(*answer.retry_after));
  return {.result = fail(Errc::model_unavailable, std::move(detail)),
          .why = std::move(why),
          .retry_after = answer.retry_after,
          .hopeless = too_long};
}

Client::Try Client::refusal(const net::WebAnswer& answer) const {
  std::string detail = fmt::format("the model's server refused with {}{}", answer.status, said_by_server(answer.body));
  return {.result = fail(Errc::model_refused, std::move(detail)),
          .why = fmt::format("status {}", answer.status),
          .hopeless = true};
}

// The message of its JSON, or the beginning of what else it sent. JSON of another form is not shown: the key could stand in
// it escaped.
std::string Client::said_by_server(const std::string& body) const {
  const auto value = json::parse(body);
  const bool looks_like_json = body.find_first_of("{[\"") == body.find_first_not_of(" \t\r\n");
  if (!value && looks_like_json) return {};
  const std::string said = shortened(without_key(value ? error_message(*value) : body), kSaidBytesMax);
  return said.empty() ? "" : ": " + said;
}

std::string Client::without_key(std::string text) const {
  const std::string& key = options_.key.reveal();
  if (key.empty()) return text;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + kKeyShown.size()))
    text.replace(at, key.size(), kKeyShown);
  for (std::size_t size = std::min(key.size(), text.size()); size >= kKeyBeginningMin; --size)
    if (text.ends_with(std::string_view(key).substr(0, size))) return text.replace(text.size() - size, size, kKeyShown);
  return text;
}

Task<void> Client::pause(Millis duration, std::shared_ptr<Cancel> cancel) {
  Wake wake;
  // Also if the coroutine is dropped while it sleeps.
  struct Listen {
    Cancel& cancel;
    Listen(Cancel& one, Wake& bell) : cancel(one) {
      cancel.on_cancel([&bell] { bell.ring(); });
    }
    ~Listen() { cancel.on_cancel(nullptr); }
  } listen(*cancel, wake);
  const BootTime end = clock_.now().boot + duration;
  while (!cancel->cancelled() && clock_.now().boot < end) co_await clock_.sleep_until(end, wake);
}

std::optional<Error> Client::circuit_error() const {
  if (!open_until_) return std::nullopt;
  const Now now = clock_.now();
  if (now.boot >= *open_until_ && !probing_) return std::nullopt;
  std::string when = "it is being asked right now whether it works again";
  if (!probing_) when = fmt::format("it is asked again at {}", to_iso(round_up(now.wall + (*open_until_ - now.boot))));
  return Error{Errc::model_unavailable,
               fmt::format("the model's server has failed {} times in a row; {}", failures_, when)};
}

void Client::note_end(const Result<ChatAnswer>& result) {
  const Errc code = result ? Errc::cancelled : result.error().code;
  if (result) {
    ++statistics_.answered;
    statistics_.prompt_tokens += result->usage.prompt_tokens;
    statistics_.completion_tokens += result->usage.completion_tokens;
  } else if (code == Errc::cancelled) {
    ++statistics_.cancelled;
    return;  // says nothing about the server
  } else if (code == Errc::model_unavailable) {
    ++statistics_.unavailable;
    return note_failure();
  } else {
    // It works, and has answered; one bad model says nothing about the others of that server.
    ++(code == Errc::model_garbled ? statistics_.garbled : statistics_.refused);
  }
  failures_ = 0;
  open_until_.reset();
}

void Client::note_failure() {
  if (++failures_ < options_.circuit_failures) return;
  if (open_until_ && clock_.now().boot < *open_until_) return;  // it was on its way when the circuit was opened
  ++statistics_.circuit_opened;
  open_until_ = clock_.now().boot + options_.circuit_pause;
  log::warn("llm.circuit_opened", "the model's server fails again and again, and is left alone for a while",
            {{"failures", failures_}, {"pause", options_.circuit_pause}});
}

}  // namespace belfry::llm
