// The real client on real sockets, against a server in the same loop. Nothing here waits for time: every step waits for the
// one before it.
#include "belfry/net/socket_client.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/base/task_group.h"
#include "belfry/clock/real_clock.h"

namespace belfry::net {
namespace {

using namespace std::chrono_literals;
namespace ssl = asio::ssl;
using asio::ip::tcp;
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr auto kPatience = 30s;

// Lets one wait until another has done something.
class Gate {
 public:
  void open() {
    open_ = true;
    if (waiting_) std::exchange(waiting_, nullptr)(0);
  }
  Task<void> wait() {
    if (!open_) co_await suspend<int>([this](Resume<int> resume) { waiting_ = std::move(resume); });
  }

 private:
  bool open_ = false;
  Resume<int> waiting_;
};

// A CA, a certificate of it for the name localhost, and another CA; made once.
struct Certificates {
  Certificates() {
    folder = ::testing::TempDir() + fmt::format("/belfry-certificates-{}", ::getpid());
    std::filesystem::create_directories(folder);
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(fmt::format("req -x509 {} -keyout ca.key -out ca.pem -days 2 -subj /CN=belfry-ca", key));
    run(fmt::format("req -x509 {} -keyout other.key -out other.pem -days 2 -subj /CN=another-ca", key));
    run(fmt::format(
        "req {} -keyout server.key -out server.csr -subj /CN=localhost -addext subjectAltName=DNS:localhost", key));
    run("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out server.pem");
  }
  ~Certificates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  void run(const std::string& arguments) {
    const std::string command = fmt::format("cd '{}' && openssl {} 2>>log", folder, arguments);
    good = std::system(command.c_str()) == 0 && good;  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  }
  std::string file(const char* name) const { return folder + "/" + name; }

  std::string folder;
  bool good = true;
};

const Certificates& certificates() {
  static const Certificates all;
  return all;
}

struct Step {
  std::string bytes;
  Gate* after = nullptr;
};
enum class AtTheEnd { close, hang };

// Answers every connection with the same steps.
class Server {
 public:
  Server(asio::io_context& context, bool tls)
      : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), tasks_(context) {
    if (!tls) return;
    tls_.emplace(ssl::context::tls_server);
    tls_->use_certificate_chain_file(certificates().file("server.pem"));
    tls_->use_private_key_file(certificates().file("server.key"), ssl::context::pem);
  }

  void start() { tasks_.spawn("accept", accept()); }
  Task<void> stop() {
    acceptor_.close();
    over_.open();
    co_await tasks_.join();
  }
  int port() const { return acceptor_.local_endpoint().port(); }

  std::vector<Step> steps;
  AtTheEnd end = AtTheEnd::close;
  std::string heard;
  int served = 0;

 private:
  Task<void> accept() {
    while (true) {
      auto accepted = co_await acceptor_.async_accept(kAwait);
      auto& [ec, socket] = accepted;
      if (ec) co_return;
      if (tls_) {
        ssl::stream<tcp::socket> stream(std::move(socket), *tls_);
        const auto shaken = co_await stream.async_handshake(ssl::stream_base::server, kAwait);
        if (std::get<0>(shaken)) continue;
        co_await serve(stream);
        co_await stream.async_shutdown(kAwait);
      } else {
        co_await serve(socket);
      }
    }
  }
  template <class Stream>
  Task<void> serve(Stream& stream) {
    ++served;
    std::string piece(4096, '\0');
    while (!heard.ends_with("a body")) {
      const auto read = co_await stream.async_read_some(asio::buffer(piece), kAwait);
      const auto& [failed, count] = read;
      if (failed) co_return;
      heard.append(piece.data(), count);
    }
    for (const Step& step : steps) {
      if (step.after) co_await step.after->wait();
      co_await asio::async_write(stream, asio::buffer(step.bytes), kAwait);
    }
    if (end == AtTheEnd::hang) co_await over_.wait();
  }

  tcp::acceptor acceptor_;
  std::optional<ssl::context> tls_;
  Gate over_;
  TaskGroup tasks_;
};

class Sink final : public AnswerSink {
 public:
  void began(int code, std::optional<Millis> wait) override {
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(pieces.empty());
    status = code;
    retry_after = wait;
  }
  bool piece(std::string_view bytes) override {
    pieces.emplace_back(bytes);
    text += bytes;
    if (on_piece) on_piece();
    return text.size() < enough;
  }

