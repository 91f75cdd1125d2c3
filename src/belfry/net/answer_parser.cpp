#include "belfry/net/answer_parser.h"

#include <charconv>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>

namespace belfry::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t kHeadBytesMax = 32u << 10;
// A line in front of a chunk, or the fields behind the last one: Beast sets no bound to them.
constexpr std::size_t kPendingBytesMax = 64u << 10;
// The shortest end of a body in chunks, "0 CRLF CRLF". Beast asserts that nobody asks again after part of it with less.
constexpr std::size_t kLastChunkBytes = 5;
// More than a few answers before the answer are a mistake of the other side.
constexpr int kInterimAnswersMax = 10;

// Bytes that somebody takes away as they come. Unlike Beast's own it makes no room for a length that is only announced.
struct PassingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(http::header<isRequest, Fields>&, value_type& bytes) : bytes_(bytes) {}
    void init(const boost::optional<std::uint64_t>&, error_code& ec) { ec = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& ec) {
      ec = {};
      std::size_t size = 0;
      for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers); ++at) {
        const asio::const_buffer buffer = *at;
        bytes_.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(error_code& ec) { ec = {}; }

   private:
    value_type& bytes_;
  };
};

// Seconds; a date is as good as none, for nobody says whose clock it is on.
std::optional<Millis> retry_after(std::string_view text) {
  std::int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  const bool whole = !text.empty() && read.ec == std::errc{} && read.ptr == end;
  if (!whole || seconds < 0 || seconds > 86'400 * 365) return std::nullopt;
  return Millis{seconds * 1'000};
}

}  // namespace

struct AnswerParser::Impl {
  Impl() {
    parser.header_limit(kHeadBytesMax);
    parser.body_limit(boost::none);  // whoever takes the pieces counts them
    parser.eager(true);
  }
  http::response_parser<PassingBody> parser;
};

AnswerParser::AnswerParser() : impl_(std::make_unique<Impl>()) {}
AnswerParser::~AnswerParser() = default;

bool AnswerParser::complete() const { return head_ && impl_->parser.is_done(); }

std::string AnswerParser::take_body() {
  if (!head_) return {};
  return std::exchange(impl_->parser.get().body(), {});
}

void AnswerParser::feed(std::string_view bytes) {
  if (over()) return;
  pending_ += bytes;
  read_pending();
  if (!over() && pending_.size() > kPendingBytesMax) problem_ = "the other side sends what is no HTTP answer";
}

void AnswerParser::read_pending() {
  std::size_t at = 0;
  while (at < pending_.size() && !over()) {
    if (head_ && wants_more_ && pending_.size() - at < kLastChunkBytes) break;
    error_code ec;
    const std::size_t taken = impl_->parser.put(asio::buffer(pending_.data() + at, pending_.size() - at), ec);
    at += taken;
    note_head();
    wants_more_ = ec == http::error::need_more;
    if (wants_more_ || (!ec && taken == 0)) break;
    if (ec) problem_ = ec.message();
  }
  pending_.erase(0, at);
}

// An answer before the answer has no body: it ends with its head, and the next one follows.
void AnswerParser::note_head() {
  const auto& parser = impl_->parser;
  if (head_ || !parser.is_header_done()) return;
  const unsigned status = parser.get().result_int();
  if (status < 100) {
    problem_ = "the answer has a status that does not exist";
    return;
  }
  if (status < 200) {
    if (++interim_ > kInterimAnswersMax) problem_ = "the other side announces an answer again and again";
    impl_ = std::make_unique<Impl>();
    return;
  }
  const auto wait = parser.get()[http::field::retry_after];
  head_ = Head{static_cast<int>(status), retry_after({wait.data(), wait.size()})};
}

void AnswerParser::end() {
  if (over()) return;
  error_code ec;
  if (impl_->parser.got_some()) impl_->parser.put_eof(ec);
  if (ec || !impl_->parser.got_some()) problem_ = "the connection ended";
  note_head();
}

}  // namespace belfry::net
