#include "belfry/server/request_parser.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <fmt/format.h>

#include "belfry/net/signature.h"

namespace belfry::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

// The shortest end of a body in chunks, "0 CRLF CRLF". Beast asserts that nobody asks again after part of it with less.
constexpr std::size_t kLastChunkBytes = 5;
// Room that is made for a body because of its announced length alone; what really comes makes more.
constexpr std::size_t kReservedBytesMax = 64u << 10;

// What may be the line of the last chunk, perhaps behind the end of the one before: Beast has seen part of it.
bool may_be_last_chunk(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of("\r\n");
  return first == std::string_view::npos || bytes[first] == '0';
}

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return Method::get;
    case http::verb::head: return Method::head;
    case http::verb::post: return Method::post;
    case http::verb::put: return Method::put;
    case http::verb::patch: return Method::patch;
    case http::verb::delete_: return Method::remove;
    case http::verb::options: return Method::options;
    default: return Method::other;
  }
}

}  // namespace

class RequestParser::Impl final : public http::basic_parser<true> {
 public:
  Impl() {
    header_limit(kHeadBytesMax);
    body_limit(boost::none);  // counted by ourselves: the limit depends on the route
    eager(false);
  }

  Request request;
  std::optional<ParseProblem> problem;
  std::size_t body_bytes_max = 0;
  std::size_t body_bytes = 0;
  std::size_t extension_bytes = 0;  // of all chunks so far
  std::size_t head_bytes = 0;
  int version = 11;
  bool wants_more = false;

  // For the line of the next chunk, or that of the last one with the trailers behind it.
  std::size_t chunk_text_room() const { return kChunkTextBytesMax - std::min(extension_bytes, kChunkTextBytesMax); }
  std::size_t put_chunks(std::string_view bytes, error_code& ec);

 private:
  // Ends the parsing with an answer of ours.
  void refuse(Errc code, std::string detail, int status, error_code& ec) {
    problem = ParseProblem{{code, std::move(detail)}, status};
    ec = http::error::bad_value;
  }

  void on_request_impl(http::verb verb, beast::string_view, beast::string_view target, int http_version,
                       error_code& ec) override {
    version = http_version;
    request.method = method_of(verb);
    std::string_view rest(target.data(), target.size());
    // A proxy writes the whole URL. Its host is looked at like the header.
    if (rest.starts_with("http://")) {
      rest.remove_prefix(7);
      request.authority = rest.substr(0, rest.find_first_of("/?#"));
      request.has_authority = true;
      rest.remove_prefix(request.authority.size());
    }
    const std::size_t question = rest.find('?');
    if (question != std::string_view::npos) request.query = rest.substr(question + 1);
    auto path = percent_decoded(rest.substr(0, question), false);
    if (!path) return refuse(Errc::invalid_argument, "the path has a % without two hexadecimal digits", 400, ec);
    request.path = std::move(*path);
  }

  void on_response_impl(int, beast::string_view, int, error_code&) override {}