  int status = 0;
  std::optional<Millis> retry_after;
  std::vector<std::string> pieces;
  std::string text;
  std::size_t enough = 1'000'000;
  std::function<void()> on_piece;
};

class SocketClientTest : public ::testing::Test {
 protected:
  WebRequest request(const Server& server, const std::string& origin) const {
    return {.url = parse_web_url(fmt::format("{}:{}/v1/x", origin, server.port())).value(),
            .body = "a body",
            .timeout = kPatience};
  }
  WebRequest tls_request(const Server& server, const char* host = "localhost", const char* ca = "ca.pem") const {
    WebRequest wanted = request(server, fmt::format("https://{}", host));
    if (ca) wanted.ca_file = certificates().file(ca);
    return wanted;
  }

  Task<void> run(Server& server, WebRequest wanted, Patience patience, std::optional<WebAnswer>& answer) {
    answer = co_await client.stream(std::move(wanted), patience, sink, cancel);
    co_await server.stop();
    co_await client.stop();
    clock.stop();
  }
  // Runs until the answer is there and everything has ended.
  WebAnswer stream(Server& server, WebRequest wanted, Patience patience = {}) {
    server.start();
    std::optional<WebAnswer> answer;
    bool stopped = false;
    asio::co_spawn(context, run(server, std::move(wanted), patience, answer), [&stopped](std::exception_ptr failure) {
      EXPECT_FALSE(failure);
      stopped = true;
    });
    while (!stopped && context.run_one_for(kPatience * 2) > 0) {
    }
    EXPECT_TRUE(stopped);
    return answer.value_or(WebAnswer{.what = "the test waited in vain"});
  }

