#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "belfry/bus/time_reader.h"
#include "belfry/server/routes.h"
#include "belfry/server/wire.h"

namespace belfry::server {
namespace {

// Lines of a batch that are handed to the bus together: enough to fill a group commit, little enough to hold twice.
constexpr std::size_t kBatchChunkLines = 1'000;
constexpr std::size_t kBatchChunkBytes = 1u << 20;
// Each may hold some megabytes; more at once would not be faster, for they share one disk.
constexpr int kBatchesMax = 16;

// Who changed a message, for its record: the one user there is without accounts.
constexpr const char* kByUser = "user";

Response result_of(bus::MessageId id, const Result<>& result) {
  if (!result) return error_response(result.error());
  return json_response(200, wire::changed(id));
}

// Cuts a body into lines as it comes.
class LineReader {
 public:
  explicit LineReader(Exchange& exchange) : exchange_(exchange) {}

  struct Line {
    std::string text;
    bool too_long = false;
  };
  struct Chunk {
    std::vector<Line> lines;
    std::optional<Error> problem;  // the body ended here, and not well
    bool last = false;
  };

  Task<Chunk> next() {
    Chunk chunk;
    std::size_t bytes = 0;
    while (chunk.lines.size() < kBatchChunkLines && bytes < kBatchChunkBytes && !chunk.last) {
      if (take_line(chunk)) {
        if (!chunk.lines.empty()) bytes += chunk.lines.back().text.size();
        continue;
      }
      auto piece = co_await exchange_.read_some();
      if (!piece) {
        chunk.problem = std::move(piece).error();
        chunk.last = true;
      } else if (piece->empty()) {
        finish(chunk);
      } else {
        rest_.erase(0, at_);
        at_ = 0;
        rest_ += *piece;
      }
    }
    co_return chunk;
  }

 private:
  // Takes one line out of the rest; false if it is not whole yet.
  bool take_line(Chunk& chunk) {
    const std::size_t end = rest_.find('\n', at_);
    if (end == std::string::npos) {
      // A line that is too long is not collected any further, only its end is waited for.
      if (rest_.size() - at_ > kBodyBytesMax) {
        too_long_ = true;
        at_ = rest_.size();
      }
      return false;
    }
    add(chunk, std::string_view(rest_).substr(at_, end - at_));
    at_ = end + 1;
    return true;
  }

  void finish(Chunk& chunk) {
    chunk.last = true;
    if (at_ < rest_.size() || too_long_) add(chunk, std::string_view(rest_).substr(at_));
    at_ = rest_.size();
  }

  void add(Chunk& chunk, std::string_view text) {
    const bool blank = text.find_first_not_of(" \t\r") == std::string_view::npos;
    if (blank && !too_long_) return;
    const bool too_long = std::exchange(too_long_, false) || text.size() > kBodyBytesMax;
    if (++lines_ > kBatchLinesMax) {
      chunk.last = true;
      chunk.problem =
          Error{Errc::too_large,
                fmt::format("a batch has at most {} lines; those before this one were taken", kBatchLinesMax)};
      return;
    }
    chunk.lines.push_back({too_long ? std::string() : std::string(text), too_long});
  }

  Exchange& exchange_;
  std::string rest_;
  std::size_t at_ = 0;  // in rest_: where the next line begins
  bool too_long_ = false;
  int lines_ = 0;
};

Result<wire::SendRequest> read_line(const LineReader::Line& line, const bus::TimeReader& times) {
  if (line.too_long) return fail(Errc::too_large, fmt::format("the line is longer than {} bytes", kBodyBytesMax));
  BELFRY_TRY(wire::SendRequest request, wire::read_send(line.text));
  if (request.to_is_list) return fail(Errc::invalid_argument, "to is a list; in a batch each line has one recipient");
  BELFRY_CHECK(bus::resolve_schedule(request, times));
  request.message.to = std::move(request.to.front());
  return request;
}

}  // namespace

class MessageRoutes::OnItsWay {
 public:
  explicit OnItsWay(MessageRoutes& routes) : routes_(routes) { ++routes_.on_their_way_; }
  ~OnItsWay() {
    if (--routes_.on_their_way_ == 0) routes_.sends_done_.ring();
  }
  OnItsWay(const OnItsWay&) = delete;
  OnItsWay& operator=(const OnItsWay&) = delete;