  void on_field_impl(http::field field, beast::string_view name, beast::string_view value, error_code& ec) override {
    if (is_header_done()) return;  // a trailer says nothing that we want to hear
    const std::string_view text(value.data(), value.size());
    switch (field) {
      case http::field::host:
        request.host = text;
        ++request.hosts;
        break;
      case http::field::origin:
        request.origin = text;
        request.has_origin = true;
        break;
      case http::field::authorization: request.authorization = text; break;
      case http::field::content_type: request.content_type = text; break;
      case http::field::accept_language: request.accept_language = text; break;
      case http::field::accept_encoding: request.accept_encoding = text; break;
      case http::field::if_none_match: request.if_none_match = text; break;
      case http::field::upgrade: request.upgrade = text; break;
      case http::field::sec_websocket_key: request.websocket_key = text; break;
      case http::field::sec_websocket_version: request.websocket_version = text; break;
      case http::field::sec_fetch_site: request.fetch_site = text; break;
      case http::field::sec_fetch_mode: request.fetch_mode = text; break;
      case http::field::sec_fetch_dest: request.fetch_dest = text; break;
      case http::field::content_encoding:
        if (!beast::iequals(value, "identity"))
          refuse(Errc::unsupported, fmt::format("Content-Encoding {} is not read; send the body as it is", text), 415,
                 ec);
        break;
      case http::field::transfer_encoding:
        // Anything else in front of the last encoding would leave the length to guessing.
        if (!beast::iequals(value, "chunked"))
          refuse(Errc::unsupported, fmt::format("Transfer-Encoding {} is not read; chunked is", text), 501, ec);
        break;
      case http::field::expect:
        if (!beast::iequals(value, "100-continue"))
          return refuse(Errc::unsupported, fmt::format("Expect: {} is not known", text), 417, ec);
        request.expects_continue = true;
        break;
      case http::field::unknown:
        if (beast::iequals(name, net::kSignatureHeader)) request.signature = text;
        if (beast::iequals(name, "Last-Event-ID")) request.last_event_id = text;
        break;
      default: break;
    }
  }

  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    if (length) request.body.reserve(std::min<std::size_t>({*length, body_bytes_max, kReservedBytesMax}));
  }

  std::size_t take(beast::string_view bytes, error_code& ec) {
    body_bytes += bytes.size();
    if (body_bytes > body_bytes_max) {
      refuse(Errc::too_large, fmt::format("the body is larger than {} bytes", body_bytes_max), 413, ec);
      return 0;
    }
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  std::size_t on_body_impl(beast::string_view bytes, error_code& ec) override { return take(bytes, ec); }
  void on_chunk_header_impl(std::uint64_t, beast::string_view extensions, error_code&) override {
    extension_bytes += extensions.size();
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, error_code& ec) override {
    return take(bytes, ec);
  }
  void on_finish_impl(error_code&) override {}
};

// Beast sets no bound to what stands around the chunks. It is shown only as much of it as may stand there: whether all of
// that is there at once or comes byte by byte, the same is taken.
std::size_t RequestParser::Impl::put_chunks(std::string_view bytes, error_code& ec) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !is_done()) {
    const std::string_view left = bytes.substr(taken);
    if (wants_more && left.size() < kLastChunkBytes && may_be_last_chunk(left)) break;
    const std::string_view shown = left.substr(0, chunk_text_room());
    ec = {};
    const std::size_t used = put(boost::asio::const_buffer(shown.data(), shown.size()), ec);
    taken += used;
    wants_more = ec == http::error::need_more;
    if (ec && !wants_more) break;
    const bool too_long = wants_more && shown.size() - used >= chunk_text_room();
    if (too_long || chunk_text_room() < kLastChunkBytes) {
      refuse(Errc::too_large,
             fmt::format("the lines of the chunks and the fields behind the last one are longer than {} bytes",
                         kChunkTextBytesMax),
             431, ec);
      break;
    }
    if (used == 0) break;
  }
  return taken;
}

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;

std::expected<std::size_t, ParseProblem> RequestParser::feed(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const bool had_head = impl_->is_header_done();
  impl_->eager(had_head);
  error_code ec;
  const std::size_t taken = had_head && impl_->chunked()
                                ? impl_->put_chunks(bytes, ec)
                                : impl_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), ec);
  if (!had_head) impl_->head_bytes += taken;
  if (impl_->problem) return std::unexpected(*impl_->problem);
  if (!ec || ec == http::error::need_more) return taken;
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
    return std::unexpected(ParseProblem{
        {Errc::too_large, fmt::format("the head of the request is larger than {} bytes", kHeadBytesMax)}, 431});
  return std::unexpected(
      ParseProblem{{Errc::invalid_argument, fmt::format("not an HTTP request: {}", ec.message())}, 400});
}

bool RequestParser::head_done() const { return impl_->is_header_done(); }
bool RequestParser::done() const { return impl_->is_done(); }
bool RequestParser::started() const { return impl_->got_some(); }
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::http_1_0() const { return impl_->version == 10; }

std::optional<std::uint64_t> RequestParser::announced_bytes() const {
  const auto length = impl_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

void RequestParser::set_body_limit(std::size_t bytes) { impl_->body_bytes_max = bytes; }
std::size_t RequestParser::held_bytes() const { return impl_->head_bytes + impl_->request.body.capacity(); }
Request& RequestParser::request() { return impl_->request; }

}  // namespace belfry::server