  asio::io_context context;
  RealClock clock{context};
  SocketClient client{context, clock};
  Sink sink;
  std::shared_ptr<Cancel> cancel = std::make_shared<Cancel>();
};

const std::string kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nRetry-After: 3\r\n\r\n";

// The server sends the second chunk only when the sink has seen the first one.
void check_chunk_by_chunk(Sink& sink, Server& server, const std::function<WebAnswer()>& run) {
  Gate first;
  Gate second;
  server.steps = {{kHead + "4\r\ntick\r\n"}, {"5\r\n tock\r\n", &first}, {"0\r\n\r\n", &second}};
  sink.on_piece = [&] { (sink.pieces.size() == 1 ? first : second).open(); };

  const WebAnswer answer = run();

  EXPECT_EQ(answer.fate, Fate::answered) << answer.what;
  EXPECT_EQ(answer.what, "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(sink.retry_after, Millis{3'000});
  EXPECT_EQ(sink.pieces, (std::vector<std::string>{"tick", " tock"}));
}

TEST_F(SocketClientTest, AnAnswerComesChunkByChunkOverTls) {
  ASSERT_TRUE(certificates().good) << "see " << certificates().folder << "/log";
  Server server(context, true);
  check_chunk_by_chunk(sink, server, [&] { return stream(server, tls_request(server)); });
}

TEST_F(SocketClientTest, AnAnswerComesChunkByChunkWithoutTls) {
  Server server(context, false);
  check_chunk_by_chunk(sink, server, [&] { return stream(server, request(server, "http://127.0.0.1")); });
  EXPECT_TRUE(server.heard.starts_with("POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1:")) << server.heard;
}

TEST_F(SocketClientTest, AnotherNameThanTheCertificatesIsRefused) {
  Server server(context, true);
  const WebAnswer answer = stream(server, tls_request(server, "127.0.0.1"));
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_NE(answer.what.find("certificate verify failed"), std::string::npos) << answer.what;
  EXPECT_EQ(server.served, 0);
}

TEST_F(SocketClientTest, ACertificateOfAnotherAuthorityIsRefused) {
  Server server(context, true);
  const WebAnswer answer = stream(server, tls_request(server, "localhost", "other.pem"));
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_NE(answer.what.find("certificate verify failed"), std::string::npos) << answer.what;
  EXPECT_EQ(server.served, 0);
}

TEST_F(SocketClientTest, ALocalAuthorityIsNotTrustedUnlessNamed) {
  Server server(context, true);
  const WebAnswer answer = stream(server, tls_request(server, "localhost", nullptr));
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_EQ(server.served, 0);
}

TEST_F(SocketClientTest, AFileWithoutCertificatesIsSaidSo) {
  Server server(context, true);
  const WebAnswer answer = stream(server, tls_request(server, "localhost", "missing.pem"));
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_NE(answer.what.find("missing.pem"), std::string::npos) << answer.what;
}

TEST_F(SocketClientTest, WhatIsNotGoodIsInTheAnswerAndNotInTheSink) {
  Server server(context, false);
  server.steps = {{"HTTP/1.1 429 Busy\r\nRetry-After: 9\r\nContent-Length: 9\r\n\r\ntoo busy!"}};
  const WebAnswer answer = stream(server, request(server, "http://127.0.0.1"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.retry_after, Millis{9'000});
  EXPECT_EQ(answer.body, "too busy!");
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(sink.status, 429);
  EXPECT_TRUE(sink.pieces.empty());
}

TEST_F(SocketClientTest, ALongRefusalIsCut) {
  Server server(context, false);
  server.steps = {{"HTTP/1.1 500 Oh\r\n\r\n" + std::string(200'000, 'x')}};
  WebRequest wanted = request(server, "http://127.0.0.1");
  wanted.answer_bytes_max = 1'000'000;
  const WebAnswer answer = stream(server, std::move(wanted));
  EXPECT_EQ(answer.body.size(), kRefusalBytesMax);
  EXPECT_FALSE(answer.complete);
}

TEST_F(SocketClientTest, ACutAnswerIsNotComplete) {
  Server server(context, false);
  server.steps = {{kHead + "4\r\ntick\r\n9\r\n to"}};
  const WebAnswer answer = stream(server, request(server, "http://127.0.0.1"));
  EXPECT_EQ(answer.fate, Fate::answered);
  EXPECT_FALSE(answer.complete);
  EXPECT_NE(answer.what.find("breaks off"), std::string::npos) << answer.what;
  EXPECT_EQ(sink.text, "tick to");
}

TEST_F(SocketClientTest, AnAnswerThatIsTooLongIsNotReadToItsEnd) {
  Server server(context, false);
  server.steps = {{"HTTP/1.1 200 OK\r\n\r\n" + std::string(200'000, 'x')}};
  WebRequest wanted = request(server, "http://127.0.0.1");
  wanted.answer_bytes_max = 100'000;
  const WebAnswer answer = stream(server, std::move(wanted));
  EXPECT_EQ(sink.text.size(), 100'000u);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(answer.what, "the answer is too long");
}

TEST_F(SocketClientTest, ASinkThatHasEnoughEndsIt) {
  Server server(context, false);
  server.end = AtTheEnd::hang;
  server.steps = {{kHead + "4\r\ntick\r\n"}};
  sink.enough = 4;
  const WebAnswer answer = stream(server, request(server, "http://127.0.0.1"));
  EXPECT_EQ(answer.fate, Fate::answered);
  EXPECT_EQ(answer.what, "");
  EXPECT_EQ(sink.text, "tick");
}

TEST_F(SocketClientTest, CancelEndsItInTheMiddle) {
  Server server(context, true);
  server.end = AtTheEnd::hang;
  server.steps = {{kHead + "4\r\ntick\r\n"}};
  sink.on_piece = [this] { cancel->cancel(); };
  const WebAnswer answer = stream(server, tls_request(server));
  EXPECT_EQ(answer.fate, Fate::answered);
  EXPECT_FALSE(answer.complete);
  EXPECT_NE(answer.what.find("cancelled"), std::string::npos) << answer.what;
}

TEST_F(SocketClientTest, WhatWasCancelledBeforeIsNotSent) {
  Server server(context, false);
  cancel->cancel();
  const WebAnswer answer = stream(server, request(server, "http://localhost"));
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_EQ(server.served, 0);
}

TEST_F(SocketClientTest, ASilentServerIsGivenUp) {
  Server server(context, false);
  server.end = AtTheEnd::hang;
  const WebAnswer answer = stream(server, request(server, "http://127.0.0.1"), {.first_byte = 20ms});
  EXPECT_EQ(answer.fate, Fate::unanswered);
  EXPECT_NE(answer.what.find("no answer within 20 ms"), std::string::npos) << answer.what;
}

TEST_F(SocketClientTest, AServerThatFallsSilentIsGivenUp) {
  Server server(context, false);
  server.end = AtTheEnd::hang;
  server.steps = {{kHead + "4\r\ntick\r\n"}};
  const WebAnswer answer = stream(server, request(server, "http://127.0.0.1"), {.silence = 20ms});
  EXPECT_EQ(answer.fate, Fate::answered);
  EXPECT_NE(answer.what.find("nothing more within 20 ms"), std::string::npos) << answer.what;
  EXPECT_EQ(sink.text, "tick");
}

TEST_F(SocketClientTest, AConnectionThatIsNotMadeIsGivenUp) {
  // A server that accepts and never speaks TLS.
  Server server(context, false);
  const WebAnswer answer = stream(server, tls_request(server), {.connect = 20ms});
  EXPECT_EQ(answer.fate, Fate::not_sent);
  EXPECT_NE(answer.what.find("no connection within 20 ms"), std::string::npos) << answer.what;
}

}  // namespace
}  // namespace belfry::net