 private:
  MessageRoutes& routes_;
};

void MessageRoutes::add_to(Router& router) {
  const auto bound = [this](Task<Response> (MessageRoutes::*handler)(Request)) {
    return [this, handler](Request request) { return (this->*handler)(std::move(request)); };
  };
  router.add(Method::post, "/v1/messages", bound(&MessageRoutes::send));
  router.add(Method::get, "/v1/messages?", bound(&MessageRoutes::list));
  router.add_stream(
      Method::post, "/v1/messages:batch",
      [this](Request request, Exchange& exchange) { return send_batch(std::move(request), exchange); }, kBatchBytesMax);
  router.add(Method::get, "/v1/messages/{}", bound(&MessageRoutes::get));
  router.add(Method::patch, "/v1/messages/{}", bound(&MessageRoutes::move));
  router.add(Method::remove, "/v1/messages/{}", bound(&MessageRoutes::cancel));
  router.add(Method::post, "/v1/messages/{}:deliver", bound(&MessageRoutes::deliver));
  router.add(Method::post, "/v1/messages/{}:retry", bound(&MessageRoutes::retry));
  router.add(Method::post, "/v1/messages/{}:drop", bound(&MessageRoutes::drop));
}

Task<void> MessageRoutes::finish_sends(BootTime deadline) {
  while (on_their_way_ > 0 && clock_.now().boot < deadline) co_await clock_.sleep_until(deadline, sends_done_);
}

Task<Response> MessageRoutes::send(Request request) {
  auto read = wire::read_send(request.body);
  if (!read) co_return error_response(read.error());
  if (const auto resolved = bus::resolve_schedule(*read, times_); !resolved) co_return error_response(resolved.error());
  const OnItsWay on_its_way(*this);
  if (!read->to_is_list) {
    read->message.to = std::move(read->to.front());
    const auto sent = co_await bus_.send(std::move(read->message));
    if (!sent) co_return error_response(sent.error());
    co_return json_response(201, wire::sent(*sent, read->warnings, bus::understood(*read)));
  }
  std::vector<Result<bus::Sent>> results(read->to.size(), fail(Errc::storage_failed, "not sent"));
  std::vector<bus::Outgoing> messages;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < read->to.size(); ++i) {
    if (const auto fits = bus::check_id("to", read->to[i]); !fits) {
      results[i] = std::unexpected(fits.error());
      continue;
    }
    messages.push_back(bus::message_for(*read, read->to[i]));
    places.push_back(i);
  }
  auto sent = co_await bus_.send_many(std::move(messages));
  for (std::size_t i = 0; i < sent.size(); ++i) results[places[i]] = std::move(sent[i]);
  co_return json_response(201, wire::sent_to_each(*read, results));
}

// Apart from the reading of a batch: a stop waits for what is on its way to the disk, not for a slow client.
Task<std::vector<Result<bus::Sent>>> MessageRoutes::send_chunk(std::vector<bus::Outgoing> messages) {
  const OnItsWay on_its_way(*this);
  auto sent = co_await bus_.send_many(std::move(messages));
  co_return sent;
}

// While one chunk is on its way to the disk, the next one is read and checked.
Task<Response> MessageRoutes::send_batch(Request, Exchange& exchange) {
  using namespace asio::experimental::awaitable_operators;
  if (batches_ >= kBatchesMax)
    co_return error_response({Errc::overloaded, fmt::format("{} batches are being taken in already", batches_)});
  struct Count {
    int& batches;
    explicit Count(int& number) : batches(number) { ++batches; }
    ~Count() { --batches; }
  } count(batches_);

  LineReader reader(exchange);
  LineReader::Chunk chunk = co_await reader.next();
  if (chunk.lines.empty() && chunk.problem) co_return error_response(*chunk.problem);
  while (true) {
    std::vector<Result<wire::SendRequest>> read;
    std::vector<bus::Outgoing> messages;
    read.reserve(chunk.lines.size());
    messages.reserve(chunk.lines.size());
    for (std::size_t i = 0; i < chunk.lines.size(); ++i) {
      read.push_back(read_line(chunk.lines[i], times_));
      if (read.back()) messages.push_back(std::move(read.back()->message));
    }
    const bool last = chunk.last;
    const std::optional<Error> problem = std::move(chunk.problem);
    std::vector<Result<bus::Sent>> sent;
    if (last) {
      sent = co_await send_chunk(std::move(messages));
    } else {
      auto both = co_await (send_chunk(std::move(messages)) && reader.next());
      sent = std::move(std::get<0>(both));
      chunk = std::move(std::get<1>(both));
    }
    std::string answer;
    std::size_t next = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
      const Error* error = read[i] ? nullptr : &read[i].error();
      const Result<bus::Sent>* outcome = error ? nullptr : &sent[next++];
      if (outcome && !*outcome) error = &outcome->error();
      answer += error ? error_json(*error) : wire::sent(**outcome, read[i]->warnings, bus::understood(*read[i]));
      answer += '\n';
    }
    if (problem) answer += error_json(*problem) + '\n';
    const auto written = co_await exchange.write(std::move(answer));
    if (last || !written) co_return Response{};
  }
}

Task<Response> MessageRoutes::list(Request request) {
  auto query = wire::read_list_query(request.query);
  if (!query) co_return error_response(query.error());
  const auto page = co_await bus_.list(std::move(*query));
  if (!page) co_return error_response(page.error());
  co_return json_response(200, wire::list(*page));
}

Task<Response> MessageRoutes::get(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  const auto info = co_await bus_.get(*id);
  if (!info) co_return error_response(info.error());
  co_return json_response(200, wire::info(*info));
}

Task<Response> MessageRoutes::move(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  auto wanted = wire::read_move(request.body);
  if (!wanted) co_return error_response(wanted.error());
  std::optional<when::Reading> reading;
  if (wanted->schedule) {
    auto read = times_.read_schedule(*wanted->schedule);
    if (!read) co_return error_response(read.error());
    reading = std::move(read->reading);
    if (read->after) {
      wanted->delay = *read->after;
    } else {
      wanted->deliver_at = reading->at;
    }
  }
  std::vector<std::string> warnings;
  Result<bus::MessageInfo> info;
  if (wanted->deliver_at) {
    if (*wanted->deliver_at <= round_down(clock_.now().wall))
      warnings.push_back(
          fmt::format("deliverAt {} is in the past; the message was delivered at once", to_iso(*wanted->deliver_at)));
    info = co_await bus_.reschedule(*id, *wanted->deliver_at);
  } else {
    info = co_await bus_.reschedule_after(*id, wanted->delay);
    if (info && info->deliver_at == kLatestTime)
      warnings.push_back(
          fmt::format("the delay reaches past the end of the calendar; delivery is at {}", to_iso(info->deliver_at)));
  }
  if (!info) co_return error_response(info.error());
  std::optional<wire::Understood> how;
  if (reading) how.emplace(wire::Understood{*reading, wanted->schedule->text});
  co_return json_response(200, wire::info(*info, warnings, how));
}

Task<Response> MessageRoutes::cancel(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto result = co_await bus_.cancel(*id, kByUser);
  co_return result_of(*id, result);
}

Task<Response> MessageRoutes::deliver(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto result = co_await bus_.deliver_now(*id);
  co_return result_of(*id, result);
}

Task<Response> MessageRoutes::retry(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto result = co_await bus_.retry(*id);
  co_return result_of(*id, result);
}

Task<Response> MessageRoutes::drop(Request request) {
  const auto id = bus::parse_message_id(request.parameter);
  if (!id) co_return error_response(id.error());
  if (const auto empty = wire::read_nothing(request.body); !empty) co_return error_response(empty.error());
  const auto result = co_await bus_.drop(*id, kByUser);
  co_return result_of(*id, result);
}

}  // namespace belfry::server
